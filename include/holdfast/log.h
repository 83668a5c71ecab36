/*
 * holdfast/log.h - the output of a session, and its terminal.
 *
 * The output of every session is logged (run.h, Output). hf_session_log reads it, during the
 * session and after it. hf_session_attach types into the terminal of a session that has one.
 *
 * Ownership: free handles by their _free functions before their sessions.
 * Threads: one thread at a time uses a handle. Fork: a child may only free.
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
 * The kept output of a run: its newest part, from the beginning of a line. A reader skips
 * output that the limit drops while it reads. It reads nothing twice and, if it keeps up,
 * misses nothing. Output that the keeper had not read when it was killed is lost.
 */
struct hf_log;

/*
 * Opens the session's log at its beginning. `number` 0 is the log of the last run, 1 that of
 * the previous run that was logged. Free it with hf_log_free. HF_E_NO_SESSION; -ENOENT if the
 * log does not exist, even if only the last run was not logged.
 */
HF_API int hf_session_log(struct hf_sessions *sessions, const char *name, unsigned number,
			  struct hf_log **ret_log, struct hf_err *err) HF_MUST_CHECK;

/* Reads the next bytes. Returns their number, or 0 if no more are available now. Does not block. */
HF_API int hf_log_read(struct hf_log *log, void *to, size_t cap, struct hf_err *err) HF_MUST_CHECK;

/* The origin of output. */
enum hf_log_stream {
	HF_LOG_UNKNOWN = 0, /* unknown: an older log, or the command wrote to the log itself */
	HF_LOG_OUT = 1,
	HF_LOG_ERR = 2,
	HF_LOG_BOTH = 3,    /* a terminal, or one pipe or file for both */
};

/* Output that arrived together. */
struct hf_log_span {
	struct hf_wall at;         /* time, accurate to 5 ms; ns 0: unknown */
	uint32_t attempt;          /* 0: unknown */
	enum hf_log_stream stream;
};

/* Like hf_log_read, but reads from a single span and reports it. */
HF_API int hf_log_read_span(struct hf_log *log, void *to, size_t cap, struct hf_log_span *ret_span,
			    struct hf_err *err) HF_MUST_CHECK;

/* Seeks to the last `lines` lines. Returns 0 or -errno. */
HF_API int hf_log_tail(struct hf_log *log, uint64_t lines, struct hf_err *err) HF_MUST_CHECK;

/*
 * Returns the number of bytes missing before the next read: dropped before the log was opened,
 * or before the reader reached them.
 */
HF_API uint64_t hf_log_dropped(const struct hf_log *log);

/*
 * Returns a descriptor that poll reports as readable when more output may exist; hf_log_read
 * resets it. The log owns it. -errno.
 */
HF_API int hf_log_fd(struct hf_log *log, struct hf_err *err) HF_MUST_CHECK;

/* Frees. NULL is allowed. Allowed in the child after fork. */
HF_API void hf_log_free(struct hf_log *log);

/* -- its terminal ------------------------------------------------------------------- */

/*
 * The terminal of a session started with HF_RUN_TERMINAL. The log has its output from
 * the start (hf_session_log). One viewer at a time types: the first that requests it; after it
 * leaves, the viewer that has waited longest.
 */
struct hf_attach;

enum hf_attach_flags {
	HF_ATTACH_READ_ONLY = 1 << 0, /* only watch */
	HF_ATTACH_TAKE = 1 << 1,      /* take the keyboard from the viewer that types now */
};

struct hf_attach_opts {
	size_t size;            /* sizeof(struct hf_attach_opts) */
	unsigned flags;         /* enum hf_attach_flags */
	uint32_t rows, columns; /* of the viewer's terminal; the command's terminal gets them while
				 * this viewer types. 0: unknown */
};

/*
 * Attaches to the terminal until hf_attach_free. At most 8 viewers; another is disconnected
 * immediately. Does not block. HF_E_GONE: the session has ended; HF_E_NO_TERMINAL;
 * HF_E_UNTRUSTED: the listener is not its keeper; HF_E_NO_SESSION; -errno.
 */
HF_API int hf_session_attach(struct hf_sessions *sessions, const char *name, const struct hf_attach_opts *opts,
			     struct hf_attach **ret_attach, struct hf_err *err) HF_MUST_CHECK;

/*
 * Returns a descriptor that poll reports as readable when the keeper has sent a message, and
 * as writable when more can be typed. The attach handle owns it.
 */
HF_API int hf_attach_fd(const struct hf_attach *attach);

/*
 * Receives from the keeper. Returns 1: the keeper reported whether this viewer may type; 0:
 * nothing; HF_E_GONE: the session has ended, or disconnected it.
 */
HF_API int hf_attach_hear(struct hf_attach *attach) HF_MUST_CHECK;

/*
 * Returns 1 if this viewer may type. Otherwise returns 0, with the pid of the typing viewer
 * (0: none) in *ret_writer, which may be NULL.
 */
HF_API int hf_attach_types(const struct hf_attach *attach, int32_t *ret_writer);

/*
 * Types. Returns the number of accepted bytes; -EAGAIN: none now; HF_E_GONE. Input of a viewer
 * that may not type is dropped.
 */
HF_API int hf_attach_type(struct hf_attach *attach, const void *keys, size_t n) HF_MUST_CHECK;

/* Reports a new size of the viewer's terminal. 0; -EAGAIN; HF_E_GONE. */
HF_API int hf_attach_resize(struct hf_attach *attach, uint32_t rows, uint32_t columns);

/* Detaches. NULL is allowed. Allowed in the child after fork. */
HF_API void hf_attach_free(struct hf_attach *attach);

HF_C_END

#endif
