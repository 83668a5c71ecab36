/*
 * plan/stage/stage_clear.c - the end of the stages that stand in targets.
 *
 * The mark of them is on the disk of the state directory, a stage on the target's, and two disks keep no
 * common order. So the mark outlives the stage: the next verb that finds it, and no stage, syncs the
 * targets and removes it. A commit needs no third sync for that.
 */
#include <errno.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/plan/tree/dirtree.h"
#include "hf/plan/commit/work.h"
#include "hf/sys/calls.h"

/* 1 when there was one and it is removed, 0, -errno. */
static int remove_stage(const struct hf_target *target, const char *name)
{
	AUTO_FD fd = -1;
	struct stat st;
	int r = hf_target_open(target, &fd, NULL);

	/* It may be back later, mounted again or with descriptors to spare: then the mark is needed. */
	if (r < 0)
		return r;
	r = hf_dirtree_look(fd, name, &st);
	if (r <= 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
		return r < 0 ? r : 0;
	r = hf_tree_remove(fd, name);
	return r < 0 ? r : 1;
}

static int sync_target(const struct hf_target *target)
{
	AUTO_FD place = -1;
	AUTO_FD fd = -1;
	int r = hf_target_open(target, &place, NULL);

	if (r < 0)
		return r;
	fd = hf_dirtree_open(place, "");
	if (fd < 0)
		return fd;
	return hf_sys.syncfs(fd) < 0 ? -errno : 0;
}

/* 1 when one was removed, 0, or the first -errno; all are tried. */
static int remove_stages(const struct hf_plan_record *record)
{
	char name[HF_NAME_KEY_MAX + 16];
	int first = 0, removed = 0;

	hf_stage_name(record->name, name);
	for (size_t i = 0; i < record->n_sandboxes; i++) {
		int r = remove_stage(&record->sandboxes[i].target, name);

		removed |= r == 1;
		if (r < 0 && first == 0)
			first = r;
	}
	return first < 0 ? first : removed;
}

/* 0 or the first -errno; all are tried. */
static int sync_targets(const struct hf_plan_record *record)
{
	int first = 0;

	for (size_t i = 0; i < record->n_sandboxes; i++) {
		int r = sync_target(&record->sandboxes[i].target);

		if (first == 0)
			first = r;
	}
	return first;
}

int hf_stage_clear(int plan_fd, const struct hf_plan_record *record)
{
	struct stat st;
	int r = hf_dirtree_look(plan_fd, HF_STAGED, &st);

	if (r <= 0)
		return r;
	r = remove_stages(record);
	if (r != 0)
		return r < 0 ? r : 0;
	r = sync_targets(record);
	if (r == 0 && hf_sys.unlinkat(plan_fd, HF_STAGED, 0) < 0 && errno != ENOENT)
		r = -errno;
	return r;
}

int hf_stage_forget(int plan_fd, const struct hf_plan_record *record)
{
	struct stat st;
	int marked = hf_dirtree_look(plan_fd, HF_STAGED, &st), r = remove_stages(record);

	/* One that cannot be removed does not keep the others' removal from the disk. */
	return r == 0 && marked == 0 ? 0 : sync_targets(record);
}
