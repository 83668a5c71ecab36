/* tx/land/candidate/report.c - what became of a candidate: for its caller, and for the journal. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/tx/land/candidate/land.h"

void hf_land_tell_end(struct hf_land_work *work)
{
	struct hf_landing *landing = &work->landing;
	struct hf_field rejected[] = { HF_FIELD_TEXT("branch", hf_land_short(landing->branch)),
				       HF_FIELD_TEXT("reason", landing->text) };
	struct hf_field conflict[] = { HF_FIELD_TEXT("branch", hf_land_short(landing->branch)),
				       HF_FIELD_INT("count", (int64_t)landing->paths.n),
				       HF_FIELD_TEXT("first", landing->paths.n ? landing->paths.list[0].path : ""),
				       HF_FIELD_TEXT("kind", landing->paths.n ? landing->paths.list[0].kind : landing->text) };

	if (landing->state == HF_LAND_REJECTED)
		hf_land_event(work->landings, HF_EV_LAND_REJECTED, landing->name, rejected, 2);
	else if (landing->state == HF_LAND_CONFLICT)
		hf_land_event(work->landings, HF_EV_LAND_CONFLICT, landing->name, conflict, 4);
}

void hf_land_kept_words(const struct hf_landing *landing, char *out, size_t cap)
{
	size_t n = landing->unlanded.n, at = 0, end;
	char word[HF_SHELL_WORD_MAX];

	out[0] = '\0';
	if (landing->rest.n)
		at = (size_t)snprintf(out, cap, "; kept: %.60s%s", landing->rest.list[0].ref, landing->rest.n > 1 ? ", ..." : "");
	if (!n || at >= cap)
		return;
	end = at + (size_t)snprintf(out + at, cap - at, "; %zu changed file%s not landed, and the sandbox is kept", n, n == 1 ? " has" : "s have");
	/* A part of a command would mislead. */
	if (end < cap && (size_t)snprintf(out + end, cap - end, ": 'holdfast plan diff %s'", hf_shell_word(landing->plan, word)) >= cap - end)
		out[end] = '\0';
}

/* The lists of a report. */
struct memory {
	struct hf_land_paths paths, unlanded;
	char **unmatched;
	struct hf_land_rest rest;
};

void hf_land_report_done(struct hf_land_report *report)
{
	struct memory *memory = report ? report->memory : NULL;

	if (!memory)
		return;
	hf_land_paths_done(&memory->paths);
	hf_land_paths_done(&memory->unlanded);
	hf_landing_free_list(&memory->unmatched);
	hf_land_rest_done(&memory->rest);
	free(memory);
	report->memory = NULL;
	report->paths = report->unlanded = NULL;
	report->also_unmatched = NULL;
	report->kept = NULL;
	report->n_paths = report->n_unlanded = report->n_also_unmatched = report->n_kept = 0;
}

int hf_land_fill_report(struct hf_land_work *work, struct hf_land_report *ret, struct hf_err *err)
{
	struct hf_landing *landing = &work->landing;
	struct memory *memory = calloc(1, sizeof(*memory));

	if (!memory)
		return hf_fail_sys(err, ENOMEM, "memory", landing->name);
	*memory = (struct memory){ landing->paths, landing->unlanded, landing->unmatched, landing->rest };
	landing->rest = (struct hf_land_rest){ 0 };
	landing->paths = landing->unlanded = (struct hf_land_paths){ 0 };
	landing->unmatched = NULL;
	*ret = (struct hf_land_report){ .state = landing->state, .commits = landing->commits, .files = landing->files,
					.added = landing->added, .deleted = landing->deleted,
					.rebased = landing->rebased, .unsigned_commits = landing->unsigned_commits, .left_out = landing->left_out, .verify_ns = landing->verify_ns,
					.is_there = landing->is_there, .is_unsigned = landing->is_unsigned,
					.n_paths = memory->paths.n, .paths = memory->paths.list,
					.n_unlanded = memory->unlanded.n, .unlanded = memory->unlanded.list,
					.n_kept = memory->rest.n, .kept = memory->rest.list,
					.also_unmatched = (const char *const *)memory->unmatched, .memory = memory };
	while (memory->unmatched && memory->unmatched[ret->n_also_unmatched])
		ret->n_also_unmatched++;
	hf_copy_text(ret->branch, sizeof(ret->branch), hf_land_short(landing->branch));
	hf_copy_text(ret->commit, sizeof(ret->commit), landing->state == HF_LAND_LANDED ? landing->commit : landing->tip);
	hf_copy_text(ret->text, sizeof(ret->text), landing->text);
	hf_copy_text(ret->first_left_out, sizeof(ret->first_left_out), landing->first_left_out);
	return 0;
}
