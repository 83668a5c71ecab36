/* tx/land/git/version.c - is there a git that can be used? */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/replace.h"
#include "hf/tx/land/git/git.h"

#define KNOWN     ".git"
#define KNOWN_MAX 128

static int ask(struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;
	struct hf_git git = { .dir = "/", .out = &text };
	unsigned major = 0, minor = 0;
	const char *at;
	int status = hf_git(&git, err, "version", NULL);

	if (status == -ENOENT || status > 0)
		return FAIL(err, HF_E_LAND, "git", "git", "git is not installed; install it, or use --land off");
	if (status < 0)
		return status;
	at = strncmp(text.s, "git version ", 12) == 0 ? text.s + 12 : "";
	for (; *at >= '0' && *at <= '9' && major < 1000; at++)
		major = major * 10 + (unsigned)(*at - '0');
	for (at += *at == '.'; *at >= '0' && *at <= '9' && minor < 1000; at++)
		minor = minor * 10 + (unsigned)(*at - '0');
	if (major < 2 || (major == 2 && minor < 38))
		return FAIL(err, HF_E_LAND, "git", "git", "git %u.%u is too old; 2.38 or newer is needed", major, minor);
	return 0;
}

/* Which file will be executed as "git": one that is replaced by another version is another one. "": none. */
static void describe(char out[KNOWN_MAX])
{
	const char *at = getenv("PATH"), *end;
	char path[PATH_MAX];
	struct stat st;

	out[0] = '\0';
	for (; at; at = *end ? end + 1 : NULL) {
		end = strchrnul(at, ':');
		/* An empty one is the current directory, which exec searches as well. */
		if (snprintf(path, sizeof(path), "%.*s%sgit", (int)(end - at), at, end > at ? "/" : "") >= (int)sizeof(path) ||
		    hf_sys.fstatat(AT_FDCWD, path, &st, 0) < 0 || !S_ISREG(st.st_mode) || access(path, X_OK) < 0)
			continue;
		(void)snprintf(out, KNOWN_MAX, "%llx %llx %lld %lld.%09ld\n", (unsigned long long)st.st_dev,
			       (unsigned long long)st.st_ino, (long long)st.st_size, (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
		return;
	}
}

int hf_git_version(int dirfd, struct hf_err *err)
{
	static _Atomic int known; /* one answer for the life of the process; a race writes the same */
	char git[KNOWN_MAX] = "", before[KNOWN_MAX] = "", temp[32];
	ssize_t n;
	int r;

	if (known)
		return 0;
	if (dirfd >= 0)
		describe(git);
	n = git[0] ? hf_read_file(dirfd, KNOWN, before, sizeof(before)) : -1;
	if (n > 0 && (size_t)n == strlen(git) && memcmp(before, git, (size_t)n) == 0) {
		known = 1;
		return 0;
	}
	r = ask(err);
	if (r < 0)
		return r;
	known = 1;
	/* One that is not written, or lost by a power cut, costs another question. */
	(void)snprintf(temp, sizeof(temp), "%s.%d", KNOWN, (int)getpid());
	if (git[0])
		(void)hf_replace_file(dirfd, KNOWN, temp, git, strlen(git), 0);
	return 0;
}
