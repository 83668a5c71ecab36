/* plan/merge/merge_git.c - the version that a merge begins with, from the target's git repository. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/tree/dirtree.h"
#include "hf/plan/git/git_run.h"
#include "hf/plan/merge/merge.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"

#define SAID       "said"
#define COMPLAINED "complained"
#define REFLOG     ".git/logs/HEAD"

static int make_scratch(int dir, const char *name)
{
	(void)hf_sys.unlinkat(dir, name, 0);
	return hf_create_at(dir, name, O_RDWR, 0600);
}

/*
 * Runs git in the target and reads what it says. A complaint is a failure, too: git only warns when a reflog
 * does not reach as far back as it was asked. 1, 0 with the delta's reason, or -errno.
 */
static int ask_git(struct hf_candidate *c, char *const *argv, struct hf_buf *ret)
{
	AUTO_FD said = make_scratch(c->dir, SAID);
	AUTO_FD complained = make_scratch(c->dir, COMPLAINED);
	struct stat out, complaints;
	ssize_t n;
	int r;

	if (said < 0 || complained < 0)
		return said < 0 ? said : complained;
	r = hf_git_run(c->unit->target_fd, argv, said, complained);
	if (hf_sys.fstat(said, &out) < 0 || hf_sys.fstat(complained, &complaints) < 0)
		return -errno;
	(void)hf_sys.unlinkat(c->dir, SAID, 0);
	(void)hf_sys.unlinkat(c->dir, COMPLAINED, 0);
	if (r == -ENOENT || r == -ECHILD || r == -ETIMEDOUT)
		return hf_unmerged(c->delta, hf_merge_git_why(r));
	if (r < 0)
		return r;
	if (r != 0 || complaints.st_size != 0 || out.st_size <= 0 || out.st_size > 2 * PATH_MAX)
		return hf_unmerged(c->delta, "git does not know its content at the sandbox's start");
	hf_buf_reset(ret);
	r = hf_buf_reserve(ret, (size_t)out.st_size + 1);
	if (r < 0)
		return r;
	n = hf_pread_all(said, ret->s, (size_t)out.st_size, 0);
	if (n < 0)
		return (int)n;
	ret->len = (size_t)n;
	ret->s[n] = '\0';
	return 1;
}

static int is_oid(const char *text, size_t len)
{
	return (len == 40 || len == HF_OID_MAX) && strspn(text, "0123456789abcdef") >= len;
}

/* The commit's object was in the repository, as a file of its own, before the sandbox began. */
static int is_older(const struct hf_unit *unit, const char *oid)
{
	char path[HF_OID_MAX + 32];
	AUTO_FD dir = -1;
	struct stat st;

	(void)snprintf(path, sizeof(path), ".git/objects/%.2s/%s", oid, oid + 2);
	dir = hf_dirtree_descend(unit->target_fd, path, strlen(".git/objects/xx"));
	return dir >= 0 && hf_dirtree_look(dir, oid + 2, &st) > 0 && hf_unit_unchanged(unit, path) == 1;
}

static int has_reflog(const struct hf_unit *unit)
{
	AUTO_FD dir = hf_dirtree_descend(unit->target_fd, REFLOG, strlen(".git/logs"));
	struct stat st;

	return dir >= 0 && hf_dirtree_look(dir, "HEAD", &st) > 0 && S_ISREG(st.st_mode);
}

/* The commit that was HEAD at T0. 1 with the id, 0, or -errno. */
static int head_at_t0(struct hf_candidate *c, char ret[HF_OID_MAX + 1])
{
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	const char *target = c->unit->sandbox->target.path, *oid;
	char rev[64] = "HEAD^{commit}";
	char *argv[] = { (char *)"git", (char *)"--git-dir=.git", (char *)"rev-parse",
			 (char *)"--show-toplevel", rev, NULL };
	int same, r;

	if (!has_reflog(c->unit))
		return hf_unmerged(c->delta, "the common base version is unknown");
	same = hf_unit_unchanged(c->unit, REFLOG);
	if (same < 0)
		return same;
	/* An entry of the second of T0 may be younger than T0. */
	if (!same)
		(void)snprintf(rev, sizeof(rev), "HEAD@{%lld}^{commit}",
			       (long long)(c->unit->sandbox->t0.real_ns / HF_SEC - 1));
	r = ask_git(c, argv, &said);
	if (r <= 0)
		return r;
	/* The repository's top, which must be the target, and the id, each with its line's end. */
	if (said.len < 42 || said.s[said.len - 1] != '\n')
		return hf_unmerged(c->delta, "git gave an unexpected answer");
	said.s[--said.len] = '\0';
	oid = strrchr(said.s, '\n');
	if (!oid || !is_oid(oid + 1, said.len - (size_t)(oid + 1 - said.s)) ||
	    strlen(target) != (size_t)(oid - said.s) || memcmp(target, said.s, (size_t)(oid - said.s)) != 0)
		return hf_unmerged(c->delta, "the target is not the top of its git repository");
	if (!same && !is_older(c->unit, oid + 1))
		return hf_unmerged(c->delta, "HEAD has moved, and its earlier commit is not certain");
	hf_copy_text(ret, HF_OID_MAX + 1, oid + 1);
	return 1;
}

/* The file's blob in that commit. 1 with the id, 0, or -errno. */
static int blob_of(struct hf_candidate *c, char *commit, char ret[HF_OID_MAX + 1])
{
	static const char *const files[] = { "100644 blob ", "100755 blob " };
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	char *argv[] = { (char *)"git", (char *)"--git-dir=.git", (char *)"ls-tree", (char *)"-z",
			 (char *)"--full-tree", commit, (char *)"--", c->delta->path, NULL };
	const char *oid, *tab;
	int r = ask_git(c, argv, &said);

	if (r <= 0)
		return r;
	oid = said.s + strlen(files[0]);
	tab = strchr(said.s, '\t');
	if ((strncmp(said.s, files[0], strlen(files[0])) != 0 &&
	     strncmp(said.s, files[1], strlen(files[1])) != 0) ||
	    !tab || !is_oid(oid, (size_t)(tab - oid)) || strcmp(tab + 1, c->delta->path) != 0)
		return hf_unmerged(c->delta, "it was not a regular file at the sandbox's start");
	(void)snprintf(ret, HF_OID_MAX + 1, "%.*s", (int)(tab - oid), oid);
	return 1;
}

int hf_merge_git_base(struct hf_candidate *c, struct hf_err *err)
{
	char commit[HF_OID_MAX + 1], blob[HF_OID_MAX + 1];
	char *argv[] = { (char *)"git", (char *)"--git-dir=.git", (char *)"cat-file", (char *)"blob", blob,
			 NULL };
	AUTO_FD out = -1;
	int r = head_at_t0(c, commit);

	if (r > 0)
		r = blob_of(c, commit, blob);
	if (r == 0)
		return 0;
	if (r > 0) {
		out = make_scratch(c->dir, c->base);
		r = out < 0 ? out : hf_git_run(c->unit->target_fd, argv, out, -1);
		if (r > 0)
			return hf_unmerged(c->delta, "git cannot read it");
	}
	if (r == 0) {
		c->found = 1;
		c->delta->base_kind = "git";
		c->delta->base = strdup(commit);
		r = c->delta->base ? 1 : -ENOMEM;
	}
	return r < 0 ? hf_fail_sys(err, -r, "git", c->delta->path) : r;
}
