/*
 * proc/signal.c - a signal for exactly one process, or none (L6).
 *
 * The pidfd comes first and pins the process. Owner and ancestry are then read
 * by number, and the pidfd is asked once more: if the process had not exited,
 * the number was its own all the while. The signal goes through that pidfd, so
 * whatever happens after the last check can make it miss, never hit another.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/proc/here.h"
#include "hf/proc/judge.h"
#include "hf/proc/stat.h"
#include "hf/sys/calls.h"

/* Longer chains of parents do not occur; a loop (from racing reads) ends here. */
#define MAX_ANCESTORS 4096

/*
 * 1 when `number` (as /proc counts) is the caller or one of its ancestors, 0 when
 * not, -errno when that cannot be found out.
 */
static int is_self_or_ancestor(int32_t number)
{
	struct hf_stat st;
	int32_t next = 0; /* self */

	for (int i = 0; i < MAX_ANCESTORS; i++) {
		int r = hf_stat_read(next, &st);

		/* It died under our eyes, and its children have a new parent: from the start. */
		if (next != 0 && r == -ENOENT && hf_pid_is_free(next)) {
			next = 0;
			continue;
		}
		/* An ancestor that /proc hides from us (hidepid) ends what can be known. */
		if (next != 0 && r == -ENOENT)
			return 0;
		if (r < 0)
			return r;
		if (st.pid == number || st.ppid == number)
			return 1;
		if (st.ppid <= 1)
			return 0;
		next = st.ppid;
	}
	return 0;
}

static int check_target(const struct hf_proc_id *id, int pidfd, const char *shown,
			struct hf_err *err)
{
	int32_t number;
	uint32_t uid;
	int r;

	r = hf_proc_number(pidfd, id->pid, &number);
	if (r == 0)
		r = hf_status_read_uid(number, &uid);
	if (r == HF_E_GONE || r == -ESRCH)
		return FAIL(err, HF_E_GONE, "status", shown, "it has exited");
	if (r == -ENOENT || r == -EACCES || r == -EPERM)
		return FAIL(err, HF_E_FOREIGN, "status", shown, "/proc does not show it to you");
	if (r < 0)
		return FAIL(err, HF_E_UNKNOWN, "status", shown, "its owner cannot be read");
	r = is_self_or_ancestor(number);
	if (r < 0)
		return FAIL(err, HF_E_UNKNOWN, "ancestry", shown,
			    "cannot find out whether it is an ancestor of the caller");
	if (r > 0)
		return FAIL(err, HF_E_PROTECTED, "ancestry", shown,
			    id->pid == getpid() ? "it is the calling process"
						: "it is an ancestor of the calling process");
	if (uid != geteuid())
		return FAIL(err, HF_E_FOREIGN, "owner", shown, "it belongs to uid %u, you are %u",
			    (unsigned)uid, (unsigned)geteuid());
	return 0;
}

int hf_proc_signal(const struct hf_proc_id *id, int sig, unsigned flags, struct hf_err *err)
{
	AUTO_FD pidfd = -1;
	char shown[24];
	int r;

	if (!id || sig < 0 || sig > SIGRTMAX)
		return FAIL(err, -EINVAL, "arguments", "hf_proc_signal", "no such signal");
	(void)snprintf(shown, sizeof(shown), "pid %d", (int)id->pid);
	/* 1 is init; 0 and below would be groups and everybody. */
	if (id->pid <= 1)
		return FAIL(err, HF_E_PROTECTED, "pid", shown, "pid 1 and below are never signalled");
	r = hf_proc_open(id, flags, &pidfd, err);
	if (r < 0)
		return r;
	r = check_target(id, pidfd, shown, err);
	if (r < 0)
		return r;
	r = hf_pidfd_exited(pidfd);
	if (r < 0)
		return hf_fail_sys(err, -r, "poll", shown);
	if (r > 0)
		return FAIL(err, HF_E_GONE, "poll", shown, "it has exited");
	if (hf_sys.pidfd_send_signal(pidfd, sig) == 0)
		return 0;
	if (errno == ESRCH)
		return FAIL(err, HF_E_GONE, "pidfd_send_signal", shown, "it has exited");
	if (errno == EPERM)
		return FAIL(err, HF_E_FOREIGN, "pidfd_send_signal", shown, "the kernel forbids it");
	return FAIL_SYS(err, "pidfd_send_signal", shown);
}
