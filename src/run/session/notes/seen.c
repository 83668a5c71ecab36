/* run/session/notes/seen.c - noting that a run was seen. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/run/session/inspect.h"
#include "hf/run/session/notes/seen.h"
#include "hf/sys/io.h"

#define SEEN_FILE "seen"
#define LINE      (20 + 1)

static int note(struct hf_sessions *sessions, const char *name, uint64_t token, struct hf_err *err)
{
	char line[LINE + 1];
	AUTO_FD dir = -1;
	AUTO_FD fd = -1;
	size_t done;
	int r = hf_session_dir(sessions, name, 0, &dir, err);

	if (r == 0)
		r = hf_open_private(dir, SEEN_FILE, O_WRONLY | O_CREAT, SEEN_FILE, &fd, NULL, err);
	if (r < 0)
		return r;
	(void)snprintf(line, sizeof(line), "%020" PRIu64 "\n", token);
	r = hf_pwrite_all(fd, line, LINE, 0, &done);
	return r < 0 ? hf_fail_sys(err, -r, "pwrite", SEEN_FILE) : 0;
}

static int set_seen(struct hf_sessions *sessions, const char *name, uint64_t token, struct hf_err *err)
{
	struct hf_session_record record;
	struct hf_session_owner owner;
	int r = hf_session_load_kept(sessions, name, &record, &owner, err);

	if (r < 0)
		return r;
	/* A run that has not written its record yet, or whose record is damaged: its lock knows the token. */
	if (r > 0) {
		record.token = owner.token;
		hf_copy_text(record.name, sizeof(record.name), name);
	}
	r = hf_session_check_run(&record, token, "seen", err);
	return r < 0 ? r : note(sessions, name, record.token, err);
}

int hf_session_set_seen(struct hf_sessions *sessions, const char *name, uint64_t token, struct hf_err *err)
{
	return hf_err_wrap(err, set_seen(sessions, name, token, err), "session", name);
}

int hf_session_is_seen(struct hf_sessions *sessions, const char *name, uint64_t token)
{
	char line[LINE];
	uint64_t seen;
	AUTO_FD dir = -1;
	AUTO_FD fd = -1;

	return hf_session_dir(sessions, name, 0, &dir, NULL) == 0 &&
	       hf_open_private(dir, SEEN_FILE, O_RDONLY, SEEN_FILE, &fd, NULL, NULL) == 0 &&
	       hf_pread_all(fd, line, LINE, 0) == LINE && hf_parse_u64(line, 20, UINT64_MAX, &seen) == 0 && seen == token;
}
