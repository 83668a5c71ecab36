/* tx/stage.c - the keeper's part: a plan for each attempt, entering it, and what is left of it. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "hf/base/fail.h"
#include "hf/sys/calls.h"
#include "hf/sys/fd/poll.h"
#include "hf/sys/io.h"
#include "hf/tx/branch.h"

#define REMEMBER_NS (250 * HF_MSEC)

void hf_tx_event(const struct hf_tx *tx, enum hf_event event, const struct hf_field *fields, size_t n)
{
	if (tx->journal)
		(void)hf_journal_append(tx->journal, event, tx->name, fields, n, 0, NULL);
}

void hf_tx_say(const struct hf_tx *tx, const char *format, ...)
{
	char text[1024];
	va_list args;

	if (!tx->given || !tx->given->say)
		return;
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	tx->given->say(tx->given->arg, text);
}

/* -- the callbacks, in their order ------------------------------------------------------ */

static int merge(void *arg, const char *given, const char *stored, char **ret, struct hf_err *err)
{
	const struct hf_tx *tx = arg;

	return hf_tx_options_merge(given, stored, tx->name, ret, err);
}

static void describe(void *arg, const char *text, struct hf_buf *out)
{
	(void)arg;
	hf_tx_options_describe(text, out);
}

static int check(const struct hf_tx *tx, const struct hf_stage_session *session, struct hf_err *err)
{
	if (tx->o.n_dirs == 0)
		return FAIL(err, -EINVAL, "arguments", tx->name, "no directory for a sandbox given (--in)");
	if (tx->lands && (tx->o.n_dirs != 1 || tx->o.flags & HF_TX_MERGE || tx->o.commit != HF_TX_COMMIT_ON_SUCCESS ||
			  (tx->o.strategy != HF_STRATEGY_AUTO && tx->o.strategy != HF_STRATEGY_OVERLAY)))
		return FAIL(err, -EINVAL, "arguments", tx->name,
			    "a landing needs one directory and an overlay, and cannot be combined with --merge, --ask or --commit");
	if (tx->o.write && !(tx->o.flags & HF_TX_READONLY_REST))
		return FAIL(err, -EINVAL, "arguments", tx->name, "everything is writable without --readonly-rest");
	if (!tx->lands && hf_tx_has_landing_options(&tx->o))
		return FAIL(err, -EINVAL, "arguments", tx->name,
			    "--message, --also, --base, --land-merge, --speculate and --sign need a landing on git, and this run commits files");
	if (session->o->flags & HF_RUN_LEAVE_RUNNING)
		return FAIL(err, -EINVAL, "arguments", tx->name, "processes left running would change the sandbox");
	if (tx->o.commit == HF_TX_COMMIT_ASK && (!tx->given || !tx->given->ask))
		return FAIL(err, -EINVAL, "arguments", tx->name, "no user can be asked here");
	return 0;
}

static int admit(void *arg, const struct hf_stage_session *session, struct hf_err *err)
{
	struct hf_tx *tx = arg;
	int r;

	if (!session->o->stage)
		return HF_STAGE_NONE;
	r = hf_tx_options_read(session->o->stage, session->name, &tx->o, err);
	if (r == 0)
		r = hf_tx_plan_name(session->name, tx->plan, err);
	if (r == 0)
		r = hf_tx_open_plans(tx, err);
	if (r == 0)
		r = hf_tx_branch_choose(tx, session, err);
	if (r == 0)
		r = check(tx, session, err);
	if (r < 0)
		return r;
	hf_tx_confine(tx, tx->plans);
	tx->verify_ns = session->o->verify_ns;
	tx->verify = session->o->verify && session->o->verify[0] ? strdup(session->o->verify) : NULL;
	if (session->o->verify && session->o->verify[0] && !tx->verify)
		return hf_fail_sys(err, ENOMEM, "memory", tx->name);
	tx->env = session->o->env;
	if (!getcwd(tx->cwd, sizeof(tx->cwd)) || tx->cwd[0] != '/')
		tx->cwd[0] = '\0';
	tx->token = session->token;
	tx->retries = tx->o.retry;
	memcpy(tx->shared->report.plan, tx->plan, sizeof(tx->plan));
	r = hf_tx_settle_kept(tx, session, err);
	return r == 0 && !tx->is_made ? hf_tx_make_plan(tx, err) : r;
}

static int begin(void *arg, uint32_t attempt, struct hf_err *err)
{
	struct hf_tx *tx = arg;
	int r = 0;

	tx->attempt = attempt;
	tx->drop = 0;
	if (!tx->is_made) {
		r = hf_tx_replace_plan(tx, err);
		if (r == 0)
			r = hf_tx_make_plan(tx, err);
	}
	tx->is_made = tx->is_retried = 0;
	tx->shared->is_agreed = 0;
	/* Without the list, which is large: it is empty. */
	memset(&tx->shared->report, 0, offsetof(struct hf_tx_report, conflicts));
	memcpy(tx->shared->report.plan, tx->plan, sizeof(tx->plan));
	hf_copy_text(tx->shared->report.branch, sizeof(tx->shared->report.branch), tx->branch);
	return r;
}

/* Overlay was not tried when the plan was made: that is done now, and clone or copy taken. 1: the failure stays. */
static int make_tried(struct hf_tx *tx, int failure, struct hf_err *err)
{
	int r;

	if (failure != HF_E_NO_OVERLAY || tx->is_tried || tx->has_entered || tx->o.strategy != HF_STRATEGY_AUTO)
		return 1;
	tx->is_tried = 1;
	err->code = 0;
	r = hf_tx_remove_plan(tx, err);
	if (r == 0 && tx->lands)
		r = hf_tx_branch_forget(tx, err);
	if (r == 0)
		r = hf_tx_make_plan(tx, err);
	tx->is_made = 0;
	return r;
}

static int ready(void *arg, struct hf_err *err)
{
	struct hf_tx *tx = arg;
	int r, again;

	tx->shared->fail = (struct hf_inside_fail){ 0 };
	/* Before the mount: what changes from now on it may not have seen. */
	r = hf_t0_take(&tx->verified.since, err);
	if (r == 0) {
		r = hf_tx_branch_ready(tx, err);
		again = r < 0 ? make_tried(tx, r, err) : 1;
		r = again == 1 ? r : again;
	}
	/* A census is for the check of a commit, and a landing makes none of this plan. */
	if (r == 0)
		r = hf_enter_begin(tx->plans, tx->plan, tx->lands ? HF_PLAN_ENTER_NO_CENSUS : 0, HF_TX_PLAN_NS, &tx->enter, err);
	if (r == 0)
		hf_enter_keep_children(tx->enter, &tx->children);
	return r;
}

static char *const *environment(void *arg)
{
	const struct hf_tx *tx = arg;

	return tx->enter ? hf_enter_environment(tx->enter) : NULL;
}

static int enter(void *arg)
{
	struct hf_tx *tx = arg;
	pid_t keeper = getppid();
	int r;

	r = hf_enter_child(tx->enter, &tx->shared->fail);
	/* New namespaces are new credentials, which may have taken that away. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	return r < 0 ? r : getppid() == keeper ? 0 : -ESRCH;
}

/* Our child, not reaped yet: the number is its own. */
static void note_child(struct hf_tx *tx, struct hf_tree *tree, pid_t pid)
{
	int pidfd = tx->n_beside < HF_TX_BESIDE_MAX ? hf_sys.pidfd_open(pid, 0) : -1;

	if (pidfd >= 0)
		tx->beside[tx->n_beside++] = pidfd;
	hf_tree_add_beside(tree, (int32_t)pid);
}

/* Its helper, its census and what remembers its work tree are ours, and not of the command's tree. */
static void note_children(struct hf_tx *tx, struct hf_tree *tree)
{
	pid_t pid;

	tree->attendant = (int32_t)hf_enter_helper(tx->enter);
	for (size_t i = 0; i < tx->children.n; i++)
		note_child(tx, tree, tx->children.pids[i]);
	if (hf_tx_branch_remember(tx, &pid))
		note_child(tx, tree, pid);
}

/* Once for a run: what is not as a user would expect it. */
static void tell_special(struct hf_tx *tx)
{
	char why[HF_PLAN_WHY_MAX];
	unsigned flags = hf_enter_flags(tx->enter, why);

	if (flags & HF_ENTERED_NO_RENAME && !tx->is_told)
		hf_tx_say(tx, "renaming the target's directories fails with EXDEV in the sandbox%s%s", why[0] ? ": " : "", why);
	if (flags & HF_ENTERED_LANDLOCK && !tx->is_told)
		hf_tx_say(tx, "the rest is read-only by Landlock: contents and names, but not modes, owners and times");
	tx->is_told = 1;
}

static int entered(void *arg, pid_t pid, int result, struct hf_tree *tree, struct hf_err *err)
{
	struct hf_tx *tx = arg;
	const struct hf_inside_fail *fail = tx->shared->fail.sys ? &tx->shared->fail : NULL;
	int r, again;

	if (!tx->enter)
		return 0;
	r = result < 0 && !fail && pid == 0 ? result : hf_enter_mounted(tx->enter, pid, fail, err);
	if (r == 0) {
		tx->has_entered = 1;
		note_children(tx, tree);
		tell_special(tx);
	}
	hf_enter_free(tx->enter);
	tx->enter = NULL;
	again = r < 0 ? make_tried(tx, r, err) : 1;
	return again == 1 ? r : again < 0 ? again : HF_STAGE_AGAIN;
}

/*
 * Nobody needs a census any more; over a large tree it would go on for a while. What remembers a work tree saves the next run that time, so a command that was
 * over at once gives it a moment.
 */
static void end_beside(struct hf_tx *tx, enum hf_outcome outcome)
{
	struct hf_mono until = hf_mono_in(tx->lands && (outcome == HF_OUTCOME_SUCCEEDED || outcome == HF_OUTCOME_FAILED) ? REMEMBER_NS : 0);

	while (tx->n_beside > 0) {
		struct pollfd fd = { .fd = tx->beside[--tx->n_beside], .events = POLLIN };

		(void)hf_poll_until(&fd, 1, until);
		(void)hf_sys.pidfd_send_signal(fd.fd, SIGKILL);
		(void)close(fd.fd);
	}
	hf_tx_branch_stop(tx);
}

static int has_changes(const struct hf_tx_report *report)
{
	return report->added + report->changed + report->deleted > 0;
}

static int end(void *arg, enum hf_outcome outcome)
{
	struct hf_tx *tx = arg;
	struct hf_field fields[] = { HF_FIELD_INT("token", (int64_t)tx->token),
				     HF_FIELD_INT("attempt", tx->attempt), HF_FIELD_TEXT("plan", tx->plan),
				     HF_FIELD_TEXT("outcome", hf_outcome_word(outcome)) };

	tx->last = outcome;
	/* After the lock is lost the plan is not ours: the next holder has one of that name. */
	if (outcome == HF_OUTCOME_LOST_LOCK)
		return 0;
	end_beside(tx, outcome);
	if (tx->shared->report.committed && tx->lands) {
		/* The landing has removed it. */
		tx->drop = !tx->shared->report.unlanded && (tx->o.keep != HF_TX_KEEP_ALWAYS || hf_tx_plan_is_clean(tx));
	} else if (tx->shared->report.committed) {
		tx->drop = !has_changes(&tx->shared->report) || (tx->o.keep != HF_TX_KEEP_ALWAYS && !(tx->o.flags & HF_TX_MERGE));
	} else {
		hf_tx_branch_refused(tx);
		/* One that cannot be looked at is not thrown away. */
		tx->drop = tx->o.keep == HF_TX_KEEP_NEVER && outcome != HF_OUTCOME_SUCCEEDED;
		if (!tx->drop)
			tx->drop = hf_tx_plan_is_clean(tx);
	}
	tx->shared->report.kept = !tx->drop;
	/* A copy that stays marked would count as torn after a reboot. One that cannot be synced does. */
	if (!tx->drop && !tx->shared->report.committed)
		(void)hf_plan_rest(tx->plans, tx->plan, NULL);
	if (!tx->drop)
		hf_tx_event(tx, HF_EV_RUN_KEPT, fields, 4);
	return tx->drop || (tx->shared->report.committed && !tx->shared->report.unlanded) ? 0 : HF_STAGE_KEPT;
}

static int again(void *arg, enum hf_outcome outcome)
{
	struct hf_tx *tx = arg;

	if (outcome != HF_OUTCOME_CONFLICT || tx->retries == 0)
		return 0;
	tx->retries--;
	tx->is_retried = 1;
	return 1;
}

static void done(void *arg)
{
	struct hf_tx *tx = arg;

	if (tx->drop)
		(void)hf_tx_remove_plan(tx, NULL);
	/* A candidate without a plan has nothing to land, and would be listed as one that works. */
	if (tx->drop && tx->lands && !tx->shared->report.committed)
		(void)!hf_tx_branch_forget(tx, NULL);
	tx->drop = 0;
}

void hf_tx_fill_stage(struct hf_tx *tx, struct hf_stage *ret)
{
	*ret = (struct hf_stage){
		.merge = merge, .describe = describe, .admit = admit, .begin = begin, .environment = environment,
		.ready = ready, .enter = enter, .entered = entered,
		.is_sealed = hf_tx_is_sealed, .seal = hf_tx_seal, .sealed = hf_tx_sealed,
		.is_landing = hf_tx_is_landing, .land = hf_tx_land, .landed = hf_tx_landed,
		.end = end, .again = again, .done = done, .arg = tx,
	};
}
