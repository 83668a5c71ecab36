/*
 * holdfast/name.h - names from outside, made harmless.
 *
 * Every lock, session and plan has a name, and names come from users, files,
 * JSON and environment variables. Two forms, for two purposes:
 *
 *   sanitized   for values that are shown or stored as metadata. Many names may
 *               share one sanitized form.
 *   key         for file names, and the only way a name ever becomes part of a
 *               path (L12). Different names have different keys, always.
 *
 *     name              sanitized            key
 *     fix-160           fix-160              fix-160
 *     a/b               a_b                  a%2Fb
 *     ../../etc/passwd  ______etc_passwd     %2E%2E%2F%2E%2E%2Fetc%2Fpasswd
 *
 * Names are bytes, not characters, and are compared as bytes.
 *
 * All functions are pure: no state, no locale, no memory is allocated.
 * Threads and fork: no state. Blocks: no. Async-signal-safe: the two without
 * struct hf_err are.
 */
#ifndef HOLDFAST_NAME_H
#define HOLDFAST_NAME_H

#include <stddef.h>

#include "holdfast/api.h"
#include "holdfast/err.h"

HF_C_BEGIN

#define HF_NAME_MAX     80  /* bytes of a name */
#define HF_NAME_KEY_MAX 241 /* bytes of the longest key and its NUL */

/*
 * Keeps A-Z a-z 0-9 _ - and turns every other byte into '_'. NULL or no bytes
 * give "unknown". Idempotent. Writes at most `cap` bytes with the NUL; what
 * does not fit is cut off, which leaves a sanitized text.
 * Returns the length of the whole result, as snprintf does.
 */
HF_API size_t hf_name_sanitize(const char *name, size_t len, char *out, size_t cap);

/*
 * Writes the key of `name`: A-Z a-z 0-9 _ - as they are, every other byte as %XX
 * with upper-case digits. A key is never empty, never "." or "..", never starts
 * with a dot, and has no byte that a file system or shell treats specially.
 * Returns the key's length; HF_E_NAME when the name is NULL, empty or longer
 * than HF_NAME_MAX bytes.
 */
HF_API int hf_name_key(const char *name, size_t len, char out[HF_NAME_KEY_MAX],
		       struct hf_err *err) HF_MUST_CHECK;

/*
 * The name of a key: the exact inverse, NUL-terminated. Only what hf_name_key
 * writes is accepted: "%2f", "%41" and "a.b" are no keys. Returns the name's
 * length (which counts a NUL that the name itself holds); HF_E_STORED_ID.
 */
HF_API int hf_name_unkey(const char *key, size_t len, char out[HF_NAME_MAX + 1],
			 struct hf_err *err) HF_MUST_CHECK;

/*
 * May a stored id be believed? Refuses, with HF_E_STORED_ID and the reason, one
 * that is empty or holds '/', "..", or a control byte. The caller journals the
 * refusal (id_rejected) and treats the record's owner as unknown: such a
 * record ends by its lease or by an explicit break, and is never ignored.
 */
HF_API int hf_name_check_stored(const char *id, size_t len, struct hf_err *err) HF_MUST_CHECK;

HF_C_END

#endif
