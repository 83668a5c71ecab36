/* tx/land/git/find.c - is a directory in a git work tree, and can that be landed on? */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/target/target.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/tx/land/git/refs.h"
#include "hf/tx/land/git/repository.h"
#include "hf/tx/land/git/search.h"
#include "hf/tx/land/candidate/land.h"

void hf_land_place_done(struct hf_land_place *place)
{
	free(place->top);
	free(place->git_dir);
	free(place->common);
	free(place->branch);
	for (size_t i = 0; i < place->n_targets; i++)
		free(place->targets[i]);
	*place = (struct hf_land_place){ 0 };
}

/* Takes the next line out of `at`. */
static char *next_line(char **at)
{
	char *line = *at;
	size_t len = strcspn(line, "\n");

	*at = line + len + (line[len] == '\n');
	line[len] = '\0';
	return line;
}

static int add_target(struct hf_land_place *place, const char *path, struct hf_err *err)
{
	for (size_t i = 0; i < place->n_targets; i++)
		if (hf_path_is_in(path, place->targets[i]))
			return 0;
	place->targets[place->n_targets] = strdup(path);
	if (!place->targets[place->n_targets])
		return hf_fail_sys(err, ENOMEM, "memory", path);
	place->n_targets++;
	return 0;
}

int hf_land_place_again(const char *top, const char *git_dir, const char *common, struct hf_land_place *ret, struct hf_err *err)
{
	AUTO(hf_land_place_done) struct hf_land_place place = { 0 };
	struct stat st;
	int r;

	place.top = strdup(top);
	place.git_dir = strdup(git_dir);
	place.common = strdup(common);
	if (!place.top || !place.git_dir || !place.common)
		return hf_fail_sys(err, ENOMEM, "memory", top);
	if (hf_sys.fstatat(AT_FDCWD, common, &st, 0) < 0)
		return FAIL_SYS(err, "stat", common);
	place.dev = (uint64_t)st.st_dev;
	place.ino = (uint64_t)st.st_ino;
	/* What lies in `top` needs no target of its own. */
	r = hf_path_is_in(common, top) ? 0 : add_target(&place, common, err);
	if (r == 0 && !hf_path_is_in(git_dir, top))
		r = add_target(&place, git_dir, err);
	if (r == 0)
		r = add_target(&place, top, err);
	if (r < 0)
		return r;
	*ret = place;
	place = (struct hf_land_place){ 0 };
	return 0;
}

int hf_land_find_dirs(const char *dir, int checks_owner, struct hf_land_place *ret, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	struct hf_git git = { .dir = dir, .out = &out, .said = &said, .checks_owner = checks_owner };
	char *at, *top, *git_dir, *common;
	/* In a bare repository git says so, and then fails at the next word. */
	int r = hf_git(&git, err, "rev-parse", "--path-format=absolute", "--is-bare-repository", "--show-toplevel", "--git-dir",
		       "--git-common-dir", NULL);

	if (r < 0)
		return r;
	at = out.s;
	if (strcmp(next_line(&at), "true") == 0)
		return FAIL(err, HF_E_LAND, "git", dir, "it is a bare repository, without a work tree to work in");
	if (r > 0)
		return hf_git_failed(&said, dir, "rev-parse", err);
	top = next_line(&at);
	git_dir = next_line(&at);
	common = next_line(&at);
	if (top[0] != '/' || git_dir[0] != '/' || common[0] != '/' || at[0])
		return FAIL(err, HF_E_LAND, "git", dir, "the path of its repository has a newline");
	r = hf_land_place_again(top, git_dir, common, ret, err);
	if (r == 0)
		ret->moved_up = strcmp(top, dir) != 0;
	return r;
}

/* -- where HEAD is, and what is not committed ------------------------------------------------ */

static const char *const status_words[] = { "status", "--porcelain=v2", "--branch", "--no-ahead-behind", "-z", "--no-renames",
					    "--untracked-files=all", "--ignored=matching", "--ignore-submodules=all", NULL };

/* What "git status" says of HEAD: "# branch.oid OID", "# branch.head NAME", each with a NUL. */
#define OID_IS  "# branch.oid "
#define HEAD_IS "# branch.head "

/* The branch that is checked out (*ret_head: in `out`; "": none) and where it is; both may have been read from files. */
static void read_status(const struct hf_buf *out, struct hf_land_search *search, const char **ret_head)
{
	struct hf_land_place *place = &search->place;

	*ret_head = "";
	for (const char *at = out->s; at < out->s + out->len; at += strlen(at) + 1) {
		if (strncmp(at, OID_IS, strlen(OID_IS)) == 0 && at[strlen(OID_IS)] != '(' && !place->base[0])
			hf_copy_text(place->base, sizeof(place->base), at + strlen(OID_IS));
		else if (strncmp(at, HEAD_IS, strlen(HEAD_IS)) == 0 && strcmp(at + strlen(HEAD_IS), "(detached)") != 0)
			*ret_head = at + strlen(HEAD_IS);
		/* Another repository, listed with a slash, is not removed from the sandbox (git clean leaves it), and is seen there. */
		if (at[0] == '#' || at[0] == '!' || (at[0] == '?' && at[strlen(at) - 1] == '/'))
			continue;
		place->n_dirty++;
		search->n_untracked += at[0] == '?';
	}
}

/* `head`: the branch that is checked out; "": none. */
static int take_branch(const char *branch, const char *head, struct hf_land_place *place, struct hf_err *err)
{
	struct hf_git git = { .dir = place->top };
	char oid[HF_LAND_OID_MAX], rev[PATH_MAX];
	int r;

	if (!branch && !head[0])
		return FAIL(err, HF_E_LAND, "git", place->top,
			    "HEAD is detached: no branch is checked out; name one with --land BRANCH");
	branch = branch ? hf_land_short(branch) : head;
	if (asprintf(&place->branch, "refs/heads/%s", branch) < 0) {
		place->branch = NULL;
		return hf_fail_sys(err, ENOMEM, "memory", branch);
	}
	if (strlen(place->branch) > 255)
		return FAIL(err, HF_E_LAND, "git", place->top, "the branch's name is longer than 255 bytes");
	if (!place->base[0])
		return FAIL(err, HF_E_LAND, "git", place->top, "the branch that is checked out, '%.100s', has no commit yet; make the first one, or check out "
			    "another", head);
	if (strcmp(branch, head) == 0)
		return 0;
	(void)snprintf(rev, sizeof(rev), "%s^{commit}", place->branch);
	r = hf_git_oid(&git, rev, oid, err);
	return r > 0 ? FAIL(err, HF_E_LAND, "git", place->top, "no branch '%.120s'", branch) : r;
}

/* -- the search ------------------------------------------------------------------------------ */

void hf_land_search_done(struct hf_land_search *search)
{
	hf_git_beside_done(&search->status);
	hf_remembered_free(search->remembered);
	hf_remember_done(&search->remember);
	hf_land_place_done(&search->place);
}

static int take_moment(struct hf_land_search *search)
{
	int r = hf_moment_take(&search->place, &search->remember.moment);

	search->has_moment = r >= 0 || r == -ENOTSUP;
	return r;
}

static int ask_git(struct hf_land_search *search, struct hf_err *err)
{
	return hf_git_beside_start(&search->status, search->place.top, status_words, err);
}

/* Looks whether what is remembered still holds, or asks git. The moment comes first, so that git's answer can be remembered. */
static int begin_status(int known, struct hf_land_search *search, struct hf_err *err)
{
	struct hf_remember *remember = &search->remember;
	int r = take_moment(search);

	if (known >= 0 && r == 1) {
		remember->top = strdup(search->place.top);
		remember->dirfd = remember->top ? fcntl(known, F_DUPFD_CLOEXEC, 3) : -1;
	}
	if (known >= 0 && r >= 0 && hf_remembered_open(known, search->place.top, &remember->moment, &search->remembered))
		return 0;
	return ask_git(search, err);
}

/* By the files alone: 1; 0: git has to be asked; or an error. */
static int find_by_files(const char *real, const char *branch, struct hf_land_place *place, struct hf_err *err)
{
	char head[HF_GIT_REF_MAX];
	int r = hf_repository_find(real, place, err);

	if (r <= 0)
		return r;
	if (!hf_repository_head(place, place->base, head, sizeof(head)) || (!branch && !head[0])) {
		hf_land_place_done(place);
		return 0;
	}
	r = take_branch(branch, head, place, err);
	return r < 0 ? r : 1;
}

static int find_by_git(const char *real, const char *branch, struct hf_land_search *search, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	struct hf_git git = { .out = &out, .said = &said };
	const char *head;
	int r = hf_land_find_dirs(real, 1, &search->place, err);

	if (r < 0)
		return r;
	git.dir = search->place.top;
	(void)take_moment(search);
	r = hf_git_words(&git, status_words, err);
	if (r != 0)
		return r < 0 ? r : hf_git_failed(&said, search->place.top, "status", err);
	read_status(&out, search, &head);
	return take_branch(branch, head, &search->place, err);
}

int hf_land_search_begin(int known, const char *dir, const char *branch, struct hf_land_search *ret, struct hf_err *err)
{
	AUTO(hf_land_search_done) struct hf_land_search search = HF_LAND_SEARCH_INIT;
	AUTO_FREE char *real = realpath(dir, NULL);
	AUTO_FREE char *git_dir = real ? hf_git_find(real) : NULL;
	int r;

	if (!real)
		return FAIL_SYS(err, "realpath", dir);
	if (!git_dir)
		return 0;
	r = hf_git_version(known, err);
	if (r == 0)
		r = find_by_files(real, branch, &search.place, err);
	if (r == 0)
		r = find_by_git(real, branch, &search, err);
	else if (r == 1)
		r = begin_status(known, &search, err);
	if (r < 0)
		return r;
	*ret = search;
	search = (struct hf_land_search)HF_LAND_SEARCH_INIT;
	return 1;
}

int hf_land_search_end(struct hf_land_search *search, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	struct hf_buf *out = &search->remember.said;
	struct hf_dirty dirty;
	const char *head;
	int r = 0;

	if (search->remembered && hf_remembered_end(search->remembered, &dirty)) {
		search->place.n_dirty = (size_t)dirty.n;
		search->n_untracked = (size_t)dirty.untracked;
		hf_remember_done(&search->remember);
		return 0;
	}
	if (search->remembered)
		r = ask_git(search, err);
	if (r < 0 || search->status.child.pid == 0)
		return r;
	r = hf_git_beside_end(&search->status, out, &said, err);
	hf_git_beside_done(&search->status);
	if (r != 0)
		return r < 0 ? r : hf_git_failed(&said, search->place.top, "status", err);
	read_status(out, search, &head);
	search->remember.dirty = (struct hf_dirty){ search->place.n_dirty, search->n_untracked };
	return 0;
}

int hf_land_search_has_moved(const struct hf_land_search *search)
{
	struct hf_moment now;
	int r = search->has_moment ? hf_moment_take(&search->place, &now) : 0;

	return search->has_moment && ((r < 0 && r != -ENOTSUP) || now.around != search->remember.moment.around);
}

int hf_land_find(const char *dir, const char *branch, struct hf_land_place *ret_place, struct hf_err *err)
{
	AUTO(hf_land_search_done) struct hf_land_search search = HF_LAND_SEARCH_INIT;
	int r, found;

	if (!dir || !ret_place)
		return FAIL(err, -EINVAL, "arguments", "hf_land_find", "NULL");
	found = hf_land_search_begin(-1, dir, branch, &search, err);
	r = found == 1 ? hf_land_search_end(&search, err) : found;
	if (r < 0 || found == 0)
		return r;
	*ret_place = search.place;
	search.place = (struct hf_land_place){ 0 };
	return 1;
}

int hf_land_is_worktree(const char *dir, struct hf_err *err)
{
	AUTO_FREE char *git_dir = hf_git_find(dir);
	struct hf_git git = { .dir = dir, .checks_owner = 1 };
	struct stat st;
	int fd, r;

	/* In a bare repository, or in the git directory itself, there is no work tree to change. */
	if (!git_dir || hf_path_is_in(dir, git_dir))
		return 0;
	fd = hf_open_at(AT_FDCWD, dir, O_PATH | O_DIRECTORY, 0);
	if (fd < 0)
		return hf_fail_sys(err, -fd, "open", dir);
	r = hf_sys.fstatat(fd, ".git", &st, AT_SYMLINK_NOFOLLOW);
	(void)close(fd);
	if (r == 0)
		return 1;
	/* A directory that the repository ignores is not of it: what is made there would not land. */
	r = hf_git_version(-1, err);
	if (r == 0)
		r = hf_git(&git, err, "check-ignore", "--quiet", "--", ".", NULL);
	return r < 0 ? r : r != 0;
}
