/*
 * cli/plan/patch.c - the differences of one file as diff(1) shows them, and the pager.
 *
 * diff reads both versions through our own descriptors in /proc, so that no path has to be
 * trusted or quoted.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plan/plan.h"

static void side(char *out, size_t cap, int fd)
{
	if (fd < 0)
		(void)snprintf(out, cap, "/dev/null");
	else
		(void)snprintf(out, cap, "/proc/%ld/fd/%d", (long)getpid(), fd);
}

/* Its exit status; 126 for a signal. */
static int reap(pid_t pid)
{
	siginfo_t info = { 0 };

	while (waitid(P_PID, (id_t)pid, &info, WEXITED) < 0 && errno == EINTR)
		;
	return info.si_code == CLD_EXITED ? info.si_status : 126;
}

static char *label(const char *letter, int fd, const char *path)
{
	char *text;

	if (asprintf(&text, "--label=%s%s", fd < 0 ? "" : letter, fd < 0 ? "/dev/null" : path) < 0)
		cli_die_oom();
	return text;
}

int plan_patch(const struct cli *cli, const struct hf_change *c)
{
	/* Made here: the names in /proc are those of this process, which keeps the files open. */
	char old[48], new[48], *old_label, *new_label;
	pid_t pid;
	int status;

	if (c->kind == HF_CHANGE_SKIPPED || c->kind == HF_CHANGE_MODE || (c->old_fd < 0 && c->new_fd < 0))
		return HF_EXIT_DONE;
	side(old, sizeof(old), c->old_fd);
	side(new, sizeof(new), c->new_fd);
	old_label = label("a/", c->old_fd, c->path);
	new_label = label("b/", c->new_fd, c->path);
	(void)fflush(stdout);
	pid = fork();
	if (pid == 0) {
		(void)execlp("diff", "diff", "-u", cli->colour ? "--color=always" : "--color=never",
			     old_label, new_label, "--", old, new, (char *)NULL);
		_exit(errno == ENOENT ? 127 : 126);
	}
	free(old_label);
	free(new_label);
	if (pid < 0)
		return HF_EXIT_OS;
	status = reap(pid);
	if (status == 127)
		cli_say(cli, "diff is not installed (package diffutils); --patch needs it");
	return status <= 1 ? HF_EXIT_DONE : HF_EXIT_OS;
}

int plan_pager_begin(const struct cli *cli)
{
	const char *pager = getenv("PAGER");
	int ends[2];
	pid_t pid;

	if (!cli->colour && !isatty(STDOUT_FILENO))
		return -1;
	if (!pager || !pager[0])
		pager = "less -FRX";
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		(void)dup2(ends[0], STDIN_FILENO);
		(void)execl("/bin/sh", "sh", "-c", pager, (char *)NULL);
		_exit(127);
	}
	if (pid > 0)
		(void)dup2(ends[1], STDOUT_FILENO);
	(void)close(ends[0]);
	(void)close(ends[1]);
	return pid > 0 ? (int)pid : -1;
}

void plan_pager_end(int pager)
{
	if (pager < 0)
		return;
	(void)fflush(stdout);
	(void)close(STDOUT_FILENO);
	(void)open("/dev/null", O_WRONLY);
	(void)reap(pager);
}
