/*
 * tx/land/take/objects.c - new objects, from a sandbox into the real repository.
 *
 * They come as one pack. Outside, git indexes and checks it in a directory of its own (the quarantine), which knows the
 * repository's objects as an alternate; only when everything that the tip needs is there, the pack
 * is renamed into the repository. Until a ref names them, objects change nothing for anybody.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"
#include "hf/tx/land/git/refs.h"
#include "hf/tx/land/take/connected.h"
#include "hf/tx/land/take/touched.h"

struct quarantine {
	int objects; /* the repository's */
	char name[HF_NAME_KEY_MAX + 40];
	char *path;
	char *env[3];
};

static void quarantine_done(struct quarantine *q)
{
	if (q->objects >= 0 && q->name[0])
		(void)hf_tree_remove(q->objects, q->name);
	hf_auto_close(&q->objects);
	free(q->path);
	free(q->env[0]);
	free(q->env[1]);
}

/* A list of paths is separated by ':'; one in quotes may have any byte. */
static char *alternate(const char *objects)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;

	hf_buf_add_text(&out, "GIT_ALTERNATE_OBJECT_DIRECTORIES=\"");
	for (const char *c = objects; *c; c++) {
		if (*c == '"' || *c == '\\')
			hf_buf_add_char(&out, '\\');
		hf_buf_add_char(&out, *c);
	}
	hf_buf_add_char(&out, '"');
	return out.err ? NULL : strdup(out.s);
}

static int open_quarantine(const struct hf_landing *landing, struct quarantine *q, struct hf_err *err)
{
	AUTO_FREE char *objects = NULL;
	char key[HF_NAME_KEY_MAX];
	int r = hf_name_key(landing->name, strlen(landing->name), key, err);

	if (r < 0)
		return r;
	if (asprintf(&objects, "%s/objects", landing->common) < 0)
		return hf_fail_sys(err, ENOMEM, "memory", landing->name);
	q->objects = hf_open_at(AT_FDCWD, objects, O_RDONLY | O_DIRECTORY, 0);
	if (q->objects < 0)
		return hf_fail_sys(err, -q->objects, "openat", objects);
	/* git prunes what begins so and is old. The candidate's lock is held: the name is ours alone. */
	(void)snprintf(q->name, sizeof(q->name), "tmp_objdir-holdfast-%s", key);
	r = hf_tree_remove(q->objects, q->name);
	if (r < 0 || hf_mkdir_at(q->objects, q->name, 0700) < 0)
		return hf_fail_sys(err, r < 0 ? -r : errno, "mkdirat", q->name);
	if (asprintf(&q->path, "%s/%s", objects, q->name) < 0)
		q->path = NULL;
	if (asprintf(&q->env[0], "GIT_OBJECT_DIRECTORY=%s", q->path ? q->path : "") < 0)
		q->env[0] = NULL;
	q->env[1] = alternate(objects);
	return q->path && q->env[0] && q->env[1] ? 0 : hf_fail_sys(err, ENOMEM, "memory", landing->name);
}

static int ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n > m && strcmp(name + n - m, end) == 0;
}

/* The index last: git takes a pack for there when it has one. */
static int migrate(const struct quarantine *q, struct hf_err *err)
{
	static const char *const order[] = { ".pack", ".rev", ".idx" };
	AUTO_FD here = -1;
	AUTO_FD there = -1;
	char pack[sizeof(q->name) + 8];

	(void)snprintf(pack, sizeof(pack), "%s/pack", q->name);
	here = hf_open_at(q->objects, pack, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (here == -ENOENT)
		return 0; /* nothing new */
	if (hf_mkdir_at(q->objects, "pack", 0777) < 0 && errno != EEXIST)
		return FAIL_SYS(err, "mkdirat", "pack");
	there = hf_open_at(q->objects, "pack", O_RDONLY | O_DIRECTORY, 0);
	if (here < 0 || there < 0)
		return hf_fail_sys(err, here < 0 ? -here : -there, "openat", "pack");
	for (size_t i = 0; i < 3; i++) {
		AUTO_DIR dir = NULL;
		struct dirent *entry;
		int r = hf_open_dir(here, ".", &dir);

		if (r < 0)
			return hf_fail_sys(err, -r, "openat", pack);
		while ((entry = readdir(dir)))
			if (ends_with(entry->d_name, order[i]) &&
			    hf_sys.renameat2(here, entry->d_name, there, entry->d_name, 0) < 0)
				return FAIL_SYS(err, "renameat2", entry->d_name);
	}
	return hf_sync_dir(there) < 0 ? FAIL_SYS(err, "fsync", "pack") : 0;
}

/* -- from inside ------------------------------------------------------------------------ */

/* HEAD, read by the child that becomes the git which packs it; both see it. No process but that one is in the sandbox. */
struct head {
	char git_dir[PATH_MAX], common[PATH_MAX];
	char oid[HF_LAND_OID_MAX];
};

static void unmap(struct head **head)
{
	if (*head)
		(void)munmap(*head, sizeof(**head));
}

static int read_head(void *arg)
{
	struct head *head = arg;

	if (hf_git_loose_head(head->git_dir, head->common, head->oid))
		head->oid[0] = '\0';
	return 0;
}

/* The pack, in a file that has no name. */
static int make_pack(struct hf_land_work *work, const char *plan, char tip[HF_LAND_OID_MAX], const char *base, int fd,
		     struct hf_buf *said, struct hf_err *err)
{
	AUTO(unmap) struct head *head = NULL;
	char revs[2 * HF_LAND_OID_MAX + 16];
	struct hf_git git = { .plans = work->landings->plans, .plan = plan, .dir = work->landing.top, .out_fd = fd,
			      .said = said, .in = revs };
	int r;

	if (!tip[0] && strlen(work->landing.git_dir) < PATH_MAX && strlen(work->landing.common) < PATH_MAX) {
		head = mmap(NULL, sizeof(*head), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (head == MAP_FAILED)
			head = NULL;
	}
	if (head) {
		hf_copy_text(head->git_dir, sizeof(head->git_dir), work->landing.git_dir);
		hf_copy_text(head->common, sizeof(head->common), work->landing.common);
		git.before = read_head;
		git.before_arg = head;
	}
	git.in_len = (size_t)snprintf(revs, sizeof(revs), "%s\n%s%s%s", tip[0] ? tip : "HEAD", base[0] ? "^" : "", base,
				      base[0] ? "\n" : "");
	r = hf_git(&git, err, "pack-objects", "--revs", "--thin", "--stdout", "-q", "--delta-base-offset", NULL);
	if (r != 0 || tip[0])
		return r;
	if (head && head->oid[0]) {
		hf_copy_text(tip, HF_LAND_OID_MAX, head->oid);
		return 0;
	}
	git.out_fd = 0;
	git.in = NULL;
	git.before = NULL;
	return hf_git_oid(&git, "HEAD^{commit}", tip, err);
}

static int take_pack(struct hf_land_work *work, const struct quarantine *q, int fd, const char *tip, const char *base,
		     struct hf_land_came *came, struct hf_buf *said, struct hf_err *err)
{
	const char *const *env = (const char *const *)q->env;
	struct hf_git git = { .dir = work->landing.common, .env = env, .said = said, .in_fd = fd };
	int r;

	if (lseek(fd, 0, SEEK_SET) < 0)
		return FAIL_SYS(err, "lseek", "pack");
	r = hf_git(&git, err, "index-pack", "--stdin", "--fix-thin", "--strict", NULL);
	return r != 0 ? r : hf_land_connected(work, env, tip, base, came, said, err);
}

int hf_land_export(struct hf_land_work *work, const char *plan, const char *base, char tip[HF_LAND_OID_MAX],
		   struct hf_land_came *came, struct hf_buf *ret_said, struct hf_err *err)
{
	AUTO(quarantine_done) struct quarantine q = { .objects = -1 };
	AUTO_FD fd = hf_open_at(work->landings->dirfd, ".", O_RDWR | O_TMPFILE, 0600);
	struct hf_land_came ignored;
	int r;

	if (fd < 0)
		return hf_fail_sys(err, -fd, "openat", "pack");
	r = make_pack(work, plan, tip, base, fd, ret_said, err);
	/* An agent may have pruned what it began with. Then everything comes, which is only slower. */
	if (r > 0 && ftruncate(fd, 0) == 0)
		r = make_pack(work, plan, tip, "", fd, ret_said, err);
	if (r == 0)
		r = open_quarantine(&work->landing, &q, err);
	if (r == 0)
		r = take_pack(work, &q, fd, tip, base, came ? came : &ignored, ret_said, err);
	if (r == 0)
		r = migrate(&q, err);
	return r > 0 ? 1 : r;
}

/* -- work that does not land ----------------------------------------------------------------- */

/* A ref of a directory's name, or the other way round, cannot be made next to it. */
static int is_taken(const struct hf_buf *refs, const char *ref)
{
	size_t len = strlen(ref);

	for (const char *at = refs->s; *at; at += strcspn(at, "\n"), at += *at == '\n') {
		size_t other = strcspn(at, "\n"), n = len < other ? len : other;

		if (strncmp(at, ref, n) == 0 && (len == other || (len < other ? at[len] : ref[other]) == '/'))
			return 1;
	}
	return 0;
}

/* "refs/holdfast/KEY+branch-DIR/NAME", or if that is taken "refs/holdfast/KEY+branch-DIR-NAME-2"; "refs/holdfast/KEY+stash-1". */
static int choose_ref(const struct hf_landing *landing, const char *label, const struct hf_buf *refs, char **ret)
{
	int is_numbered = strcmp(label, "stash") == 0 || strcmp(label, "commit") == 0;
	char own[HF_NAME_KEY_MAX + 32];

	hf_land_ref(landing->name, own);
	for (int i = is_numbered; i < 10000; i++) {
		free(*ret);
		if ((i == 0 ? asprintf(ret, "%s+%s", own, label) : asprintf(ret, "%s+%s-%d", own, label, is_numbered ? i : i + 1)) < 0) {
			*ret = NULL;
			return -ENOMEM;
		}
		for (char *c = *ret + strlen(own); i > 0 && *c; c++)
			if (*c == '/')
				*c = '-';
		if (!is_taken(refs, *ret))
			return 0;
	}
	return -EEXIST;
}

static int keep_one(struct hf_land_work *work, struct hf_land_kept *kept, struct hf_buf *refs, struct hf_buf *said, struct hf_err *err)
{
	struct hf_git git = { .dir = work->landing.common, .said = said };
	AUTO_FREE char *ref = NULL;
	char commit[HF_LAND_OID_MAX];
	int r;

	hf_copy_text(commit, sizeof(commit), kept->commit);
	r = hf_land_export(work, work->landing.plan, work->landing.tip, commit, NULL, said, err);
	if (r != 0)
		return r;
	r = choose_ref(&work->landing, kept->label, refs, &ref);
	if (r < 0)
		return hf_fail_sys(err, -r, "ref", kept->label);
	/* The empty old value: it must not exist. */
	r = hf_git(&git, err, "update-ref", ref, commit, "", NULL);
	if (r != 0)
		return r;
	hf_buf_add_format(refs, "%s\n", ref);
	free((char *)(uintptr_t)kept->ref);
	kept->ref = ptr_take(&ref);
	return 0;
}

int hf_land_keep_rest(struct hf_land_work *work, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf refs = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	struct hf_land_rest *rest = &work->landing.rest;
	struct hf_git git = { .dir = work->landing.common, .out = &refs };
	int r = 0;

	for (size_t i = 0; r == 0 && i < rest->n; i++) {
		if (rest->list[i].ref[0])
			continue;
		if (!refs.len)
			r = hf_git(&git, err, "for-each-ref", "--format=%(refname)", "refs/holdfast/", NULL);
		if (r == 0)
			r = keep_one(work, &rest->list[i], &refs, &said, err);
	}
	return r > 0 ? hf_land_reject_said(work, "its other branches and stashes cannot be kept", &said, err) : r;
}
