/*
 * holdfast/log.h - what a session wrote, and its terminal.
 *
 * The output of every session is logged (run.h, Output). It is read by hf_session_log, while the session runs and after; what is typed into
 * the terminal of one that has it goes through hf_session_attach.
 *
 * Ownership: handles are freed by their _free functions, before the sessions that they were opened with.
 * Threads: a handle is used by one thread at a time. Fork: a child may only free.
 */
#ifndef HOLDFAST_LOG_H
#define HOLDFAST_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/api.h"
#include "holdfast/clock.h"
#include "holdfast/err.h"

HF_C_BEGIN

struct hf_sessions; /* the sessions of one state directory (run.h) */

/* -- logs ------------------------------------------------------------------------ */

/*
 * The output of a run, or what is kept of it: the newest, from the beginning of a line. It is
 * read from there on, over all that the limit drops meanwhile, nothing twice and, by a reader
 * that keeps up, nothing left out. Output that its keeper had not read when it was killed is lost.
 */
struct hf_log;

/*
 * Opens the session's log at its beginning; `number` 0 is that of the last run, 1 that of the
 * run that was logged before it. To be freed by hf_log_free. HF_E_NO_SESSION; -ENOENT when
 * there is no log, also when the last run was not logged and an earlier one was.
 */
HF_API int hf_session_log(struct hf_sessions *sessions, const char *name, unsigned number,
			  struct hf_log **ret_log, struct hf_err *err) HF_MUST_CHECK;

/* Reads on. Returns how many bytes; 0: there are no more now. Does not block. */
HF_API int hf_log_read(struct hf_log *log, void *to, size_t cap, struct hf_err *err) HF_MUST_CHECK;

/* Where output came from. */
enum hf_log_stream {
	HF_LOG_UNKNOWN = 0, /* not recorded: an older log, or the command wrote to the log itself */
	HF_LOG_OUT = 1,
	HF_LOG_ERR = 2,
	HF_LOG_BOTH = 3,    /* a terminal, or one pipe or file for both */
};

/* Output that came together. */
struct hf_log_span {
	struct hf_wall at;         /* when, to 5 ms; ns 0: not known */
	uint32_t attempt;          /* 0: not known */
	enum hf_log_stream stream;
};

/* As hf_log_read, but what is read is of one span, which is told. */
HF_API int hf_log_read_span(struct hf_log *log, void *to, size_t cap, struct hf_log_span *ret_span,
			    struct hf_err *err) HF_MUST_CHECK;

/* Goes to where the last `lines` lines begin. Returns 0 or -errno. */
HF_API int hf_log_tail(struct hf_log *log, uint64_t lines, struct hf_err *err) HF_MUST_CHECK;

/*
 * How many bytes are missing before what is read next: those that were dropped before it was
 * opened, and those that were while the reader was elsewhere.
 */
HF_API uint64_t hf_log_dropped(const struct hf_log *log);

/*
 * A descriptor that poll calls readable when there may be more; hf_log_read makes it silent.
 * It is the log's, which closes it. -errno.
 */
HF_API int hf_log_fd(struct hf_log *log, struct hf_err *err) HF_MUST_CHECK;

/* Frees. NULL is fine. After fork: allowed in the child. */
HF_API void hf_log_free(struct hf_log *log);

/* -- its terminal ------------------------------------------------------------------- */

/*
 * The terminal of a session that was started with HF_RUN_TERMINAL. Its output is the log's (hf_session_log), from its start on. What is
 * typed comes from one viewer at a time: the first that wants to type, and when it leaves the one that has waited longest.
 */
struct hf_attach;

enum hf_attach_flags {
	HF_ATTACH_READ_ONLY = 1 << 0, /* it never types */
	HF_ATTACH_TAKE = 1 << 1,      /* it types instead of the viewer that does */
};

struct hf_attach_opts {
	size_t size;            /* sizeof(struct hf_attach_opts) */
	unsigned flags;         /* enum hf_attach_flags */
	uint32_t rows, columns; /* of the viewer's own terminal; the command's gets them when it may type. 0: not known */
};

/*
 * Attaches to it, until hf_attach_free. HF_E_GONE: it has ended; HF_E_NO_TERMINAL; HF_E_UNTRUSTED: what listens there is not its
 * keeper; HF_E_NO_SESSION; -errno. At most 8 viewers; one more is let go at once. Does not block.
 */
HF_API int hf_session_attach(struct hf_sessions *sessions, const char *name, const struct hf_attach_opts *opts,
			     struct hf_attach **ret_attach, struct hf_err *err) HF_MUST_CHECK;

/* A descriptor that poll calls readable when there is something to hear, and writable when more can be typed. It is the attach's. */
HF_API int hf_attach_fd(const struct hf_attach *attach);

/* Takes what the keeper says. 1: the keeper said whether it may type, for the first time or again; 0: nothing; HF_E_GONE: the session has ended, or let it go. */
HF_API int hf_attach_hear(struct hf_attach *attach) HF_MUST_CHECK;

/* 1 when it may type; 0 when it may not, with the pid of the viewer that does (0: none) in *ret_writer, which may be NULL. */
HF_API int hf_attach_types(const struct hf_attach *attach, int32_t *ret_writer);

/* Types. Returns how many bytes were taken; -EAGAIN: none now; HF_E_GONE. The input of a viewer that may not type is dropped. */
HF_API int hf_attach_type(struct hf_attach *attach, const void *keys, size_t n) HF_MUST_CHECK;

/* The viewer's terminal has another size. 0; -EAGAIN; HF_E_GONE. */
HF_API int hf_attach_resize(struct hf_attach *attach, uint32_t rows, uint32_t columns);

/* Leaves. NULL is fine. After fork: allowed in the child. */
HF_API void hf_attach_free(struct hf_attach *attach);

HF_C_END

#endif
