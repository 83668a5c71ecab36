/*
 * tx/land/move/swap.c - the branch moves, and the work tree that has it checked out moves with it.
 *
 *   1  a plan over that work tree: inside, git changes files and index from the old commit to the new one
 *   2  the record says LANDING, from and to; the ref transaction is prepared: the ref is locked
 *   3  the plan is committed: files and index, all or none
 *   4  the ref transaction is committed
 *
 * A crash between 3 and 4 leaves a work tree that is ahead of its branch: recovery moves the branch.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/buf.h"
#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/target/target.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/tx/land/move/checkout.h"

#define BUSY_NS (30 * HF_SEC) /* for a git of the user that has the index */

static int become_conflict(struct hf_land_work *work, struct hf_err *err, const char *text)
{
	int r = hf_landing_become(work->landings, &work->landing, HF_LAND_CONFLICT, err, "%s", text);

	return r < 0 ? r : 1;
}

struct guarded {
	struct hf_land_transaction *transaction;
};

static int commit_ref(void *arg)
{
	const struct guarded *guarded = arg;

	return hf_land_transaction_commit(guarded->transaction);
}

/* Under the guard of the session's lock: a session that lost it moves no branch (L5). */
static int commit_guarded(struct hf_land_work *work, struct hf_land_transaction *transaction, struct hf_err *err)
{
	struct guarded guarded = { transaction };

	if (!work->opts->session)
		return commit_ref(&guarded);
	return hf_lock_guarded(work->landings->locks, work->opts->session, work->opts->token, commit_ref, &guarded, err);
}

static int commit_plan(struct hf_land_work *work, const struct hf_checkout *checkout, struct hf_err *err)
{
	struct hf_plan_fence fence = { .name = work->opts->session, .token = work->opts->token };
	struct hf_plan_commit_opts opts = { .size = sizeof(opts), .fences = &fence,
					    .n_fences = work->opts->session ? 1 : 0, .wait_ns = 10 * HF_SEC,
					    .ignore = (const char *const *)checkout->ignore };
	struct hf_plan_report report;
	int r = hf_plan_commit(work->landings->plans, checkout->plan, &opts, &report, err);

	hf_plan_report_done(&report);
	return r;
}

/* The plan is applied and the branch did not move: it goes back. */
static int take_back(struct hf_land_work *work, const struct hf_checkout *checkout, int r, struct hf_err *err)
{
	char word[HF_SHELL_WORD_MAX];
	struct hf_plan_report report;
	struct hf_err why = HF_ERR_INIT;
	int back = hf_plan_undo(work->landings->plans, checkout->plan, NULL, &report, &why);

	hf_plan_report_done(&report);
	if (back < 0)
		return FAIL(err, back, "undo", work->landing.name,
			    "the work tree has the change and the branch does not; 'holdfast land %s' continues: %.100s",
			    hf_shell_word(work->landing.name, word), why.detail);
	return r;
}

/* 0 done; -EAGAIN the branch moved; HF_E_CONFLICT the work tree did; or an error. */
static int move_both(struct hf_land_work *work, const struct hf_checkout *checkout, struct hf_err *err)
{
	int r = hf_land_transaction_prepare(&work->landing, &work->refs, err);
	int is_applied = 0;

	if (r == 0 && checkout->top) {
		r = commit_plan(work, checkout, err);
		is_applied = r == 0;
	}
	if (r == 0) {
		r = commit_guarded(work, &work->refs, err);
		work->is_ref_gone = r == 0;
		if (r == -EAGAIN)
			r = hf_land_transaction_failed(&work->landing, &work->refs, err);
	}
	hf_land_transaction_done(&work->refs);
	return r < 0 && is_applied ? take_back(work, checkout, r, err) : r;
}

/* The branch was not moved, and nothing changed: `land` begins again with what is kept. */
static int give_up(struct hf_land_work *work, int r, struct hf_err *err)
{
	struct hf_err why = err ? *err : (struct hf_err)HF_ERR_INIT;
	int saved = hf_landing_become(work->landings, &work->landing, HF_LAND_QUEUED, err, "not landed: %.100s: %.130s", why.subject,
				      why.detail);

	if (saved == 0 && err)
		*err = why;
	return saved < 0 ? saved : r;
}

static int one_try(struct hf_land_work *work, struct hf_err *err)
{
	AUTO(hf_checkout_done) struct hf_checkout checkout = HF_CHECKOUT_INIT;
	struct hf_landing *landing = &work->landing;
	int r = hf_checkout_find(work, &checkout, err);

	if (r == 0 && checkout.top)
		r = hf_checkout_prepare(work, &checkout, err);
	if (r != 0)
		return r;
	hf_copy_text(landing->from, sizeof(landing->from), work->head);
	/* What the branch gets may be less than what the candidate was, when others made the same change. Mostly it was read before. */
	if (hf_land_changes(work, work->head, landing->commit, NULL, NULL) == 0)
		hf_land_count_changes(work);
	if (hf_landing_set(&landing->checkout, checkout.top) < 0)
		return hf_fail_sys(err, ENOMEM, "memory", landing->name);
	r = hf_landing_become(work->landings, landing, HF_LAND_LANDING, err, "%.12s to %.12s", work->head, landing->commit);
	if (r == 0 && work->opts->step)
		work->opts->step(work->opts->arg, HF_LAND_LANDING, landing->text);
	if (r == 0)
		r = move_both(work, &checkout, err);
	if (r == 0 && checkout.top)
		hf_checkout_refresh(&checkout);
	/* Kept, committed and unmoved: recovery has to find it. */
	checkout.keep = r < 0 && landing->state == HF_LAND_LANDING && checkout.top &&
			hf_checkout_is_committed(work, &checkout);
	return (r == HF_E_TIMEOUT || r == HF_E_LAND) && !checkout.keep ? give_up(work, r, err) : r;
}

int hf_land_swap(struct hf_land_work *work, struct hf_err *err)
{
	struct hf_mono until = hf_mono_in(BUSY_NS);

	/* Nothing is left of the candidate when all of it is in the branch already. */
	if (strcmp(work->landing.commit, work->head) == 0) {
		work->landing.commits = work->landing.files = work->landing.added = work->landing.deleted = 0;
		work->landing.is_there = 1;
		return 0;
	}
	for (;;) {
		int r = one_try(work, err);

		if (r != HF_E_CONFLICT && r != HF_E_BUSY)
			return r;
		/* The user saved a file or ran git in this very moment: look again. */
		if (hf_mono_left(until) == 0)
			return become_conflict(work, err, "git or an editor is busy in the work tree that has the branch checked out");
		hf_pause(50 * HF_MSEC);
	}
}
