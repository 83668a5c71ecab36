/*
 * holdfast/proc.h - process identities that survive the reuse of pids.
 *
 * The kernel reuses pids, often within seconds. An identity is a pid together with
 * data that makes it unique: the pidfs inode (kernel 6.9 and newer; never reused
 * within a boot), the start time, the boot id, and the pid namespace of the number.
 *
 * Calling sequence:
 *
 *     struct hf_proc_id id;
 *     char text[HF_PROC_TEXT_MAX];
 *     hf_proc_identify(pid, &id, &err);            // while the pid is surely the right one
 *     hf_proc_format(&id, text);                   // store this, not the pid
 *
 *     hf_proc_parse(text, strlen(text), &id, &err);
 *     hf_proc_signal(&id, SIGTERM, 0, &err);       // that process or none (L6)
 *
 * Liveness has three values. A process is dead only with proof: gone, a zombie,
 * recycled, or of another boot. A process that cannot be judged (another pid
 * namespace, another host) is unknown, and unknown counts as alive (L4).
 *
 * A process of another pid namespace, as in a container, is dead when its namespace has
 * no living process left. Only a caller in the machine's first pid namespace can prove
 * that, with a /proc that hides no process (no hidepid). Other users' namespaces cannot
 * be read: a process there with the same pid keeps the answer unknown.
 *
 * Certainty. With a pidfs inode on both sides the result is certain. On older
 * kernels the start time decides. Its resolution is 10 ms, so a pid that is reused
 * within the same 10 ms is taken for the old process. The evidence text then
 * contains "weak". Start times are compared only within one time namespace, because
 * the kernel shifts them by the offset of the reader's.
 *
 * Needs /proc. A /proc of another pid namespace than the caller's (after unshare
 * without a new mount) is detected and its pids are translated.
 *
 * Ownership: returned descriptors belong to the caller and are CLOEXEC.
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
	int32_t pid;          /* in pid_ns */
	uint64_t pidfs_inode; /* 0: not known (kernel before 6.9) */
	uint64_t start_ticks; /* clock ticks from boot to start; 0: not known */
	uint64_t time_ns;     /* inode of the time namespace in which start_ticks was read; 0: none */
	uint64_t pid_ns;      /* inode of the pid namespace */
	char boot_id[HF_BOOT_ID_LEN + 1];
};

enum hf_liveness {
	HF_ALIVE = 1,
	HF_DEAD = 2,
	HF_UNKNOWN = 3, /* counts as alive */
};

enum hf_proc_flags {
	/* The identity was stored where other hosts write, too (hf_state_is_shared).
	 * Another boot id may then be another host: the answer is unknown, not dead. */
	HF_PROC_SHARED = 1 << 0,
};

/* Identifies the calling process. Returns 0 or -errno (no /proc). */
HF_API int hf_proc_self(struct hf_proc_id *ret_id, struct hf_err *err) HF_MUST_CHECK;

/*
 * Identifies the process that has `pid` now. Returns 0; HF_E_GONE (no such process,
 * or a zombie); -EINVAL (pid < 1, or the id of a thread); -errno.
 */
HF_API int hf_proc_identify(int32_t pid, struct hf_proc_id *ret_id,
			    struct hf_err *err) HF_MUST_CHECK;

/* Writes the text form, "p1:PID:PIDFS:START:TIMENS:PIDNS:BOOTID". Returns its length. */
HF_API int hf_proc_format(const struct hf_proc_id *id, char out[HF_PROC_TEXT_MAX]);

/*
 * Parses exactly the texts that hf_proc_format writes: an identity has one text, and
 * a text one identity. Returns 0 or HF_E_SYNTAX.
 */
HF_API int hf_proc_parse(const char *text, size_t len, struct hf_proc_id *ret_id,
			 struct hf_err *err) HF_MUST_CHECK;

/*
 * Reports whether that process is alive, and writes the reason in words to `evidence`
 * (may be NULL). It never fails: if it cannot find out, it returns HF_UNKNOWN with
 * the reason.
 */
HF_API enum hf_liveness hf_proc_liveness(const struct hf_proc_id *id, unsigned flags,
					 char evidence[HF_EVIDENCE_MAX]);

/*
 * Opens a pidfd of exactly that process. The pidfd is opened before the identity is
 * checked, so the pid cannot be reused in between. Poll the pidfd to see the exit.
 * Returns 0; HF_E_GONE; HF_E_RECYCLED; HF_E_UNKNOWN (cannot be proven from here);
 * -errno. err->detail has the evidence.
 */
HF_API int hf_proc_open(const struct hf_proc_id *id, unsigned flags, int *ret_pidfd,
			struct hf_err *err) HF_MUST_CHECK;

/*
 * Sends `sig` (0 only checks) to exactly that process, or to none (L6). Returns 0 if
 * the kernel took the signal. Otherwise no signal was sent:
 *   HF_E_GONE       the process has ended; this includes a zombie
 *   HF_E_RECYCLED   the pid belongs to another process now
 *   HF_E_UNKNOWN    another pid namespace, another host, or no way to prove it
 *   HF_E_PROTECTED  pid 1 or less, the caller itself or one of its ancestors
 *   HF_E_FOREIGN    another user's process, even if the caller is root
 *   -EINVAL         no such signal
 */
HF_API int hf_proc_signal(const struct hf_proc_id *id, int sig, unsigned flags,
			  struct hf_err *err) HF_MUST_CHECK;

HF_C_END

#endif
