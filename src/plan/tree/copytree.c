/* plan/tree/copytree.c - copying by descriptor, one entry after the other. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/plan/tree/attrs.h"
#include "hf/plan/sandbox/copy.h"
#include "hf/plan/tree/copytree.h"
#include "hf/plan/diff/delta.h"
#include "hf/plan/tree/dirtree.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"

/* Both ends of one entry that is copied. */
struct job {
	struct hf_copytree *copy;
	struct hf_buf *path; /* for the globs */
	int from_dir, to_dir;
	const char *from_name, *to_name;
	struct stat st;
};

void hf_copytree_done(struct hf_copytree *copy)
{
	for (size_t i = 0; i < copy->n_links; i++)
		free(copy->links[i].path);
	free(copy->links);
	hf_buf_done(&copy->to);
}

/* Owner, attributes, mode and times, in that order: each may undo the one before. */
static int copy_meta(const struct job *job)
{
	AUTO(hf_buf_done) struct hf_buf attrs = HF_BUF_INIT;
	struct timespec times[2] = { job->st.st_atim, job->st.st_mtim };
	struct stat now;
	int r = 0;

	if (hf_sys.fstatat(job->to_dir, job->to_name, &now, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if ((now.st_uid != job->st.st_uid || now.st_gid != job->st.st_gid) &&
	    hf_sys.fchownat(job->to_dir, job->to_name, job->st.st_uid, job->st.st_gid,
			    AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISLNK(job->st.st_mode)) {
		r = hf_attrs_compare(job->from_dir, job->from_name, job->copy->prefix, job->to_dir,
				     job->to_name, &attrs);
		if (r == 0 && attrs.len)
			r = hf_attrs_apply(job->to_dir, job->to_name, attrs.s, attrs.len, 0);
		if (r == 0)
			r = hf_dirtree_chmod(job->to_dir, job->to_name, (uint64_t)now.st_ino,
					     job->st.st_mode);
	}
	if (r == 0 && hf_sys.utimensat(job->to_dir, job->to_name, times, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	return r;
}

static int copy_file(const struct job *job)
{
	AUTO_FD from = hf_open_noatime(job->from_dir, job->from_name,
				       O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	AUTO_FD to = -1;
	int r;

	if (from < 0)
		return from;
	to = hf_create_at(job->to_dir, job->to_name, O_WRONLY, 0600);
	if (to < 0)
		return to;
	r = hf_copy_content(from, to, job->st.st_size);
	return r < 0 ? r : copy_meta(job);
}

static int copy_symlink(const struct job *job)
{
	char text[PATH_MAX];
	ssize_t n = hf_sys.readlinkat(job->from_dir, job->from_name, text, sizeof(text) - 1);

	if (n < 0)
		return -errno;
	text[n] = '\0';
	if (hf_sys.symlinkat(text, job->to_dir, job->to_name) < 0)
		return -errno;
	return copy_meta(job);
}

/* 1 when it became a link to a copy that was made before. */
static int copy_as_link(const struct job *job)
{
	struct hf_copytree *copy = job->copy;
	struct hf_copied_link *grown;

	for (size_t i = 0; i < copy->n_links; i++) {
		if (copy->links[i].ino != (uint64_t)job->st.st_ino)
			continue;
		return hf_sys.linkat(copy->to_root, copy->links[i].path, job->to_dir, job->to_name, 0) < 0
			       ? -errno
			       : 1;
	}
	grown = reallocarray(copy->links, copy->n_links + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	copy->links = grown;
	grown[copy->n_links].ino = (uint64_t)job->st.st_ino;
	grown[copy->n_links].path = strdup(copy->to.s);
	if (!grown[copy->n_links].path)
		return -ENOMEM;
	copy->n_links++;
	return 0;
}

static int copy_entry(struct job *job);

static int copy_below(const struct job *job, int from, int to)
{
	AUTO(hf_listing_done) struct hf_listing listing = { 0 };
	size_t len = job->path->len, to_len = job->copy->to.len;
	int r = hf_listing_read(from, &listing);

	for (size_t i = 0; r == 0 && i < listing.n; i++) {
		struct job below = { .copy = job->copy, .path = job->path, .from_dir = from,
				     .to_dir = to, .from_name = listing.entries[i].name,
				     .to_name = listing.entries[i].name };

		r = hf_path_set(job->path, len, below.from_name);
		if (r == 0)
			r = hf_path_set(&job->copy->to, to_len, below.to_name);
		if (r == 0)
			r = copy_entry(&below);
	}
	job->path->len = len;
	job->copy->to.len = to_len;
	return r;
}

static int copy_dir(const struct job *job)
{
	AUTO_FD from = hf_dirtree_open(job->from_dir, job->from_name);
	AUTO_FD to = -1;
	int r;

	if (from < 0)
		return from;
	if (hf_mkdir_at(job->to_dir, job->to_name, 0700) < 0)
		return -errno;
	to = hf_dirtree_open(job->to_dir, job->to_name);
	if (to < 0)
		return to;
	r = copy_below(job, from, to);
	return r < 0 ? r : copy_meta(job);
}

static int copy_entry(struct job *job)
{
	struct hf_overlay_marks marks = { 0 };
	int r = hf_dirtree_look(job->from_dir, job->from_name, &job->st);

	if (r <= 0)
		return r;
	if (hf_ignored(job->copy->ignore, job->path->s, S_ISDIR(job->st.st_mode)))
		return 0;
	if (S_ISREG(job->st.st_mode) && job->copy->prefix && job->st.st_size == 0) {
		r = hf_attrs_marks(job->from_dir, job->from_name, job->copy->prefix, &marks, NULL);
		if (r < 0 || marks.whiteout)
			return r < 0 ? r : 0;
	}
	if (S_ISDIR(job->st.st_mode))
		return copy_dir(job);
	if (S_ISLNK(job->st.st_mode))
		return copy_symlink(job);
	if (!S_ISREG(job->st.st_mode))
		return 0;
	r = job->st.st_nlink > 1 ? copy_as_link(job) : 0;
	return r != 0 ? (r < 0 ? r : 0) : copy_file(job);
}

int hf_copytree(struct hf_copytree *copy, int from_fd, const char *from_name, const char *path,
		const char *to)
{
	AUTO(hf_buf_done) struct hf_buf at = HF_BUF_INIT;
	struct job job = { .copy = copy, .path = &at, .from_dir = from_fd, .to_dir = copy->to_root,
			   .from_name = from_name, .to_name = to };

	hf_buf_add_text(&at, path);
	hf_buf_reset(&copy->to);
	hf_buf_add_text(&copy->to, to);
	if (at.err || copy->to.err)
		return -ENOMEM;
	return copy_entry(&job);
}
