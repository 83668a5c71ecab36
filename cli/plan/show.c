/* cli/plan/show.c - plan list and plan show. */
#include <stdio.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/view/plan/plan.h"
#include "plan/plan.h"
#include "screen/table.h"

struct show {
	const struct cli *cli;
	json_t *list;   /* plan list --json */
	json_t *object; /* plan show --json */
	struct table table;
};

static void list_one(void *arg, const struct hf_plan_info *info)
{
	struct show *show = arg;
	struct table_row *row;

	if (show->cli->json) {
		if (json_array_append_new(show->list, hf_view_plan(info)) < 0)
			cli_die_oom();
		return;
	}
	row = table_row_new();
	row->tone = hf_view_plan_tone(info->state);
	hf_view_plan_cells(info, row->cells, &row->note);
	table_add(&show->table, row);
}

static void print_line(const char *label, const char *text)
{
	AUTO(hf_buf_done) struct hf_buf shown = HF_BUF_INIT;

	hf_buf_add_shown(&shown, text, strlen(text));
	printf("    %-9s %s\n", label, shown.s);
}

/* Prints the size of the change. */
static void print_size(const char *plan, const struct hf_sandbox_info *s)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;

	if (s->files < 0) {
		hf_buf_add_format(&text, "not counted; see 'holdfast plan diff --stat %s'", cli_word(plan));
	} else {
		hf_buf_add_format(&text, "%lld file%s, %lld bytes", (long long)s->files, s->files == 1 ? "" : "s",
				  (long long)s->bytes);
	}
	print_line("change", text.s);
}

static void print_plan(void *arg, const struct hf_plan_info *info)
{
	struct show *show = arg;
	AUTO(hf_buf_done) struct hf_buf name = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf age = HF_BUF_INIT;

	if (show->cli->json) {
		show->object = hf_view_plan(info);
		if (!show->object)
			cli_die_oom();
		return;
	}
	hf_buf_add_shown(&name, info->name, strlen(info->name));
	hf_view_duration(&age, hf_wall_now().ns - info->created.ns);
	printf("plan %s: ", name.s);
	cli_tone(show->cli, hf_view_plan_tone(info->state));
	fputs(hf_plan_state_word(info->state), stdout);
	cli_colour(show->cli, NULL);
	printf(", %s, %s, made %s ago\n", hf_view_work(info->dirty), info->in_use ? "in use" : "not in use",
	       age.s);
	if (info->reason[0])
		print_line("reason", info->reason);
	if (info->session[0])
		print_line("session", info->session);
	for (size_t i = 0; i < info->n_sandboxes; i++) {
		const struct hf_sandbox_info *s = &info->sandboxes[i];
		AUTO(hf_buf_done) struct hf_buf sandbox = HF_BUF_INIT;

		hf_buf_add_shown(&sandbox, s->name, strlen(s->name));
		printf("  sandbox %s: %s, %s%s\n", sandbox.s, hf_strategy_word(s->strategy),
		       hf_view_work(s->dirty), s->settled ? "" : ", not settled");
		print_line("target", s->target);
		if (strcmp(s->path, s->target) != 0)
			print_line("work in", s->path);
		if (s->why[0])
			print_line("why", s->why);
		if (s->dirty)
			print_size(info->name, s);
	}
}

int cmd_plan_list(struct cli *cli, int argc, char **argv)
{
	AUTO(plan_done) struct plan_context context = PLAN_CONTEXT_INIT;
	static const int shown[HF_VIEW_PLAN_COLUMNS] = { 0, 1, 2, 3, 4, 5, 6 };
	struct show show = { .cli = cli,
			     .table = { .columns = hf_view_plan_columns, .shown = shown, .n_shown = HF_VIEW_PLAN_COLUMNS,
					.toned = HF_VIEW_PLAN_STATE } };
	const struct option_spec specs[] = {
		{ "no-trunc", 0, OPTION_FLAG, &show.table.no_cut, NULL, "do not cut lines at the width of the screen" },
		{ 0 },
	};
	int n = cli_options(cli, specs, argc, argv, 0, 0);
	int status = n < 0 ? cli_options_status(n) : plan_open(cli, &context);
	json_t *object;
	int r;

	if (n < 0 || status != HF_EXIT_DONE)
		return status;
	show.list = json_array();
	r = hf_plan_list(context.plans, list_one, &show, &context.err);
	if (!cli->json) {
		json_decref(show.list);
		if (show.table.n)
			table_print(cli, &show.table, 0, "");
		table_done(&show.table);
		return r < 0 ? cli_fail(cli, &context.err) : HF_EXIT_DONE;
	}
	object = json_object();
	cli_set(object, "plans", show.list);
	if (r < 0)
		return cli_fail_beside(cli, &context.err, object);
	cli_print_json(object);
	return HF_EXIT_DONE;
}

int cmd_plan_show(struct cli *cli, int argc, char **argv)
{
	AUTO(plan_done) struct plan_context context = PLAN_CONTEXT_INIT;
	struct show show = { .cli = cli };
	int n = cli_options(cli, NULL, argc, argv, 1, 1);
	int status = n < 0 ? cli_options_status(n) : plan_open(cli, &context);

	if (n < 0 || status != HF_EXIT_DONE)
		return status;
	if (hf_plan_look(context.plans, argv[0], print_plan, &show, &context.err) < 0)
		return cli_fail(cli, &context.err);
	if (cli->json)
		cli_print_json(show.object);
	return HF_EXIT_DONE;
}
