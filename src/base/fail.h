/*
 * base/fail.h - fill in a struct hf_err and return its code, in one expression.
 *
 *     return FAIL_SYS(err, "openat", name);                     -errno
 *     return FAIL(err, HF_E_NAME, "name", shown, "is empty");   own code
 *
 * Both are expressions with the value of the code, so that a failing function
 * leaves with one line and cannot forget to report.
 */
#ifndef BASE_FAIL_H
#define BASE_FAIL_H

#include <errno.h>

#include "holdfast/err.h"

#define FAIL_SYS(err, op, subject) hf_fail_sys((err), errno, (op), (subject))

#define FAIL(err, code, op, subject, ...) \
	hf_fail((err), (code), (op), (subject), __VA_ARGS__)

/* Reports errno `sys` (EIO where a caller lost it and passes 0); returns -sys. */
int hf_fail_sys(struct hf_err *err, int sys, const char *op, const char *subject);

/* Reports `code` with a formatted detail; returns it. */
int hf_fail(struct hf_err *err, int code, const char *op, const char *subject, const char *format,
	    ...) __attribute__((format(printf, 5, 6)));

/*
 * Names, on the way up, what the failure is part of: with "session" and "fix-160" the subject "pid 4711" becomes
 * "session 'fix-160': pid 4711", and the subject "fix-160" or "lock 'fix-160'" becomes "session 'fix-160'". Wrapping twice changes nothing more.
 * Nothing happens when `code` is no failure, or when it is about the arguments (-EINVAL, HF_E_NAME). Returns `code`.
 */
int hf_err_wrap(struct hf_err *err, int code, const char *kind, const char *name);

/* Copies `text` into a fixed field, cut to fit. */
void hf_copy_text(char *out, size_t cap, const char *text);

#endif
