/* cli/cmd_plan_show.c - plan list and plan show. */
#include <stdio.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/parse.h"
#include "holdfast/name.h"
#include "plan.h"

struct show {
	const struct cli *cli;
	json_t *list;   /* plan list --json */
	json_t *object; /* plan show --json */
	int count;
};

static json_t *maybe_text(const char *text)
{
	return text[0] ? cli_text(text) : json_null();
}

static json_t *three_valued(int value)
{
	return value < 0 ? json_null() : json_boolean(value);
}

static void set_name(json_t *object, const char *name)
{
	char key[HF_NAME_KEY_MAX];

	cli_set(object, "name", cli_text(name));
	if (hf_name_key(name, strlen(name), key, NULL) > 0)
		cli_set(object, "key", json_string(key));
}

static json_t *sandbox_json(const struct hf_sandbox_info *s)
{
	json_t *object = json_object();

	set_name(object, s->name);
	cli_set(object, "target", cli_text(s->target));
	cli_set(object, "path", cli_text(s->path));
	cli_set(object, "strategy", json_string(hf_strategy_word(s->strategy)));
	cli_set(object, "why", maybe_text(s->why));
	cli_set(object, "since", plan_time(s->since));
	cli_set(object, "dirty", three_valued(s->dirty));
	cli_set(object, "in_use", json_boolean(s->in_use));
	cli_set(object, "settled", json_boolean(s->settled));
	return object;
}

static json_t *plan_json(const struct hf_plan_info *info)
{
	json_t *object = json_object();
	json_t *sandboxes = json_array();

	set_name(object, info->name);
	cli_set(object, "state", json_string(hf_plan_state_word(info->state)));
	cli_set(object, "reason", maybe_text(info->reason));
	cli_set(object, "session", maybe_text(info->session));
	cli_set(object, "token", json_integer((json_int_t)info->token));
	cli_set(object, "created", plan_time(info->created));
	cli_set(object, "changed", plan_time(info->changed));
	cli_set(object, "dirty", three_valued(info->dirty));
	cli_set(object, "in_use", json_boolean(info->in_use));
	for (size_t i = 0; i < info->n_sandboxes; i++)
		if (json_array_append_new(sandboxes, sandbox_json(&info->sandboxes[i])) < 0)
			cli_die_oom();
	cli_set(object, "sandboxes", sandboxes);
	return object;
}

static const char *colour_of(enum hf_plan_state state)
{
	return state == HF_PLAN_ERRORED	    ? "31" :
	       state == HF_PLAN_COMMITTED ? "32" :
	       state == HF_PLAN_ACTIVE || state == HF_PLAN_PREPARED ? "33" :
								      "0";
}

static const char *work_word(int dirty)
{
	return dirty < 0 ? "unknown" : dirty ? "dirty" : "clean";
}

static void add_age(struct hf_buf *out, struct hf_wall since)
{
	int64_t age = hf_wall_now().ns - since.ns;

	hf_buf_add_duration(out, age < 0 ? 0 : age);
}

static void print_row(void *arg, const struct hf_plan_info *info)
{
	struct show *show = arg;
	AUTO(hf_buf_done) struct hf_buf name = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf age = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf rest = HF_BUF_INIT;

	if (show->cli->json) {
		if (json_array_append_new(show->list, plan_json(info)) < 0)
			cli_die_oom();
		return;
	}
	if (show->count++ == 0)
		printf("%-20s  %-11s  %7s  %-7s  %-6s  %s\n", "PLAN", "STATE", "AGE", "WORK", "IN USE",
		       "SANDBOXES");
	hf_buf_add_shown(&name, info->name, strlen(info->name));
	add_age(&age, info->created);
	for (size_t i = 0; i < info->n_sandboxes; i++) {
		const struct hf_sandbox_info *s = &info->sandboxes[i];

		hf_buf_add_text(&rest, i ? ", " : "");
		hf_buf_add_shown(&rest, s->name, strlen(s->name));
		hf_buf_add_format(&rest, " (%s)", hf_strategy_word(s->strategy));
	}
	if (info->session[0]) {
		hf_buf_add_text(&rest, "  session ");
		hf_buf_add_shown(&rest, info->session, strlen(info->session));
	}
	if (info->reason[0]) {
		hf_buf_add_text(&rest, "  ");
		hf_buf_add_shown(&rest, info->reason, strlen(info->reason));
	}
	printf("%-20s  ", name.s);
	cli_colour(show->cli, colour_of(info->state));
	printf("%-11s", hf_plan_state_word(info->state));
	cli_colour(show->cli, NULL);
	printf("  %7s  %-7s  %-6s  %s\n", age.s, work_word(info->dirty), info->in_use ? "yes" : "no",
	       rest.s);
}

static void print_line(const char *label, const char *text)
{
	AUTO(hf_buf_done) struct hf_buf shown = HF_BUF_INIT;

	hf_buf_add_shown(&shown, text, strlen(text));
	printf("    %-9s %s\n", label, shown.s);
}

static void print_plan(void *arg, const struct hf_plan_info *info)
{
	struct show *show = arg;
	AUTO(hf_buf_done) struct hf_buf name = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf age = HF_BUF_INIT;

	if (show->cli->json) {
		show->object = plan_json(info);
		return;
	}
	hf_buf_add_shown(&name, info->name, strlen(info->name));
	add_age(&age, info->created);
	printf("plan %s: ", name.s);
	cli_colour(show->cli, colour_of(info->state));
	fputs(hf_plan_state_word(info->state), stdout);
	cli_colour(show->cli, NULL);
	printf(", %s, %s, made %s ago\n", work_word(info->dirty), info->in_use ? "in use" : "not in use",
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
		       work_word(s->dirty), s->settled ? "" : ", not settled");
		print_line("target", s->target);
		if (strcmp(s->path, s->target) != 0)
			print_line("work in", s->path);
		if (s->why[0])
			print_line("why", s->why);
	}
}

int cmd_plan_list(struct cli *cli, int argc, char **argv)
{
	AUTO(plan_done) struct plan_context context = PLAN_CONTEXT_INIT;
	struct show show = { .cli = cli };
	int n = cli_options(cli, NULL, argc, argv, 0, 0);
	int status = n < 0 ? cli_options_status(n) : plan_open(cli, &context);
	json_t *object;
	int r;

	if (n < 0 || status != EXIT_DONE)
		return status;
	show.list = json_array();
	r = hf_plan_list(context.plans, print_row, &show, &context.err);
	if (!cli->json) {
		json_decref(show.list);
		return r < 0 ? cli_fail(cli, &context.err) : EXIT_DONE;
	}
	object = json_object();
	cli_set(object, "plans", show.list);
	if (r < 0)
		return cli_fail_beside(cli, &context.err, object);
	cli_print_json(object);
	return EXIT_DONE;
}

int cmd_plan_show(struct cli *cli, int argc, char **argv)
{
	AUTO(plan_done) struct plan_context context = PLAN_CONTEXT_INIT;
	struct show show = { .cli = cli };
	int n = cli_options(cli, NULL, argc, argv, 1, 1);
	int status = n < 0 ? cli_options_status(n) : plan_open(cli, &context);

	if (n < 0 || status != EXIT_DONE)
		return status;
	if (hf_plan_look(context.plans, argv[0], print_plan, &show, &context.err) < 0)
		return cli_fail(cli, &context.err);
	if (cli->json)
		cli_print_json(show.object);
	return EXIT_DONE;
}
