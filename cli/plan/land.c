/* cli/plan/land.c - land NAME, land list, show, retry, drop, and the part of `why` about a candidate. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "hf/base/cleanup.h"
#include "hf/view/plan/land.h"
#include "holdfast/land.h"
#include "holdfast/name.h"
#include "plan/plan.h"
#include "screen/table.h"

struct land_context {
	struct plan_context plan;
	struct hf_landings *landings;
};

static void land_done(struct land_context *context)
{
	hf_landings_free(context->landings);
	plan_done(&context->plan);
}

static int land_open(struct cli *cli, struct land_context *ret)
{
	int status = plan_open(cli, &ret->plan);

	if (status != HF_EXIT_DONE)
		return status;
	if (hf_landings_open(cli->state, ret->plan.journal, ret->plan.plans, &ret->landings, &ret->plan.err) < 0)
		return cli_fail(cli, &ret->plan.err);
	return HF_EXIT_DONE;
}

/* -- landing -------------------------------------------------------------------------- */

static void say_kept(struct cli *cli, const char *name, const char *commit)
{
	char key[HF_NAME_KEY_MAX] = "";

	(void)!hf_name_key(name, strlen(name), key, NULL);
	cli_say(cli, "its work is kept: refs/holdfast/%s, commit %.12s; 'holdfast land %s' tries again", key, commit, cli_word(name));
}

static void say_step(void *arg, enum hf_land_state step, const char *text)
{
	cli_say(arg, "%s: %s", hf_land_state_word(step), text);
}

static void print_paths(const char *indent, const struct hf_land_path *paths, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		printf("%s%s  ", indent, paths[i].kind);
		cli_print_shown(paths[i].path);
		putchar('\n');
	}
}

/* Work that HEAD of the sandbox did not have, with the commands to get it. */
static void say_rest(struct cli *cli, const char *name, const struct hf_land_report *report)
{
	AUTO(hf_buf_done) struct hf_buf word = HF_BUF_INIT;
	int any = 0;

	for (size_t i = 0; i < report->n_kept; i++) {
		const struct hf_land_kept *kept = &report->kept[i];

		if (!kept->ref[0])
			continue;
		cli_say(cli, "%s; it is kept:", kept->text);
		hf_buf_reset(&word);
		hf_buf_add_shell_word(&word, kept->ref);
		cli_say(cli, "  git %s %s", strncmp(kept->label, "stash", 5) == 0 ? "stash apply" : "merge", word.s);
		any = 1;
	}
	if (any || (report->state == HF_LAND_LANDED && report->n_unlanded))
		cli_say(cli, "  holdfast land drop %s      discards this work", cli_word(name));
}

static int print_report(struct cli *cli, const char *name, const struct hf_land_report *report)
{
	if (!cli->json) {
		cli_say(cli, "%s: %s%s", hf_land_state_word(report->state), report->text,
			report->rebased && report->state == HF_LAND_LANDED && !report->unsigned_commits ? " (rebased onto the new state of the branch)" : "");
		if (report->left_out)
			cli_say(cli, "left out %u path%s that you were editing and the agent committed; the first is %s", report->left_out,
				report->left_out == 1 ? "" : "s", report->first_left_out);
		for (size_t i = 0; i < report->n_also_unmatched; i++)
			cli_say(cli, "--also %s matched no file that the agent changed", report->also_unmatched[i]);
		if (report->is_unsigned)
			cli_say(cli, "commit.gpgSign is set, but no key could be used: commits are not signed");
		print_paths("", report->paths, report->n_paths);
		print_paths("", report->unlanded, report->n_unlanded);
		say_rest(cli, name, report);
		if (report->state != HF_LAND_LANDED && report->commit[0])
			say_kept(cli, name, report->commit);
		return report->state == HF_LAND_LANDED ? HF_EXIT_DONE : HF_EXIT_NO;
	}
	cli_print_json(hf_view_land_report(name, report));
	return report->state == HF_LAND_LANDED ? HF_EXIT_DONE : HF_EXIT_NO;
}

int cmd_land(struct cli *cli, int argc, char **argv)
{
	AUTO(land_done) struct land_context context = { PLAN_CONTEXT_INIT, NULL };
	AUTO(hf_land_report_done) struct hf_land_report report = { .verify_ns = -1 };
	struct hf_land_opts opts = { .size = sizeof(opts), .wait_ns = -1, .step = say_step, .arg = cli };
	const char *merge = NULL;
	AUTO_FREE char **also = NULL;
	uint64_t speculate = 0;
	int keep_plan = 0, sign = 0;
	const struct option_spec specs[] = {
		{ "merge", 0, OPTION_TEXT, &merge, "HOW", "how to land if the branch has moved: rebase (default), merge or ff-only" },
		{ "verify", 0, OPTION_TEXT, &opts.verify, "CMD", "land only if CMD succeeds on the new state of the branch (run by sh -c)" },
		{ "verify-timeout", 0, OPTION_DURATION, &opts.verify_ns, "DUR", "time limit of the verifier (10m)" },
		{ "message", 'm', OPTION_TEXT, &opts.message, "TEXT", "commit message for changes that were not committed" },
		{ "also", 0, OPTION_LIST, &also, "GLOB", "land ignored files that match, too" },
		{ "speculate", 0, OPTION_COUNT, &speculate, "N", "verify up to N candidates at once, stacked on each other" },
		{ "keep-plan", 0, OPTION_FLAG, &keep_plan, NULL, "keep the plan after landing; its later work can land, too" },
		{ "branch", 0, OPTION_TEXT, &opts.branch, "BRANCH", "land on BRANCH instead, for example after a rename" },
		{ "sign", 0, OPTION_FLAG, &sign, NULL, "sign the commits that landing makes; refuse to land if that fails" },
		{ "wait", 'w', OPTION_DURATION, &opts.wait_ns, "DUR", "wait for the branch at most DUR (default: no limit)" },
		{ NULL, 0, OPTION_FLAG, NULL, NULL, NULL },
	};
	int n = cli_options(cli, specs, argc, argv, 1, 1), way;
	int status;

	if (n < 0)
		return cli_options_status(n);
	way = merge ? hf_land_merge_of(merge) : HF_LAND_MERGE_AS_BEFORE;
	if (way < 0)
		return cli_usage(cli, "--merge must be rebase, merge or ff-only, not '%s'", merge);
	opts.merge = (enum hf_land_merge)way;
	opts.speculate = speculate < 1000 ? (unsigned)speculate : 1000;
	opts.also = (const char *const *)also;
	if (opts.branch && !opts.branch[0])
		return cli_usage(cli, "--branch is the name of a branch, not ''");
	opts.flags = (keep_plan ? HF_LAND_KEEP_PLAN : 0U) | (sign ? HF_LAND_SIGN : 0U);
	status = land_open(cli, &context);
	if (status != HF_EXIT_DONE)
		return status;
	if (hf_land(context.landings, argv[0], &opts, &report, &context.plan.err) < 0)
		return cli_fail(cli, &context.plan.err);
	return print_report(cli, argv[0], &report);
}

int cmd_land_begin(struct cli *cli, int argc, char **argv)
{
	AUTO(land_done) struct land_context context = { PLAN_CONTEXT_INIT, NULL };
	AUTO(hf_land_place_done) struct hf_land_place place = { 0 };
	const char *branch = NULL, *base = "head";
	const struct option_spec specs[] = {
		{ "branch", 0, OPTION_TEXT, &branch, "BRANCH", "branch to land on (default: the one checked out)" },
		{ "base", 0, OPTION_TEXT, &base, "WHAT", "head (default), or worktree: with your uncommitted edits" },
		{ NULL, 0, OPTION_FLAG, NULL, NULL, NULL },
	};
	int n = cli_options(cli, specs, argc, argv, 2, 2), r;
	int status = n < 0 ? cli_options_status(n) : HF_EXIT_DONE;

	if (n < 0)
		return status;
	if (strcmp(base, "head") != 0 && strcmp(base, "worktree") != 0)
		return cli_usage(cli, "--base must be head or worktree, not '%s'", base);
	status = land_open(cli, &context);
	if (status != HF_EXIT_DONE)
		return status;
	r = hf_land_find(argv[1], branch, &place, &context.plan.err);
	if (r < 0)
		return cli_fail(cli, &context.plan.err);
	if (r == 0)
		return cli_fail_words(cli, HF_E_LAND, HF_EXIT_REFUSED, "%s is not in a git work tree", argv[1]);
	if (place.moved_up)
		cli_say(cli, "using the whole work tree: %s", place.top);
	if (place.n_dirty)
		cli_say(cli, "%zu path%s with uncommitted changes; the sandbox starts %s them", place.n_dirty,
			place.n_dirty == 1 ? "" : "s", strcmp(base, "head") == 0 ? "without" : "with");
	/* The plan has the candidate's name, and targets for everything that git needs. */
	if (hf_plan_new(context.plan.plans, argv[0], NULL, &context.plan.err) < 0 ||
	    hf_land_add_targets(context.plan.plans, argv[0], &place, &context.plan.err) < 0)
		return cli_fail(cli, &context.plan.err);
	if (hf_land_begin(context.landings, argv[0], argv[0], &place,
			  strcmp(base, "head") == 0 ? HF_LAND_BASE_HEAD : HF_LAND_BASE_WORKTREE, &context.plan.err) < 0) {
		(void)!hf_plan_rm(context.plan.plans, argv[0], HF_PLAN_RM_DISCARD, NULL);
		return cli_fail(cli, &context.plan.err);
	}
	if (cli->json)
		cli_print_json(hf_view_land_begun(argv[0], &place));
	return HF_EXIT_DONE;
}

int cmd_land_drop(struct cli *cli, int argc, char **argv)
{
	AUTO(land_done) struct land_context context = { PLAN_CONTEXT_INIT, NULL };
	int n = cli_options(cli, NULL, argc, argv, 1, 1);
	int status = n < 0 ? cli_options_status(n) : land_open(cli, &context);

	if (n < 0 || status != HF_EXIT_DONE)
		return status;
	if (hf_land_drop(context.landings, argv[0], &context.plan.err) < 0)
		return cli_fail(cli, &context.plan.err);
	if (cli->json) {
		json_t *object = json_object();

		cli_set(object, "name", cli_text(argv[0]));
		cli_set(object, "dropped", json_true());
		cli_print_json(object);
	}
	return HF_EXIT_DONE;
}

/* -- queries --------------------------------------------------------------------------- */

static void show_one(void *arg, const struct hf_land_info *info)
{
	const struct cli *cli = arg;
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;

	if (cli->json) {
		cli_print_json(hf_view_candidate(info));
		return;
	}
	hf_view_candidate_text(info, &text);
	if (text.err)
		cli_die_oom();
	fputs(text.s, stdout);
}

int cmd_land_show(struct cli *cli, int argc, char **argv)
{
	AUTO(land_done) struct land_context context = { PLAN_CONTEXT_INIT, NULL };
	int n = cli_options(cli, NULL, argc, argv, 1, 1);
	int status = n < 0 ? cli_options_status(n) : land_open(cli, &context);

	if (n < 0 || status != HF_EXIT_DONE)
		return status;
	(void)!hf_land_recover(context.landings, argv[0], NULL);
	if (hf_land_look(context.landings, argv[0], show_one, cli, &context.plan.err) < 0)
		return cli_fail(cli, &context.plan.err);
	return HF_EXIT_DONE;
}

struct listed {
	const struct cli *cli;
	json_t *queues;
	int no_cut;
};

/* Prints a candidate; on a terminal at most as wide as the screen. */
static void print_line(const struct listed *listed, const struct hf_land_info *info)
{
	AUTO(hf_buf_done) struct hf_buf line = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf cut = HF_BUF_INIT;
	char note[HF_VIEW_NOTE_MAX];
	const char *const cells[] = { info->name, info->branch, hf_view_candidate_note(info, note) };
	int columns, lines;

	hf_buf_add_format(&line, "%-9s", hf_view_candidate_state(info));
	for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
		hf_buf_add_text(&line, "  ");
		hf_buf_add_shown(&line, cells[i], strlen(cells[i]));
	}
	table_screen(&columns, &lines);
	if (!line.err && listed->cli->terminal && !listed->no_cut)
		(void)table_cut(&cut, line.s, columns);
	if (line.err || cut.err)
		cli_die_oom();
	puts(cut.len ? cut.s : line.s);
}

static void list_one(void *arg, const struct hf_land_info *info)
{
	struct listed *listed = arg;

	if (listed->cli->json) {
		hf_view_queues_add(&listed->queues, info);
		return;
	}
	print_line(listed, info);
}

int cmd_land_list(struct cli *cli, int argc, char **argv)
{
	AUTO(land_done) struct land_context context = { PLAN_CONTEXT_INIT, NULL };
	struct listed listed = { cli, NULL, 0 };
	const struct option_spec specs[] = {
		{ "no-trunc", 0, OPTION_FLAG, &listed.no_cut, NULL, "do not cut lines at the width of the screen" },
		{ NULL, 0, OPTION_FLAG, NULL, NULL, NULL },
	};
	int n = cli_options(cli, specs, argc, argv, 0, 0);
	int r, status = n < 0 ? cli_options_status(n) : land_open(cli, &context);
	json_t *object = NULL;

	if (n < 0 || status != HF_EXIT_DONE)
		return status;
	listed.queues = cli->json ? json_array() : NULL;
	r = hf_land_list(context.landings, list_one, &listed, &context.plan.err);
	if (cli->json) {
		hf_view_queues_finish(&listed.queues);
		object = json_object();
		cli_set(object, "queues", listed.queues);
	}
	if (r < 0)
		return cli_fail_beside(cli, &context.plan.err, object); /* the others were shown */
	if (cli->json)
		cli_print_json(object);
	return HF_EXIT_DONE;
}

/* -- why ------------------------------------------------------------------------------------ */

struct explained {
	const struct cli *cli;
	json_t *object; /* with --json: receives the candidate */
};

/* Checks the repository, not only the record, because a branch can be rewritten. */
static void explain_one(void *arg, const struct hf_land_info *info)
{
	struct explained *explained = arg;
	int proven = info->commit[0] ? hf_land_proven(info, NULL) : -1;
	char text[HF_VIEW_NOTE_MAX];
	const char *note = hf_view_candidate_note(info, text);

	if (explained->cli->json) {
		json_t *candidate = hf_view_candidate(info);

		hf_view_set(&candidate, "proven", proven < 0 ? json_null() : json_boolean(proven));
		cli_set(explained->object, "land", candidate);
		return;
	}
	printf("candidate for ");
	cli_print_shown(info->branch);
	printf(": %s%s%s", hf_view_candidate_state(info), info->alive ? ", under way" : "", note[0] ? ": " : "");
	cli_print_shown(note);
	putchar('\n');
	if (proven >= 0)
		printf("  in the repository: %.12s %s\n", info->commit,
		       proven ? "is part of the branch" : "is no longer part of the branch");
	else if (info->commit[0])
		puts("  the repository cannot be read now");
	print_paths("  ", info->paths, info->n_paths);
	print_paths("  ", info->unlanded, info->n_unlanded);
}

void land_why(struct cli *cli, const char *name, json_t *object)
{
	AUTO(land_done) struct land_context context = { PLAN_CONTEXT_INIT, NULL };
	struct explained explained = { cli, object };

	if (object)
		cli_set(object, "land", json_null());
	if (cli->state && hf_plans_open(cli->state, NULL, &context.plan.plans, NULL) == 0 &&
	    hf_landings_open(cli->state, NULL, context.plan.plans, &context.landings, NULL) == 0)
		(void)!hf_land_look(context.landings, name, explain_one, &explained, NULL);
}
