/* plan/inside/explain.c - what a failure to make a sandbox means, and the way out. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/plan/inside/namespace.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

/* A number from /proc/sys; -1: there is none. */
static int64_t sysctl_of(const char *path)
{
	char text[32];
	ssize_t n = hf_read_file(AT_FDCWD, path, text, sizeof(text) - 1);
	uint64_t value;

	while (n > 0 && text[n - 1] == '\n')
		n--;
	return n > 0 && hf_parse_u64(text, (size_t)n, INT64_MAX, &value) == 0 ? (int64_t)value : -1;
}

static int is_step(const struct hf_inside_fail *fail, const char *step)
{
	return strncmp(fail->step, step, strlen(step)) == 0;
}

static int is_overlay(const char *path)
{
	AUTO_FD fd = hf_open_at(AT_FDCWD, path, O_PATH, 0);
	struct statfs fs;

	return fd >= 0 && hf_sys.fstatfs(fd, &fs) == 0 &&
	       (unsigned long)fs.f_type == OVERLAYFS_SUPER_MAGIC;
}

static const char *remedy_of_userns(const struct hf_inside_fail *fail)
{
	if (sysctl_of("/proc/sys/user/max_user_namespaces") == 0)
		return "user.max_user_namespaces is 0: sysctl -w user.max_user_namespaces=10000";
	if (sysctl_of("/proc/sys/kernel/unprivileged_userns_clone") == 0)
		return "sysctl -w kernel.unprivileged_userns_clone=1";
	/* Ubuntu 24.04: unshare works, the next privileged step does not. */
	if (sysctl_of("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") > 0)
		return "AppArmor restricts user namespaces: install packaging/apparmor/holdfast to "
		       "/etc/apparmor.d/ and run apparmor_parser -r on it";
	if (fail->sys == ENOSPC || fail->sys == EUSERS)
		return "too many or too deeply nested user namespaces; see user.max_user_namespaces";
	return "a container's seccomp filter (Docker: --security-opt seccomp=unconfined) or a chroot "
	       "forbids user namespaces; --strategy copy works without";
}

static const char *confine_remedy(const struct hf_inside_fail *fail)
{
	if (is_step(fail, "landlock"))
		return "a read-only rest needs a mount namespace (--strategy overlay), or Landlock of Linux 6.2";
	if (strcmp(fail->subject, "user namespace") == 0)
		return "a separate network needs a user namespace";
	return "";
}

/* The step, and what the kernel says to it; a subject that the message names already is not said again. */
static void say_why(const struct hf_inside_fail *fail, const char *named, char why[HF_PLAN_WHY_MAX])
{
	int is_named = strcmp(fail->subject, named) == 0;

	(void)snprintf(why, HF_PLAN_WHY_MAX, "%s%s%.80s: %s%s%.120s", fail->step, is_named ? "" : " of ",
		       is_named ? "" : fail->subject, strerrordesc_np(fail->sys), fail->text[0] ? ": " : "", fail->text);
}

void hf_inside_explain(const struct hf_inside_fail *fail, char why[HF_PLAN_WHY_MAX],
		       char remedy[HF_PLAN_WHY_MAX])
{
	const char *advice = "";

	say_why(fail, "", why);
	if (strstr(fail->text, "not supported as upperdir"))
		advice = "the state directory is on a file system that overlayfs cannot write to (an overlay, "
			 "NFS, FUSE): put HOLDFAST_DIR on a volume, /dev/shm or /run/user/UID";
	else if (fail->sys == EINVAL && is_step(fail, "fsconfig create") && is_overlay(fail->subject))
		/* The kernel writes that into its log only. */
		advice = "it is already inside overlays, and the kernel's stacking depth is two: leave a "
			 "sandbox first, or use --strategy copy";
	else if (fail->confine)
		advice = confine_remedy(fail);
	else if (is_step(fail, "unshare") || is_step(fail, "uid_map") || is_step(fail, "gid_map") ||
		 is_step(fail, "setgroups"))
		advice = remedy_of_userns(fail);
	else if (fail->sys == ENODEV)
		advice = "this kernel has no overlayfs: modprobe overlay, or use --strategy copy";
	else if (fail->sys == ENOSYS)
		advice = "this kernel (or a filter) has no fsopen: Linux 5.11 is needed for overlay";
	else if (fail->sys == EPERM || fail->sys == EACCES)
		advice = sysctl_of("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") > 0 ?
				 remedy_of_userns(fail) :
				 "mounting is forbidden here (container, or Linux before 5.11); --strategy "
				 "copy works without";
	else if (fail->sys == ESTALE)
		advice = "something was replaced in the meantime; check the target and try again";
	hf_copy_text(remedy, HF_PLAN_WHY_MAX, advice);
}

/* Standard input, output or error would lead past the sandbox. */
static int stdio_error(const struct hf_inside_fail *fail, const char *subject, struct hf_err *err)
{
	if (is_step(fail, HF_STEP_STDIO_DIRECTORY))
		return FAIL(err, HF_E_STDIO, "stdio", subject, "it is a directory");
	if (is_step(fail, HF_STEP_STDIO_WRITABLE))
		return FAIL(err, HF_E_STDIO, "stdio", subject, "use a file outside the target, or a pipe (| cat >FILE), not %.120s",
			    fail->subject);
	return FAIL(err, fail->confine ? HF_E_NO_CONFINE : HF_E_STDIO, "stdio", subject,
		    "use a pipe (cat FILE |): in the sandbox %.120s cannot be opened (%s)", fail->subject, strerrordesc_np(fail->sys));
}

int hf_inside_error(const struct hf_inside_fail *fail, const char *subject, struct hf_err *err)
{
	char why[HF_PLAN_WHY_MAX], remedy[HF_PLAN_WHY_MAX];
	int r, room = (int)sizeof(err->detail) - 1;

	if (fail->stdio)
		return stdio_error(fail, subject, err);
	hf_inside_explain(fail, why, remedy);
	say_why(fail, subject, why);
	/* If there is not room for all, the way out is what the reader needs. */
	if (remedy[0])
		room -= (int)strlen(remedy) + 2;
	r = FAIL(err, fail->confine ? HF_E_NO_CONFINE : HF_E_NO_OVERLAY, fail->step, subject, "%.*s%s%s", room < 0 ? 0 : room, why,
		 remedy[0] ? "; " : "", remedy);
	if (err)
		err->sys = fail->sys;
	return r;
}
