/*
 * plan/commit/report.c - the report of a commit or an undo: conflicts with their cause, and what was merged.
 *
 * The cause of a conflict is searched for in the intents that other plans keep for undo: the one that
 * gave the target the inode which is there now.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/commit/work.h"

struct kept {
	struct hf_conflict *conflicts;
	struct hf_merged *merged;
	char **strings; /* that the two lists point to */
	size_t n_strings;
};

void hf_plan_report_done(struct hf_plan_report *report)
{
	struct kept *kept = report ? report->memory : NULL;

	if (!kept)
		return;
	for (size_t i = 0; i < kept->n_strings; i++)
		free(kept->strings[i]);
	free(kept->strings);
	free(kept->conflicts);
	free(kept->merged);
	free(kept);
	report->memory = NULL;
	report->conflicts = NULL;
	report->merged = NULL;
	report->n_conflicts = report->n_merged = 0;
}

static struct kept *kept_of(struct hf_plan_report *report)
{
	if (!report->memory)
		report->memory = calloc(1, sizeof(struct kept));
	return report->memory;
}

/* A copy that lives as long as the report; NULL: no memory. */
static const char *keep(struct kept *kept, const char *text)
{
	char **grown = reallocarray(kept->strings, kept->n_strings + 1, sizeof(*grown));

	if (!grown)
		return NULL;
	kept->strings = grown;
	grown[kept->n_strings] = strdup(text);
	return grown[kept->n_strings] ? grown[kept->n_strings++] : NULL;
}

/* A text becomes the report's own. 1, or 0 without memory. */
static int keep_in_place(struct kept *kept, const char **text)
{
	*text = keep(kept, *text);
	return *text != NULL;
}

int hf_report_conflict(struct hf_plan_report *report, const struct hf_conflict *conflict)
{
	struct kept *kept = kept_of(report);
	struct hf_conflict c = *conflict, *grown;

	grown = kept ? reallocarray(kept->conflicts, report->n_conflicts + 1, sizeof(*grown)) : NULL;
	if (!grown)
		return -ENOMEM;
	report->conflicts = kept->conflicts = grown;
	c.why = c.why ? c.why : "";
	if (!keep_in_place(kept, &c.sandbox) || !keep_in_place(kept, &c.path) || (c.by && !keep_in_place(kept, &c.by)))
		return -ENOMEM;
	c.by = c.by ? c.by : "";
	grown[report->n_conflicts++] = c;
	return 0;
}

int hf_report_merged(struct hf_plan_report *report, const struct hf_merged *merged)
{
	struct kept *kept = kept_of(report);
	struct hf_merged m = *merged, *grown;

	grown = kept ? reallocarray(kept->merged, report->n_merged + 1, sizeof(*grown)) : NULL;
	if (!grown)
		return -ENOMEM;
	report->merged = kept->merged = grown;
	if (!keep_in_place(kept, &m.sandbox) || !keep_in_place(kept, &m.path) || !keep_in_place(kept, &m.base))
		return -ENOMEM;
	grown[report->n_merged++] = m;
	return 0;
}

int hf_report_refuse(struct hf_work *work, const char *verb, const struct hf_plan_report *report,
		     struct hf_err *err)
{
	const struct hf_conflict *first = &report->conflicts[0];
	struct hf_field fields[] = { HF_FIELD_INT("count", (int64_t)report->n_conflicts),
				     HF_FIELD_TEXT("first", first->path),
				     HF_FIELD_TEXT("kind", first->kind) };

	hf_plan_event(work->plans, HF_EV_PLAN_CONFLICT, work->record.name, fields, 3);
	return FAIL(err, HF_E_CONFLICT, verb, work->record.name,
		    "%zu conflict%s, the first: %.120s (%s)%s%.60s; nothing was changed",
		    report->n_conflicts, report->n_conflicts == 1 ? "" : "s", first->path, first->kind,
		    first->by[0] ? " by " : "", first->by);
}

/* Which commit gave the target this entry: found in the intents that are kept for undo. */
struct search {
	struct hf_work *work;
	const struct hf_unit *unit;
	const struct hf_delta *delta;
	char by[HF_NAME_MAX + 16];
};

static int was_by(void *arg, const char *plan)
{
	AUTO(hf_intent_done) struct hf_intent intent = HF_INTENT_INIT;
	struct search *s = arg;
	AUTO_FD fd = -1;
	const char *why;

	if (strcmp(plan, s->work->record.name) == 0 || hf_plan_dir(s->work->plans, plan, 0, &fd, NULL) < 0 ||
	    hf_intent_load(fd, HF_INTENT_UNDO, &intent, &why, NULL) < 0)
		return 0;
	for (size_t i = 0; i < intent.n_ops; i++) {
		const struct hf_op *op = &intent.ops[i];

		if (intent.targets[op->target].ino != s->unit->sandbox->target.ino ||
		    strcmp(op->path, s->delta->path) != 0)
			continue;
		if (op->kind == HF_OP_DELETE ? s->delta->old.ino == 0 : op->new_ino == s->delta->old.ino) {
			(void)snprintf(s->by, sizeof(s->by), "plan %s", plan);
			return -ECANCELED;
		}
	}
	return 0;
}

int hf_conflict_report(struct hf_work *work, struct hf_plan_report *report, struct hf_err *err)
{
	for (size_t i = 0; i < work->n_units; i++) {
		const struct hf_unit *unit = &work->units[i];

		for (size_t k = 0; k < unit->deltas.n; k++) {
			const struct hf_delta *d = &unit->deltas.list[k];
			struct search search = { .work = work, .unit = unit, .delta = d };

			if (!d->verdict)
				continue;
			if (report->n_conflicts < 64)
				(void)hf_plan_each(work->plans, was_by, &search, NULL);
			if (hf_report_conflict(report, &(struct hf_conflict){
						.sandbox = unit->sandbox->name,
						.path = d->shown ? d->shown : d->path,
						.kind = hf_verdict_word(d->verdict),
						.by = search.by,
						.why = d->unmerged }) < 0)
				return hf_fail_sys(err, ENOMEM, "memory", work->record.name);
		}
	}
	return (int)report->n_conflicts;
}
