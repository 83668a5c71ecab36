/*
 * proc/judge.c - is the stored identity the process that is there now?
 *
 * One function decides, for liveness, open and signal alike. Its order is the
 * argument: first what makes the pid meaningless here, then the pidfd, which
 * pins the process, and only then the comparison. Whatever is read by number
 * from /proc is believed only if the pidfd shows afterwards that the process
 * had not exited: until then the number was its own.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/proc/here.h"
#include "hf/proc/judge.h"
#include "hf/proc/stat.h"
#include "hf/sys/calls.h"

static int say(char evidence[HF_EVIDENCE_MAX], int verdict, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Writes the evidence and returns the verdict. */
static int say(char evidence[HF_EVIDENCE_MAX], int verdict, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(evidence, HF_EVIDENCE_MAX, format, args);
	va_end(args);
	return verdict;
}

/* Without pidfs on both sides: the start time, read by number. */
static int judge_by_start(const struct hf_proc_id *id, const struct hf_here *here, int pidfd,
			  char evidence[HF_EVIDENCE_MAX])
{
	struct hf_stat st;
	int32_t number;
	int r;

	if (id->start_ticks == 0)
		return say(evidence, HF_E_UNKNOWN, "pid %d: no pidfs inode and no start time "
			   "was stored", (int)id->pid);
	if (id->time_ns != here->time_ns)
		return say(evidence, HF_E_UNKNOWN, "pid %d: its start time was read in another "
			   "time namespace", (int)id->pid);
	r = hf_proc_number(pidfd, id->pid, &number);
	if (r == 0)
		r = hf_stat_read(number, &st);
	if (r == -ENOENT || r == -ESRCH || r == HF_E_GONE) {
		/* hidepid hides living processes too; only the pidfd can tell. */
		if (pidfd >= 0 ? hf_pidfd_exited(pidfd) == 1 : hf_pid_is_free(id->pid))
			return say(evidence, HF_E_GONE, "pid %d is gone", (int)id->pid);
		return say(evidence, HF_E_UNKNOWN, "pid %d: hidden by /proc, and no pidfs inode to compare",
			   (int)id->pid);
	}
	if (r < 0)
		return say(evidence, HF_E_UNKNOWN, "pid %d: /proc cannot be read",
			   (int)id->pid);
	if (st.start_ticks != id->start_ticks)
		return say(evidence, HF_E_RECYCLED,
			   "pid %d is another process now (started at tick %llu, not %llu)",
			   (int)id->pid, (unsigned long long)st.start_ticks,
			   (unsigned long long)id->start_ticks);
	if (pidfd < 0 && hf_stat_is_dead(&st))
		return say(evidence, HF_E_GONE, "pid %d has exited (zombie)", (int)id->pid);
	return say(evidence, 0, "pid %d runs (start tick %llu matches; weak: no pidfs)",
		   (int)id->pid, (unsigned long long)st.start_ticks);
}

static int judge_opened(const struct hf_proc_id *id, const struct hf_here *here, int pidfd,
			char evidence[HF_EVIDENCE_MAX])
{
	uint64_t inode = hf_pidfs_inode(pidfd);
	int verdict, exited;

	if (inode != 0 && id->pidfs_inode != 0)
		verdict = inode == id->pidfs_inode
				  ? say(evidence, 0, "pid %d runs (pidfs inode %llu matches)",
					(int)id->pid, (unsigned long long)inode)
				  : say(evidence, HF_E_RECYCLED,
					"pid %d is another process now (pidfs inode %llu, not %llu)",
					(int)id->pid, (unsigned long long)inode,
					(unsigned long long)id->pidfs_inode);
	else
		verdict = judge_by_start(id, here, pidfd, evidence);
	/* Stored in this boot, so this kernel has it: the tick may refute, not stand in for it. */
	if (verdict == 0 && id->pidfs_inode != 0 && inode == 0)
		verdict = say(evidence, HF_E_UNKNOWN, "pid %d: its pidfs inode cannot be read",
			      (int)id->pid);

	/* After the comparison, so that it covers what was read by number above. */
	exited = hf_pidfd_exited(pidfd);
	if (exited < 0)
		return say(evidence, HF_E_UNKNOWN, "pid %d: its pidfd cannot be polled (errno %d)",
			   (int)id->pid, -exited);
	if (exited && verdict != HF_E_RECYCLED)
		return say(evidence, HF_E_GONE, "pid %d has exited", (int)id->pid);
	return verdict;
}

int hf_proc_judge_at(const struct hf_proc_id *id, const struct hf_here *here, unsigned flags,
		     int *ret_pidfd, char evidence[HF_EVIDENCE_MAX])
{
	AUTO_FD pidfd = -1;
	int verdict;

	if (!id || id->pid < 1 || !hf_boot_id_valid(id->boot_id, strnlen(id->boot_id, HF_BOOT_ID_LEN + 1)))
		return say(evidence, HF_E_UNKNOWN, "not a process identity");
	if (memcmp(id->boot_id, here->boot_id, HF_BOOT_ID_LEN) != 0)
		return flags & HF_PROC_SHARED
			       ? say(evidence, HF_E_UNKNOWN,
				     "pid %d is of boot %.8s, this is %.8s: another host, perhaps",
				     (int)id->pid, id->boot_id, here->boot_id)
			       : say(evidence, HF_E_GONE,
				     "pid %d ended with an earlier boot (%.8s, this is %.8s)",
				     (int)id->pid, id->boot_id, here->boot_id);
	if (id->pid_ns != here->pid_ns && hf_pid_ns_has_ended(id, here))
		return say(evidence, HF_E_GONE, "pid %d is gone: its pid namespace (%llu) has no process left",
			   (int)id->pid, (unsigned long long)id->pid_ns);
	if (id->pid_ns != here->pid_ns)
		return say(evidence, HF_E_UNKNOWN,
			   "pid %d is of another pid namespace (%llu, this is %llu)", (int)id->pid,
			   (unsigned long long)id->pid_ns, (unsigned long long)here->pid_ns);

	pidfd = hf_sys.pidfd_open(id->pid, 0);
	if (pidfd < 0 && errno == ESRCH)
		return say(evidence, HF_E_GONE, "pid %d is gone", (int)id->pid);
	if (pidfd < 0 && (errno == EINVAL || errno == ENOENT))
		return say(evidence, HF_E_RECYCLED, "pid %d is a thread of another process now",
			   (int)id->pid);
	if (pidfd < 0 && errno != ENOSYS && errno != EPERM)
		return say(evidence, HF_E_UNKNOWN, "pid %d cannot be opened: %s", (int)id->pid,
			   strerrordesc_np(errno));
	if (pidfd < 0) {
		/* No pidfd to be had (an old kernel or a sandbox): good for an answer,
		 * never for a signal, which is why no descriptor goes out. */
		verdict = judge_by_start(id, here, -1, evidence);
		return verdict == 0 && ret_pidfd
			       ? say(evidence, HF_E_UNKNOWN, "pid %d runs, but pidfd_open is not "
				     "available here", (int)id->pid)
			       : verdict;
	}
	verdict = judge_opened(id, here, pidfd, evidence);
	if (verdict == 0 && ret_pidfd)
		*ret_pidfd = fd_take(&pidfd);
	return verdict;
}

int hf_proc_judge(const struct hf_proc_id *id, unsigned flags, int *ret_pidfd,
		  char evidence[HF_EVIDENCE_MAX])
{
	struct hf_err here_err = HF_ERR_INIT;
	struct hf_here here;

	if (hf_here_read(&here, &here_err) < 0)
		return say(evidence, HF_E_UNKNOWN, "pid %d: %s cannot be read",
			   id ? (int)id->pid : 0, here_err.subject);
	return hf_proc_judge_at(id, &here, flags, ret_pidfd, evidence);
}

enum hf_liveness hf_proc_liveness(const struct hf_proc_id *id, unsigned flags,
				  char evidence[HF_EVIDENCE_MAX])
{
	char unused[HF_EVIDENCE_MAX];

	switch (hf_proc_judge(id, flags, NULL, evidence ? evidence : unused)) {
	case 0:
		return HF_ALIVE;
	case HF_E_GONE:
	case HF_E_RECYCLED:
		return HF_DEAD;
	default:
		return HF_UNKNOWN;
	}
}

int hf_proc_open(const struct hf_proc_id *id, unsigned flags, int *ret_pidfd, struct hf_err *err)
{
	char evidence[HF_EVIDENCE_MAX], shown[24];
	int pidfd = -1, verdict;

	if (!id || !ret_pidfd)
		return FAIL(err, -EINVAL, "arguments", "hf_proc_open", "NULL");
	(void)snprintf(shown, sizeof(shown), "pid %d", (int)id->pid);
	verdict = hf_proc_judge(id, flags, &pidfd, evidence);
	if (verdict < 0)
		return FAIL(err, verdict, "identity", shown, "%s", evidence);
	*ret_pidfd = pidfd;
	return 0;
}

int hf_proc_equal(const struct hf_proc_id *a, const struct hf_proc_id *b)
{
	if (a->pid != b->pid || a->pid_ns != b->pid_ns || strcmp(a->boot_id, b->boot_id) != 0)
		return 0;
	if (a->pidfs_inode && b->pidfs_inode)
		return a->pidfs_inode == b->pidfs_inode;
	return a->start_ticks == b->start_ticks && a->time_ns == b->time_ns;
}
