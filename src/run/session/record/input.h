/*
 * run/session/record/input.h - what a session's command reads as its standard input, kept for a resume.
 *
 *     sessions/<key>/input.<XXH3-64 in hexadecimal>.<bytes>
 *
 * command.json names it by the part behind "input.", so the checksum in the record covers it as well. It is written before that
 * record, under a name of its own, and beside that of the run before: a run that never comes to its record changes nothing. Not
 * synced: what a power cut leaves is compared with its checksum.
 */
#ifndef RUN_SESSION_RECORD_INPUT_H
#define RUN_SESSION_RECORD_INPUT_H

#include <stdint.h>

#include "holdfast/err.h"

#define HF_INPUT_ID_MAX 40 /* "0123456789abcdef.16777216" and NUL */

/* Is it such a part of a name? *ret_bytes (may be NULL): how much it stands for. Nothing else ever becomes part of a path (L12). */
int hf_input_is_id(const char *id, uint64_t *ret_bytes);

/*
 * Keeps all of the file `fd` in the session's directory. What is larger than HF_RUN_INPUT_MAX is not kept, and its id says so. Returns 1
 * when it wrote a file, 0 when that was there already or it is too large, or an error.
 */
int hf_input_keep(int dirfd, int fd, char ret_id[HF_INPUT_ID_MAX], struct hf_err *err);

/* Opens a copy of it that nothing can change. HF_E_FORMAT: it was not kept, is gone, or is not what was kept. */
int hf_input_open(int dirfd, const char *id, int *ret_fd, struct hf_err *err);

/* Deletes every input in the directory but that one; NULL: all. */
void hf_input_delete_others(int dirfd, const char *id);
void hf_input_delete(int dirfd, const char *id);

/* Bytes of all that are kept in the directory. */
int64_t hf_input_measure(int dirfd);

#endif
