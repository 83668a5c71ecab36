/* tx/land/take/touched.c - the paths that a plan's sandbox holds. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/target/target.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/tx/land/take/touched.h"

#define LOG_MAX   ((off_t)4 << 20)
#define LOCKS_MAX 1000 /* a git holds a few; more are an agent's game, and stay */

static void free_list(char **list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

void hf_touched_done(struct hf_touched *touched)
{
	for (size_t i = 0; i < touched->n_sandboxes; i++) {
		free(touched->sandboxes[i].name);
		free(touched->sandboxes[i].target);
	}
	free(touched->sandboxes);
	for (size_t i = 0; i < touched->n; i++)
		free(touched->paths[i].path);
	free(touched->paths);
	free_list(touched->locks, touched->n_locks);
	*touched = (struct hf_touched){ 0 };
}

static void note_sandboxes(void *arg, const struct hf_plan_info *info)
{
	struct hf_touched *touched = arg;

	touched->sandboxes = calloc(info->n_sandboxes + 1, sizeof(*touched->sandboxes));
	for (size_t i = 0; touched->sandboxes && i < info->n_sandboxes; i++) {
		struct hf_touched_sandbox *sandbox = &touched->sandboxes[touched->n_sandboxes++];

		sandbox->name = strdup(info->sandboxes[i].name);
		sandbox->target = strdup(info->sandboxes[i].target);
		if (sandbox->target && strcmp(sandbox->target, touched->landing->top) == 0)
			touched->skip = sandbox->name;
	}
}

static const char *target_of(const struct hf_touched *touched, const char *sandbox)
{
	for (size_t i = 0; i < touched->n_sandboxes; i++)
		if (touched->sandboxes[i].name && strcmp(touched->sandboxes[i].name, sandbox) == 0)
			return touched->sandboxes[i].target;
	return NULL;
}

static int add(char ***list, size_t *n, char *path)
{
	char **grown = path ? reallocarray(*list, *n + 1, sizeof(*grown)) : NULL;

	if (!grown) {
		free(path);
		return -ENOMEM;
	}
	*list = grown;
	grown[(*n)++] = path;
	return 0;
}

/* git calls each of its lock files NAME.lock, and allows no ref that ends so. */
static int is_lock(const struct hf_touched *touched, const struct hf_change *change)
{
	size_t len = strlen(change->path);

	return touched->n_locks < LOCKS_MAX && change->kind == HF_CHANGE_ADDED && S_ISREG(change->new_mode) && len >= 5 &&
	       strcmp(change->path + len - 5, ".lock") == 0;
}

/* What git has there as long as it is not done. */
static int is_unfinished(const char *name)
{
	static const char *const names[] = { "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply",
					     "sequencer", "BISECT_LOG" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], name) == 0)
			return 1;
	return 0;
}

/* A branch that was packed outside and is a file here (begin.c), with the directories that it needs: it says what is there outside. */
static int is_as_begun(const struct hf_touched *touched, const struct hf_change *change, const char *name)
{
	char text[HF_LAND_OID_MAX + 2];
	ssize_t n;

	if (strncmp(name, "refs/heads/", 11) != 0 || change->kind != HF_CHANGE_ADDED)
		return 0;
	if (S_ISDIR(change->new_mode))
		return 1;
	n = change->new_fd >= 0 ? hf_pread_all(change->new_fd, text, sizeof(text) - 1, 0) : -1;
	if (n <= 1 || text[n - 1] != '\n')
		return 0;
	text[n - 1] = '\0';
	return strcmp(text, touched->landing->base) == 0;
}

/* The content of a regular file, up to 4 MiB. 0 or -errno. */
static int read_all(int fd, struct hf_buf *ret)
{
	off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0;
	ssize_t n;

	if (size < 0 || size > LOG_MAX || hf_buf_reserve(ret, (size_t)size) < 0)
		return -EINVAL;
	n = fd >= 0 ? hf_pread_all(fd, ret->s, (size_t)size, 0) : 0;
	if (n > 0) {
		ret->len = (size_t)n;
		ret->s[n] = '\0';
	}
	return n < 0 ? (int)n : 0;
}

/* 1: the lines that were added to HEAD's reflog are plain commits, each built on the one before. */
static int is_linear(const struct hf_change *change)
{
	AUTO(hf_buf_done) struct hf_buf old = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf new = HF_BUF_INIT;
	const char *line;
	size_t same = 0;

	if (change->new_fd < 0 || read_all(change->old_fd, &old) < 0 || read_all(change->new_fd, &new) < 0)
		return 0;
	while (same < old.len && same < new.len && old.s[same] == new.s[same])
		same++;
	while (same > 0 && new.s[same - 1] != '\n')
		same--;
	for (line = new.s + same; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *message = line + strcspn(line, "\t\n");

		if (strncmp(message, "\tcommit: ", 9) != 0)
			return 0;
	}
	return 1;
}

/* `name` is below the common directory, `own` below the git directory of the work tree, or NULL. */
static void note_ref(struct hf_touched *touched, const struct hf_change *change, const char *name, const char *own)
{
	char oid[HF_LAND_OID_MAX + 1] = "";
	ssize_t n;

	if (own && strcmp(own, "logs/HEAD") == 0)
		touched->has_refs |= !is_linear(change);
	/* The private files of a linked worktree. */
	if (!name || (own && strcmp(own, name) != 0))
		return;
	touched->has_worktrees |= strncmp(name, "worktrees/", 10) == 0;
	touched->has_refs |= touched->has_worktrees || strcmp(name, "packed-refs") == 0 || strncmp(name, "reftable/", 9) == 0;
	if (strncmp(name, "refs/", 5) != 0 || S_ISDIR(change->new_mode) || (S_ISDIR(change->old_mode) && !change->new_mode))
		return;
	n = change->new_fd >= 0 ? hf_pread_all(change->new_fd, oid, sizeof(oid) - 1, 0) : -1;
	oid[n > 0 ? n : 0] = '\0';
	oid[strcspn(oid, "\n")] = '\0';
	if (strcmp(oid, touched->landing->base) == 0)
		return;
	if (!oid[0] || (touched->ref_oid[0] && strcmp(oid, touched->ref_oid) != 0))
		touched->has_refs = 1;
	hf_copy_text(touched->ref_oid, sizeof(touched->ref_oid), oid);
}

int hf_touched_has_refs(const struct hf_touched *touched, const char *head)
{
	return touched->has_refs || (touched->ref_oid[0] && strcmp(touched->ref_oid, head) != 0);
}

/* The part of the path below the directory; NULL: it is not below it. */
static const char *below(const char *path, const char *dir)
{
	return hf_path_is_in(path, dir) && strlen(path) > strlen(dir) ? path + strlen(dir) + 1 : NULL;
}

/* In a git directory. */
static int note_git(struct hf_touched *touched, const struct hf_change *change)
{
	const struct hf_landing *landing = touched->landing;
	const char *target = target_of(touched, change->sandbox);
	AUTO_FREE char *path = NULL;
	const char *own, *name;

	if (!target || asprintf(&path, "%s/%s", target, change->path) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	own = below(path, landing->git_dir);
	name = below(path, landing->common);
	if (own)
		touched->is_unfinished |= change->new_mode != 0 && is_unfinished(own);
	else if (!hf_path_is_in(path, landing->common))
		return 0;
	note_ref(touched, change, name, own);
	if (name && is_as_begun(touched, change, name))
		touched->n_changes--;
	return is_lock(touched, change) ? add(&touched->locks, &touched->n_locks, ptr_take(&path)) : 0;
}

static int add_path(struct hf_touched *touched, const struct hf_change *change)
{
	struct hf_touched_path *grown = reallocarray(touched->paths, touched->n + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	touched->paths = grown;
	grown[touched->n] = (struct hf_touched_path){ strdup(change->path), change->old_mode, change->new_mode, change->kind != HF_CHANGE_MODE };
	return grown[touched->n].path ? (touched->n++, 0) : -ENOMEM;
}

static int note(void *arg, const struct hf_change *change)
{
	struct hf_touched *touched = arg;
	int r;

	touched->n_changes++;
	r = note_git(touched, change);
	if (r < 0 || strcmp(change->sandbox, touched->skip) != 0 || strcmp(change->path, ".git") == 0 ||
	    strncmp(change->path, ".git/", 5) == 0)
		return r;
	/* A directory that was there and is there says nothing about what is in it. */
	if (S_ISDIR(change->old_mode) && S_ISDIR(change->new_mode))
		return 0;
	return add_path(touched, change);
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct hf_touched_path *)a)->path, ((const struct hf_touched_path *)b)->path);
}

int hf_touched_read(struct hf_landings *landings, const struct hf_landing *landing, const char *plan,
		    struct hf_touched *ret, struct hf_err *err)
{
	static const char *const none[] = { NULL };
	struct hf_plan_diff_opts opts = { .size = sizeof(opts), .ignore = none, .wait_ns = 10 * HF_SEC };
	AUTO(hf_touched_done) struct hf_touched touched = { .landing = landing };
	int r = hf_plan_look(landings->plans, plan, note_sandboxes, &touched, err);

	if (r == 0 && !touched.skip)
		r = FAIL(err, HF_E_LAND, "plan", plan, "it has no sandbox over %.150s", landing->top);
	if (r == 0)
		r = hf_plan_diff(landings->plans, plan, &opts, note, &touched, err);
	if (r < 0)
		return r;
	if (touched.n)
		qsort(touched.paths, touched.n, sizeof(*touched.paths), by_path);
	*ret = touched;
	touched = (struct hf_touched){ 0 };
	return 0;
}

int hf_touched_below(const struct hf_touched *touched, const char *dir)
{
	size_t len = strlen(dir);

	for (size_t i = 0; i < touched->n; i++)
		if (strncmp(touched->paths[i].path, dir, len) == 0 && touched->paths[i].path[len] == '/')
			return 1;
	return 0;
}

const struct hf_touched_path *hf_touched_find(const struct hf_touched *touched, const char *path)
{
	struct hf_touched_path key = { .path = (char *)(uintptr_t)path };

	return touched->n ? bsearch(&key, touched->paths, touched->n, sizeof(key), by_path) : NULL;
}

int hf_touched_has(const struct hf_touched *touched, const char *path)
{
	AUTO_FREE char *at = strdup(path);

	while (at && touched->n) {
		char *slash;

		if (hf_touched_find(touched, at))
			return 1;
		slash = strrchr(at, '/');
		if (!slash)
			return 0;
		*slash = '\0';
	}
	return 0;
}

static int exists(const char *path)
{
	struct stat st;

	return hf_sys.fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The sandbox is asked by its upper directory: the commit of what the agent left may have been the first to use git LFS. */
int hf_touched_has_lfs(const struct hf_land_work *work, const struct hf_touched *touched)
{
	const struct hf_landing *landing = &work->landing;
	const struct hf_touched_sandbox *best = NULL;
	AUTO(hf_buf_done) struct hf_buf path = HF_BUF_INIT;

	hf_buf_add_format(&path, "%s/lfs", landing->common);
	if (path.err || exists(path.s))
		return 1;
	for (size_t i = 0; i < touched->n_sandboxes; i++) {
		const struct hf_touched_sandbox *one = &touched->sandboxes[i];

		if (one->name && one->target && hf_path_is_in(landing->common, one->target) &&
		    (!best || strlen(one->target) > strlen(best->target)))
			best = one;
	}
	if (!best)
		return 0;
	hf_buf_reset(&path);
	hf_sandbox_path(work->landings->plans, landing->plan, best->name, HF_SANDBOX_UPPER, &path);
	hf_buf_add_format(&path, "%s/lfs", landing->common + strlen(best->target));
	return path.err || exists(path.s);
}
