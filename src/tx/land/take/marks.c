/*
 * tx/land/take/marks.c - the marks skip-worktree and assume-unchanged, which hide an agent's edits from git.
 *
 * Users set them on files with local settings, and the sandbox begins with the user's index. Where the agent touched such a file, its entry is replaced by
 * one without marks and stat data, so that git reads the file.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"
#include "hf/tx/land/git/git.h"
#include "hf/tx/land/take/touched.h"
#include "holdfast/state.h"

#define MERGE_MAX ((off_t)32 << 20)

/* "T MODE OID STAGE", a tab, PATH and NUL. */
int hf_index_next(const struct hf_buf *index, const char **at, struct hf_index_row *ret)
{
	const char *row = *at ? *at : index->s, *tab = row < index->s + index->len ? strchr(row, '\t') : NULL;
	size_t len;

	*ret = (struct hf_index_row){ 0 };
	if (!tab || tab - row < 12)
		return 0;
	len = strcspn(row + 9, " ");
	if (len >= sizeof(ret->oid) || row + 9 + len + 2 != tab)
		return 0;
	ret->tag = row[0];
	for (const char *digit = row + 2; *digit >= '0' && *digit <= '7'; digit++)
		ret->mode = ret->mode * 8 + (unsigned)(*digit - '0');
	memcpy(ret->oid, row + 9, len);
	ret->stage = tab[-1] - '0';
	ret->path = tab + 1;
	*at = ret->path + strlen(ret->path) + 1;
	return 1;
}

struct marks {
	struct hf_land_work *work;
	const struct hf_touched *touched;
	struct hf_buf rows;            /* for update-index --index-info */
	struct hf_buf skipped, assumed; /* paths to mark again, each with a NUL */
};

static void marks_done(struct marks *marks)
{
	hf_buf_done(&marks->rows);
	hf_buf_done(&marks->skipped);
	hf_buf_done(&marks->assumed);
}

static struct hf_git inside(const struct hf_land_work *work, struct hf_buf *out, struct hf_buf *said)
{
	return (struct hf_git){ .plans = work->landings->plans, .plan = work->landing.plan, .dir = work->landing.top, .out = out, .said = said };
}

static void put(struct marks *marks, unsigned mode, const char *oid, const char *path)
{
	hf_buf_add_format(&marks->rows, "%06o %s 0\t%s", mode, oid, path);
	hf_buf_add(&marks->rows, "", 1);
}

/* -- the user's own edits in a marked file ---------------------------------------------------- */

struct merge {
	struct hf_land_work *work;
	const char *path;
	char *spec;     /* "BASE:PATH" */
	char *names[3]; /* absolute; files to merge: base, the user's, the agent's */
	int fd;         /* the user's file */
};

static void merge_done(struct merge *merge)
{
	for (size_t i = 0; i < 3 && merge->names[i]; i++) {
		(void)hf_sys.unlinkat(AT_FDCWD, merge->names[i], 0);
		free(merge->names[i]);
	}
	free(merge->spec);
	hf_auto_close(&merge->fd);
}

/* The user's file, compared with the base of the candidate. */
enum own { SAME, OTHER, UNKNOWN };

/* A user who changed the file since then may have changed it before the agent read it or after: UNKNOWN. */
static int look_at_own(struct merge *merge, enum own *ret, struct hf_err *err)
{
	const struct hf_landing *landing = &merge->work->landing;
	struct hf_git outside = { .dir = landing->top };
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_git hash = { .dir = landing->top, .out = &out };
	AUTO_FREE char *full = NULL;
	AUTO_FREE char *option = NULL;
	char oid[HF_LAND_OID_MAX];
	struct stat st;
	int r;

	*ret = UNKNOWN;
	if (asprintf(&full, "%s/%s", landing->top, merge->path) < 0)
		full = NULL;
	if (!full || asprintf(&option, "--path=%s", merge->path) < 0)
		option = NULL;
	if (!option || asprintf(&merge->spec, "%s:%s", landing->base, merge->path) < 0)
		merge->spec = NULL;
	if (!merge->spec)
		return hf_fail_sys(err, ENOMEM, "memory", merge->path);
	merge->fd = hf_open_at(AT_FDCWD, full, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (merge->fd == -ENOENT || merge->fd == -ENOTDIR) {
		*ret = SAME; /* the user has no edits there */
		return 0;
	}
	if (merge->fd < 0 || hf_sys.fstat(merge->fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > MERGE_MAX ||
	    st.st_ctim.tv_sec * HF_SEC + st.st_ctim.tv_nsec > landing->since.ns)
		return 0;
	r = hf_git_oid(&outside, merge->spec, oid, err);
	hash.in_fd = merge->fd;
	if (r == 0)
		r = hf_git(&hash, err, "hash-object", "--stdin", option, NULL);
	if (r == 0)
		*ret = strncmp(out.s, oid, strlen(oid)) == 0 ? SAME : OTHER;
	return r < 0 ? r : 0;
}

static int write_side(struct merge *merge, int i, const struct hf_buf *content, struct hf_err *err)
{
	static const char *const sides[] = { "base", "user", "agent" };
	char key[HF_NAME_KEY_MAX];
	AUTO_FD fd = -1;
	int r = hf_name_key(merge->work->landing.name, strlen(merge->work->landing.name), key, err);

	if (r < 0)
		return r;
	/* The candidate's lock is held: no other process uses these names. */
	if (asprintf(&merge->names[i], "%s/landings/.merge-%s-%s", hf_state_path(merge->work->landings->state), key, sides[i]) < 0) {
		merge->names[i] = NULL;
		return hf_fail_sys(err, ENOMEM, "memory", merge->path);
	}
	(void)hf_sys.unlinkat(AT_FDCWD, merge->names[i], 0);
	fd = hf_create_at(AT_FDCWD, merge->names[i], O_WRONLY, 0600);
	r = fd < 0 ? fd : hf_write_all(fd, content->s, content->len);
	return r < 0 ? hf_fail_sys(err, -r, "write", merge->names[i]) : 0;
}

static int read_own(const struct merge *merge, struct hf_buf *ret)
{
	off_t size = lseek(merge->fd, 0, SEEK_END);
	ssize_t n = size < 0 || size > MERGE_MAX || hf_buf_reserve(ret, (size_t)size) < 0 ? -1 : hf_pread_all(merge->fd, ret->s, (size_t)size, 0);

	if (n > 0) {
		ret->len = (size_t)n;
		ret->s[n] = '\0';
	}
	return n < 0;
}

/* The three sides, each as a checkout has it. 0; 1: one of them cannot be read; or an error. */
static int write_sides(struct merge *merge, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf base = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf own = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf made = HF_BUF_INIT;
	const char *const cat[] = { "cat", "--", merge->path, NULL };
	struct hf_git outside = { .dir = merge->work->landing.top, .out = &base };
	struct hf_git agent = inside(merge->work, &made, NULL);
	int r = hf_git(&outside, err, "cat-file", "--filters", merge->spec, NULL);

	if (r == 0)
		r = hf_git_other(&agent, cat, err);
	if (r == 0)
		r = read_own(merge, &own);
	if (r == 0)
		r = write_side(merge, 0, &base, err);
	if (r == 0)
		r = write_side(merge, 1, &own, err);
	return r == 0 ? write_side(merge, 2, &made, err) : r;
}

/* The commit's version with the agent's edits, as an object of the sandbox. 0; 1: they conflict with the user's; or an error. */
static int merge_edits(struct merge *merge, char ret_oid[HF_LAND_OID_MAX], struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf merged = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	AUTO_FREE char *option = NULL;
	struct hf_git git = { .dir = merge->work->landing.common, .out = &merged };
	struct hf_git store = inside(merge->work, &out, NULL);
	int r = write_sides(merge, err);

	if (r != 0)
		return r;
	if (asprintf(&option, "--path=%s", merge->path) < 0) {
		option = NULL;
		return hf_fail_sys(err, ENOMEM, "memory", merge->path);
	}
	r = hf_git(&git, err, "merge-file", "-p", "--quiet", merge->names[0], merge->names[1], merge->names[2], NULL);
	if (r != 0)
		return r < 0 ? r : 1;
	store.in = merged.s;
	store.in_len = merged.len;
	r = hf_git(&store, err, "hash-object", "-w", "--stdin", option, NULL);
	out.s[strcspn(out.s, "\n")] = '\0';
	if (r != 0 || !hf_git_is_oid(out.s))
		return r < 0 ? r : 1;
	hf_copy_text(ret_oid, HF_LAND_OID_MAX, out.s);
	return 0;
}

/* A marked file that the agent changed. */
static int take_marked(struct marks *marks, const struct hf_index_row *row, const struct hf_touched_path *path, struct hf_err *err)
{
	AUTO(merge_done) struct merge merge = { .work = marks->work, .path = row->path, .fd = -1 };
	struct hf_landing *landing = &marks->work->landing;
	unsigned mode = row->mode;
	char oid[HF_LAND_OID_MAX];
	enum own own;
	int r = look_at_own(&merge, &own, err);

	if (r < 0)
		return r;
	if (own == SAME) {
		put(marks, row->mode, row->oid, row->path);
		return 0;
	}
	r = own == OTHER && S_ISREG(path->new_mode) ? merge_edits(&merge, oid, err) : 1;
	if (r < 0)
		return r;
	if (r > 0)
		return hf_land_paths_add(&landing->unlanded, row->path, strlen(row->path), "kept") < 0 ?
			       hf_fail_sys(err, ENOMEM, "memory", row->path) : 0;
	if ((path->old_mode ^ path->new_mode) & S_IXUSR)
		mode = path->new_mode & S_IXUSR ? 0100755 : 0100644;
	put(marks, mode, oid, row->path);
	/* In the work tree it still has the user's edits. */
	if (row->tag == 'S' || row->tag == 's')
		hf_buf_add(&marks->skipped, row->path, strlen(row->path) + 1);
	if (islower((unsigned char)row->tag))
		hf_buf_add(&marks->assumed, row->path, strlen(row->path) + 1);
	return 0;
}

/* -- the whole ------------------------------------------------------------------------------- */

static int put_rows(const struct marks *marks, struct hf_buf *said, struct hf_err *err)
{
	struct hf_git git = inside(marks->work, NULL, said);

	if (marks->rows.err)
		return hf_fail_sys(err, ENOMEM, "memory", marks->work->landing.name);
	git.in = marks->rows.s;
	git.in_len = marks->rows.len;
	return marks->rows.len ? hf_git(&git, err, "-c", "core.ignoreStat=false", "update-index", "-z", "--index-info", NULL) : 0;
}

int hf_left_unmark(struct hf_land_work *work, const struct hf_touched *touched, const struct hf_left *left, struct hf_buf *said, struct hf_err *err)
{
	AUTO(marks_done) struct marks marks = { work, touched, HF_BUF_INIT, HF_BUF_INIT, HF_BUF_INIT };
	struct hf_git git = inside(work, NULL, said);
	struct hf_index_row row;
	const char *at = NULL;
	int r = 0;

	while (r == 0 && hf_index_next(&left->index, &at, &row)) {
		const struct hf_touched_path *path = row.stage == 0 && !S_ISGITLINK(row.mode) ? hf_touched_find(touched, row.path) : NULL;

		if (path && row.tag != 'H' && path->new_mode)
			r = take_marked(&marks, &row, path, err);
		else if (path && row.tag != 'H')
			put(&marks, row.mode, row.oid, row.path);
	}
	if (r == 0)
		r = put_rows(&marks, said, err);
	if (r == 0)
		r = hf_git_mark(&git, "--skip-worktree", &marks.skipped, err);
	return r == 0 ? hf_git_mark(&git, "--assume-unchanged", &marks.assumed, err) : r;
}
