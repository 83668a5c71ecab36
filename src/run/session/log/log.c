/* run/session/log/log.c - the parts of logs: listing, beginning, writing, dropping the oldest. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/run/session/log/log.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"

#define PREFIX   "log."
#define INDEX    "idx."
#define NAME_LEN 64

/* -- names ------------------------------------------------------------------------ */

static void part_name(const struct hf_log_part *part, char out[NAME_LEN])
{
	(void)snprintf(out, NAME_LEN, PREFIX "%llu.%llu", (unsigned long long)part->run,
		       (unsigned long long)part->at);
}

static void index_name(const struct hf_log_part *part, char out[NAME_LEN])
{
	(void)snprintf(out, NAME_LEN, INDEX "%llu.%llu", (unsigned long long)part->run,
		       (unsigned long long)part->at);
}

/* Only what part_name writes: one number has one text. */
static int parse_name(const char *name, struct hf_log_part *ret)
{
	const char *run = name + sizeof(PREFIX) - 1, *dot;

	if (strncmp(name, PREFIX, sizeof(PREFIX) - 1) != 0 || !(dot = strchr(run, '.')))
		return 0;
	return hf_parse_u64_canonical(run, (size_t)(dot - run), INT64_MAX - 1, &ret->run) == 0 &&
	       hf_parse_u64_canonical(dot + 1, strlen(dot + 1), INT64_MAX, &ret->at) == 0;
}

static int is_before(const struct hf_log_part *a, const struct hf_log_part *b)
{
	return a->run != b->run ? a->run < b->run : a->at < b->at;
}

/* Puts it in its place; when there is no room, the oldest is left out. */
static void insert(struct hf_log_list *list, const struct hf_log_part *part)
{
	size_t i;

	if (list->n == HF_LOG_LIST) {
		if (is_before(part, &list->parts[0]))
			return;
		memmove(list->parts, list->parts + 1, --list->n * sizeof(*part));
	}
	for (i = list->n++; i > 0 && is_before(part, &list->parts[i - 1]); i--)
		list->parts[i] = list->parts[i - 1];
	list->parts[i] = *part;
}

int hf_log_list(int dirfd, struct hf_log_list *ret)
{
	struct hf_log_list list = { .n = 0 };
	AUTO_DIR dir = NULL;
	struct dirent *entry;
	int r = hf_open_dir(dirfd, ".", &dir);

	if (r < 0)
		return r;
	while ((entry = readdir(dir))) {
		struct hf_log_part part;

		if (parse_name(entry->d_name, &part))
			insert(&list, &part);
	}
	*ret = list;
	return 0;
}

int hf_log_open_part(int dirfd, const struct hf_log_part *part, int flags, int *ret_fd,
		     struct hf_err *err)
{
	char name[NAME_LEN];

	part_name(part, name);
	return hf_open_private(dirfd, name, flags, name, ret_fd, NULL, err);
}

static int make_part(int dirfd, const struct hf_log_part *part)
{
	char name[NAME_LEN];

	part_name(part, name);
	return hf_create_at(dirfd, name, O_RDWR | O_APPEND, 0600);
}

/* A log whose index cannot be made goes on without. */
static int make_index(int dirfd, const struct hf_log_part *part)
{
	char name[NAME_LEN];

	index_name(part, name);
	return hf_create_at(dirfd, name, O_RDWR | O_APPEND, 0600);
}

int hf_log_open_index(int dirfd, const struct hf_log_part *part, int flags)
{
	char name[NAME_LEN];
	int fd;

	index_name(part, name);
	return hf_open_private(dirfd, name, flags, name, &fd, NULL, NULL) == 0 ? fd : -1;
}

static void remove_part(int dirfd, const struct hf_log_part *part)
{
	char name[NAME_LEN];

	part_name(part, name);
	(void)hf_sys.unlinkat(dirfd, name, 0);
	index_name(part, name);
	(void)hf_sys.unlinkat(dirfd, name, 0);
}

/* -- writing ------------------------------------------------------------------------ */

void hf_log_writer_done(struct hf_log_writer *log)
{
	hf_auto_close(&log->fd);
	hf_auto_close(&log->dirfd);
	hf_auto_close(&log->index.fd);
}

static void measure_part(struct hf_log_writer *log)
{
	struct stat st;

	if (hf_stat_at(log->fd, "", &st) == 0)
		log->size = (uint64_t)st.st_size;
}

/* All but the run that begins now and the one before it. */
static void drop_runs(int dirfd, const struct hf_log_list *list, uint64_t newest)
{
	uint64_t before = list->n ? list->parts[list->n - 1].run : 0;

	for (size_t i = 0; i < list->n; i++)
		if (list->parts[i].run != newest && list->parts[i].run != before)
			remove_part(dirfd, &list->parts[i]);
}

int hf_log_begin(struct hf_log_writer *log, struct hf_sessions *sessions, const char *name,
		 uint64_t token, int keep, uint64_t max, struct hf_err *err)
{
	struct hf_log_list list;
	struct hf_log_part last = { 0 };
	int r = hf_session_dir(sessions, name, 1, &log->dirfd, err);

	if (r < 0)
		return r;
	r = hf_log_list(log->dirfd, &list);
	if (r < 0)
		return hf_fail_sys(err, -r, "readdir", name);
	if (list.n > 0)
		last = list.parts[list.n - 1];
	log->part_max = max / 2;
	if (keep && list.n > 0) {
		log->part = last;
		r = hf_log_open_part(log->dirfd, &last, O_RDWR | O_APPEND, &log->fd, err);
		if (r < 0)
			return r;
		measure_part(log);
		hf_log_index_take(&log->index, hf_log_open_index(log->dirfd, &last, O_RDWR | O_APPEND));
		if (log->index.fd < 0)
			hf_log_index_take(&log->index, make_index(log->dirfd, &last));
		return 0;
	}
	/* Tokens rise; where a user has put another name here, this log is the newest all the same. */
	log->part.run = last.run < token ? token : last.run + 1;
	log->fd = make_part(log->dirfd, &log->part);
	if (log->fd < 0)
		return hf_fail_sys(err, -log->fd, "openat", "log");
	hf_log_index_take(&log->index, make_index(log->dirfd, &log->part));
	drop_runs(log->dirfd, &list, log->part.run);
	return 0;
}

void hf_log_begin_later(struct hf_log_writer *log, const struct hf_log_plan *plan)
{
	log->plan = *plan;
}

int hf_log_is_on(const struct hf_log_writer *log)
{
	return log->fd >= 0 || log->plan.sessions;
}

/* There is output. 1 when there is a log to write it to. */
static int begin_now(struct hf_log_writer *log)
{
	const struct hf_log_plan *plan = &log->plan;

	if (log->fd >= 0)
		return 1;
	if (!plan->sessions)
		return 0;
	hf_auto_close(&log->dirfd);
	return hf_log_begin(log, plan->sessions, plan->name, plan->token, plan->keep, plan->max, NULL) == 0;
}

uint64_t hf_log_run(struct hf_sessions *sessions, const char *name, uint64_t token, int keep)
{
	struct hf_log_list list;
	AUTO_FD dirfd = -1;

	if (keep && hf_session_dir(sessions, name, 0, &dirfd, NULL) == 0 && hf_log_list(dirfd, &list) == 0 && list.n > 0)
		return list.parts[list.n - 1].run;
	return token;
}

/*
 * The next part. The older one goes first: that is what makes room, and a crash in between
 * leaves the newer one, whole. Where the next cannot be made, this one is gone on with, and
 * it is tried again.
 */
static void rotate(struct hf_log_writer *log)
{
	struct hf_log_part next = { .run = log->part.run, .at = log->part.at + log->size };
	struct hf_log_list list;
	int fd;

	if (log->size == 0)
		return;
	if (hf_log_list(log->dirfd, &list) == 0)
		for (size_t i = 0; i < list.n; i++)
			if (list.parts[i].run == next.run && list.parts[i].at < log->part.at)
				remove_part(log->dirfd, &list.parts[i]);
	fd = make_part(log->dirfd, &next);
	if (fd < 0)
		return;
	hf_auto_close(&log->fd);
	log->fd = fd;
	log->part = next;
	log->size = 0;
	log->full = 0;
	hf_log_index_take(&log->index, make_index(log->dirfd, &next));
}

/* 1 when all of it was written. */
static int put(struct hf_log_writer *log, const char *bytes, size_t n)
{
	if (hf_write_all(log->fd, bytes, n) == 0) {
		log->size += n;
		return 1;
	}
	measure_part(log);
	return 0;
}

/* A reader is to know that something is missing here. */
static void tell_lost(struct hf_log_writer *log)
{
	char text[80];
	int n;

	if (log->lost == 0)
		return;
	n = snprintf(text, sizeof(text), "\n[holdfast: %llu bytes of output could not be written]\n",
		     (unsigned long long)log->lost);
	if (put(log, text, (size_t)n))
		log->lost = 0;
}

static void append(struct hf_log_writer *log, enum hf_log_stream stream, const char *bytes, size_t n)
{
	struct hf_log_span span = { .at = hf_wall_now(), .attempt = log->attempt, .stream = stream };

	/* Before the bytes: a reader that has them knows what they are. */
	hf_log_index_note(&log->index, log->part.at + log->size, &span);
	tell_lost(log);
	if (n > 0 && (log->lost > 0 || !put(log, bytes, n)))
		log->lost += n;
}

/*
 * How much of it goes to this part: up to the last line that ends in it, once there is no
 * room for another chunk. A line that does not end within that is cut.
 */
static size_t share(struct hf_log_writer *log, const char *bytes, size_t n)
{
	uint64_t size = log->size + log->index.size + HF_LOG_MARKS_MAX;
	size_t room = size < log->part_max ? (size_t)(log->part_max - size) : 0;
	const char *end;

	if (log->part_max == 0 || room >= n + HF_LOG_CHUNK)
		return n;
	end = memrchr(bytes, '\n', n < room ? n : room);
	if (!end)
		return n <= room ? n : 0;
	log->full = 1;
	return (size_t)(end + 1 - bytes);
}

void hf_log_write(struct hf_log_writer *log, enum hf_log_stream stream, const char *bytes, size_t n)
{
	size_t here;

	if (!begin_now(log)) {
		log->lost += n;
		return;
	}
	if (log->full)
		rotate(log);
	here = share(log, bytes, n);
	append(log, stream, bytes, here);
	if (here == n)
		return;
	rotate(log);
	append(log, stream, bytes + here, n - here);
}

/* -- figures -------------------------------------------------------------------------- */

int hf_log_measure(struct hf_sessions *sessions, const char *name, uint64_t run, struct hf_log_figures *ret)
{
	struct hf_log_figures figures = { .dropped = -1 };
	struct hf_log_list list;
	AUTO_FD dirfd = -1;
	int r = hf_session_dir(sessions, name, 0, &dirfd, NULL);

	if (r == 0)
		r = hf_log_list(dirfd, &list);
	if (r < 0)
		return r;
	/* A run that put out nothing has no file. */
	if (run != 0 && (list.n == 0 || list.parts[list.n - 1].run < run)) {
		*ret = (struct hf_log_figures){ 0 };
		return 0;
	}
	if (list.n == 0)
		return -ENOENT;
	for (size_t i = 0; i < list.n; i++) {
		char part[NAME_LEN];
		struct stat st;

		part_name(&list.parts[i], part);
		if (list.parts[i].run != list.parts[list.n - 1].run ||
		    hf_sys.fstatat(dirfd, part, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (figures.dropped < 0)
			figures.dropped = (int64_t)list.parts[i].at;
		figures.bytes += st.st_size;
		figures.changed.ns = (int64_t)st.st_mtim.tv_sec * HF_SEC + st.st_mtim.tv_nsec;
	}
	/* Dropped between the list and the look, all of it: it goes on all the same. */
	if (figures.dropped < 0)
		return -ENOENT;
	*ret = figures;
	return 0;
}
