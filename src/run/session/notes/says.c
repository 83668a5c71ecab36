/* run/session/notes/says.c - writing and reading what a program says of itself. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/escapes.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/run/session/notes/says.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

#define SAYS_FILE "says"
#define TEXT_AT   (20 + 1 + 20 + 1 + 3 + 1 + 3 + 1)
#define LINE      (TEXT_AT + HF_SAYS_TEXT_MAX + 1)

#define SAYS_COUNT(name, number, word) +1
#define N_STATES (0 HF_SAYS_LIST(SAYS_COUNT))

int hf_said_read(struct hf_sessions *sessions, const char *name, uint64_t token, struct hf_said *ret)
{
	char line[LINE];
	uint64_t run, at, says, ended;
	AUTO_FD dir = -1;
	AUTO_FD fd = -1;
	size_t len = HF_SAYS_TEXT_MAX;

	if (hf_session_dir(sessions, name, 0, &dir, NULL) < 0 ||
	    hf_open_private(dir, SAYS_FILE, O_RDONLY, "what it says", &fd, NULL, NULL) < 0 || hf_pread_all(fd, line, LINE, 0) != LINE ||
	    hf_parse_u64(line, 20, UINT64_MAX, &run) < 0 || hf_parse_u64(line + 21, 20, INT64_MAX, &at) < 0 ||
	    hf_parse_u64(line + 42, 3, N_STATES - 1, &says) < 0 || hf_parse_u64(line + 46, 3, 999, &ended) < 0 || run != token)
		return 0;
	while (len > 0 && line[TEXT_AT + len - 1] == ' ')
		len--;
	ret->says = (enum hf_says)says;
	ret->ended = (uint32_t)ended;
	ret->age_ns = hf_boot_now().ns - (int64_t)at;
	if (ret->age_ns < 0)
		ret->age_ns = 0;
	/* Read without trust: it may have been changed while it was read. */
	(void)hf_plain_text(ret->text, sizeof(ret->text), line + TEXT_AT, len);
	return 1;
}

int hf_said_write(struct hf_sessions *sessions, const char *name, uint64_t token, const struct hf_said *said, struct hf_err *err)
{
	char line[LINE + 1];
	int64_t since = hf_boot_now().ns;
	struct hf_said before;
	AUTO_FD dir = -1;
	AUTO_FD fd = -1;
	size_t done;
	int r;

	if (hf_said_read(sessions, name, token, &before) && before.says == said->says && strcmp(before.text, said->text) == 0)
		since -= before.age_ns;
	r = hf_session_dir(sessions, name, 0, &dir, err);
	if (r == 0)
		r = hf_open_private(dir, SAYS_FILE, O_WRONLY | O_CREAT, "what it says", &fd, NULL, err);
	if (r < 0)
		return hf_err_wrap(err, r, "session", name);
	(void)snprintf(line, sizeof(line), "%020" PRIu64 " %020" PRId64 " %03u %03u %-*s\n", token, since, (unsigned)said->says,
		       said->ended < 999 ? said->ended : 999, HF_SAYS_TEXT_MAX, said->text);
	r = hf_pwrite_all(fd, line, LINE, 0, &done);
	return r < 0 ? hf_err_wrap(err, hf_fail_sys(err, -r, "pwrite", "what it says"), "session", name) : 0;
}

void hf_said_forget(struct hf_sessions *sessions, const char *name)
{
	AUTO_FD dir = -1;

	if (hf_session_dir(sessions, name, 0, &dir, NULL) == 0)
		(void)hf_sys.unlinkat(dir, SAYS_FILE, 0);
}

int hf_session_say(struct hf_sessions *sessions, const char *name, uint64_t token, enum hf_says says, const char *text, struct hf_err *err)
{
	struct hf_said said = { .says = HF_SAYS_NOTHING };

	if ((unsigned)says >= N_STATES)
		return FAIL(err, -EINVAL, "arguments", "hf_session_say", "there is no such state");
	(void)hf_said_read(sessions, name, token, &said);
	said.says = says;
	(void)hf_plain_text(said.text, sizeof(said.text), text ? text : "", text ? strlen(text) : 0);
	return hf_said_write(sessions, name, token, &said, err);
}
