/* cli/plan/plan.c - plan new, add, path, rm, gc. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/view/plan/plan.h"
#include "holdfast/land.h"
#include "plan/plan.h"

int cmd_plan_new(struct cli *cli, int argc, char **argv)
{
	AUTO(plan_done) struct plan_context context = PLAN_CONTEXT_INIT;
	struct hf_plan_new_opts opts = { .size = sizeof(opts), .session = getenv("HOLDFAST_SESSION") };
	const struct option_spec specs[] = {
		{ "session", 0, OPTION_TEXT, &opts.session, "NAME", "the session that owns it (default: $HOLDFAST_SESSION)" },
		{ NULL, 0, OPTION_FLAG, NULL, NULL, NULL },
	};
	int n = cli_options(cli, specs, argc, argv, 1, 1);
	int status = n < 0 ? cli_options_status(n) : plan_open(cli, &context);

	if (n < 0 || status != HF_EXIT_DONE)
		return status;
	if (opts.session && !opts.session[0])
		opts.session = NULL;
	if (hf_plan_new(context.plans, argv[0], &opts, &context.err) < 0)
		return cli_fail(cli, &context.err);
	if (cli->json)
		cli_print_json(hf_view_plan_made(argv[0]));
	return HF_EXIT_DONE;
}

int cmd_plan_add(struct cli *cli, int argc, char **argv)
{
	AUTO(plan_done) struct plan_context context = PLAN_CONTEXT_INIT;
	struct hf_plan_add_opts opts = { .size = sizeof(opts) };
	struct hf_plan_added added = { 0 };
	const char *word = "auto";
	int git_outside = 0, strategy;
	const struct option_spec specs[] = {
		{ "strategy", 0, OPTION_TEXT, &word, "WORD", "auto (default), overlay, clone or copy" },
		{ "git-outside", 0, OPTION_FLAG, &git_outside, NULL, "accept that git writes outside the plan" },
		{ "wait", 'w', OPTION_DURATION, &opts.wait_ns, "DUR", "wait for another process that uses the plan" },
		{ NULL, 0, OPTION_FLAG, NULL, NULL, NULL },
	};
	int n = cli_options(cli, specs, argc, argv, 3, 3);
	int status;

	if (n < 0)
		return cli_options_status(n);
	strategy = hf_strategy_of(word);
	if (strategy < 0)
		return cli_usage(cli, "--strategy must be auto, overlay, clone or copy, not '%s'", word);
	opts.strategy = (enum hf_strategy)strategy;
	opts.flags = git_outside ? HF_PLAN_ADD_GIT_OUTSIDE : 0;
	status = plan_open(cli, &context);
	if (status != HF_EXIT_DONE)
		return status;
	if (hf_plan_add(context.plans, argv[0], argv[1], argv[2], &opts, &added, &context.err) < 0)
		return cli_fail(cli, &context.err);
	AUTO_FREE char *path = NULL;
	if (hf_plan_path(context.plans, argv[0], argv[1], &path, &context.err) < 0)
		return cli_fail(cli, &context.err);
	if (cli->json) {
		cli_print_json(hf_view_plan_added(argv[0], argv[1], &added, path));
		return HF_EXIT_DONE;
	}
	cli_say(cli, "sandbox '%s': %s%s%s", argv[1], hf_strategy_word(added.strategy),
		added.why[0] ? "; " : "", added.why);
	if (!added.same_path)
		cli_say(cli, "work in %s, not in the target itself", path);
	return HF_EXIT_DONE;
}

int cmd_plan_path(struct cli *cli, int argc, char **argv)
{
	AUTO(plan_done) struct plan_context context = PLAN_CONTEXT_INIT;
	AUTO_FREE char *path = NULL;
	int n = cli_options(cli, NULL, argc, argv, 2, 2);
	int status = n < 0 ? cli_options_status(n) : plan_open(cli, &context);

	if (n < 0 || status != HF_EXIT_DONE)
		return status;
	if (hf_plan_path(context.plans, argv[0], argv[1], &path, &context.err) < 0)
		return cli_fail(cli, &context.err);
	if (cli->json)
		cli_print_json(hf_view_plan_place(argv[0], argv[1], path));
	else
		puts(path);
	return HF_EXIT_DONE;
}

int cmd_plan_rm(struct cli *cli, int argc, char **argv)
{
	AUTO(plan_done) struct plan_context context = PLAN_CONTEXT_INIT;
	int discard = 0;
	const struct option_spec specs[] = {
		{ "discard", 0, OPTION_FLAG, &discard, NULL, "remove it even if it has uncommitted changes" },
		{ NULL, 0, OPTION_FLAG, NULL, NULL, NULL },
	};
	int n = cli_options(cli, specs, argc, argv, 1, 1);
	int status = n < 0 ? cli_options_status(n) : plan_open(cli, &context);

	if (n < 0 || status != HF_EXIT_DONE)
		return status;
	if (hf_plan_rm(context.plans, argv[0], discard ? HF_PLAN_RM_DISCARD : 0, &context.err) < 0)
		return cli_fail(cli, &context.err);
	if (cli->json)
		cli_print_json(hf_view_plan_removed(argv[0]));
	return HF_EXIT_DONE;
}

struct collected {
	const struct cli *cli;
	json_t *list;
	int dry_run;
};

static void show_collected(void *arg, const struct hf_plan_gc_item *item)
{
	struct collected *c = arg;
	AUTO(hf_buf_done) struct hf_buf name = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf why = HF_BUF_INIT;

	if (c->cli->json) {
		const char *last = json_string_value(json_object_get(json_array_get(c->list, json_array_size(c->list) - 1), "plan"));

		/* It could not be removed after all. */
		if (!item->removed && last && strcmp(last, item->name) == 0)
			(void)json_array_remove(c->list, json_array_size(c->list) - 1);
		if (json_array_append_new(c->list, hf_view_plan_collected(item)) < 0)
			cli_die_oom();
		return;
	}
	hf_buf_add_shown(&name, item->name, strlen(item->name));
	hf_buf_add_shown(&why, item->why, strlen(item->why));
	printf("%-7s  %-20s  %s\n", !item->removed ? "keep" : c->dry_run ? "would" : "removed", name.s, why.s);
}

static void show_swept(void *arg, const char *plan)
{
	struct hf_plan_gc_item item = { .name = plan, .removed = 1, .why = "a landing that was killed left it" };

	show_collected(arg, &item);
}

/* Plans of killed landings go first; they never hold the work of an agent. */
static int sweep(struct cli *cli, struct plan_context *context, struct collected *collected)
{
	struct hf_landings *landings = NULL;
	int r = hf_landings_open(cli->state, context->journal, context->plans, &landings, &context->err);

	if (r == 0)
		r = hf_land_sweep(landings, collected->dry_run, show_swept, collected, &context->err);
	hf_landings_free(landings);
	return r;
}

int cmd_plan_gc(struct cli *cli, int argc, char **argv)
{
	AUTO(plan_done) struct plan_context context = PLAN_CONTEXT_INIT;
	struct hf_plan_gc_opts opts = { .size = sizeof(opts), .age_ns = -1 };
	struct collected collected = { .cli = cli };
	int discard = 0;
	const struct option_spec specs[] = {
		{ "dry-run", 0, OPTION_FLAG, &collected.dry_run, NULL, "remove nothing; print what would be removed or kept, and why" },
		{ "age", 0, OPTION_DURATION, &opts.age_ns, "DUR", "keep plans that changed within DUR (24h)" },
		{ "discard", 0, OPTION_FLAG, &discard, NULL, "also remove plans with uncommitted changes, and drop the changes" },
		{ NULL, 0, OPTION_FLAG, NULL, NULL, NULL },
	};
	int n = cli_options(cli, specs, argc, argv, 0, 0);
	int status = n < 0 ? cli_options_status(n) : plan_open(cli, &context);
	int r, swept;

	if (n < 0 || status != HF_EXIT_DONE)
		return status;
	opts.flags = (collected.dry_run ? HF_PLAN_GC_DRY_RUN : 0U) | (discard ? HF_PLAN_GC_DISCARD : 0U);
	collected.list = json_array();
	swept = sweep(cli, &context, &collected);
	r = swept < 0 ? swept : hf_plan_gc(context.plans, &opts, show_collected, &collected, &context.err);
	if (r < 0) {
		json_decref(collected.list);
		return cli_fail(cli, &context.err);
	}
	if (cli->json) {
		json_t *object = json_object();

		cli_set(object, "plans", collected.list);
		cli_set(object, "removed", json_integer(r + swept));
		cli_set(object, "dry_run", json_boolean(collected.dry_run));
		cli_print_json(object);
	} else {
		json_decref(collected.list);
	}
	return HF_EXIT_DONE;
}
