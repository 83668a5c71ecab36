/* run/session/notes/activity.c - writes and reads the activity of a program. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/escapes.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/run/session/notes/activity.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

#define ACTIVITY_FILE "activity"
#define TEXT_AT   (20 + 1 + 20 + 1 + 3 + 1 + 3 + 1)
#define LINE      (TEXT_AT + HF_ACTIVITY_TEXT_MAX + 1)

#define ACTIVITY_COUNT(name, number, word) +1
#define N_STATES (0 HF_ACTIVITY_LIST(ACTIVITY_COUNT))

int hf_activity_read(struct hf_sessions *sessions, const char *name, uint64_t token, struct hf_activity_note *ret)
{
	char line[LINE];
	uint64_t run, at, state, ended;
	AUTO_FD dir = -1;
	AUTO_FD fd = -1;
	size_t len = HF_ACTIVITY_TEXT_MAX;

	if (hf_session_dir(sessions, name, 0, &dir, NULL) < 0 ||
	    hf_open_private(dir, ACTIVITY_FILE, O_RDONLY, "the activity", &fd, NULL, NULL) < 0 || hf_pread_all(fd, line, LINE, 0) != LINE ||
	    hf_parse_u64(line, 20, UINT64_MAX, &run) < 0 || hf_parse_u64(line + 21, 20, INT64_MAX, &at) < 0 ||
	    hf_parse_u64(line + 42, 3, N_STATES - 1, &state) < 0 || hf_parse_u64(line + 46, 3, 999, &ended) < 0 || run != token)
		return 0;
	while (len > 0 && line[TEXT_AT + len - 1] == ' ')
		len--;
	ret->activity = (enum hf_activity)state;
	ret->ended = (uint32_t)ended;
	ret->age_ns = hf_boot_now().ns - (int64_t)at;
	if (ret->age_ns < 0)
		ret->age_ns = 0;
	/* It may have changed during the read. */
	(void)hf_plain_text(ret->text, sizeof(ret->text), line + TEXT_AT, len);
	return 1;
}

int hf_activity_write(struct hf_sessions *sessions, const char *name, uint64_t token, const struct hf_activity_note *note, struct hf_err *err)
{
	char line[LINE + 1];
	int64_t since = hf_boot_now().ns;
	struct hf_activity_note before;
	AUTO_FD dir = -1;
	AUTO_FD fd = -1;
	size_t done;
	int r;

	if (hf_activity_read(sessions, name, token, &before) && before.activity == note->activity && strcmp(before.text, note->text) == 0)
		since -= before.age_ns;
	r = hf_session_dir(sessions, name, 0, &dir, err);
	if (r == 0)
		r = hf_open_private(dir, ACTIVITY_FILE, O_WRONLY | O_CREAT, "the activity", &fd, NULL, err);
	if (r < 0)
		return hf_err_wrap(err, r, "session", name);
	(void)snprintf(line, sizeof(line), "%020" PRIu64 " %020" PRId64 " %03u %03u %-*s\n", token, since, (unsigned)note->activity,
		       note->ended < 999 ? note->ended : 999, HF_ACTIVITY_TEXT_MAX, note->text);
	r = hf_pwrite_all(fd, line, LINE, 0, &done);
	return r < 0 ? hf_err_wrap(err, hf_fail_sys(err, -r, "pwrite", "the activity"), "session", name) : 0;
}

void hf_activity_forget(struct hf_sessions *sessions, const char *name)
{
	AUTO_FD dir = -1;

	if (hf_session_dir(sessions, name, 0, &dir, NULL) == 0)
		(void)hf_sys.unlinkat(dir, ACTIVITY_FILE, 0);
}

int hf_session_set_activity(struct hf_sessions *sessions, const char *name, uint64_t token, enum hf_activity state, const char *text, struct hf_err *err)
{
	struct hf_activity_note note = { .activity = HF_ACTIVITY_NONE };

	if ((unsigned)state >= N_STATES)
		return FAIL(err, -EINVAL, "arguments", "hf_session_set_activity", "unknown activity");
	(void)hf_activity_read(sessions, name, token, &note);
	note.activity = state;
	(void)hf_plain_text(note.text, sizeof(note.text), text ? text : "", text ? strlen(text) : 0);
	return hf_activity_write(sessions, name, token, &note, err);
}
