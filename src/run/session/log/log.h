/*
 * run/session/log/log.h - the log of a run, in parts that are named by where they begin.
 *
 *     log.<token of the run>.<offset of the part in the run's output>
 *
 * A log that has a limit is kept in two parts of half of it. Full, the older one is removed
 * and the next begun under the name of the byte it begins with: no file is ever renamed or
 * cut, so a reader that is anywhere in the output goes on there, and a crash at any
 * point leaves names that say what is there and how much was dropped before it. Beside each part is its index
 * (log_index.h), which counts for the limit and goes with its part.
 */
#ifndef RUN_SESSION_LOG_LOG_H
#define RUN_SESSION_LOG_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "hf/run/session/log/log_index.h"
#include "hf/run/session/record/store.h"

#define HF_LOG_CHUNK 16384 /* the most that is written at once; a part has room for two */
#define HF_LOG_LIST  16    /* parts that are looked at: two runs of two parts, and what a crash left */

struct hf_log_part {
	uint64_t run; /* the token it was begun under */
	uint64_t at;  /* where in the output it begins */
};

struct hf_log_list {
	struct hf_log_part parts[HF_LOG_LIST]; /* by run, then by place */
	size_t n;
};

/* The newest parts that there are. 0 or -errno. */
int hf_log_list(int dirfd, struct hf_log_list *ret);

/* Opens a part, which must be a file of ours. */
int hf_log_open_part(int dirfd, const struct hf_log_part *part, int flags, int *ret_fd,
		     struct hf_err *err);

/* Opens the index of a part; -1: there is none that can be used. */
int hf_log_open_index(int dirfd, const struct hf_log_part *part, int flags);

/* The log that is being written. */
struct hf_log_writer {
	int fd;            /* -1: none */
	int dirfd;
	struct hf_log_index index;
	uint32_t attempt;  /* to which what is written belongs */
	struct hf_log_plan {
		struct hf_sessions *sessions; /* NULL: none; else it begins with the first output */
		const char *name;
		uint64_t token, max;
		int keep;
	} plan;
	struct hf_log_part part;
	uint64_t size;     /* of the part */
	uint64_t part_max; /* 0: no limit */
	uint64_t lost;     /* bytes that could not be written */
	int full;          /* it ends with a line, and the next is to begin the next part */
};

#define HF_LOG_WRITER_INIT { .fd = -1, .dirfd = -1, .index = HF_LOG_INDEX_INIT }

/*
 * Begins the log of the run `token`, and drops all but the one before; with `keep` the newest
 * there is is gone on with. `max` 0: no limit.
 */
int hf_log_begin(struct hf_log_writer *log, struct hf_sessions *sessions, const char *name,
		 uint64_t token, int keep, uint64_t max, struct hf_err *err);
void hf_log_writer_done(struct hf_log_writer *log);

/*
 * Begins it with the first output, as if by hf_log_begin: a command that says nothing costs no file. If it cannot be begun then, output
 * is lost and told as for hf_log_write.
 */
void hf_log_begin_later(struct hf_log_writer *log, const struct hf_log_plan *plan);

/* Is output to be logged? */
int hf_log_is_on(const struct hf_log_writer *log);

/* Which run's log the run `token` writes to: with `keep` the newest there is. */
uint64_t hf_log_run(struct hf_sessions *sessions, const char *name, uint64_t token, int keep);

/* Writes at most HF_LOG_CHUNK of one stream. What cannot be written is lost, and said once there is room. */
void hf_log_write(struct hf_log_writer *log, enum hf_log_stream stream, const char *bytes, size_t n);

struct hf_log_figures {
	int64_t bytes, dropped; /* that are there, and that were before them */
	struct hf_wall changed; /* when the newest part was written to */
};

/* Of the newest log, which is of the run `run` or a later one; else nothing was put out. 0; -ENOENT when there is none; -errno. */
int hf_log_measure(struct hf_sessions *sessions, const char *name, uint64_t run, struct hf_log_figures *ret);

#define HF_LOG_LAST_MAX 256

/* Copies the end of the last line of the newest log as plain text; *ret_partial: the line has no newline. Returns 0 if the line is missing or empty. */
int hf_log_last_line(struct hf_sessions *sessions, const char *name, char out[HF_LOG_LAST_MAX], int *ret_partial);

#endif
