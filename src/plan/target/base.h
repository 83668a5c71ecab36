/*
 * plan/target/base.h - what a target was when the sandbox began, and whether an entry still is that.
 *
 * Overlay: an entry whose ctime is below T0 was neither written, nor renamed, nor linked, nor
 * had its mode changed since; the kernel sets ctime and no program can set it back. What T0 alone
 * does not tell (which names a directory had that has changed since) the census tells, and where it
 * does not, the answer is "not known", which counts as changed. Clone and copy: the manifest has
 * the times of each entry as it was copied.
 *
 * A wrong "same" is impossible for changes of content on file systems that stamp ctime with the
 * kernel's clock, but for one case: a store through a shared mapping, made before T0, into a page
 * that was dirty before T0, where the mapping is gone at the commit (on tmpfs: any store through
 * such a mapping). A clock set back by less than one tick (4 ms) is not noticed.
 */
#ifndef PLAN_TARGET_BASE_H
#define PLAN_TARGET_BASE_H

#include <stdint.h>
#include <sys/stat.h>

#include "hf/base/buf.h"
#include "hf/plan/target/census.h"
#include "hf/plan/target/manifest.h"
#include "hf/plan/registry/registry.h"
#include "hf/plan/recovery/restored.h"

struct hf_base {
	int64_t threshold_ns;               /* a ctime below this is older than the sandbox */
	struct hf_census_source *census;    /* NULL: none */
	const struct hf_restored *restored; /* NULL: none */
	const struct hf_manifest *manifest; /* not NULL: clone or copy; then the others are unused */
	int other_boot;                     /* the sandbox is of another boot than this one */
};

/*
 * The threshold for T0 at the time `now` (by the fine clock): T0 itself, less when the clock was set back since, and
 * INT64_MIN (everything may have changed) when nothing can be concluded from times.
 */
int64_t hf_base_threshold(const struct hf_t0 *t0, const struct hf_t0 *now);

/* Is its ctime below that, on a file system with whole seconds as well? */
int hf_stamped_before(const struct stat *st, int64_t threshold_ns);

/* 1 the entry at `path` is as it was; 0 it may have changed. */
int hf_base_same(const struct hf_base *base, const char *path, const struct stat *st);

/*
 * 1 when the directory at `path` is the one that stood there, whatever its entries are now.
 * `parent` is the directory that it is in, which is the one that stood there itself.
 */
int hf_base_same_dir(const struct hf_base *base, const char *path, const struct stat *st,
		     const struct stat *parent);

/*
 * Had the directory `dir` (its stat now is `st`) an entry `name`, which it has now or not
 * (`now`)? 1, 0, or -1: not known.
 */
int hf_base_had(const struct hf_base *base, const char *dir, const struct stat *st, const char *name,
		int now);

/* The mode that a directory had, or 0: not known. */
mode_t hf_base_dir_mode(const struct hf_base *base, const char *path, const struct stat *st);

/*
 * Is everything below the directory `fd`, which stood at `path`, as it was? 1; 0 with the first
 * path that is not in *ret_where; -errno. The directory itself is not looked at: a rename
 * changes its ctime.
 */
int hf_base_same_below(const struct hf_base *base, int fd, const char *path,
		       struct hf_buf *ret_where);

#endif
