/* run/session/notes/beat.c - writing and reading the heartbeat of a session. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/run/session/notes/beat.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

#define BEAT_FILE "beat"
#define LINE      (20 + 1 + 20 + 1 + 1 + 1)

int hf_session_beat(struct hf_sessions *sessions, const char *name, uint64_t token, int busy, struct hf_err *err)
{
	char line[LINE + 1];
	AUTO_FD dir = -1;
	AUTO_FD fd = -1;
	size_t done;
	int r = hf_session_dir(sessions, name, 0, &dir, err);

	if (r == 0)
		r = hf_open_private(dir, BEAT_FILE, O_WRONLY | O_CREAT, "the heartbeat", &fd, NULL, err);
	if (r < 0)
		return hf_err_wrap(err, r, "session", name);
	(void)snprintf(line, sizeof(line), "%020" PRIu64 " %020" PRId64 " %d\n", token, hf_boot_now().ns, busy != 0);
	r = hf_pwrite_all(fd, line, LINE, 0, &done);
	return r < 0 ? hf_err_wrap(err, hf_fail_sys(err, -r, "pwrite", "the heartbeat"), "session", name) : 0;
}

int64_t hf_beat_age(struct hf_sessions *sessions, const char *name, uint64_t token)
{
	char line[LINE];
	uint64_t run, at, busy;
	AUTO_FD dir = -1;
	AUTO_FD fd = -1;
	int64_t age;

	if (hf_session_dir(sessions, name, 0, &dir, NULL) < 0 ||
	    hf_open_private(dir, BEAT_FILE, O_RDONLY, "the heartbeat", &fd, NULL, NULL) < 0 ||
	    hf_pread_all(fd, line, LINE, 0) != LINE || hf_parse_u64(line, 20, UINT64_MAX, &run) < 0 ||
	    hf_parse_u64(line + 21, 20, INT64_MAX, &at) < 0 || hf_parse_u64(line + 42, 1, 1, &busy) < 0 || run != token)
		return -1;
	age = hf_boot_now().ns - (int64_t)at;
	if (age < 0 || (busy && age < HF_RUN_BUSY_NS))
		return 0;
	return age;
}
