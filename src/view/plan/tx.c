/* view/plan/tx.c - the JSON of what a transactional run committed, or why not. */
#include "hf/view/plan/tx.h"

static json_t *conflicts_json(const struct hf_tx_report *report)
{
	json_t *list = json_array();

	for (size_t i = 0; i < report->n_listed; i++) {
		const struct hf_tx_conflict *c = &report->conflicts[i];
		json_t *one = json_object();

		hf_view_set(&one, "sandbox", hf_view_text(c->sandbox));
		hf_view_set(&one, "path", hf_view_text(c->path));
		hf_view_set(&one, "kind", json_string(c->kind));
		hf_view_set(&one, "by", hf_view_text(c->by[0] ? c->by : NULL));
		hf_view_add(&list, one);
	}
	return list;
}

json_t *hf_view_landed(const struct hf_tx_report *report)
{
	json_t *object;

	if (!report->plan[0])
		return json_null();
	object = json_object();
	hf_view_set(&object, "plan", hf_view_text(report->plan));
	hf_view_set(&object, "committed", json_boolean(report->committed));
	hf_view_set(&object, "kept", json_boolean(report->kept));
	hf_view_set(&object, "added", json_integer((json_int_t)report->added));
	hf_view_set(&object, "changed", json_integer((json_int_t)report->changed));
	hf_view_set(&object, "deleted", json_integer((json_int_t)report->deleted));
	hf_view_set(&object, "same", json_integer((json_int_t)report->same));
	hf_view_set(&object, "bytes", report->branch[0] ? json_null() : json_integer((json_int_t)report->bytes));
	hf_view_set(&object, "branch", hf_view_text(report->branch[0] ? report->branch : NULL));
	hf_view_set(&object, "commit", hf_view_text(report->commit[0] ? report->commit : NULL));
	hf_view_set(&object, "commits", report->branch[0] ? json_integer(report->commits) : json_null());
	hf_view_set(&object, "already", report->branch[0] ? json_boolean(report->is_there) : json_null());
	hf_view_set(&object, "unsigned", report->branch[0] ? json_boolean(report->is_unsigned) : json_null());
	hf_view_set(&object, "no_change", json_boolean(report->no_change));
	hf_view_set(&object, "rebased", report->branch[0] ? json_boolean(report->rebased) : json_null());
	hf_view_set(&object, "unlanded", report->branch[0] ? json_integer(report->unlanded) : json_null());
	hf_view_set(&object, "refs", report->branch[0] ? json_integer(report->n_kept) : json_null());
	hf_view_set(&object, "conflicts", conflicts_json(report));
	hf_view_set(&object, "conflicts_total", json_integer((json_int_t)report->n_conflicts));
	return object;
}
