/*
 * holdfast/proc.h - which process is meant, and is it still that one?
 *
 * A pid is a number that the kernel gives away again, often within seconds. An
 * identity is the pid with what makes it unique: the pidfs inode (kernel 6.9
 * and newer; never reused within a boot), the start time, the boot id, and the
 * pid namespace in which the number means anything.
 *
 * Calling sequence:
 *
 *     struct hf_proc_id id;
 *     char text[HF_PROC_TEXT_MAX];
 *     hf_proc_identify(pid, &id, &err);            // while it is surely the right one
 *     hf_proc_format(&id, text);                   // store this, not the pid
 *
 *     hf_proc_parse(text, strlen(text), &id, &err);
 *     hf_proc_signal(&id, SIGTERM, 0, &err);       // that process or none (L6)
 *
 * Liveness has three answers. Dead is said only with proof: gone, a zombie,
 * recycled, or of another boot. What cannot be judged (another pid namespace,
 * another host) is unknown, and unknown counts as alive (L4).
 *
 * How sure. With a pidfs inode on both sides: certain. Without (older kernels),
 * the start time decides, which has a resolution of 10 ms: a pid that is reused
 * within the same 10 ms is then taken for the old process. The evidence text
 * says "weak" in that case. A start time is compared only within one time
 * namespace, because the kernel shifts it by the reader's.
 *
 * Needs /proc. A /proc of another pid namespace than the caller's (after
 * unshare without a new mount) is noticed and translated.
 *
 * Ownership: descriptors returned belong to the caller and are CLOEXEC.
 * Threads: no shared state. Fork: no state. Blocks: no. Async-signal-safe: no.
 */
#ifndef HOLDFAST_PROC_H
#define HOLDFAST_PROC_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/api.h"
#include "holdfast/err.h"

HF_C_BEGIN

#define HF_BOOT_ID_LEN     36  /* "9f1c…-…", as the kernel writes it */
#define HF_PROC_TEXT_MAX   160 /* the text form and its NUL */
#define HF_EVIDENCE_MAX    192 /* the evidence text and its NUL */

struct hf_proc_id {
	int32_t pid;          /* as seen in pid_ns */
	uint64_t pidfs_inode; /* 0: not known (kernel before 6.9) */
	uint64_t start_ticks; /* clock ticks from boot to start; 0: not known */
	uint64_t time_ns;     /* inode of the time namespace it was read in; 0: none */
	uint64_t pid_ns;      /* inode of the pid namespace */
	char boot_id[HF_BOOT_ID_LEN + 1];
};

enum hf_liveness {
	HF_ALIVE = 1,
	HF_DEAD = 2,
	HF_UNKNOWN = 3, /* counts as alive */
};

enum hf_proc_flags {
	/* The identity was stored where other hosts write too (hf_state_is_shared):
	 * another boot id may be another host, so it means unknown, not dead. */
	HF_PROC_SHARED = 1 << 0,
};

/* The calling process. Returns 0 or -errno (no /proc). */
HF_API int hf_proc_self(struct hf_proc_id *ret_id, struct hf_err *err) HF_MUST_CHECK;

/*
 * The process that has `pid` now. Returns 0; HF_E_GONE (no such process, or a
 * zombie); -EINVAL (pid < 1, or the id of a thread); -errno.
 */
HF_API int hf_proc_identify(int32_t pid, struct hf_proc_id *ret_id,
			    struct hf_err *err) HF_MUST_CHECK;

/* Writes the text form, "p1:PID:PIDFS:START:TIMENS:PIDNS:BOOTID". Returns its length. */
HF_API int hf_proc_format(const struct hf_proc_id *id, char out[HF_PROC_TEXT_MAX]);

/*
 * Reads exactly what hf_proc_format writes; a text has one identity and an
 * identity one text. Returns 0 or HF_E_SYNTAX.
 */
HF_API int hf_proc_parse(const char *text, size_t len, struct hf_proc_id *ret_id,
			 struct hf_err *err) HF_MUST_CHECK;

/*
 * Is that process alive? Writes why, in words, to `evidence` (may be NULL).
 * Never fails: what cannot be found out is HF_UNKNOWN, with the reason.
 */
HF_API enum hf_liveness hf_proc_liveness(const struct hf_proc_id *id, unsigned flags,
					 char evidence[HF_EVIDENCE_MAX]);

/*
 * A pidfd of exactly that process: opened first, identity checked after, so the
 * number cannot change hands in between. Poll it to see the exit.
 * Returns 0; HF_E_GONE; HF_E_RECYCLED; HF_E_UNKNOWN (cannot be proven from here);
 * -errno. err->detail holds the evidence.
 */
HF_API int hf_proc_open(const struct hf_proc_id *id, unsigned flags, int *ret_pidfd,
			struct hf_err *err) HF_MUST_CHECK;

/*
 * Sends `sig` (0 only checks) to exactly that process, or to nobody (L6).
 * Returns 0 when the kernel took the signal, or the one reason why none was sent:
 *   HF_E_GONE       it has ended (a zombie too)
 *   HF_E_RECYCLED   the pid is another process now
 *   HF_E_UNKNOWN    another pid namespace, another host, or no way to prove it
 *   HF_E_PROTECTED  pid 1 or less, the caller itself or one of its ancestors
 *   HF_E_FOREIGN    another user's process, also when the caller is root
 *   -EINVAL         no such signal
 */
HF_API int hf_proc_signal(const struct hf_proc_id *id, int sig, unsigned flags,
			  struct hf_err *err) HF_MUST_CHECK;

HF_C_END

#endif
