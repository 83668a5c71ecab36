/* plan/commit/work.c - beginning and ending the work of a verb. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/tree/attrs.h"
#include "hf/plan/tree/dirtree.h"
#include "hf/plan/commit/work.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

#define CENSUS_WAIT_NS (5 * HF_SEC)

void hf_stage_name(const char *plan, char out[HF_NAME_KEY_MAX + 16])
{
	char key[HF_NAME_KEY_MAX] = "";

	(void)!hf_name_key(plan, strlen(plan), key, NULL);
	(void)snprintf(out, HF_NAME_KEY_MAX + 16, ".holdfast-%s", key);
}

int hf_work_lock(struct hf_work *work, struct hf_plans *plans, const char *plan, int64_t wait_ns,
		 struct hf_err *err)
{
	int r = hf_plans_check(plans, plan, err);

	if (r < 0)
		return r;
	work->plans = plans;
	work->wait_ns = wait_ns;
	/* No lock is left behind for a plan that never was. */
	r = hf_plan_dir(plans, plan, 0, &work->plan_fd, err);
	if (r == 0)
		r = hf_plan_lock(plans, plan, wait_ns, &work->lock, err);
	if (r < 0)
		return r;
	work->token = hf_lock_token(work->lock);
	return hf_plan_load(plans, plan, &work->record, err);
}

int hf_work_begin(struct hf_work *work, struct hf_plans *plans, const char *plan, int64_t wait_ns,
		  struct hf_err *err)
{
	int r = hf_work_lock(work, plans, plan, wait_ns, err);

	if (r == 0)
		r = hf_work_recover(work, err);
	return r < 0 ? r : 0;
}

static int by_inode(const void *a, const void *b)
{
	const struct hf_target *x = *(const struct hf_target *const *)a;
	const struct hf_target *y = *(const struct hf_target *const *)b;

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	return x->ino < y->ino ? -1 : x->ino > y->ino;
}

/* The lock's name is two numbers: people know the target by its path. */
static int lock_target(struct hf_work *work, const struct hf_target *target, struct hf_mono until, struct hf_err *err)
{
	struct hf_lock_opts opts = { .size = sizeof(opts), .wait_ns = work->wait_ns < 0 ? -1 : hf_mono_left(until) };
	char name[HF_NAME_MAX + 1];
	int r;

	hf_target_lock_name(target, name);
	r = hf_lock_acquire(hf_locks_kind(work->plans->locks, HF_LOCK_KIND_TARGET), name, &opts,
			    &work->target_locks[work->n_target_locks], NULL, err);
	if (r == 0)
		work->n_target_locks++;
	if ((r == HF_E_BUSY || r == HF_E_TIMEOUT) && err)
		(void)snprintf(err->subject, sizeof(err->subject), "commit to %.200s", target->path);
	return r;
}

int hf_work_lock_targets(struct hf_work *work, struct hf_err *err)
{
	const struct hf_target *targets[HF_PLAN_SANDBOXES_MAX];
	struct hf_mono until = hf_mono_in(work->wait_ns > 0 ? work->wait_ns : HF_TARGET_WAIT_NS);
	size_t n = work->record.n_sandboxes;

	for (size_t i = 0; i < n; i++)
		targets[i] = &work->record.sandboxes[i].target;
	if (n > 1)
		qsort(targets, n, sizeof(*targets), by_inode);
	for (size_t i = 0; i < n; i++) {
		int r = i > 0 && by_inode(&targets[i - 1], &targets[i]) == 0 ? 0 : lock_target(work, targets[i], until, err);

		if (r < 0)
			return r;
	}
	return 0;
}

/* -- sandboxes and targets ------------------------------------------------------------- */

static int mount_of(int fd, uint64_t *ret)
{
	struct statx st;

	if (hf_sys.statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) < 0)
		return -errno;
	*ret = st.stx_mask & STATX_MNT_ID ? st.stx_mnt_id : 0;
	return 0;
}

/* Renames work within one mount; two mounts of one file system have the same device. */
static int find_stage(struct hf_unit *unit, struct hf_err *err)
{
	uint64_t ours = 0, theirs = 0;
	struct stat a, b;
	int r = mount_of(unit->sandbox_fd, &ours);

	if (r == 0)
		r = mount_of(unit->target_fd, &theirs);
	if (r == 0)
		r = hf_stat_at(unit->sandbox_fd, "", &a);
	if (r == 0)
		r = hf_stat_at(unit->target_fd, "", &b);
	if (r < 0)
		return hf_fail_sys(err, -r, "statx", unit->sandbox->target.path);
	unit->in_target = ours != theirs || a.st_dev != b.st_dev;
	return 0;
}

static int read_base(struct hf_unit *unit, struct hf_err *err)
{
	struct hf_t0 now;
	int r = hf_t0_take(&now, err);

	if (r < 0)
		return r;
	/* In this order and by the fine clock: whatever comes between makes it later, never earlier. */
	now.boot_ns = hf_boot_now().ns;
	now.real_ns = hf_wall_now().ns;
	r = hf_restored_load(unit->sandbox_fd, &unit->restored);
	if (r < 0)
		return hf_fail_sys(err, -r, "read", HF_RESTORED);
	unit->base.restored = &unit->restored;
	unit->base.other_boot = strcmp(unit->sandbox->t0.boot_id, now.boot_id) != 0;
	if (unit->sandbox->strategy != HF_STRATEGY_OVERLAY) {
		r = hf_manifest_load(unit->sandbox_fd, &unit->manifest, err);
		unit->base.manifest = r < 0 ? NULL : &unit->manifest;
		return r;
	}
	unit->base.threshold_ns = hf_base_threshold(&unit->sandbox->t0, &now);
	unit->census = (struct hf_census_source){ .sandbox_fd = unit->sandbox_fd,
						  .t0 = &unit->sandbox->t0,
						  .wait_ns = CENSUS_WAIT_NS };
	unit->base.census = &unit->census;
	return 0;
}

static int open_unit(struct hf_work *work, struct hf_unit *unit, struct hf_err *err)
{
	int r = hf_sandbox_dir(work->plan_fd, unit->sandbox->name, 0, &unit->sandbox_fd, err);

	if (r == 0)
		r = hf_target_open(&unit->sandbox->target, &unit->target_fd, err);
	if (r == 0)
		r = find_stage(unit, err);
	return r < 0 ? r : read_base(unit, err);
}

int hf_work_open_units(struct hf_work *work, struct hf_err *err)
{
	int r = 0;

	work->units = calloc(work->record.n_sandboxes + 1, sizeof(*work->units));
	if (!work->units)
		return hf_fail_sys(err, ENOMEM, "memory", work->record.name);
	for (size_t i = 0; r == 0 && i < work->record.n_sandboxes; i++) {
		struct hf_unit *unit = &work->units[work->n_units++];

		*unit = (struct hf_unit){ .sandbox = &work->record.sandboxes[i], .sandbox_fd = -1,
					  .target_fd = -1, .stage_fd = -1, .merged_fd = -1 };
		r = open_unit(work, unit, err);
	}
	return r;
}

const char *hf_unit_top(const struct hf_unit *unit)
{
	return unit->sandbox->strategy == HF_STRATEGY_OVERLAY ? HF_SANDBOX_UPPER : HF_SANDBOX_TREE;
}

const char *hf_unit_prefix(const struct hf_unit *unit)
{
	if (unit->sandbox->strategy != HF_STRATEGY_OVERLAY)
		return NULL;
	return unit->sandbox->root_ns ? HF_OVERLAY_TRUSTED : HF_OVERLAY_USER;
}

int hf_work_find_deltas(struct hf_work *work, const char *const *ignore, unsigned flags,
			struct hf_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < work->n_units; i++) {
		struct hf_unit *unit = &work->units[i];
		int overlay = unit->sandbox->strategy == HF_STRATEGY_OVERLAY;
		struct hf_delta_walk walk = {
			.sandbox_fd = unit->sandbox_fd,
			.target_fd = unit->target_fd,
			.top = hf_unit_top(unit),
			.prefix = hf_unit_prefix(unit),
			.base = &unit->base,
			.ignore = ignore,
			.flags = flags,
			.out = &unit->deltas,
			.err = err,
		};

		r = overlay ? hf_delta_overlay(&walk) : hf_delta_tree(&walk);
	}
	return r;
}

/* -- the end ------------------------------------------------------------------------------ */

const char *hf_work_string(struct hf_work *work, const char *format, ...)
{
	char **grown, *text = NULL;
	va_list args;
	int n;

	/* Doubled, so that many operations do not make many copies. */
	if ((work->n_strings & (work->n_strings - 1)) == 0) {
		grown = reallocarray(work->strings, work->n_strings ? 2 * work->n_strings : 1,
				     sizeof(*grown));
		if (!grown)
			return NULL;
		work->strings = grown;
	}
	va_start(args, format);
	n = vasprintf(&text, format, args);
	va_end(args);
	if (n < 0)
		return NULL;
	work->strings[work->n_strings++] = text;
	return text;
}

static void unit_done(struct hf_unit *unit)
{
	hf_deltas_done(&unit->deltas);
	hf_census_free(unit->census.census);
	hf_restored_done(&unit->restored);
	if (unit->base.manifest)
		hf_manifest_done(&unit->manifest);
	hf_auto_close(&unit->sandbox_fd);
	hf_auto_close(&unit->target_fd);
	hf_auto_close(&unit->stage_fd);
	hf_auto_close(&unit->merged_fd);
}

void hf_work_done(struct hf_work *work)
{
	for (size_t i = 0; work->sites && i < work->intent.n_targets; i++)
		hf_site_done(&work->sites[i]);
	free(work->sites);
	hf_intent_done(&work->intent);
	for (size_t i = 0; i < work->n_units; i++)
		unit_done(&work->units[i]);
	free(work->units);
	for (size_t i = 0; i < work->n_strings; i++)
		free(work->strings[i]);
	free(work->strings);
	while (work->n_target_locks > 0)
		hf_plan_unlock(&work->target_locks[--work->n_target_locks]);
	hf_plan_unlock(&work->lock);
	hf_plan_record_done(&work->record);
	hf_auto_close(&work->plan_fd);
}
