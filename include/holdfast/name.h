/*
 * holdfast/name.h - safe forms of untrusted names.
 *
 * Every lock, session and plan has a name. Names come from users, files, JSON and
 * environment variables. They have two safe forms:
 *
 *   sanitized   for display and metadata. Several names may have the same
 *               sanitized form.
 *   key         for file names. Only as a key does a name become part of a path
 *               (L12). Different names always have different keys.
 *
 *     name              sanitized            key
 *     fix-160           fix-160              fix-160
 *     a/b               a_b                  a%2Fb
 *     ../../etc/passwd  ______etc_passwd     %2E%2E%2F%2E%2E%2Fetc%2Fpasswd
 *
 * Names are bytes, not characters, and are compared as bytes.
 *
 * All functions are pure: they use no state and no locale and allocate no memory.
 * Threads and fork: no state. Blocks: no. Async-signal-safe: the function without
 * struct hf_err.
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
 * Keeps A-Z a-z 0-9 _ - and replaces every other byte by '_'. NULL or an empty name
 * gives "unknown". Idempotent. Writes at most `cap` bytes including the NUL. A
 * longer result is cut, and the cut text is still sanitized. Returns the length of
 * the whole result, as snprintf does.
 */
HF_API size_t hf_name_sanitize(const char *name, size_t len, char *out, size_t cap);

/*
 * Writes the key of `name`: A-Z a-z 0-9 _ - unchanged, every other byte as %XX with
 * upper-case digits. A key is never empty, never starts with a dot, and has no byte
 * that is special to a file system or shell. Returns the key's length; HF_E_NAME if
 * the name is NULL, empty or longer than HF_NAME_MAX bytes.
 */
HF_API int hf_name_key(const char *name, size_t len, char out[HF_NAME_KEY_MAX],
		       struct hf_err *err) HF_MUST_CHECK;

/*
 * Writes the name of a key, NUL-terminated: the inverse of hf_name_key. Accepts only
 * keys that hf_name_key writes, so "%2f", "%41" and "a.b" are refused. Returns the
 * name's length (a NUL inside the name counts); HF_E_STORED_ID.
 */
HF_API int hf_name_unkey(const char *key, size_t len, char out[HF_NAME_MAX + 1],
			 struct hf_err *err) HF_MUST_CHECK;

/*
 * Checks a stored id. Refuses an id that is empty or contains '/', ".." or a control
 * byte: HF_E_STORED_ID, with the reason. The caller journals the refusal
 * (id_rejected) and treats the owner of the record as unknown. Such a record is never
 * ignored: it ends when its lease expires or when it is broken.
 */
HF_API int hf_name_check_stored(const char *id, size_t len, struct hf_err *err) HF_MUST_CHECK;

HF_C_END

#endif
