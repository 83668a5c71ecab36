/*
 * exec/marks.h - the two marks by which a process of a session is known when its keepers are gone.
 *
 * The environment mark: an entry "<inode of the state directory>.<key>.<token>" in the variable
 * HOLDFAST_RUNS, which has one entry for each session around the process. `env -i` removes it.
 *
 * The limit mark: the hard limit RLIMIT_LOCKS. No kernel since 2.4.25 looks at that limit; fork
 * and exec inherit it, an ordinary user can only lower it, and /proc/PID/limits shows it to
 * everybody. Neither `env -i` nor setsid, a second fork, another uid or closed descriptors
 * remove it. It has room for the innermost session only, so the record of a session stores the
 * mark of the session around it.
 *
 *     bit 63..62   01: it is a mark
 *     bit 61..54   255 minus the number of sessions around it: an inner mark is always lower
 *     bit 53..30   hash of the token: another run of that name has another mark
 *     bit 29..0    hash of the state directory and the name
 *
 * Two sessions that live at once share a mark with a probability of 2^-54. Within one state directory that is
 * harmless: a hunt kills no process by a mark that another session on record has as well, unless the
 * environment names the hunted run, and says that it remains (hunt.c). A process that lowers
 * its own limit loses the mark, and one that sets it to another session's is taken for one of
 * that session: it can do that to itself and to others of its user only.
 */
#ifndef EXEC_MARKS_H
#define EXEC_MARKS_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/name.h"

/* -- the environment --------------------------------------------------------------- */

#define HF_MARK_VARIABLE "HOLDFAST_RUNS"
#define HF_MARK_MAX      (24 + HF_NAME_KEY_MAX + 24)

/* The mark of `name` in the state directory of that inode, up to the token, "2f01.fix-160."; returns its length. */
size_t hf_mark_prefix(uint64_t dir_inode, const char *name, char out[HF_MARK_MAX]);

/*
 * Does the environment of `pid` hold a mark with that prefix, the token `only` (0: any) and
 * another one than `not` (0: none)? Means something only while the pid is pinned.
 */
int hf_mark_found(int32_t pid, const char *prefix, uint64_t only, uint64_t not);

/* -- the limit ----------------------------------------------------------------------- */

/* The part of a limit mark that all runs of `name` in that state directory have in common. */
uint64_t hf_limit_mark_name(uint64_t dir_device, uint64_t dir_inode, const char *name);

/* That part of a mark. */
uint64_t hf_limit_mark_name_of(uint64_t mark);

/*
 * The mark of a run with that `token` whose name has the part `name`, below a process with the
 * hard limit `above`. 0: there is no room, because `above` is as low as no mark is, or because
 * 255 sessions are around it already.
 */
uint64_t hf_limit_mark_make(uint64_t above, uint64_t name, uint64_t token);

/* The calling process's hard limit; UINT64_MAX: none. */
uint64_t hf_limit_own(void);

/* `limit` if it is a mark, else 0. */
uint64_t hf_limit_mark_in(uint64_t limit);

/* Sets the mark for the calling process and what it will start. Async-signal-safe. 0 or -errno. */
int hf_limit_mark_set(uint64_t mark);

/* The mark of `pid`; 0: it has none, or is gone. Means something only while the pid is pinned. */
uint64_t hf_limit_mark_of(int32_t pid);

/* The hard limit of file locks in the text of /proc/PID/limits. 0 or HF_E_FORMAT. */
int hf_limits_parse(const char *text, size_t len, uint64_t *ret);

#endif
