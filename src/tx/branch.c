/* tx/branch.c - a run over a git work tree: the change lands on a branch, rebased and verified as it lands; and when it does. */
#include <errno.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/tx/branch.h"
#include "hf/tx/land/candidate/begin.h"
#include "hf/tx/land/git/git.h"

/* -- files or branch ------------------------------------------------------------------- */

/* Options that say how files are committed. */
static int is_for_files(const struct hf_tx_options *o)
{
	return o->n_dirs != 1 || o->flags & HF_TX_MERGE || o->keep == HF_TX_KEEP_ALWAYS || o->commit != HF_TX_COMMIT_ON_SUCCESS ||
	       (o->strategy != HF_STRATEGY_AUTO && o->strategy != HF_STRATEGY_OVERLAY);
}

static void find_work_tree(void *arg, const struct hf_plan_info *info)
{
	int *found = arg;

	for (size_t i = 0; i < info->n_sandboxes; i++)
		*found |= strcmp(info->sandboxes[i].name, HF_LAND_WORK_TREE) == 0;
}

static void note_branch(void *arg, const struct hf_land_info *info)
{
	struct hf_tx *tx = arg;

	hf_copy_text(tx->branch, sizeof(tx->branch), info->branch);
}

/* A run that is resumed goes on as its sandbox was made: 1; 0: there is none. */
static int choose_as_made(struct hf_tx *tx, struct hf_err *err)
{
	struct hf_landings *landings = NULL;
	char word[HF_SHELL_WORD_MAX];
	int is_branch = 0, r = hf_plan_look(tx->plans, tx->plan, find_work_tree, &is_branch, err);

	if (r < 0)
		return r == HF_E_NO_PLAN ? 0 : r;
	if (tx->o.land && is_branch != tx->lands)
		return FAIL(err, HF_E_PLAN_STATE, "plan", tx->plan, "its sandbox was made to %s; omit --land, or drop it with 'holdfast plan rm --discard %s'",
			    is_branch ? "land on a branch" : "commit files", hf_shell_word(tx->plan, word));
	tx->lands = is_branch;
	if (is_branch && hf_landings_open(tx->state, NULL, tx->plans, &landings, NULL) == 0) {
		(void)!hf_land_look(landings, tx->name, note_branch, tx, NULL);
		hf_landings_free(landings);
	}
	return 1;
}

int hf_tx_branch_choose(struct hf_tx *tx, const struct hf_stage_session *session, struct hf_err *err)
{
	int r;

	tx->lands = tx->o.land && strcmp(tx->o.land, HF_TX_LAND_OFF) != 0;
	r = session->resumed ? choose_as_made(tx, err) : 0;
	if (r != 0 || tx->o.land)
		return r < 0 ? r : 0;
	for (size_t i = 0; r == 0 && i < tx->o.n_dirs; i++)
		r = hf_land_is_worktree(tx->o.dirs[i], err);
	if (r <= 0)
		return r;
	if (is_for_files(&tx->o)) {
		hf_tx_say(tx, "plain files are committed to the git work tree, and nothing lands on its branch, as these options request");
		return 0;
	}
	tx->lands = tx->is_automatic = 1;
	return 0;
}

/* -- the sandboxes --------------------------------------------------------------------- */

/* Landing was not asked for: the other way out is said as well. */
static int refuse(const struct hf_tx *tx, int r, struct hf_err *err)
{
	struct hf_err why;

	if (r != HF_E_LAND || !tx->is_automatic || !err)
		return r;
	why = *err;
	return FAIL(err, HF_E_LAND, "land", tx->o.dirs[0], "%.170s; or commit plain files with --land off", why.detail);
}

/* The directory of the landings is asked first: it knows which git was found to be new enough. */
static int open_landings(struct hf_tx *tx, struct hf_landings **ret, struct hf_err *err)
{
	return hf_landings_open(tx->state, tx->journal, tx->plans, ret, err);
}

static struct hf_land_opts land_opts(const struct hf_tx *tx);

static int begin(struct hf_tx *tx, struct hf_landings *landings, struct hf_err *err)
{
	struct hf_land_opts terms = land_opts(tx);
	const char *branch = tx->o.land && strcmp(tx->o.land, HF_TX_LAND_HEAD) != 0 ? tx->o.land : NULL;
	struct hf_land_search *search = &tx->search;
	int r = hf_land_search_begin(landings->dirfd, tx->o.dirs[0], branch, search, err);

	if (r == 0)
		return FAIL(err, HF_E_LAND, "land", tx->o.dirs[0], "it is not in a git work tree; omit --land to commit plain files");
	if (r < 0)
		return refuse(tx, r, err);
	r = hf_land_make_targets(tx->plans, tx->plan, &search->place, !tx->is_tried, err);
	if (r < 0)
		return r;
	hf_copy_text(tx->branch, sizeof(tx->branch), hf_land_short(search->place.branch));
	if (tx->is_automatic && !tx->is_told)
		hf_tx_say(tx, "the change lands on %s; --land off commits plain files", tx->branch);
	if (!tx->is_told && hf_git_has_identity(search->place.top, search->place.common, (const char *const *)tx->env, NULL) == 0)
		hf_tx_say(tx, "git has no user.name and user.email here: Holdfast commits as Holdfast <holdfast@localhost>, and 'git commit' "
			      "fails in the command");
	if (search->place.moved_up)
		hf_tx_say(tx, "the sandbox holds the whole work tree, %s", search->place.top);
	return hf_land_begin_pinned(landings, tx->name, tx->plan, &search->place, &terms, err);
}

int hf_tx_branch_begin(struct hf_tx *tx, struct hf_err *err)
{
	struct hf_landings *landings = NULL;
	int r = open_landings(tx, &landings, err);

	hf_tx_branch_stop(tx);
	if (r == 0)
		r = begin(tx, landings, err);
	if (r < 0)
		hf_tx_branch_stop(tx);
	hf_landings_free(landings);
	return r;
}

void hf_tx_branch_stop(struct hf_tx *tx)
{
	hf_land_search_done(&tx->search);
	tx->search = (struct hf_land_search)HF_LAND_SEARCH_INIT;
}

int hf_tx_branch_ready(struct hf_tx *tx, struct hf_err *err)
{
	AUTO(hf_land_search_done) struct hf_land_search search = tx->search;
	const struct hf_land_place *place = &search.place;
	struct hf_landings *landings = NULL;
	int r, has_moved;

	tx->search = (struct hf_land_search)HF_LAND_SEARCH_INIT;
	r = hf_land_search_end(&search, err);
	if (r < 0)
		return r;
	has_moved = hf_land_search_has_moved(&search);
	/* Once the command runs, there is time to remember what git said. */
	tx->search.remember = search.remember;
	search.remember = (struct hf_remember)HF_REMEMBER_INIT;
	if (place->n_dirty == 0 && !has_moved)
		return 0;
	if (place->n_dirty > 0)
		hf_tx_say(tx, "%zu uncommitted path%s in the work tree: %s", place->n_dirty, place->n_dirty == 1 ? "" : "s",
			  tx->o.base == HF_LAND_BASE_HEAD ? "not seen by the command (--base worktree shows them)"
							  : "seen by the command; they land only if the command changes them");
	if (tx->o.base != HF_LAND_BASE_HEAD)
		return 0;
	r = open_landings(tx, &landings, err);
	if (r == 0)
		r = hf_land_restore(landings, tx->plan, place, has_moved || place->n_dirty > search.n_untracked,
				    has_moved || search.n_untracked > 0, err);
	hf_landings_free(landings);
	return r;
}

/* Those of the candidate that the run before left; 0 also when there is none. */
static int with_candidate(struct hf_tx *tx, int (*act)(struct hf_landings *landings, const char *name, struct hf_err *err), struct hf_err *err)
{
	struct hf_landings *landings = NULL;
	int r = hf_landings_open(tx->state, tx->journal, tx->plans, &landings, err);

	if (r == 0)
		r = act(landings, tx->name, err);
	hf_landings_free(landings);
	return r;
}

int hf_tx_branch_reopen(struct hf_tx *tx, struct hf_err *err)
{
	return tx->lands ? with_candidate(tx, hf_land_reopen, err) : 0;
}

int hf_tx_branch_may_begin(struct hf_tx *tx, struct hf_err *err)
{
	return with_candidate(tx, hf_land_may_begin, err);
}

void hf_tx_branch_refused(struct hf_tx *tx)
{
	if (tx->lands && tx->verify)
		(void)!with_candidate(tx, hf_land_note_after, NULL);
}

int hf_tx_branch_remember(struct hf_tx *tx, pid_t *ret_child)
{
	struct hf_remember *remember = &tx->search.remember;
	int r = remember->dirfd >= 0 ? hf_remember_start(remember, ret_child) : -ENOENT;

	hf_remember_done(remember);
	return r == 0;
}

/* What is kept in the repository is no candidate that was only begun. */
static void note_state(void *arg, const struct hf_land_info *info)
{
	*(enum hf_land_state *)arg = info->state == HF_LAND_WORKING && info->tip[0] ? HF_LAND_QUEUED : info->state;
}

int hf_tx_branch_forget(struct hf_tx *tx, struct hf_err *err)
{
	struct hf_landings *landings = NULL;
	enum hf_land_state state = HF_LAND_DROPPED;
	int r = hf_landings_open(tx->state, tx->journal, tx->plans, &landings, err);

	if (r == 0)
		r = hf_land_look(landings, tx->name, note_state, &state, err);
	if (r == HF_E_NO_LANDING)
		r = 0;
	if (r == 0 && (state == HF_LAND_WORKING || (state == HF_LAND_CONFLICT && tx->is_retried)))
		r = hf_land_forget(landings, tx->name, err);
	hf_landings_free(landings);
	return r;
}

/* -- landing --------------------------------------------------------------------------- */

static void list_paths(struct hf_tx_report *to, const struct hf_land_report *from)
{
	to->n_conflicts = from->n_paths;
	to->n_listed = from->n_paths < HF_TX_CONFLICTS_MAX ? from->n_paths : HF_TX_CONFLICTS_MAX;
	for (size_t i = 0; i < to->n_listed; i++) {
		hf_copy_text(to->conflicts[i].sandbox, sizeof(to->conflicts[i].sandbox), from->branch);
		hf_copy_text(to->conflicts[i].path, sizeof(to->conflicts[i].path), from->paths[i].path);
		hf_copy_text(to->conflicts[i].kind, sizeof(to->conflicts[i].kind), from->paths[i].kind);
	}
}

/* `changed` are the rest of all files. */
static void set_files(struct hf_tx_report *report, unsigned files, unsigned added, unsigned deleted)
{
	report->added = added;
	report->deleted = deleted;
	report->changed = files > added && files - added > deleted ? files - added - deleted : 0;
}

static enum hf_tx_step judge(struct hf_tx *tx, const struct hf_land_report *landed)
{
	struct hf_tx_report *report = &tx->shared->report;

	hf_copy_text(report->branch, sizeof(report->branch), landed->branch);
	hf_copy_text(report->commit, sizeof(report->commit), landed->commit);
	report->commits = landed->commits;
	set_files(report, landed->files, landed->added, landed->deleted);
	report->rebased = landed->rebased;
	report->unsigned_commits = landed->unsigned_commits;
	report->unlanded = (unsigned)landed->n_unlanded;
	report->is_there = landed->is_there;
	report->is_unsigned |= landed->is_unsigned;
	report->n_kept = (unsigned)landed->n_kept;
	report->refused = landed->state == HF_LAND_REJECTED;
	if (landed->state == HF_LAND_LANDED) {
		report->committed = 1;
		return HF_TX_STEP_COMMITTED;
	}
	list_paths(report, landed);
	(void)FAIL(&tx->shared->err, landed->state == HF_LAND_CONFLICT ? HF_E_CONFLICT : HF_E_LAND, "land", tx->name, "%s", landed->text);
	return landed->state == HF_LAND_CONFLICT ? HF_TX_STEP_FAILED : HF_TX_STEP_REFUSED;
}

/* Complete, since those of a run are: what was given to a run before it does not count. */
static struct hf_land_opts land_opts(const struct hf_tx *tx)
{
	static const char *const none[] = { NULL };

	return (struct hf_land_opts){ .size = sizeof(struct hf_land_opts),
				      .merge = tx->o.land_merge,
				      .verify = tx->verify ? tx->verify : "",
				      .verify_ns = tx->verify_ns,
				      .message = tx->o.message ? tx->o.message : "",
				      .speculate = tx->o.speculate,
				      .flags = (tx->o.keep == HF_TX_KEEP_ALWAYS ? HF_LAND_KEEP_PLAN : 0U) | (tx->o.flags & HF_TX_SIGN ? HF_LAND_SIGN : 0U),
				      .also = tx->o.also ? (const char *const *)tx->o.also : none,
				      .session = tx->name,
				      .token = tx->token,
				      .dir = tx->cwd[0] ? tx->cwd : NULL,
				      .env = tx->env ? (const char *const *)tx->env : none,
				      .wait_ns = -1 };
}

static void say_unmatched(const struct hf_tx *tx, const struct hf_land_report *landed)
{
	for (size_t i = 0; i < landed->n_also_unmatched; i++)
		hf_tx_say(tx, "--also %s matched no file that the command changed", landed->also_unmatched[i]);
}

/* An agent chose the name of a branch, which the ref contains. */
static void say_kept(const struct hf_tx *tx, const struct hf_land_kept *kept)
{
	AUTO(hf_buf_done) struct hf_buf word = HF_BUF_INIT;

	hf_buf_add_shell_word(&word, kept->ref);
	hf_tx_say(tx, "%s; kept as %s: 'git %s %s'", kept->text, kept->ref, strncmp(kept->label, "stash", 5) == 0 ? "stash apply" : "merge", word.s);
}

typedef int step_fn(struct hf_landings *landings, const char *name, const struct hf_land_opts *opts, struct hf_land_report *ret_report,
		    struct hf_err *err);

static enum hf_tx_step act(struct hf_tx *tx, struct hf_plans *plans, struct hf_journal *journal, step_fn *fn, unsigned flags)
{
	struct hf_land_opts opts = land_opts(tx);
	enum hf_tx_step step = HF_TX_STEP_FAILED;
	struct hf_landings *landings = NULL;
	struct hf_land_report landed;
	char words[2][HF_SHELL_WORD_MAX];

	if (hf_landings_open(tx->state, journal, plans, &landings, &tx->shared->err) < 0)
		return step;
	landings->envp = tx->envp;
	opts.flags |= flags;
	if (fn(landings, tx->name, &opts, &landed, &tx->shared->err) == 0) {
		if (landed.left_out)
			hf_tx_say(tx, "left out %u path%s that you were editing and the command committed; the first is %s", landed.left_out,
				  landed.left_out == 1 ? "" : "s", landed.first_left_out);
		if (landed.n_unlanded && landed.state == HF_LAND_LANDED)
			hf_tx_say(tx, "%zu changed file%s not landed, the first: %s; the sandbox is kept: 'holdfast plan diff %s' shows it, "
				      "'holdfast land drop %s' drops it", landed.n_unlanded, landed.n_unlanded == 1 ? " has" : "s have",
				  landed.unlanded[0].path, hf_shell_word(tx->plan, words[0]), hf_shell_word(tx->name, words[1]));
		say_unmatched(tx, &landed);
		tx->shared->report.is_unsigned |= landed.is_unsigned;
		for (size_t i = 0; landed.state == HF_LAND_LANDED && i < landed.n_kept; i++)
			say_kept(tx, &landed.kept[i]);
		step = landed.state == HF_LAND_WORKING ? HF_TX_STEP_SEALED : judge(tx, &landed);
		hf_land_report_done(&landed);
	}
	hf_landings_free(landings);
	return step;
}

enum hf_tx_step hf_tx_branch_seal(struct hf_tx *tx, struct hf_plans *plans, struct hf_journal *journal)
{
	return act(tx, plans, journal, hf_land_seal, 0);
}

enum hf_tx_step hf_tx_branch_land(struct hf_tx *tx, struct hf_plans *plans, struct hf_journal *journal)
{
	return act(tx, plans, journal, hf_land, tx->verify ? HF_LAND_VERIFIED : 0);
}

int hf_tx_branch_nothing(struct hf_tx *tx)
{
	struct hf_land_opts opts = land_opts(tx);
	struct hf_landings *landings = NULL;
	struct hf_land_report landed;
	int r = hf_landings_open(tx->state, tx->journal, tx->plans, &landings, NULL);

	if (r == 0)
		r = hf_land_nothing(landings, tx->name, &opts, &landed, NULL);
	if (r == 1) {
		say_unmatched(tx, &landed);
		(void)judge(tx, &landed);
		hf_land_report_done(&landed);
	}
	hf_landings_free(landings);
	return r == 1;
}

/* -- after a kill ------------------------------------------------------------------------ */

struct settled {
	struct hf_tx_report *report;
	int landed;
};

static void note_settled(void *arg, const struct hf_land_info *info)
{
	struct settled *settled = arg;

	settled->landed = info->state == HF_LAND_LANDED;
	hf_copy_text(settled->report->branch, sizeof(settled->report->branch), info->branch);
	hf_copy_text(settled->report->commit, sizeof(settled->report->commit), settled->landed ? info->commit : info->tip);
	settled->report->commits = info->commits;
	set_files(settled->report, info->files, info->added, info->deleted);
	settled->report->rebased = info->rebased;
	settled->report->unlanded = (unsigned)info->n_unlanded;
	settled->report->n_kept = (unsigned)info->n_kept;
}

int hf_tx_branch_settled(struct hf_state *state, struct hf_journal *journal, struct hf_plans *plans, const char *name,
			 const char *plan, struct hf_tx_report *ret, struct hf_err *err)
{
	struct settled settled = { .report = ret };
	struct hf_landings *landings = NULL;
	int is_branch = 0, r = hf_plan_look(plans, plan, find_work_tree, &is_branch, err);

	/* The plan of a run that is to be committed is there until the outcome is on disk; one that has landed is removed. */
	if (r == 0 && !is_branch)
		return -ENOENT;
	if (r < 0 && r != HF_E_NO_PLAN)
		return r;
	r = hf_landings_open(state, journal, plans, &landings, err);
	if (r == 0)
		r = hf_land_recover(landings, name, err);
	if (r >= 0)
		r = hf_land_look(landings, name, note_settled, &settled, err);
	hf_landings_free(landings);
	if (r == HF_E_NO_LANDING)
		return is_branch ? 0 : -ENOENT;
	ret->committed = settled.landed;
	return r < 0 ? r : settled.landed;
}
