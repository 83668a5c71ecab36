/* tx/plan.c - the plan of a transactional run: made, looked at, kept from the run before, removed. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/tx/branch.h"
#include "hf/tx/unlanded.h"

int hf_tx_plan_name(const char *name, char out[HF_NAME_MAX + 1], struct hf_err *err)
{
	if (strlen(name) + strlen(HF_PLAN_OF_RUN) > HF_NAME_MAX)
		return FAIL(err, HF_E_NAME, "name", name, "with a sandbox it may have at most %zu bytes", HF_NAME_MAX - strlen(HF_PLAN_OF_RUN));
	(void)snprintf(out, HF_NAME_MAX + 1, "%s%s", HF_PLAN_OF_RUN, name);
	return 0;
}

int hf_tx_open_plans(struct hf_tx *tx, struct hf_err *err)
{
	if (tx->plans)
		return 0;
	/* It works without its journal. */
	if (hf_journal_open(tx->state, NULL, &tx->journal, NULL) < 0)
		tx->journal = NULL;
	return hf_plans_open(tx->state, tx->journal, &tx->plans, err);
}

void hf_tx_confine(struct hf_tx *tx, struct hf_plans *plans)
{
	tx->confine.flags = (tx->o.flags & HF_TX_READONLY_REST ? HF_CONFINE_READONLY : 0) |
			    (tx->o.flags & HF_TX_NO_NETWORK ? HF_CONFINE_NO_NETWORK : 0);
	tx->confine.write = tx->o.write;
	hf_plans_confine(plans, tx->confine.flags ? &tx->confine : NULL);
}

/* The last part of the path, where it can be a name; unique in the plan. */
static void sandbox_name(const struct hf_tx *tx, size_t i, char out[HF_NAME_MAX + 1])
{
	const char *slash = strrchr(tx->o.dirs[i], '/'), *leaf = slash ? slash + 1 : tx->o.dirs[i];
	size_t at = hf_name_sanitize(leaf, strlen(leaf), out, 64);

	if (at >= 64)
		at = 63;
	out[at] = '\0';
	for (size_t k = 0; k < i; k++) {
		const char *other = strrchr(tx->o.dirs[k], '/');

		if (other && strcmp(other + 1, leaf) == 0) {
			(void)snprintf(out + at, HF_NAME_MAX + 1 - at, "-%zu", i + 1);
			return;
		}
	}
}

/*
 * A part of a repository. Inside, git does not look for one beyond the edge of the sandbox, so that it cannot write around it: what the plan would refuse is
 * allowed. Where the directory itself leads to the repository (a linked worktree), git would find it.
 */
static unsigned git_flags(const char *dir)
{
	AUTO_FD fd = hf_open_at(AT_FDCWD, dir, O_PATH | O_DIRECTORY, 0);
	struct stat st;

	return fd >= 0 && hf_sys.fstatat(fd, ".git", &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT ? HF_PLAN_ADD_GIT_OUTSIDE : 0;
}

static int add_sandboxes(struct hf_tx *tx, struct hf_err *err)
{
	struct hf_plan_add_opts opts = { .size = sizeof(opts), .strategy = tx->o.strategy, .wait_ns = HF_TX_PLAN_NS };
	unsigned flags = tx->is_tried || tx->o.strategy != HF_STRATEGY_AUTO ? 0 : HF_PLAN_ADD_UNTRIED;

	for (size_t i = 0; i < tx->o.n_dirs; i++) {
		struct hf_plan_added added;
		char name[HF_NAME_MAX + 1];
		int r;

		sandbox_name(tx, i, name);
		opts.flags = flags | git_flags(tx->o.dirs[i]);
		r = hf_plan_add(tx->plans, tx->plan, name, tx->o.dirs[i], &opts, &added, err);
		if (r < 0)
			return r;
		if (!added.same_path && !tx->is_told)
			hf_tx_say(tx, "%s is a %s%s%s; the command works there", tx->o.dirs[i], hf_strategy_word(added.strategy),
			    added.why[0] ? ": " : "", added.why);
	}
	return 0;
}

int hf_tx_has_landing_options(const struct hf_tx_options *o)
{
	return o->message || o->also || o->land_merge || o->base || o->speculate || o->flags & HF_TX_SIGN;
}

int hf_tx_make_plan(struct hf_tx *tx, struct hf_err *err)
{
	struct hf_plan_new_opts opts = { .size = sizeof(opts), .session = tx->name };
	int r = hf_plan_new(tx->plans, tx->plan, &opts, err);

	if (r < 0)
		return r;
	r = tx->lands ? hf_tx_branch_begin(tx, err) : add_sandboxes(tx, err);
	if (r == HF_E_NO_OVERLAY && tx->is_automatic && !hf_tx_has_landing_options(&tx->o)) {
		hf_tx_say(tx, "plain files are committed, nothing lands on the branch: landing needs an overlay, which is not available here");
		if (err)
			err->code = 0;
		tx->lands = tx->is_automatic = 0;
		tx->branch[0] = tx->shared->report.branch[0] = '\0';
		r = hf_plan_new(tx->plans, tx->plan, &opts, err);
		if (r == 0)
			r = add_sandboxes(tx, err);
	}
	if (r < 0) {
		(void)!hf_plan_rm(tx->plans, tx->plan, HF_PLAN_RM_DISCARD, NULL);
		return r;
	}
	tx->is_made = 1;
	tx->has_entered = 0;
	return 0;
}

/* A helper that was told its end may still be on its way out of the namespaces. */
int hf_tx_remove_plan(struct hf_tx *tx, struct hf_err *err)
{
	struct hf_mono until = hf_mono_in(HF_TX_LEAVE_NS);
	int r;

	while ((r = hf_plan_rm(tx->plans, tx->plan, HF_PLAN_RM_DISCARD, err)) == HF_E_IN_USE && hf_mono_left(until) > 0)
		hf_pause(2 * HF_MSEC);
	return r == HF_E_NO_PLAN ? 0 : r;
}

/* The next attempt of a loop replaces the sandbox of a failed attempt, but not work that succeeded. */
static int is_precious(enum hf_outcome last)
{
	return last == HF_OUTCOME_CONFLICT || last == HF_OUTCOME_DECLINED || last == HF_OUTCOME_SUCCEEDED;
}

static int refuse_work(struct hf_tx *tx, const struct hf_unlanded *work, const char *whose, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;

	hf_unlanded_describe(tx->plans, work, &text);
	if (work->is_part)
		return FAIL(err, HF_E_DIRTY, "unlanded", tx->name, "the work of %s is part of %.60s, but its sandbox still exists: %s", whose,
			    work->branch, text.err ? "" : text.s);
	return FAIL(err, HF_E_DIRTY, "unlanded", tx->name, "%s left %s, not %s", whose, text.err ? "work" : text.s,
		    work->is_over_git || work->is_kept ? "landed" : "committed");
}

static void say_dropped(struct hf_tx *tx, const struct hf_unlanded *work, const char *whose)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;

	if (tx->given && tx->given->say)
		hf_unlanded_describe(tx->plans, work, &text);
	if (text.len > 0 && !text.err)
		hf_tx_say(tx, "dropping the work of %s: %s", whose, text.s);
}

/* A plan is recovered before it is judged. */
static int look(struct hf_tx *tx, struct hf_unlanded *ret, struct hf_err *err)
{
	struct hf_landings *landings = NULL;
	int r = hf_plan_recover(tx->plans, tx->plan, HF_TX_PLAN_NS, err);

	if (r < 0 && r != HF_E_NO_PLAN)
		return r;
	r = hf_landings_open(tx->state, tx->journal, tx->plans, &landings, err);
	if (r == 0)
		r = hf_unlanded_look(tx->plans, landings, tx->name, HF_UNLANDED_ALL, ret, err);
	hf_landings_free(landings);
	return r;
}

static int drop(struct hf_tx *tx, const struct hf_unlanded *work, struct hf_err *err)
{
	struct hf_mono until = hf_mono_in(HF_TX_LEAVE_NS);
	struct hf_landings *landings = NULL;
	int r = hf_landings_open(tx->state, tx->journal, tx->plans, &landings, err);

	while (r == 0 && (r = hf_unlanded_drop(tx->plans, landings, work, tx->name, err)) == HF_E_IN_USE && hf_mono_left(until) > 0) {
		hf_pause(2 * HF_MSEC);
		r = 0;
	}
	hf_landings_free(landings);
	return r;
}

int hf_tx_settle_kept(struct hf_tx *tx, const struct hf_stage_session *session, struct hf_err *err)
{
	char word[HF_SHELL_WORD_MAX];
	struct hf_unlanded work;
	int has_work, r = look(tx, &work, err);

	if (r < 0)
		return r;
	if (session->resumed && (work.plan_state == HF_PLAN_ACTIVE || work.plan_state == HF_PLAN_CREATED)) {
		tx->is_made = tx->has_entered = 1;
		return hf_tx_branch_reopen(tx, err);
	}
	has_work = (work.has_plan && !work.is_all_landed) || work.is_kept;
	if (session->resumed && work.has_plan && has_work)
		return FAIL(err, HF_E_PLAN_STATE, "plan", tx->plan, "it is %s; see 'holdfast plan show %s'", hf_plan_state_word(work.plan_state), hf_shell_word(tx->plan, word));
	if (has_work && (session->resumed || !(tx->o.flags & HF_TX_DISCARD)))
		return refuse_work(tx, &work, "the last run", err);
	if (has_work)
		say_dropped(tx, &work, "the last run");
	if (has_work || work.is_part)
		r = drop(tx, &work, err);
	if (r >= 0)
		r = hf_tx_branch_may_begin(tx, err);
	if (r >= 0)
		r = hf_tx_remove_plan(tx, err);
	return r < 0 ? r : hf_tx_branch_forget(tx, err);
}

int hf_tx_replace_plan(struct hf_tx *tx, struct hf_err *err)
{
	struct hf_unlanded work;
	int r = look(tx, &work, err);

	if (r < 0)
		return r;
	if (work.has_plan && !work.is_all_landed && !tx->is_retried && is_precious(tx->last))
		return refuse_work(tx, &work, "the previous attempt", err);
	/* Only a retry drops a candidate that its ref keeps. */
	if (tx->lands && !tx->is_retried)
		r = hf_tx_branch_may_begin(tx, err);
	if (r < 0)
		return r;
	if (work.has_plan && !work.is_all_landed)
		say_dropped(tx, &work, "the previous attempt");
	r = hf_tx_remove_plan(tx, err);
	return r < 0 || !tx->lands ? r : hf_tx_branch_forget(tx, err);
}

static void note_nothing(void *arg, const struct hf_plan_info *info)
{
	(void)arg;
	(void)info;
}

int hf_tx_has_plan(struct hf_plans *plans, const char *plan)
{
	return hf_plan_look(plans, plan, note_nothing, NULL, NULL) == 0;
}

int hf_tx_plan_is_clean(struct hf_tx *tx)
{
	struct hf_unlanded work;

	return look(tx, &work, NULL) >= 0 && !work.has_plan;
}
