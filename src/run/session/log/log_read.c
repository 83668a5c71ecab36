/*
 * run/session/log/log_read.c - reading a log over its parts, while it may grow and lose its oldest one.
 *
 * A position is an offset in the output of the run, whatever file that is in. A part is
 * complete once there is a later one, so the order is: read to its end, see that there is a next,
 * read to its end again, and only then go on.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/run/session/log/log.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

/* A part that was listed may be dropped before it is open; then there is a newer one. */
#define TRIES 8

/* Zeros of fewer bytes than that are read like any others. */
#define HOLE_MIN 4096

struct hf_log {
	int dirfd;
	int fd;                  /* of the part */
	int notify;              /* -1: nobody asked */
	struct hf_log_cursor cursor; /* in the index of the part */
	struct hf_log_part part;
	uint64_t at;             /* what is read next */
	uint64_t dropped;
};

void hf_log_free(struct hf_log *log)
{
	if (!log)
		return;
	hf_auto_close(&log->fd);
	hf_auto_close(&log->dirfd);
	hf_auto_close(&log->notify);
	hf_auto_close(&log->cursor.fd);
	free(log);
}

static void free_log(struct hf_log **log)
{
	hf_log_free(*log);
}

/* The parts of one run. */
static int list_run(const struct hf_log *log, struct hf_log_list *ret, struct hf_err *err)
{
	struct hf_log_list all;
	int r = hf_log_list(log->dirfd, &all);

	ret->n = 0;
	if (r < 0)
		return hf_fail_sys(err, -r, "readdir", "log");
	for (size_t i = 0; i < all.n; i++)
		if (all.parts[i].run == log->part.run)
			ret->parts[ret->n++] = all.parts[i];
	return 0;
}

/* The run whose log is to be read, by its number: 0 the last, 1 the one that was logged before. */
static int find_run(struct hf_log *log, struct hf_sessions *sessions, unsigned number, const char *name,
		    struct hf_err *err)
{
	struct hf_session_record record;
	struct hf_log_list all;
	uint64_t run = 0;
	int is_known = hf_session_load(sessions, name, &record, NULL) == 0;
	int r = hf_log_list(log->dirfd, &all);

	if (r < 0)
		return hf_fail_sys(err, -r, "readdir", name);
	/* Without a record that can be read, what is there counts. */
	if (all.n > 0 && is_known && !record.logged) {
		if (number == 0)
			return FAIL(err, -ENOENT, "log", name,
				    "its last run was not logged, but an earlier run was");
		number--;
	}
	/* The last run put out nothing yet: it has no file, and what is there is of runs before. */
	if (is_known && record.logged && record.log > (all.n ? all.parts[all.n - 1].run : 0)) {
		log->part.run = record.log;
		if (number == 0)
			return 0;
		number--;
	}
	for (size_t i = all.n; i > 0; i--) {
		if (all.parts[i - 1].run == run)
			continue;
		run = all.parts[i - 1].run;
		if (number-- == 0) {
			log->part.run = run;
			return 0;
		}
	}
	return FAIL(err, -ENOENT, "log", name, "no log exists");
}

/* Goes to the part that `at` is in, or the first after it; what lies between was dropped. */
static int go_to(struct hf_log *log, uint64_t at, struct hf_err *err)
{
	int r = 0;

	for (int i = 0; i < TRIES; i++) {
		struct hf_log_list list;
		AUTO_FD fd = -1;
		size_t k = 0;

		r = list_run(log, &list, err);
		if (r < 0)
			return r;
		if (list.n == 0 && log->fd < 0)
			return 0; /* not begun yet */
		if (list.n == 0)
			return FAIL(err, -ENOENT, "log", "log", "it was removed");
		while (k + 1 < list.n && list.parts[k + 1].at <= at)
			k++;
		r = hf_log_open_part(log->dirfd, &list.parts[k], O_RDONLY, &fd,
				     i + 1 < TRIES ? NULL : err);
		if (r < 0)
			continue;
		hf_auto_close(&log->fd);
		log->fd = fd_take(&fd);
		hf_log_cursor_take(&log->cursor, hf_log_open_index(log->dirfd, &list.parts[k], O_RDONLY));
		log->part = list.parts[k];
		log->at = at;
		if (log->part.at > at) {
			log->dropped += log->part.at - at;
			log->at = log->part.at;
		}
		return 0;
	}
	return r;
}

static int open_log(struct hf_sessions *sessions, const char *name, unsigned number, struct hf_log **ret_log,
		    struct hf_err *err)
{
	AUTO(free_log) struct hf_log *log = NULL;
	AUTO_FD dirfd = -1;
	int r = ret_log ? hf_session_dir(sessions, name, 0, &dirfd, err)
			: FAIL(err, -EINVAL, "arguments", "hf_session_log", "NULL");

	if (r < 0)
		return r;
	if (number > 1)
		return FAIL(err, -EINVAL, "log", name, "log 0 is the present log, log 1 the previous one");
	log = calloc(1, sizeof(*log));
	if (!log)
		return hf_fail_sys(err, ENOMEM, "memory", name);
	log->dirfd = fd_take(&dirfd);
	log->fd = -1;
	log->notify = -1;
	log->cursor.fd = -1;
	r = find_run(log, sessions, number, name, err);
	if (r == 0)
		r = go_to(log, 0, err);
	if (r < 0)
		return r;
	*ret_log = ptr_take(&log);
	return 0;
}

int hf_session_log(struct hf_sessions *sessions, const char *name, unsigned number,
		   struct hf_log **ret_log, struct hf_err *err)
{
	return hf_err_wrap(err, open_log(sessions, name, number, ret_log, err), "session", name);
}

/* 1 when there is a later part. */
static int has_next(const struct hf_log *log, struct hf_log_part *ret, struct hf_err *err)
{
	struct hf_log_list list;
	int r = list_run(log, &list, err);

	for (size_t i = 0; r == 0 && i < list.n; i++)
		if (list.parts[i].at > log->part.at) {
			*ret = list.parts[i];
			return 1;
		}
	return r;
}

static ssize_t read_part(const struct hf_log *log, void *to, size_t cap)
{
	ssize_t n;

	do
		n = hf_sys.pread(log->fd, to, cap, (off_t)(log->at - log->part.at));
	while (n < 0 && errno == EINTR);
	return n;
}

/* Passes over a hole that was planted: no output of a command has one. Returns 1 when it did. */
static int skip_hole(struct hf_log *log, const char *bytes, size_t n)
{
	off_t at = (off_t)(log->at - log->part.at), end;
	struct stat st;

	if (n < HOLE_MIN || !hf_is_zero(bytes, n) || hf_stat_at(log->fd, "", &st) < 0)
		return 0;
	end = hf_hole_end(log->fd, at, st.st_size);
	if (end - at < (off_t)n)
		return 0;
	log->at += (uint64_t)(end - at);
	log->dropped += (uint64_t)(end - at);
	return 1;
}

/* As far as it is of one span. */
static size_t cut_to_span(struct hf_log *log, size_t n, struct hf_log_span *ret)
{
	uint64_t border = hf_log_cursor_go(&log->cursor, log->at, ret);

	return border - log->at < n ? (size_t)(border - log->at) : n;
}

static int read_on(struct hf_log *log, void *to, size_t cap, struct hf_log_span *ret_span, struct hf_err *err)
{
	char events[1024];
	int complete = 0;

	/* What comes from here on is told anew. */
	while (log->notify >= 0 && hf_sys.read(log->notify, events, sizeof(events)) > 0)
		continue;
	if (log->fd < 0) {
		int r = go_to(log, 0, err);

		if (r < 0 || log->fd < 0)
			return r;
	}
	for (;;) {
		struct hf_log_part next = { 0 };
		ssize_t n = read_part(log, to, cap > INT_MAX ? INT_MAX : cap);
		int r;

		if (n < 0)
			return FAIL_SYS(err, "read", "log");
		if (n > 0 && skip_hole(log, to, (size_t)n))
			continue;
		if (n > 0) {
			n = ret_span ? (ssize_t)cut_to_span(log, (size_t)n, ret_span) : n;
			log->at += (uint64_t)n;
			return (int)n;
		}
		r = has_next(log, &next, err);
		if (r <= 0)
			return r;
		if (!complete) {
			complete = 1;
			continue;
		}
		/* To the very next byte; where a power cut took the end of this part, to the next part. */
		r = go_to(log, log->at, err);
		if (r == 0 && log->part.at < next.at) {
			log->dropped += next.at - log->at;
			r = go_to(log, next.at, err);
		}
		if (r < 0)
			return r;
		complete = 0;
	}
}

int hf_log_read(struct hf_log *log, void *to, size_t cap, struct hf_err *err)
{
	if (!log || !to)
		return FAIL(err, -EINVAL, "arguments", "hf_log_read", "NULL");
	return read_on(log, to, cap, NULL, err);
}

int hf_log_read_span(struct hf_log *log, void *to, size_t cap, struct hf_log_span *ret_span, struct hf_err *err)
{
	if (!log || !to || !ret_span)
		return FAIL(err, -EINVAL, "arguments", "hf_log_read_span", "NULL");
	return read_on(log, to, cap, ret_span, err);
}

/* -- the last lines ------------------------------------------------------------------- */

struct tail {
	uint64_t wanted, seen;
	int begun; /* the last byte was looked at */
};

/* Backwards through one part. Returns where the wanted lines begin in it, or -1. */
static off_t scan_back(int fd, struct tail *tail)
{
	struct stat st;
	off_t at = hf_stat_at(fd, "", &st) == 0 ? st.st_size : 0;
	char chunk[4096];

	while (at > 0) {
		off_t from = at > (off_t)sizeof(chunk) ? at - (off_t)sizeof(chunk) : 0;
		ssize_t n = hf_pread_all(fd, chunk, (size_t)(at - from), from);

		if (n <= 0)
			break;
		if (n == (ssize_t)sizeof(chunk) && hf_is_zero(chunk, sizeof(chunk))) {
			off_t data = hf_data_end(fd, at);

			if (data <= from) {
				at = data;
				continue;
			}
		}
		/* A last line without its newline counts as one. */
		if (!tail->begun && chunk[n - 1] != '\n')
			tail->seen = 1;
		tail->begun = 1;
		for (ssize_t i = n - 1; i >= 0; i--)
			if (chunk[i] == '\n' && tail->seen++ == tail->wanted)
				return from + i + 1;
		at = from;
	}
	return -1;
}

int hf_log_tail(struct hf_log *log, uint64_t lines, struct hf_err *err)
{
	struct tail tail = { .wanted = lines };
	struct hf_log_list list;
	int r = log ? list_run(log, &list, err) : FAIL(err, -EINVAL, "arguments", "hf_log_tail", "NULL");

	if (r < 0)
		return r;
	log->dropped = 0;
	for (size_t i = list.n; i > 0; i--) {
		AUTO_FD fd = -1;
		off_t at;

		/* One that is gone by now has nothing before it either. */
		if (hf_log_open_part(log->dirfd, &list.parts[i - 1], O_RDONLY, &fd, NULL) < 0)
			break;
		at = scan_back(fd, &tail);
		if (at >= 0)
			return go_to(log, list.parts[i - 1].at + (uint64_t)at, err);
	}
	return go_to(log, 0, err);
}

uint64_t hf_log_dropped(const struct hf_log *log)
{
	return log ? log->dropped : 0;
}

int hf_log_fd(struct hf_log *log, struct hf_err *err)
{
	AUTO_FD fd = -1;
	char path[40];

	if (!log)
		return FAIL(err, -EINVAL, "arguments", "hf_log_fd", "NULL");
	if (log->notify >= 0)
		return log->notify;
	fd = hf_sys.inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	/* The directory: a part that grows and one that is new. */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", log->dirfd);
	if (fd < 0 || hf_sys.inotify_add_watch(fd, path, IN_MODIFY | IN_CREATE) < 0)
		return FAIL_SYS(err, "inotify", "log");
	log->notify = fd_take(&fd);
	return log->notify;
}
