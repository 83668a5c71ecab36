/* tx/tx.c - the public starts of a transactional run. */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/recovery/committed.h"
#include "hf/tx/branch.h"
#include "hf/tx/stage.h"

static struct hf_tx_shared *map_shared(void)
{
	void *at = mmap(NULL, sizeof(struct hf_tx_shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* The list of conflicts is ten times as long as the rest, and mostly empty: only what is listed is touched. */
static void copy_report(const struct hf_tx_report *from, struct hf_tx_report *to)
{
	memcpy(to, from, offsetof(struct hf_tx_report, conflicts));
	if (from->n_listed > 0)
		memcpy(to->conflicts, from->conflicts, from->n_listed * sizeof(from->conflicts[0]));
}

/* Given options, with those of the sandboxes in them as text. */
static int join_options(const char *name, const struct hf_run_opts *run, const struct hf_tx_opts *tx, struct hf_buf *text,
			struct hf_run_opts *ret, struct hf_err *err)
{
	int r = 0;

	if (!name || !run || run->size < sizeof(*run))
		return FAIL(err, -EINVAL, "arguments", name ? name : "", "size is not set");
	*ret = *run;
	ret->stage = NULL;
	if (tx)
		r = hf_tx_options_write(tx, name, text, err);
	if (r == 0 && text->len > 0)
		ret->stage = text->s;
	return r;
}

/* The keeper was killed, and the supervisor settled what it had begun. */
static void fill_settled(struct hf_state *state, const char *name, struct hf_tx_report *report)
{
	struct hf_plan_report committed;
	struct hf_plans *plans = NULL;
	int r = hf_plans_open(state, NULL, &plans, NULL);

	report->kept = 1;
	if (r == 0 && report->branch[0]) {
		/* What has landed has no plan any more, but with HF_TX_KEEP_ALWAYS. */
		report->kept = hf_tx_branch_settled(state, NULL, plans, name, report->plan, report, NULL) != 1 || hf_tx_has_plan(plans, report->plan);
	} else if (r == 0 && hf_plan_committed(plans, report->plan, 0, &committed, NULL) == 1) {
		report->committed = 1;
		report->added = committed.added;
		report->changed = committed.changed;
		report->deleted = committed.deleted;
		report->bytes = committed.bytes;
	}
	hf_plans_free(plans);
}

int hf_tx_supervise(struct hf_state *state, const char *name, const struct hf_run_opts *run, const struct hf_tx_opts *tx_opts,
		    struct hf_run_report *ret_report, struct hf_tx_report *ret_landed, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;
	struct hf_tx tx = { .state = state, .given = tx_opts, .search = HF_LAND_SEARCH_INIT };
	struct hf_stage stage;
	struct hf_run_opts o;
	int r = join_options(name, run, tx_opts, &text, &o, err);

	if (r < 0)
		return r;
	tx.shared = map_shared();
	if (!tx.shared)
		return FAIL_SYS(err, "mmap", name);
	hf_copy_text(tx.name, sizeof(tx.name), name);
	hf_tx_fill_stage(&tx, &stage);
	r = hf_run_supervise_staged(state, name, &o, &stage, ret_report, err);
	if (r == 0 && ret_landed) {
		copy_report(&tx.shared->report, ret_landed);
		if (ret_landed->plan[0] && !ret_landed->committed && !ret_landed->kept && ret_report->outcome == HF_OUTCOME_SUCCEEDED &&
		    atomic_load(&tx.shared->step) != HF_TX_STEP_COMMITTED)
			fill_settled(state, name, ret_landed);
	}
	(void)munmap(tx.shared, sizeof(*tx.shared));
	return r;
}

/* -- in the background ----------------------------------------------------------------- */

int hf_tx_start(struct hf_state *state, const char *name, const struct hf_run_opts *run, const struct hf_tx_opts *tx_opts,
		struct hf_run_report *ret_report, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;
	struct hf_run_opts o;
	int r;

	if (tx_opts && tx_opts->commit == HF_TX_COMMIT_ASK)
		return FAIL(err, -EINVAL, "arguments", name ? name : "", "no user can be asked in the background");
	r = join_options(name, run, tx_opts, &text, &o, err);
	return r < 0 ? r : hf_run_start(state, name, &o, ret_report, err);
}

int hf_tx_with_stage(struct hf_state *state, const char *name, hf_with_stage_fn *fn, void *arg)
{
	struct hf_tx tx = { .state = state, .search = HF_LAND_SEARCH_INIT };
	struct hf_stage stage;
	int r;

	tx.shared = map_shared();
	if (!tx.shared)
		return -ENOMEM;
	hf_copy_text(tx.name, sizeof(tx.name), name);
	hf_tx_fill_stage(&tx, &stage);
	r = fn(arg, &stage);
	(void)munmap(tx.shared, sizeof(*tx.shared));
	return r;
}
