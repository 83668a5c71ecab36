/* view/doctor/sandbox.c - can sandboxes be made here, which call fails, and what to do about it. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hf/base/buf.h"
#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/registry/registry.h"
#include "hf/sys/io.h"
#include "hf/view/doctor/probes.h"

#define say(...) (void)snprintf(text, HF_DOCTOR_TEXT_MAX, __VA_ARGS__)

/* By making a sandbox as `plan add` does, between two empty directories of the state directory. */
static int try_overlay(const char *dir, unsigned flags, struct hf_plan_probe *ret, struct hf_err *err)
{
	struct hf_plans *plans = NULL;
	struct hf_state *state = NULL;
	int r = hf_state_open(dir, flags, &state, err);

	if (r == 0)
		r = hf_plans_open(state, NULL, &plans, err);
	if (r == 0)
		r = hf_plan_probe(plans, NULL, HF_STRATEGY_OVERLAY, ret, err);
	hf_plans_free(plans);
	hf_state_free(state);
	return r;
}

enum hf_finding hf_probe_overlay(const char *dir, char text[HF_DOCTOR_TEXT_MAX])
{
	struct hf_err err = HF_ERR_INIT;
	struct hf_plan_probe probe = { 0 };
	const char *where = "with this state directory";
	int r = try_overlay(dir, HF_STATE_NO_CREATE, &probe, &err);

	if (r == -ENOENT) {
		/* There is none yet, and none is made: tried in a directory that is removed again. */
		const char *base = getenv("TMPDIR");
		AUTO(hf_buf_done) struct hf_buf temporary = HF_BUF_INIT;

		hf_buf_add_format(&temporary, "%s/holdfast-doctor.XXXXXX", base && base[0] == '/' ? base : "/tmp");
		where = "in a temporary directory";
		if (temporary.err == 0 && mkdtemp(temporary.s)) {
			r = try_overlay(temporary.s, 0, &probe, &err);
			(void)hf_tree_remove(AT_FDCWD, temporary.s);
		} else {
			r = hf_fail_sys(&err, temporary.err ? -temporary.err : errno, "mkdtemp", temporary.s);
		}
	}
	if (r < 0)
		(void)hf_err_format(&err, text, HF_DOCTOR_TEXT_MAX);
	else if (probe.code == 0)
		say("works %s", where);
	else
		say("%.250s%s%.250s", probe.why, probe.remedy[0] ? "; " : "", probe.remedy);
	return r < 0 || probe.code ? HF_FOUND_ABSENT : HF_FOUND_OK;
}

static int try_userns(void)
{
	return unshare(CLONE_NEWUSER) < 0 ? errno : 0;
}

/* Runs `try` in a child, because it changes the process. Returns its errno, 0 for success. */
static int try_in_child(int (*try)(void))
{
	siginfo_t info = { 0 };
	pid_t pid = fork();

	if (pid < 0)
		return errno;
	if (pid == 0)
		_exit(try());
	while (waitid(P_PID, (id_t)pid, &info, WEXITED) < 0)
		if (errno != EINTR)
			return errno;
	return info.si_code == CLD_EXITED ? info.si_status : EINTR;
}

/* What decides about user namespaces on the distributions that there are. */
static void add_sysctls(struct hf_buf *out)
{
	static const char *const names[] = { "user/max_user_namespaces",
					     "kernel/unprivileged_userns_clone",
					     "kernel/apparmor_restrict_unprivileged_userns" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[128], value[32];
		ssize_t n;

		(void)snprintf(path, sizeof(path), "/proc/sys/%s", names[i]);
		n = hf_read_file(AT_FDCWD, path, value, sizeof(value) - 1);
		if (n <= 0)
			continue;
		value[n] = '\0';
		value[strcspn(value, "\n")] = '\0';
		hf_buf_add_format(out, ", %s=%s", names[i], value);
	}
}

enum hf_finding hf_probe_userns(const char *dir, char text[HF_DOCTOR_TEXT_MAX])
{
	AUTO(hf_buf_done) struct hf_buf sysctls = HF_BUF_INIT;
	int error = try_in_child(try_userns);

	(void)dir;
	add_sysctls(&sysctls);
	say("%s%s", error ? strerrordesc_np(error) : "available", sysctls.s);
	return error ? HF_FOUND_ABSENT : HF_FOUND_OK;
}

static int try_listener(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { 1, &allow };

	if (unshare(CLONE_NEWUSER) < 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return errno;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program) < 0 ?
		       errno :
		       0;
}

enum hf_finding hf_probe_rename(const char *dir, char text[HF_DOCTOR_TEXT_MAX])
{
	int error = try_in_child(try_listener);

	(void)dir;
	say("seccomp listener: %s", error ? strerrordesc_np(error) : "available");
	return error ? HF_FOUND_ABSENT : HF_FOUND_OK;
}
