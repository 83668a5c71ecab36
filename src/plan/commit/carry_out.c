/*
 * plan/commit/carry_out.c - from the intent to the record: the part that is all or nothing.
 *
 *   1  the fence is proven, so that a stale holder does not even begin (L5)
 *   2  record PREPARED, intent
 *   3  sync: what is to land and the intent, at once. From here a crash is recovered.
 *   4  under the guards of the plan's lock and of every fence, all tokens proven: phase APPLY.
 *      A stale token here removes the intent; nothing has changed.
 *   5  every operation; each looks at what came out of the target
 *   6  phase APPLIED, and sync: the targets are right without recovery
 *   7  record, event, end of the intent. Not synced: if it is lost, recovery finds every
 *      operation done and does this again.
 *
 * An error in 5 or 6 undoes everything, and the undoing is synced before the intent goes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/buf.h"
#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/tree/dirtree.h"
#include "hf/plan/commit/work.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

/* -- syncing ------------------------------------------------------------------------------ */

static int sync_once(int fd, dev_t *seen, size_t *n)
{
	AUTO_FD open_fd = -1;
	struct stat st;
	int r = hf_stat_at(fd, "", &st);

	if (r < 0)
		return r;
	for (size_t i = 0; i < *n; i++)
		if (seen[i] == st.st_dev)
			return 0;
	seen[(*n)++] = st.st_dev;
	/* A place (O_PATH) cannot be synced. */
	open_fd = hf_dirtree_open(fd, "");
	if (open_fd < 0)
		return open_fd;
	return hf_sys.syncfs(open_fd) < 0 ? -errno : 0;
}

int hf_work_sync(const struct hf_work *work)
{
	dev_t seen[2 * HF_PLAN_SANDBOXES_MAX + 1];
	size_t n = 0;
	int r = sync_once(work->plan_fd, seen, &n);

	for (size_t i = 0; r == 0 && i < work->intent.n_targets; i++) {
		r = sync_once(work->sites[i].target_fd, seen, &n);
		if (r == 0 && work->sites[i].stage_fd >= 0)
			r = sync_once(work->sites[i].stage_fd, seen, &n);
	}
	return r;
}

/* -- the directories of an intent ----------------------------------------------------------- */

static int prove_inode(int fd, uint64_t ino, const char *shown, struct hf_err *err)
{
	struct stat st;
	int r = hf_stat_at(fd, "", &st);

	if (r < 0)
		return hf_fail_sys(err, -r, "statx", shown);
	if ((uint64_t)st.st_ino != ino)
		return FAIL(err, HF_E_TARGET, "open", shown,
			    "it is not the directory of the interrupted commit");
	return 0;
}

static int open_site(struct hf_work *work, const struct hf_intent_target *t, struct hf_site *site,
		     struct hf_err *err)
{
	const struct hf_sandbox_record *sandbox = hf_plan_sandbox(&work->record, t->sandbox);
	char stage[HF_NAME_KEY_MAX + 16];
	int r;

	/* A record from disk decides nothing: the plan must have this sandbox over this target. */
	if (!sandbox || strcmp(sandbox->target.path, t->path) != 0 || sandbox->target.ino != t->ino)
		return FAIL(err, HF_E_FORMAT, "intent", t->path, "no sandbox of the plan has this target");
	r = hf_target_open(&sandbox->target, &site->target_fd, err);
	if (r == 0)
		r = prove_inode(site->target_fd, t->ino, t->path, err);
	if (r < 0)
		return r;
	if (!t->in_target) {
		r = hf_sandbox_dir(work->plan_fd, t->sandbox, 0, &site->stage_fd, err);
	} else {
		hf_stage_name(work->record.name, stage);
		r = hf_dirtree_open(site->target_fd, stage);
		/*
		 * Two file systems keep no common order: the stage, which goes last, may be gone on disk
		 * and the intent still be there; or the intent has reached the disk, and the stage has
		 * not. Then there is nothing left to be moved, or nothing was.
		 */
		if (r == -ENOENT && work->intent.phase != HF_INTENT_APPLY)
			return 0;
		site->stage_fd = r < 0 ? -1 : r;
		r = r < 0 ? hf_fail_sys(err, -r, "openat2", stage) : 0;
	}
	return r < 0 ? r : prove_inode(site->stage_fd, t->stage_ino, t->path, err);
}

int hf_sites_open(struct hf_work *work, struct hf_err *err)
{
	int r = 0;

	work->sites = calloc(work->intent.n_targets + 1, sizeof(*work->sites));
	if (!work->sites)
		return hf_fail_sys(err, ENOMEM, "memory", work->record.name);
	for (size_t i = 0; i < work->intent.n_targets; i++)
		work->sites[i] = (struct hf_site)HF_SITE_INIT;
	for (size_t i = 0; r == 0 && i < work->intent.n_targets; i++)
		r = open_site(work, &work->intent.targets[i], &work->sites[i], err);
	return r;
}

/* -- the fence ---------------------------------------------------------------------------- */

struct apply {
	struct hf_work *work;
	struct hf_err *err;
};

static int begin_apply(void *arg)
{
	const struct apply *apply = arg;
	int r = hf_intent_set_phase(apply->work->plan_fd, HF_INTENT_APPLY);

	return r < 0 ? hf_fail_sys(apply->err, -r, "pwrite", "intent") : 0;
}

int hf_work_begin_apply(struct hf_work *work, struct hf_err *err)
{
	struct hf_lock_claim claims[HF_FENCES_MAX + 1];
	struct apply apply = { work, err };
	size_t n = 0;
	int r;

	claims[n++] = (struct hf_lock_claim){ HF_LOCK_KIND_PLAN, work->record.name, work->token };
	for (size_t i = 0; i < work->intent.n_fences; i++)
		claims[n++] = (struct hf_lock_claim){ HF_LOCK_KIND_NAME, work->intent.fences[i].name,
						      work->intent.fences[i].token };
	r = hf_lock_guarded_many(work->plans->locks, claims, n, begin_apply, &apply, err);
	if (r == 0)
		work->intent.phase = HF_INTENT_APPLY;
	return r;
}

int hf_work_prove_fences(const struct hf_work *work, struct hf_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < work->intent.n_fences; i++)
		r = hf_lock_check_token(work->plans->locks, work->intent.fences[i].name,
					work->intent.fences[i].token, err);
	return r;
}

/* -- all of it --------------------------------------------------------------------------------- */

/* Nothing was moved yet: the intent goes, and with it everything. */
static int drop(struct hf_work *work, int r, struct hf_err *err)
{
	struct hf_err ignored = HF_ERR_INIT;

	(void)err;
	/* A process that lost the plan's lock leaves the rest to the one that has it. */
	if (hf_lock_check(work->lock, &ignored) < 0)
		return r;
	if (hf_sys.unlinkat(work->plan_fd, HF_INTENT, 0) < 0 && errno != ENOENT)
		return r;
	(void)hf_work_withdraw(work, 0, &ignored);
	return r;
}

static int undo(struct hf_work *work, struct hf_apply *apply, int r, struct hf_err *err)
{
	struct hf_err ignored = HF_ERR_INIT;
	char word[HF_SHELL_WORD_MAX];
	int back;

	/* A process that lost the plan's lock leaves the rest to the one that has it (L5). */
	if (hf_lock_check(work->lock, &ignored) < 0)
		return r;
	/* Should this fail, a crash during the undoing goes forward, which is as good (L10). */
	(void)hf_intent_set_phase(work->plan_fd, HF_INTENT_UNDOING);
	work->intent.phase = HF_INTENT_UNDOING;
	back = hf_apply_back(apply);
	if (back == 0)
		back = hf_work_withdraw(work, apply->n_left, &ignored);
	else
		(void)hf_work_sync(work);
	if (back < 0)
		return FAIL(err, r, "undo", work->record.name,
			    "and undoing it failed (%s); 'holdfast plan recover %s' continues",
			    strerrordesc_np(back > -4096 ? -back : EIO), hf_shell_word(work->record.name, word));
	return r;
}

static int prepare(struct hf_work *work, struct hf_err *err)
{
	char boot_id[HF_BOOT_ID_LEN + 1];
	int r = hf_here_boot(boot_id, err);

	if (r < 0)
		return r;
	memcpy(work->intent.boot_id, boot_id, sizeof(work->intent.boot_id));
	work->intent.token = work->token;
	work->intent.phase = HF_INTENT_PREPARED;
	r = hf_work_prove_fences(work, err);
	if (r == 0)
		r = hf_plan_become(&work->record, HF_PLAN_PREPARED, NULL, err);
	if (r == 0)
		r = hf_plan_save(work->plans, &work->record, work->token, 0, err);
	return r;
}

int hf_carry_out(struct hf_work *work, hf_op_recheck_fn *recheck, void *arg,
		 const struct hf_op **ret_stuck, struct hf_err *err)
{
	struct hf_apply apply = { .intent = &work->intent, .sites = work->sites, .recheck = recheck,
				  .arg = arg };
	int r = prepare(work, err);

	if (r < 0)
		return r;
	r = hf_intent_write(work->plan_fd, &work->intent);
	if (r < 0)
		return drop(work, hf_fail_sys(err, -r, "write", HF_INTENT), err);
	r = hf_work_sync(work);
	if (r < 0)
		return drop(work, hf_fail_sys(err, -r, "syncfs", work->record.name), err);
	r = hf_work_begin_apply(work, err);
	if (r < 0)
		return drop(work, r, err);
	r = hf_apply_forward(&apply);
	if (r < 0) {
		*ret_stuck = apply.stuck;
		return undo(work, &apply,
			    r == HF_E_CHANGED ? FAIL(err, r, "apply", apply.stuck->path,
						     "it changed during the commit")
					      : hf_apply_failed(&work->intent, apply.stuck, r, err),
			    err);
	}
	r = hf_intent_set_phase(work->plan_fd, HF_INTENT_APPLIED);
	if (r == 0)
		r = hf_work_sync(work);
	if (r < 0)
		return undo(work, &apply, hf_fail_sys(err, -r, "syncfs", work->record.name), err);
	work->intent.phase = HF_INTENT_APPLIED;
	hf_work_conclude(work, 0);
	return 0;
}
