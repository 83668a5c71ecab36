/* proc/here.h - what makes a pid mean something here: this boot, these namespaces. */
#ifndef PROC_HERE_H
#define PROC_HERE_H

#include <stdint.h>

#include "holdfast/proc.h"

struct hf_here {
	uint64_t pid_ns;
	uint64_t time_ns; /* 0: the kernel has no time namespaces */
	char boot_id[HF_BOOT_ID_LEN + 1];
};

/* Reads it for the calling process. Returns 0 or -errno with /proc named. */
int hf_here_read(struct hf_here *ret, struct hf_err *err);

/* Its boot id alone, which is read once in a process. The same. */
int hf_here_boot(char out[HF_BOOT_ID_LEN + 1], struct hf_err *err);

/*
 * How much the boot time that this process reads is ahead of the machine's: 0, but for a time
 * namespace that says otherwise. Returns 0 or -errno.
 */
int hf_boot_offset(const struct hf_here *here, int64_t *ret_ns, struct hf_err *err);

/* The first pid namespace of the machine has this inode (PROC_PID_INIT_INO). */
#define HF_FIRST_PID_NS 0xEFFFFFFC

/* Reads the inode of a namespace from its file in /proc. Returns 0 or -errno. */
int hf_ns_read(const char *path, uint64_t *ret);

/*
 * 1 when no living process is in the pid namespace of `id`, which is not the caller's. 0: it has one, or
 * this cannot be proven from here. Only the first pid namespace of the machine sees all processes.
 */
int hf_pid_ns_has_ended(const struct hf_proc_id *id, const struct hf_here *here);

#define HF_HOST_ID_LEN 32

/*
 * The id of this machine, the same over all boots: 32 hexadecimal digits, from /etc/machine-id. Where
 * that file is missing, empty or not initialized, as in many containers, it is an id of our own: random,
 * made once, kept in the state directory. Containers that share the directory share that id: the boot
 * and the pid namespace of an owner keep them apart. Returns 0, 1 for an id of our own, or -errno with
 * what to do: without an id, owners of two machines could not be told apart.
 */
struct hf_state;
int hf_host_id(const struct hf_state *state, char out[HF_HOST_ID_LEN + 1], struct hf_err *err);

/* 1 when the 36 bytes have the form of a boot id. */
int hf_boot_id_valid(const char *text, size_t len);

/*
 * The inode by which pidfs knows the process: unique within a boot. 0 where the
 * kernel has no pidfs; there pidfds share one meaningless inode.
 */
uint64_t hf_pidfs_inode(int pidfd);

/*
 * 1 when nobody has that pid. For where there is no pidfd: that /proc does not show
 * it proves nothing, for hidepid hides the living.
 */
int hf_pid_is_free(int32_t pid);

/*
 * hf_proc_identify for a process whose pidfd is open, with `self`, the identity of the calling
 * process: boot and namespaces are the same and are not read again.
 */
int hf_proc_identify_open(const struct hf_proc_id *self, int32_t pid, int pidfd, struct hf_proc_id *ret_id,
			  struct hf_err *err);

/* 1 when the process behind the pidfd has ended, zombie included. -errno on failure. */
int hf_pidfd_exited(int pidfd);

#endif
