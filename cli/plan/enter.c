/* cli/plan/enter.c - plan enter, and the plan that it makes with --in. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "hf/base/cleanup.h"
#include "holdfast/name.h"
#include "plan/plan.h"

#define LEAF_MAX 64 /* bytes of a directory's name that become the sandbox's name */

struct entry {
	struct cli *cli;
	struct plan_context *context;
	const char *plan;
	char **dirs;     /* of --in; NULL: the plan exists */
	int is_tried;    /* overlay does not work here: test each strategy before its use */
	struct hf_plan_enter_opts opts;
};

static void say_entered(void *arg, const struct hf_plan_entered *entered)
{
	const struct entry *entry = arg;
	const struct cli *cli = entry->cli;

	if (entered->flags & HF_ENTERED_ELSEWHERE)
		cli_say(cli, "some sandboxes are not at their targets' paths; see 'holdfast plan show %s'", cli_word(entry->plan));
	if (entered->flags & HF_ENTERED_ROOT)
		cli_say(cli, "no user namespace (%s): isolated only by a mount namespace", entered->why);
	if (entered->flags & HF_ENTERED_NO_RENAME && entered->why[0])
		cli_say(cli, "renaming a target's directories fails with EXDEV in the sandbox: %s", entered->why);
}

/* Makes a sandbox's name from the last part of its path. The second and further names get a number, so that names differ. */
static void sandbox_name(char *const *dirs, size_t i, char out[HF_NAME_MAX + 1])
{
	AUTO_FREE char *path = realpath(dirs[i], NULL);
	const char *slash = path ? strrchr(path, '/') : NULL, *leaf = slash ? slash + 1 : "";
	size_t at = hf_name_sanitize(leaf, strlen(leaf), out, LEAF_MAX);

	if (at >= LEAF_MAX)
		at = LEAF_MAX - 1;
	if (i > 0)
		(void)snprintf(out + at, HF_NAME_MAX + 1 - at, "-%zu", i + 1);
}

static int add(struct entry *entry, size_t i)
{
	struct hf_plan_add_opts opts = { .size = sizeof(opts), .flags = entry->is_tried ? 0 : HF_PLAN_ADD_UNTRIED };
	struct hf_plan_added added = { 0 };
	char name[HF_NAME_MAX + 1];
	int r;

	sandbox_name(entry->dirs, i, name);
	r = hf_plan_add(entry->context->plans, entry->plan, name, entry->dirs[i], &opts, &added, &entry->context->err);
	if (r == 0 && !added.same_path)
		cli_say(entry->cli, "sandbox '%s': %s; %s", name, hf_strategy_word(added.strategy), added.why);
	return r;
}

/* Makes the plan. After an error it does not exist. */
static int make(struct entry *entry)
{
	const char *session = getenv("HOLDFAST_SESSION");
	struct hf_plan_new_opts opts = { .size = sizeof(opts), .session = session && session[0] ? session : NULL };
	struct hf_err *err = &entry->context->err;
	int r = hf_plan_new(entry->context->plans, entry->plan, &opts, err);

	if (r == HF_E_PLAN_STATE) {
		size_t len = strlen(err->detail);

		(void)snprintf(err->detail + len, sizeof(err->detail) - len, "; --in needs a new plan");
	}
	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && entry->dirs[i]; i++)
		r = add(entry, i);
	if (r < 0)
		(void)!hf_plan_rm(entry->context->plans, entry->plan, 0, NULL);
	return r;
}

/* Makes the plan, if necessary, and runs the command. Removes the new plan if the command cannot be started. */
static int enter(struct entry *entry, struct hf_plan_entered *ret)
{
	int r = entry->dirs ? make(entry) : 0;

	if (r < 0)
		return r;
	r = hf_plan_enter(entry->context->plans, entry->plan, &entry->opts, ret, &entry->context->err);
	if (r == 0 || !entry->dirs)
		return r;
	(void)!hf_plan_rm(entry->context->plans, entry->plan, 0, NULL);
	if (r != HF_E_NO_OVERLAY || entry->is_tried)
		return r;
	entry->is_tried = 1;
	return enter(entry, ret);
}

int cmd_plan_enter(struct cli *cli, int argc, char **argv)
{
	AUTO(plan_done) struct plan_context context = PLAN_CONTEXT_INIT;
	struct entry entry = { .cli = cli, .context = &context, .opts = { .size = sizeof(entry.opts), .wait_ns = HF_SEC } };
	struct hf_plan_entered entered = { 0 };
	int no_rename = 0;
	const struct option_spec specs[] = {
		{ "in", 0, OPTION_LIST, &entry.dirs, "DIR", "make the plan with a sandbox over DIR" },
		{ "no-rename-helper", 0, OPTION_FLAG, &no_rename, NULL, "run without the helper that renames directories" },
		{ "wait", 'w', OPTION_DURATION, &entry.opts.wait_ns, "DUR", "wait for another process that uses the plan (1s)" },
		{ NULL, 0, OPTION_FLAG, NULL, NULL, NULL },
	};
	int n = cli_options(cli, specs, argc, argv, 2, OPTIONS_THEN_COMMAND);
	AUTO_FREE char **dirs = entry.dirs;
	int status;

	if (n < 0)
		return cli_options_status(n);
	argv[n] = NULL; /* n <= argc, so argv has room */
	cli->around = 1;
	entry.plan = argv[0];
	entry.opts.argv = argv + 1;
	entry.opts.started = say_entered;
	entry.opts.arg = &entry;
	entry.opts.flags = no_rename ? HF_PLAN_ENTER_NO_RENAME : 0;
	status = plan_open(cli, &context);
	if (status != HF_EXIT_DONE)
		return command_status_around(status);
	(void)fflush(stdout);
	if (enter(&entry, &entered) < 0)
		return cli_fail(cli, &context.err);
	if (entered.exec_error)
		(void)command_not_executed(cli, argv[1], -entered.exec_error);
	if (entered.flags & HF_ENTERED_LEFT)
		cli_say(cli, "processes of the command still run in the sandbox; it settles when they end");
	return entered.exit_status;
}
