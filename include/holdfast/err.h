/*
 * holdfast/err.h - how every Holdfast function reports failure.
 *
 * Calling sequence:
 *
 *     struct hf_err err = HF_ERR_INIT;
 *     if (hf_state_open(NULL, 0, &state, &err) < 0) {
 *             char text[HF_ERR_TEXT_MAX];
 *             hf_err_format(&err, text, sizeof(text));
 *             fprintf(stderr, "%s\n", text);
 *     }
 *
 * Returns. 0 or more is success. A negative value is a failure: -errno from the
 * kernel, or a code of the list below where a caller would act differently.
 *
 * struct hf_err belongs to the caller and may be NULL. It is written only on
 * failure. Its size is fixed, so reporting an error allocates no memory and
 * cannot fail. Results are returned through ret_ parameters, which are written
 * only on success.
 *
 * Threads and fork: no state. Blocks: never.
 */
#ifndef HOLDFAST_ERR_H
#define HOLDFAST_ERR_H

#include <stddef.h>

#include "holdfast/api.h"

HF_C_BEGIN

/*
 * The list of codes: X(name, number, exit status of the CLI, text). It generates
 * the enum, the texts, the table in the manual page and the Python exceptions.
 * Numbers are never reused.
 */
/* clang-format off */
#define HF_ERR_LIST(X)                                                                            \
	X(GONE,      -8001, 1, "the process has ended")                                           \
	X(RECYCLED,  -8002, 3, "that pid now belongs to another process")                         \
	X(FOREIGN,   -8003, 3, "the process belongs to another user")                             \
	X(PROTECTED, -8004, 3, "the process is protected")                                        \
	X(UNKNOWN,   -8005, 3, "the process cannot be judged from here")                          \
	X(NAME,      -8006, 2, "not usable as a name")                                            \
	X(STORED_ID, -8007, 3, "not an id that Holdfast writes")                                  \
	X(UNTRUSTED, -8008, 3, "not trusted")                                                     \
	X(FORMAT,    -8009, 3, "damaged, or not in a format this version reads")                  \
	X(SYNTAX,    -8010, 2, "cannot be read")                                                  \
	X(EVENT,     -8011, 2, "not an event of the journal's table")                             \
	X(LOST,      -8012, 4, "the record could not be written; the loss is counted")            \
	X(FORKED,    -8013, 4, "the handle belongs to the process that opened it")                \
	X(BUSY,      -8014, 1, "already held")                                                    \
	X(TIMEOUT,   -8015, 1, "timed out, still held")                                           \
	X(NOT_HELD,  -8016, 1, "not held")                                                        \
	X(NOT_OWNER, -8017, 3, "held by another owner")                                           \
	X(STALE,     -8018, 3, "lost: the token is no longer current")                            \
	X(DEADLOCK,  -8019, 1, "deadlock")                                                        \
	X(MODE,      -8020, 2, "held with another number of slots")                               \
	X(NO_SESSION, -8021, 1, "no such session")                                                \
	X(FINISHED,  -8022, 1, "it has finished")                                                 \
	X(LIMIT,     -8023, 1, "a limit is reached")                                              \
	X(REMAINS,   -8024, 1, "processes of an earlier run still exist")                         \
	X(STORE,     -8025, 4, "the store of locks failed")                                       \
	X(NO_TERMINAL, -8026, 1, "it has no terminal")                                            \
	X(CANCELLED, -8030, 1, "the wait was cancelled")                                          \
	X(NO_DIRECTORY, -8031, 3, "its directory does not exist")                                 \
	X(OUTSIDE,   -8041, 3, "outside its allowed directory")                                   \
	X(KIND,      -8042, 3, "not a file that may be replaced")                                 \
	X(MARKERS,   -8043, 3, "the markers do not match; nothing is written")                    \
	X(CHANGED,   -8044, 1, "changed by another process; nothing is overwritten")             \
	X(MOVED,     -8045, 1, "moved; the path leads to another file now")                       \
	X(NO_PLAN,   -8061, 1, "no such plan")                                                    \
	X(NO_SANDBOX, -8062, 1, "the plan has no such sandbox")                                   \
	X(PLAN_STATE, -8063, 1, "the plan's state does not allow that")                           \
	X(TARGET,    -8064, 3, "cannot be a target")                                              \
	X(NO_OVERLAY, -8065, 4, "cannot make this kind of sandbox")                               \
	X(DIRTY,     -8066, 1, "has changes that were not committed")                             \
	X(IN_USE,    -8067, 1, "processes are still in the sandbox")                              \
	X(CONFLICT,  -8068, 1, "the target has changed since the sandbox was made")               \
	X(TORN,      -8069, 3, "in use when power failed, so it may be torn")                     \
	X(NO_CONFINE, -8070, 3, "the command cannot be confined as requested")                    \
	X(STDIO,     -8071, 3, "its input or output would lead past the sandbox")                 \
	X(NO_LANDING, -8081, 1, "no such candidate")                                              \
	X(LAND,      -8082, 3, "cannot be landed on")
/* clang-format on */

enum hf_code {
#define HF_ERR_ENUM(name, number, status, text) HF_E_##name = number,
	HF_ERR_LIST(HF_ERR_ENUM)
#undef HF_ERR_ENUM
};

struct hf_err {
	int code;          /* the return value of the function */
	int sys;           /* the errno behind it, or 0 */
	char op[24];       /* the step that failed, for example "openat" */
	char subject[224]; /* the object of that step: a path, a pid, a name */
	char detail[256];  /* the reason and the next step; may be empty */
};

#define HF_ERR_INIT     { 0, 0, "", "", "" }
#define HF_ERR_TEXT_MAX 640

/* An entry of the list above. */
struct hf_err_info {
	int code;         /* for example HF_E_GONE */
	int exit_status;  /* of the CLI */
	const char *name; /* "GONE" */
	const char *text; /* "the process has ended" */
};

/*
 * Returns the entry of `code`, or NULL if the list does not have it (an -errno).
 * The result is constant; never free it. Blocks: no. Async-signal-safe: yes.
 */
HF_API const struct hf_err_info *hf_err_info(int code);

/* Returns entry `index` of the list, from 0, or NULL after the last. */
HF_API const struct hf_err_info *hf_err_at(size_t index);

/*
 * Returns the CLI's exit status for a return value: 0 for success, the status in
 * the list for a Holdfast code, 2 for -EINVAL, 4 for every other -errno.
 */
HF_API int hf_err_exit_status(int code);

/*
 * Writes one line for people, without newline: "subject: text: detail". Empty parts
 * are left out. An errno's text is followed by the failed step in brackets.
 * Bytes that could control a terminal become '?'. `out` always ends with NUL if
 * `cap` > 0. Returns the length of the whole line, as snprintf does.
 */
HF_API size_t hf_err_format(const struct hf_err *err, char *out, size_t cap);

HF_C_END

#endif
