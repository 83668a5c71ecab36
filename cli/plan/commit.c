/* cli/plan/commit.c - plan commit, rollback, undo and recover. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/parse.h"
#include "hf/view/plan/plan.h"
#include "holdfast/land.h"
#include "plan/plan.h"

#define FENCES_MAX 16

struct commit_options {
	int64_t wait_ns;
	int strict, torn, merge;
	const char *ignore_from;
	char **force, **depends, **ignore, **fence;
};

/* Parses "NAME:TOKEN" for each fence. Cuts the words of the command line at the colon, and refers to them. */
static int read_fences(const struct cli *cli, char *const *words, struct hf_plan_fence *fences,
		       size_t *ret_n)
{
	size_t i = 0;

	for (; words && words[i]; i++) {
		char *colon = strrchr(words[i], ':');
		uint64_t token = 0;

		if (i == FENCES_MAX)
			return cli_usage(cli, "at most %d fences", FENCES_MAX);
		if (!colon || colon == words[i] ||
		    hf_parse_u64(colon + 1, strlen(colon + 1), UINT64_MAX, &token) < 0 || token == 0)
			return cli_usage(cli, "a fence must be NAME:TOKEN, and the token a number");
		*colon = '\0';
		fences[i].name = words[i];
		fences[i].token = token;
	}
	*ret_n = i;
	return HF_EXIT_DONE;
}

static void print_conflicts(const struct hf_plan_report *report)
{
	for (size_t i = 0; i < report->n_conflicts; i++) {
		const struct hf_conflict *c = &report->conflicts[i];
		AUTO(hf_buf_done) struct hf_buf line = HF_BUF_INIT;

		hf_buf_add_format(&line, "%-17s ", c->kind);
		hf_buf_add_shown(&line, c->sandbox, strlen(c->sandbox));
		hf_buf_add_text(&line, ": ");
		hf_buf_add_shown(&line, c->path, strlen(c->path));
		if (c->by[0]) {
			hf_buf_add_text(&line, " (by ");
			hf_buf_add_shown(&line, c->by, strlen(c->by));
			hf_buf_add_char(&line, ')');
		}
		if (c->why[0])
			hf_buf_add_format(&line, "; not merged: %s", c->why);
		if (line.err)
			cli_die_oom();
		puts(line.s);
	}
}

static void print_merged(const struct hf_plan_report *report)
{
	for (size_t i = 0; i < report->n_merged; i++) {
		const struct hf_merged *m = &report->merged[i];
		AUTO(hf_buf_done) struct hf_buf line = HF_BUF_INIT;

		hf_buf_add_format(&line, "%-17s ", "merged");
		hf_buf_add_shown(&line, m->sandbox, strlen(m->sandbox));
		hf_buf_add_text(&line, ": ");
		hf_buf_add_shown(&line, m->path, strlen(m->path));
		hf_buf_add_format(&line, " (base: %s ", strcmp(m->kind, "git") == 0 ? "git commit" : "kept by plan");
		hf_buf_add_shown(&line, m->base, strlen(m->base));
		hf_buf_add_char(&line, ')');
		if (line.err)
			cli_die_oom();
		puts(line.s);
	}
}

/* Prints the outcome as text or JSON. */
static int print_outcome(const struct cli *cli, const char *plan, int undo, int r,
			 const struct hf_plan_report *report, const struct hf_err *err)
{
	int status;

	if (r < 0) {
		if (cli->json)
			return cli_fail_beside(cli, err,
					       hf_view_plan_report(plan, r == HF_E_CONFLICT ? "conflict" :
									       "unchanged", report));
		print_conflicts(report);
		status = cli_fail(cli, err);
		if (r == HF_E_CONFLICT && report->n_conflicts && undo)
			cli_say(cli, "plan '%s': --force PATH restores an entry although it has changed since the commit", plan);
		else if (r == HF_E_CONFLICT && report->n_conflicts)
			cli_say(cli, "plan '%s': the work is kept; --force PATH overrules a conflict, --merge merges text, "
				     "'holdfast plan diff %s' shows the change", plan, cli_word(plan));
		return status;
	}
	if (cli->json) {
		cli_print_json(hf_view_plan_report(plan, undo ? "taken back" : "committed", report));
		return HF_EXIT_DONE;
	}
	print_merged(report);
	if (report->by_other)
		cli_say(cli, "plan '%s': committed already", plan);
	else
		cli_say(cli, "plan '%s': %s: %llu added, %llu changed, %llu deleted", plan, undo ? "undone" : "committed",
			(unsigned long long)report->added, (unsigned long long)report->changed,
			(unsigned long long)report->deleted);
	return HF_EXIT_DONE;
}

/* Frees the lists. Their words belong to the command line. */
static void options_done(struct commit_options *o)
{
	free(o->force);
	free(o->depends);
	free(o->ignore);
	free(o->fence);
}

struct candidate {
	const char *plan;
	char branch[256];
};

static void note_candidate(void *arg, const struct hf_land_info *info)
{
	struct candidate *candidate = arg;

	if (strcmp(info->plan, candidate->plan) == 0 && info->state != HF_LAND_LANDED && info->state != HF_LAND_DROPPED)
		(void)snprintf(candidate->branch, sizeof(candidate->branch), "%s", info->branch);
}

/*
 * Refuses to commit a candidate's plan. It contains a git directory, and a commit of its files would move the branch unverified and undo
 * other landings.
 */
static int refuse_candidate(struct cli *cli, struct plan_context *context, const char *plan)
{
	const char *name = strncmp(plan, HF_PLAN_OF_RUN, strlen(HF_PLAN_OF_RUN)) == 0 ? plan + strlen(HF_PLAN_OF_RUN) : plan;
	struct candidate candidate = { .plan = plan };
	struct hf_landings *landings = NULL;

	if (hf_landings_open(cli->state, NULL, context->plans, &landings, NULL) == 0)
		(void)!hf_land_look(landings, name, note_candidate, &candidate, NULL);
	hf_landings_free(landings);
	if (!candidate.branch[0])
		return HF_EXIT_DONE;
	return cli_fail_words(cli, HF_E_LAND, HF_EXIT_REFUSED,
			      "plan '%s' will land on %s; use 'holdfast land %s' (--force commits its files and git directory unverified)", plan,
			      candidate.branch, cli_word(name));
}

static int run_commit(struct cli *cli, const char *plan, struct commit_options *o, int undo)
{
	AUTO(plan_done) struct plan_context context = PLAN_CONTEXT_INIT;
	struct hf_plan_fence fences[FENCES_MAX];
	struct hf_plan_commit_opts opts = {
		.size = sizeof(opts),
		.flags = (o->strict ? HF_PLAN_COMMIT_STRICT : 0U) | (o->torn ? HF_PLAN_COMMIT_TORN : 0U) |
			 (o->merge ? HF_PLAN_COMMIT_MERGE : 0U),
		.force = (const char *const *)o->force,
		.depends = (const char *const *)o->depends,
		.fences = fences,
		.wait_ns = o->wait_ns,
	};
	AUTO(hf_plan_report_done) struct hf_plan_report report = { 0 };
	struct hf_err err = HF_ERR_INIT;
	int r, status = read_fences(cli, o->fence, fences, &opts.n_fences);

	if (status == HF_EXIT_DONE)
		status = plan_read_ignore(cli, o->ignore_from, &o->ignore);
	if (status == HF_EXIT_DONE)
		status = plan_open(cli, &context);
	if (status == HF_EXIT_DONE && !undo && !o->torn)
		status = refuse_candidate(cli, &context, plan);
	if (status != HF_EXIT_DONE)
		return status;
	opts.ignore = (const char *const *)o->ignore;
	r = undo ? hf_plan_undo(context.plans, plan, &opts, &report, &err)
		 : hf_plan_commit(context.plans, plan, &opts, &report, &err);
	/* The targets are changed: a failed write to stdout does not make this a failure. */
	if (r >= 0)
		cli_keep_status(cli);
	return print_outcome(cli, plan, undo, r, &report, &err);
}

/*
 * --force without a path is --torn; --force PATH overrules a conflict. A --force at the end, or before
 * another option, has no path. A path that begins with - needs --force=PATH.
 */
static void name_bare_force(int argc, char **argv)
{
	static char torn[] = "--torn";

	for (int i = 0; i < argc; i++)
		if (strcmp(argv[i], "--force") == 0 && (i + 1 == argc || argv[i + 1][0] == '-'))
			argv[i] = torn;
}

int cmd_plan_commit(struct cli *cli, int argc, char **argv)
{
	AUTO(options_done) struct commit_options o = { 0 };
	const struct option_spec specs[] = {
		{ "wait", 'w', OPTION_DURATION, &o.wait_ns, "DUR", "wait for a commit in progress" },
		{ "fence", 0, OPTION_LIST, &o.fence, "NAME:TOKEN", "commit only while this token is current" },
		{ "force", 0, OPTION_LIST, &o.force, "PATH", "overrule the conflict of this entry; without PATH: like --torn" },
		{ "depends", 0, OPTION_LIST, &o.depends, "PATH", "commit only if this path is unchanged, too" },
		{ "merge", 0, OPTION_FLAG, &o.merge, NULL, "merge text files that both sides changed (git merge-file)" },
		{ "strict", 0, OPTION_FLAG, &o.strict, NULL, "refuse if anything in the targets has changed" },
		{ "ignore", 0, OPTION_LIST, &o.ignore, "GLOB", "do not commit matching paths" },
		{ "ignore-from", 0, OPTION_TEXT, &o.ignore_from, "FILE", "read globs from FILE, one per line" },
		{ "torn", 0, OPTION_FLAG, &o.torn, NULL, "commit even if power failed while the plan was in use" },
		{ 0 },
	};
	int n;

	name_bare_force(argc, argv);
	n = cli_options(cli, specs, argc, argv, 1, 1);
	return n < 0 ? cli_options_status(n) : run_commit(cli, argv[0], &o, 0);
}

int cmd_plan_undo(struct cli *cli, int argc, char **argv)
{
	AUTO(options_done) struct commit_options o = { 0 };
	const struct option_spec specs[] = {
		{ "wait", 'w', OPTION_DURATION, &o.wait_ns, "DUR", "wait for a commit in progress" },
		{ "force", 0, OPTION_LIST, &o.force, "PATH", "undo this entry even if it has changed since" },
		{ 0 },
	};
	int n = cli_options(cli, specs, argc, argv, 1, 1);

	return n < 0 ? cli_options_status(n) : run_commit(cli, argv[0], &o, 1);
}

int cmd_plan_rollback(struct cli *cli, int argc, char **argv)
{
	AUTO(plan_done) struct plan_context context = PLAN_CONTEXT_INIT;
	struct hf_err err = HF_ERR_INIT;
	int64_t wait_ns = 0;
	const struct option_spec specs[] = {
		{ "wait", 'w', OPTION_DURATION, &wait_ns, "DUR", "wait for a commit in progress" },
		{ 0 },
	};
	struct hf_plan_report none = { 0 };
	int status, n = cli_options(cli, specs, argc, argv, 1, 1);

	if (n < 0)
		return cli_options_status(n);
	status = plan_open(cli, &context);
	if (status != HF_EXIT_DONE)
		return status;
	if (hf_plan_rollback(context.plans, argv[0], wait_ns, &err) < 0)
		return cli_fail(cli, &err);
	if (cli->json)
		cli_print_json(hf_view_plan_report(argv[0], "rolled back", &none));
	else
		cli_say(cli, "plan '%s': rolled back", argv[0]);
	return HF_EXIT_DONE;
}

/* -- recover -------------------------------------------------------------------------------------- */

struct recovery {
	struct cli *cli;
	char **names;
	size_t n;
};

static void note_plan(void *arg, const struct hf_plan_info *info)
{
	struct recovery *rec = arg;

	rec->names = reallocarray(rec->names, rec->n + 1, sizeof(*rec->names));
	if (!rec->names || !(rec->names[rec->n] = strdup(info->name)))
		cli_die_oom();
	rec->n++;
}

static int recover_one(struct cli *cli, struct hf_plans *plans, const char *plan, int64_t wait_ns)
{
	struct hf_err err = HF_ERR_INIT;
	int r = hf_plan_recover(plans, plan, wait_ns, &err);

	if (r < 0)
		return cli_fail(cli, &err);
	if (cli->json)
		cli_print_json(hf_view_plan_recovered(plan, r));
	else if (r)
		cli_say(cli, "plan '%s': recovered; see 'holdfast plan show %s'", plan, cli_word(plan));
	return HF_EXIT_DONE;
}

int cmd_plan_recover(struct cli *cli, int argc, char **argv)
{
	AUTO(plan_done) struct plan_context context = PLAN_CONTEXT_INIT;
	struct recovery rec = { .cli = cli };
	struct hf_err err = HF_ERR_INIT;
	int64_t wait_ns = 0;
	const struct option_spec specs[] = {
		{ "wait", 'w', OPTION_DURATION, &wait_ns, "DUR", "wait for a commit in progress" },
		{ 0 },
	};
	int status, n = cli_options(cli, specs, argc, argv, 0, 1);

	if (n < 0)
		return cli_options_status(n);
	status = plan_open(cli, &context);
	if (status != HF_EXIT_DONE)
		return status;
	if (n == 1)
		return recover_one(cli, context.plans, argv[0], wait_ns);
	if (hf_plan_list(context.plans, note_plan, &rec, &err) < 0)
		status = cli_fail(cli, &err);
	for (size_t i = 0; i < rec.n; i++) {
		int one = recover_one(cli, context.plans, rec.names[i], wait_ns);

		status = status == HF_EXIT_DONE ? one : status;
		free(rec.names[i]);
	}
	free(rec.names);
	return status;
}
