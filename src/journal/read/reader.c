/* journal/read/reader.c - valid records in order, and sleeping until there are more. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/journal/write/counters.h"
#include "hf/journal/line.h"
#include "hf/journal/read/scan.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/fd/poll.h"
#include "hf/sys/state/state.h"

struct hf_journal_reader {
	struct hf_scan scan;
	json_t *root; /* of the record given last */
	uint64_t damaged, restarts;
	int inotify;  /* -1: not waited yet */
	int watching; /* 1: the journal's directory and its parent; 0: only the parent so far */
};

void hf_journal_reader_free(struct hf_journal_reader *reader)
{
	if (!reader)
		return;
	json_decref(reader->root);
	hf_scan_done(&reader->scan);
	hf_auto_close(&reader->inotify);
	free(reader);
}

int hf_journal_read(const struct hf_state *state, struct hf_journal_reader **ret_reader,
		    struct hf_err *err)
{
	AUTO_FREE struct hf_journal_reader *reader = NULL;
	int r;

	if (!state || !ret_reader)
		return FAIL(err, -EINVAL, "arguments", "hf_journal_read", "NULL");
	reader = calloc(1, sizeof(*reader));
	if (!reader)
		return hf_fail_sys(err, ENOMEM, "memory", "journal");
	reader->inotify = -1;
	r = hf_scan_open(state, &reader->scan, err);
	if (r < 0)
		return r;
	*ret_reader = ptr_take(&reader);
	return 0;
}

uint64_t hf_journal_reader_damaged(const struct hf_journal_reader *reader)
{
	return reader->damaged;
}

uint64_t hf_journal_reader_restarts(const struct hf_journal_reader *reader)
{
	return reader->restarts;
}

int hf_journal_next(struct hf_journal_reader *reader, struct hf_record *ret_record,
		    struct hf_err *err)
{
	json_decref(reader->root);
	reader->root = NULL;
	for (;;) {
		struct hf_scan_line line;
		int r = hf_scan_next(&reader->scan, &line, err);

		if (r == HF_SCAN_END || r < 0)
			return r;
		if (r == HF_SCAN_LINE) {
			r = hf_line_decode(line.text, line.len, ret_record, &reader->root);
			if (r == 0)
				return 1;
		}
		reader->damaged++;
	}
}

static int add_watch(struct hf_journal_reader *reader, int dirfd, uint32_t mask, struct hf_err *err)
{
	char path[64];

	/* By descriptor, so that it is the directory we read and no other. */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", dirfd);
	if (hf_sys.inotify_add_watch(reader->inotify, path, mask) < 0)
		return FAIL_SYS(err, "inotify_add_watch", "journal");
	return 0;
}

/* Watches the journal's directory, if it exists, and its parent: there a new one begins. */
static int add_watches(struct hf_journal_reader *reader, struct hf_err *err)
{
	const uint32_t names = IN_CREATE | IN_MOVED_TO;
	int on_journal = reader->scan.dirfd >= 0;
	int r = add_watch(reader, hf_state_dirfd(reader->scan.state), names, err);

	if (r == 0 && on_journal)
		r = add_watch(reader, reader->scan.dirfd, names | IN_MODIFY | IN_DELETE | IN_ATTRIB, err);
	if (r == 0)
		reader->watching = on_journal;
	return r;
}

/* Returns 0 when it was watching already, 1 when it has just begun, -errno. */
static int start_watching(struct hf_journal_reader *reader, struct hf_err *err)
{
	int r;

	if (reader->inotify >= 0 && (reader->watching || reader->scan.dirfd < 0))
		return 0;
	if (reader->inotify < 0) {
		int fd = hf_sys.inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

		if (fd < 0)
			return FAIL_SYS(err, "inotify_init1", "journal");
		reader->inotify = fd;
	}
	r = add_watches(reader, err);
	return r < 0 ? r : 1;
}

static int sleep_for_more(struct hf_journal_reader *reader, int64_t timeout_ns, struct hf_err *err)
{
	char events[4096] __attribute__((aligned(8)));
	struct hf_mono deadline = hf_mono_limit(timeout_ns);
	struct pollfd p = { .events = POLLIN };
	int r;

	r = start_watching(reader, err);
	/* Just begun: what came between the last read and the watch is not announced. */
	if (r != 0)
		return r;
	p.fd = reader->inotify;
	r = hf_poll_until(&p, 1, deadline);
	if (r < 0)
		return hf_fail_sys(err, -r, "poll", "journal");
	if (r == 0)
		return 0;
	/* The events themselves do not matter, nor whether some were lost: look again. */
	while (hf_sys.read(reader->inotify, events, sizeof(events)) > 0)
		continue;
	return 1;
}

int hf_journal_wait(struct hf_journal_reader *reader, int64_t timeout_ns, struct hf_err *err)
{
	int r = sleep_for_more(reader, timeout_ns, err);
	int again = r > 0 ? hf_scan_again(&reader->scan, err) : 0;

	if (again < 0)
		return again;
	if (again > 0) {
		reader->restarts++;
		reader->watching = 0; /* of the new one */
	}
	return r;
}

int hf_journal_totals(const struct hf_state *state, struct hf_journal_totals *ret_totals,
		      struct hf_err *err)
{
	AUTO(hf_segment_list_done) struct hf_segment_list list = { 0 };
	struct hf_journal_totals totals = { 0 };
	struct hf_counters counters = { 0 };
	AUTO_FD dirfd = -1;
	AUTO_FD fd = -1;
	struct stat st;
	int r;

	r = hf_state_subdir(state, "journal", 0, &dirfd, err);
	if (r == -ENOENT) {
		*ret_totals = totals;
		return 0;
	}
	if (r < 0)
		return r;
	r = hf_counters_open(dirfd, 0, &fd, err);
	if (r < 0 && r != -ENOENT)
		return r;
	if (r == 0)
		(void)hf_counters_read(fd, &counters);
	r = hf_segment_list(dirfd, &list);
	if (r < 0)
		return hf_fail_sys(err, -r, "readdir", "journal");
	totals.seq = counters.seq;
	totals.lost = counters.lost;
	totals.segments = list.count;
	for (size_t i = 0; i < list.count; i++)
		totals.bytes += list.items[i].bytes;
	if (hf_sys.fstatat(dirfd, HF_SEGMENT_ACTIVE, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		totals.bytes += (uint64_t)st.st_size;
		totals.segments++;
	}
	*ret_totals = totals;
	return 0;
}
