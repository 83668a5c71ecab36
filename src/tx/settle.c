/*
 * tx/settle.c - what became of an attempt whose keeper was killed while it landed.
 *
 * Its plan tells: the commit is finished or undone first, so that what is recorded then stays true (L14).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hf/base/fail.h"
#include "hf/journal/read/find.h"
#include "hf/plan/recovery/committed.h"
#include "hf/tx/branch.h"

#define SETTLE_NS (60 * HF_SEC) /* for a committer that is on its way out */

/* In this file, so that a program which lands has hf_stage_settle as well: a weak reference does not bring it in. */
struct hf_result hf_tx_committed_result(const struct hf_tx_report *report, const char *how)
{
	unsigned long long n = (unsigned long long)(report->added + report->changed + report->deleted);

	if (report->is_there)
		return hf_result_make(HF_OUTCOME_SUCCEEDED, 0, "%s, its change is on %s already", how, report->branch);
	if (report->branch[0] && report->commits == 0)
		return hf_result_make(HF_OUTCOME_SUCCEEDED, 0, "%s, nothing to land", how);
	if (report->branch[0])
		return hf_result_make(HF_OUTCOME_SUCCEEDED, 0, "%s, landed on %s as %.12s%s%s", how, report->branch, report->commit,
				      report->rebased ? ", rebased" : "", report->unlanded || report->n_kept ? ", other work is kept" : "");
	if (n == 0)
		return hf_result_make(HF_OUTCOME_SUCCEEDED, 0, "%s, nothing to commit", how);
	return hf_result_make(HF_OUTCOME_SUCCEEDED, 0, "%s, committed: %llu added, %llu changed, %llu deleted, %llu bytes", how,
			      (unsigned long long)report->added, (unsigned long long)report->changed,
			      (unsigned long long)report->deleted, (unsigned long long)report->bytes);
}

static int is_of_attempt(void *arg, const struct hf_record *event)
{
	const struct hf_stage_unsettled *attempt = arg;
	int64_t token = 0, number = 0;

	return event->info && event->info->event == HF_EV_RUN_COMMITTED && hf_record_int(event, "token", &token) &&
	       hf_record_int(event, "attempt", &number) && (uint64_t)token == attempt->token &&
	       number == (int64_t)attempt->attempt;
}

/* Its keeper may have come so far as to say so (L8). */
static void tell_once(struct hf_state *state, struct hf_journal *journal, const struct hf_stage_unsettled *attempt,
		      const struct hf_tx_report *report)
{
	struct hf_field fields[] = { HF_FIELD_INT("token", (int64_t)attempt->token),
				     HF_FIELD_INT("attempt", attempt->attempt),
				     HF_FIELD_INT("added", (int64_t)report->added),
				     HF_FIELD_INT("changed", (int64_t)report->changed),
				     HF_FIELD_INT("deleted", (int64_t)report->deleted),
				     HF_FIELD_INT("bytes", (int64_t)report->bytes) };
	char needle[40];

	(void)snprintf(needle, sizeof(needle), "\"token\":%llu", (unsigned long long)attempt->token);
	if (journal && hf_journal_find(state, needle, is_of_attempt, (void *)(uintptr_t)attempt, NULL) != 1)
		(void)hf_journal_append(journal, HF_EV_RUN_COMMITTED, attempt->name, fields, report->branch[0] ? 5 : 6, 0, NULL);
}

int hf_stage_settle(struct hf_state *state, struct hf_journal *journal, const struct hf_stage_unsettled *attempt,
		    struct hf_result *ret, struct hf_err *err)
{
	struct hf_tx_report landed = { 0 };
	struct hf_plan_report report = { 0 };
	struct hf_plans *plans = NULL;
	char plan[HF_NAME_MAX + 1];
	int r = hf_tx_plan_name(attempt->name, plan, err);

	if (r == 0)
		r = hf_plans_open(state, journal, &plans, err);
	if (r == 0)
		r = hf_tx_branch_settled(state, journal, plans, attempt->name, plan, &landed, err);
	if (r == -ENOENT) {
		r = hf_plan_committed(plans, plan, SETTLE_NS, &report, err);
		landed.added = report.added;
		landed.changed = report.changed;
		landed.deleted = report.deleted;
		landed.bytes = report.bytes;
	}
	hf_plans_free(plans);
	if (r < 0)
		return r;
	if (r == 1) {
		tell_once(state, journal, attempt, &landed);
		*ret = hf_tx_committed_result(&landed, "exit 0");
	} else {
		*ret = hf_result_make(HF_OUTCOME_ABANDONED, HF_EXIT_AROUND, "killed before the commit; nothing was committed");
	}
	return 0;
}
