/* view/doctor/probes.c - trying out what the kernel offers. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/parse.h"
#include "holdfast/proc.h"
#include "hf/proc/here.h"
#include "hf/sys/calls.h"
#include "hf/exec/cgroup/cgroup.h"
#include "hf/sys/io.h"
#include "hf/view/doctor/probes.h"

#define say(...) (void)snprintf(text, HF_DOCTOR_TEXT_MAX, __VA_ARGS__)

enum hf_finding hf_probe_kernel(char text[HF_DOCTOR_TEXT_MAX])
{
	struct utsname name;
	uint64_t major = 0, minor = 0;
	size_t a, b;

	if (uname(&name) < 0) {
		say("uname: %s", strerrordesc_np(errno));
		return HF_FOUND_FAIL;
	}
	a = strspn(name.release, "0123456789");
	b = name.release[a] == '.' ? strspn(name.release + a + 1, "0123456789") : 0;
	(void)hf_parse_u64(name.release, a, UINT32_MAX, &major);
	(void)hf_parse_u64(name.release + a + 1, b, UINT32_MAX, &minor);
	say("Linux %s", name.release);
	return major > 5 || (major == 5 && minor >= 10) ? HF_FOUND_OK : HF_FOUND_FAIL;
}

enum hf_finding hf_probe_proc(char text[HF_DOCTOR_TEXT_MAX])
{
	struct hf_err err = HF_ERR_INIT;
	struct hf_here here;
	char shown[16];
	uint64_t number = 0;
	ssize_t n;

	if (hf_here_read(&here, &err) < 0) {
		(void)hf_err_format(&err, text, HF_DOCTOR_TEXT_MAX);
		return HF_FOUND_FAIL;
	}
	n = readlink("/proc/self", shown, sizeof(shown));
	(void)hf_parse_u64(shown, n > 0 ? (size_t)n : 0, INT32_MAX, &number);
	say("boot %.8s, pid namespace %llu%s", here.boot_id, (unsigned long long)here.pid_ns,
	    number == (uint64_t)getpid() ? "" : " (/proc shows another namespace; pids are translated)");
	return HF_FOUND_OK;
}

enum hf_finding hf_probe_pidfd(char text[HF_DOCTOR_TEXT_MAX])
{
	AUTO_FD fd = hf_sys.pidfd_open(getpid(), 0);

	if (fd < 0) {
		say("pidfd_open: %s", strerrordesc_np(errno));
		return HF_FOUND_ABSENT;
	}
	if (hf_sys.pidfd_send_signal(fd, 0) < 0) {
		say("pidfd_send_signal: %s", strerrordesc_np(errno));
		return HF_FOUND_ABSENT;
	}
	say("pidfd_open and pidfd_send_signal work");
	return HF_FOUND_OK;
}

enum hf_finding hf_probe_pidfs(char text[HF_DOCTOR_TEXT_MAX])
{
	AUTO_FD fd = hf_sys.pidfd_open(getpid(), 0);
	uint64_t inode = fd < 0 ? 0 : hf_pidfs_inode(fd);

	if (inode == 0) {
		say("pidfds have no inodes of their own (Linux before 6.9, or no pidfd)");
		return HF_FOUND_ABSENT;
	}
	say("this process has inode %llu", (unsigned long long)inode);
	return HF_FOUND_OK;
}

/* By making one, as a session does. Its number is no token, which is far larger. */
enum hf_finding hf_probe_cgroup(char text[HF_DOCTOR_TEXT_MAX])
{
	struct hf_cgroup own = HF_CGROUP_INIT, group = HF_CGROUP_INIT;
	int r = hf_cgroup_own(&own), kills;

	if (r == 0)
		r = hf_cgroup_make(&own, (uint64_t)getpid(), &group);
	hf_cgroup_done(&own);
	if (r == -ENOTSUP) {
		say("cgroup v2 is not mounted");
		return HF_FOUND_ABSENT;
	}
	if (r < 0) {
		say("mounted, but this process may not make groups: %s", strerrordesc_np(-r));
		return HF_FOUND_ABSENT;
	}
	kills = faccessat(group.fd, "cgroup.kill", W_OK, 0) == 0;
	say("this process may make groups in %.*s%s", (int)(strrchr(group.path, '/') - group.path), group.path,
	    kills ? ", with cgroup.kill" : "; no cgroup.kill (before 5.14)");
	hf_cgroup_remove(&group);
	return HF_FOUND_OK;
}

enum hf_finding hf_probe_reflink(char text[HF_DOCTOR_TEXT_MAX])
{
	AUTO_FD from = hf_open_at(AT_FDCWD, ".", O_TMPFILE | O_RDWR, 0600);
	AUTO_FD to = hf_open_at(AT_FDCWD, ".", O_TMPFILE | O_RDWR, 0600);

	if (from < 0 || to < 0) {
		say("cannot be tried in this directory: %s",
		    strerrordesc_np(from < 0 ? -from : -to));
		return HF_FOUND_ABSENT;
	}
	if (hf_write_all(from, "holdfast", 8) < 0 || ioctl(to, FICLONE, from) < 0) {
		say("this directory's file system: %s", strerrordesc_np(errno));
		return HF_FOUND_ABSENT;
	}
	say("works in this directory");
	return HF_FOUND_OK;
}

enum hf_finding hf_probe_inotify(char text[HF_DOCTOR_TEXT_MAX])
{
	AUTO_FD fd = hf_sys.inotify_init1(IN_CLOEXEC);

	if (fd < 0 || hf_sys.inotify_add_watch(fd, "/", IN_CREATE) < 0) {
		say("%s", strerrordesc_np(errno));
		return HF_FOUND_FAIL;
	}
	say("watches work");
	return HF_FOUND_OK;
}
