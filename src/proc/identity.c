/* proc/identity.c - making identities, and their text form. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/buf.h"
#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/proc/here.h"
#include "hf/proc/stat.h"
#include "hf/sys/calls.h"

#define TEXT_PREFIX "p1"

static void set_place(struct hf_proc_id *id, const struct hf_here *here)
{
	id->pid_ns = here->pid_ns;
	id->time_ns = here->time_ns;
	memcpy(id->boot_id, here->boot_id, sizeof(id->boot_id));
}

/* The pidfd of `pid`, or -1 where a sandbox forbids it: the start time alone must do then. 0 or an error. */
static int open_pidfd(int32_t pid, const char *shown, int *ret_fd, struct hf_err *err)
{
	*ret_fd = hf_sys.pidfd_open(pid, 0);
	if (*ret_fd >= 0 || errno == ENOSYS || errno == EPERM)
		return 0;
	if (errno == ESRCH)
		return FAIL(err, HF_E_GONE, "pidfd_open", shown, "no such process");
	if (errno == EINVAL || errno == ENOENT)
		return FAIL(err, -EINVAL, "pidfd_open", shown, "it is a thread, not a process");
	return FAIL_SYS(err, "pidfd_open", shown);
}

/*
 * Its number in /proc. A /proc shows the processes of its own namespace and of those below it. This one shows us (`here` was
 * read from it); so if ours is the first of all, it is ours, and nothing is to be read.
 */
static int number_in_proc(const struct hf_here *here, int32_t pid, int pidfd, int32_t *ret)
{
	if (pidfd < 0 || here->pid_ns != HF_FIRST_PID_NS)
		return hf_proc_number(pidfd, pid, ret);
	*ret = pid;
	return 0;
}

/* `pidfd` -1: there is none. */
static int identify(const struct hf_here *here, int32_t pid, int pidfd, const char *shown, struct hf_proc_id *ret_id,
		    struct hf_err *err)
{
	struct hf_proc_id id = { .pid = pid };
	struct hf_stat st = { 0 };
	int32_t number;
	int r;

	set_place(&id, here);
	if (pidfd >= 0)
		id.pidfs_inode = hf_pidfs_inode(pidfd);

	r = number_in_proc(here, pid, pidfd, &number);
	if (r == 0)
		r = hf_stat_read(number, &st);
	if (r == 0)
		id.start_ticks = st.start_ticks;
	else if (pidfd < 0 ? hf_pid_is_free(pid) : hf_pidfd_exited(pidfd) == 1)
		return FAIL(err, HF_E_GONE, "stat", shown, "no such process");
	else if (id.pidfs_inode == 0)
		return FAIL(err, r == HF_E_GONE ? r : HF_E_UNKNOWN, "stat", shown,
			    "/proc does not show it to you, and this kernel has no pidfs");

	if (pidfd < 0 && hf_status_is_thread(number) == 1)
		return FAIL(err, -EINVAL, "status", shown, "it is a thread, not a process");
	/* Still running, so what was read belongs to this pidfd and to no successor. */
	r = pidfd < 0 ? hf_stat_is_dead(&st) : hf_pidfd_exited(pidfd);
	if (r < 0)
		return hf_fail_sys(err, -r, "poll", shown);
	if (r > 0)
		return FAIL(err, HF_E_GONE, "poll", shown, "it has exited");
	*ret_id = id;
	return 0;
}

static void show_pid(int32_t pid, char out[24])
{
	(void)snprintf(out, 24, "pid %d", (int)pid);
}

int hf_proc_identify(int32_t pid, struct hf_proc_id *ret_id, struct hf_err *err)
{
	struct hf_here here;
	char shown[24];
	AUTO_FD pidfd = -1;
	int r;

	show_pid(pid, shown);
	if (!ret_id || pid < 1)
		return FAIL(err, -EINVAL, "arguments", shown, "a pid must be at least 1");
	r = hf_here_read(&here, err);
	if (r == 0)
		r = open_pidfd(pid, shown, &pidfd, err);
	return r < 0 ? r : identify(&here, pid, pidfd, shown, ret_id, err);
}

int hf_proc_identify_open(const struct hf_proc_id *self, int32_t pid, int pidfd, struct hf_proc_id *ret_id,
			  struct hf_err *err)
{
	struct hf_here here = { .pid_ns = self->pid_ns, .time_ns = self->time_ns };
	char shown[24];

	memcpy(here.boot_id, self->boot_id, sizeof(here.boot_id));
	show_pid(pid, shown);
	return identify(&here, pid, pidfd, shown, ret_id, err);
}

int hf_proc_self(struct hf_proc_id *ret_id, struct hf_err *err)
{
	return hf_proc_identify(getpid(), ret_id, err);
}

int hf_proc_format(const struct hf_proc_id *id, char out[HF_PROC_TEXT_MAX])
{
	return snprintf(out, HF_PROC_TEXT_MAX, TEXT_PREFIX ":%d:%llu:%llu:%llu:%llu:%.*s",
			(int)id->pid, (unsigned long long)id->pidfs_inode,
			(unsigned long long)id->start_ticks, (unsigned long long)id->time_ns,
			(unsigned long long)id->pid_ns, HF_BOOT_ID_LEN, id->boot_id);
}

int hf_proc_parse(const char *text, size_t len, struct hf_proc_id *ret_id, struct hf_err *err)
{
	struct hf_proc_id id = { 0 };
	uint64_t numbers[5]; /* pid, pidfs, start, timens, pidns */
	const char *at, *end;

	if (!text || !ret_id)
		return FAIL(err, -EINVAL, "arguments", "hf_proc_parse", "NULL");
	if (len >= HF_PROC_TEXT_MAX)
		return FAIL(err, HF_E_SYNTAX, "identity", "process identity", "it is too long");
	if (len <= sizeof(TEXT_PREFIX) || memcmp(text, TEXT_PREFIX ":", sizeof(TEXT_PREFIX)) != 0)
		return FAIL(err, HF_E_SYNTAX, "identity", "process identity",
			    "it does not start with \"" TEXT_PREFIX ":\"");
	at = text + sizeof(TEXT_PREFIX);
	end = text + len;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		const char *colon = memchr(at, ':', (size_t)(end - at));

		if (!colon || hf_parse_u64_canonical(at, (size_t)(colon - at),
						     i == 0 ? INT32_MAX : UINT64_MAX,
						     &numbers[i]) < 0)
			return FAIL(err, HF_E_SYNTAX, "identity", "process identity",
				    "field %zu is not a number in range", i + 2);
		at = colon + 1;
	}
	if (numbers[0] == 0)
		return FAIL(err, HF_E_SYNTAX, "identity", "process identity", "pid 0");
	if (!hf_boot_id_valid(at, (size_t)(end - at)))
		return FAIL(err, HF_E_SYNTAX, "identity", "process identity",
			    "the last field is not a boot id");
	id.pid = (int32_t)numbers[0];
	id.pidfs_inode = numbers[1];
	id.start_ticks = numbers[2];
	id.time_ns = numbers[3];
	id.pid_ns = numbers[4];
	memcpy(id.boot_id, at, HF_BOOT_ID_LEN);
	*ret_id = id;
	return 0;
}
