/*
 * tx/land/take/connected.c - is everything there that a tip needs? And, since git walks there anyway: how many commits came?
 *
 * Printed are the objects that no ref of the repository reaches, commits with their parents. A line with two names is a commit; one with a single name
 * is a tree, a blob or a commit without parents.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/sys/io.h"
#include "hf/tx/land/git/git.h"
#include "hf/tx/land/take/connected.h"

struct commits {
	const char **list; /* where their lines begin; sorted */
	size_t n, room;
	size_t digits;     /* of an object's name */
};

static void commits_done(struct commits *commits)
{
	free(commits->list);
}

static int is_digit(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* Names that end where their digits do. */
static int by_name(const void *a, const void *b)
{
	const char *x = *(const char *const *)a, *y = *(const char *const *)b;

	while (is_digit(*x) && *x == *y) {
		x++;
		y++;
	}
	return (is_digit(*x) ? *x : 0) - (is_digit(*y) ? *y : 0);
}

static int find_commits(const char *text, size_t len, struct commits *ret)
{
	const char *end = text + len;

	for (const char *line = text; line < end;) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));

		if (!newline)
			return -EINVAL;
		if ((size_t)(newline - line) > ret->digits && line[ret->digits] == ' ') {
			if (ret->n == ret->room) {
				const char **grown = reallocarray(ret->list, ret->room * 2 + 64, sizeof(*grown));

				if (!grown)
					return -ENOMEM;
				ret->list = grown;
				ret->room = ret->room * 2 + 64;
			}
			ret->list[ret->n++] = line;
		}
		line = newline + 1;
	}
	if (ret->n)
		qsort(ret->list, ret->n, sizeof(*ret->list), by_name);
	return 0;
}

/*
 * When each parent of what came is `base` or came too, then all between base and tip has come, and base is an ancestor. Else
 * (a branch that was merged, a base that no ref has any more) it is for git to say.
 */
static int is_closed(const struct commits *commits, const char *base)
{
	int found = 0;

	if (!commits->n || bsearch(&base, commits->list, commits->n, sizeof(base), by_name))
		return 0;
	for (size_t i = 0; i < commits->n; i++) {
		const char *parent = commits->list[i] + commits->digits;

		for (; *parent == ' '; parent += commits->digits) {
			parent++;
			if (strncmp(parent, base, commits->digits) == 0)
				found = 1;
			else if (!bsearch(&parent, commits->list, commits->n, sizeof(parent), by_name))
				return 0;
		}
	}
	return found;
}

static int count(int fd, const char *base, struct hf_land_came *came)
{
	AUTO(commits_done) struct commits commits = { .digits = strlen(base) };
	off_t len = lseek(fd, 0, SEEK_END);
	char *text;
	int r;

	*came = (struct hf_land_came){ 0 };
	if (len <= 0)
		return len < 0 ? -errno : 0;
	text = mmap(NULL, (size_t)len, PROT_READ, MAP_PRIVATE, fd, 0);
	if (text == MAP_FAILED)
		return -errno;
	r = find_commits(text, (size_t)len, &commits);
	if (r == 0 && is_closed(&commits, base))
		*came = (struct hf_land_came){ .is_known = 1, .commits = (unsigned)commits.n };
	(void)munmap(text, (size_t)len);
	return r;
}

int hf_land_connected(struct hf_land_work *work, const char *const *env, const char *tip, const char *base, struct hf_land_came *came,
		      struct hf_buf *said, struct hf_err *err)
{
	AUTO_FD fd = hf_open_at(work->landings->dirfd, ".", O_RDWR | O_TMPFILE, 0600);
	struct hf_git git = { .dir = work->landing.common, .env = env, .said = said, .out_fd = fd };
	int r;

	if (fd < 0)
		return hf_fail_sys(err, -fd, "openat", "objects");
	r = hf_git(&git, err, "rev-list", "--objects", "--no-object-names", "--parents", tip, "--not", "--all", NULL);
	if (r != 0)
		return r;
	r = count(fd, base, came);
	return r < 0 ? hf_fail_sys(err, -r, "read", "objects") : 0;
}
