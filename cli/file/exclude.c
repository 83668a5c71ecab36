/*
 * cli/file/exclude.c - adds a lock file next to a file in a git work tree to the repository's info/exclude,
 * so that it appears in no `git status` and no commit.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "file/file.h"
#include "hf/base/cleanup.h"
#include "hf/exec/command.h"
#include "holdfast/clock.h"

#define GIT_NS   (10 * HF_SEC)
#define GRACE_NS HF_SEC

/* Discards git's message about a missing repository. */
static int be_silent(void *arg)
{
	(void)arg;
	return dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO) < 0 ? -1 : 0;
}

/* Returns git's exit status and the first line of its output; -1 if git did not run. */
static int run_git(char *const *argv, char out[PATH_MAX])
{
	AUTO_FD file = memfd_create("holdfast", MFD_CLOEXEC);
	struct hf_command command = { .argv = argv,
				      .envp = environ,
				      .in = -1,
				      .out = file,
				      .out_max = PATH_MAX - 1,
				      .limit_ns = GIT_NS,
				      .grace_ns = GRACE_NS,
				      .enter = be_silent };
	struct hf_command_result result;
	ssize_t n;

	if (file < 0)
		return -1;
	hf_command_run(&command, &result);
	n = pread(file, out, PATH_MAX - 1, 0);
	out[n > 0 ? n : 0] = '\0';
	out[strcspn(out, "\n")] = '\0';
	return result.error == 0 && result.exec_error == 0 && result.code == CLD_EXITED ? result.status : -1;
}

/* Appends a pattern for exactly this name, after a line feed if the file does not end with one. */
static void add_pattern(int fd, const char *name)
{
	char line[2 * NAME_MAX + 3], last = '\n';
	struct stat st;
	size_t n = 0;

	if (fstat(fd, &st) < 0 || (st.st_size > 0 && pread(fd, &last, 1, st.st_size - 1) != 1))
		return;
	if (last != '\n')
		line[n++] = '\n';
	for (; *name && n < sizeof(line) - 3; name++) {
		if (strchr("*?[\\ ", *name))
			line[n++] = '\\';
		line[n++] = *name;
	}
	line[n++] = '\n';
	/* A single append: other processes may append their lines. */
	(void)!write(fd, line, n);
}

void file_exclude(int sidecar_fd)
{
	char link[40], path[PATH_MAX], out[PATH_MAX], exclude[2 * PATH_MAX], *name;
	char git[] = "git", dash_c[] = "-C", ignores[] = "check-ignore", quiet[] = "-q", dashes[] = "--", where[] = "rev-parse",
	     of[] = "--git-path", info[] = "info/exclude";
	ssize_t n;
	int status;
	AUTO_FD fd = -1;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", sidecar_fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	name = strrchr(path, '/');
	if (!name || name == path || strchr(name, '\n'))
		return;
	*name++ = '\0';
	/* 0: already ignored; 128: not a work tree. */
	status = run_git((char *[]){ git, dash_c, path, ignores, quiet, dashes, name, NULL }, out);
	if (status != 1 || run_git((char *[]){ git, dash_c, path, where, of, info, NULL }, out) != 0 || !out[0])
		return;
	(void)snprintf(exclude, sizeof(exclude), "%s%s%s", out[0] == '/' ? "" : path, out[0] == '/' ? "" : "/", out);
	fd = open(exclude, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd >= 0)
		add_pattern(fd, name);
}
