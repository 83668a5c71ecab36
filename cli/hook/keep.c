/* cli/hook/keep.c - keep on, off, status: the work mode of a session. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/parse.h"
#include "hf/view/json.h"
#include "holdfast/name.h"
#include "hook/hook.h"

/* Returns the caller's own session id, or NULL. */
static const char *own_id(void)
{
	const char *session = getenv("HOLDFAST_SESSION");

	return session && session[0] ? session : hf_hook_session_id(NULL);
}

/* Returns 1 if `given` is the caller's own id or its sanitized form, which adapters store. */
static int is_own(const char *given, const char *own)
{
	char sanitized[HF_NAME_MAX + 1];
	size_t len = hf_name_sanitize(own, strlen(own), sanitized, sizeof(sanitized));

	return strcmp(given, own) == 0 || (len < sizeof(sanitized) && strcmp(given, sanitized) == 0);
}

/*
 * Chooses the session. An agent has an own id and needs --force to change another session's work mode. A person
 * at a shell has no id and must name the session.
 */
static int choose(struct cli *cli, const char *given, int force, const char **ret_id)
{
	const char *own = own_id();

	if (!given && !own)
		return cli_usage(cli, "no session: give --session ID (neither HOLDFAST_SESSION nor a client's session id is set)");
	/* Applies to a session without work mode too, so the message does not name a holder. */
	if (given && own && !is_own(given, own) && !force)
		return cli_fail_words(cli, HF_E_NOT_OWNER, HF_EXIT_REFUSED,
				      "'%s' is another session: you are in session '%s'; --force changes its work mode anyway", given, own);
	*ret_id = given ? given : own;
	return HF_EXIT_DONE;
}

static void print_switched(const struct cli *cli, const char *id, int on, int was_on)
{
	json_t *object;

	if (!cli->json)
		return;
	object = json_object();
	hf_view_set_name(&object, id);
	hf_view_set(&object, "on", json_boolean(on));
	hf_view_set(&object, "was_on", json_boolean(was_on));
	cli_print_json(object);
}

int cmd_keep_on(struct cli *cli, int argc, char **argv)
{
	struct hf_keep_opts opts = { .size = sizeof(opts) };
	const char *session = NULL, *id = NULL;
	uint64_t max = 0;
	int64_t ttl_ns = -1, until_ns = -1;
	int force = 0;
	const struct option_spec specs[] = {
		{ "goal", 0, OPTION_TEXT, &opts.goal, "TEXT", "the text that the client gets when it wants to stop" },
		{ "until", 0, OPTION_TEXT, &opts.until, "CMD", "end work mode when CMD succeeds (sh -c, in this directory)" },
		{ "until-timeout", 0, OPTION_DURATION, &until_ns, "DUR", "time limit for CMD (20s, at most 9m)" },
		{ "ttl", 0, OPTION_DURATION, &ttl_ns, "DUR", "end work mode after DUR (24h)" },
		{ "max", 0, OPTION_COUNT, &max, "N", "at most N blocks in one turn (7)" },
		{ "session", 0, OPTION_TEXT, &session, "ID", "the session (default: $HOLDFAST_SESSION, or the client's id)" },
		{ "force", 0, OPTION_FLAG, &force, NULL, "change the work mode of another session" },
		{ 0 },
	};
	AUTO(hook_close) struct hook_context context = { 0 };
	struct hf_err err = HF_ERR_INIT;
	int r, status, n = cli_options(cli, specs, argc, argv, 0, 0);

	if (n < 0)
		return cli_options_status(n);
	if (ttl_ns == 0)
		return cli_usage(cli, "--ttl must be more than 0");
	if (until_ns == 0 || until_ns > HF_KEEP_UNTIL_LONGEST_NS)
		return cli_usage(cli, "--until-timeout must be more than 0 and at most 9m: clients end a hook after 10m");
	if (until_ns > 0 && !opts.until)
		return cli_usage(cli, "--until-timeout needs --until");
	if (max > 1000)
		return cli_usage(cli, "--max must be from 1 to 1000");
	opts.ttl_ns = ttl_ns > 0 ? ttl_ns : 0;
	opts.until_ns = until_ns > 0 ? until_ns : 0;
	opts.max = (uint32_t)max;
	status = choose(cli, session, force, &id);
	if (status == HF_EXIT_DONE)
		status = hook_open(cli, 0, &context);
	if (status != HF_EXIT_DONE)
		return status;
	r = hf_keep_on(context.hooks, id, &opts, &err);
	if (r < 0)
		return cli_fail(cli, &err);
	cli_say(cli, "work mode of '%s' is on%s", id, r > 0 ? " (it was on; time and counts start again)" : "");
	print_switched(cli, id, 1, r > 0);
	return HF_EXIT_DONE;
}

int cmd_keep_off(struct cli *cli, int argc, char **argv)
{
	const char *session = NULL, *id = NULL;
	int force = 0;
	const struct option_spec specs[] = {
		{ "session", 0, OPTION_TEXT, &session, "ID", "the session (default: $HOLDFAST_SESSION, or the client's id)" },
		{ "force", 0, OPTION_FLAG, &force, NULL, "change the work mode of another session" },
		{ 0 },
	};
	AUTO(hook_close) struct hook_context context = { 0 };
	struct hf_err err = HF_ERR_INIT;
	int r, status, n = cli_options(cli, specs, argc, argv, 0, 0);

	if (n < 0)
		return cli_options_status(n);
	status = choose(cli, session, force, &id);
	if (status == HF_EXIT_DONE)
		status = hook_open(cli, 0, &context);
	if (status != HF_EXIT_DONE)
		return status;
	r = hf_keep_off(context.hooks, id, &err);
	if (r < 0)
		return cli_fail(cli, &err);
	cli_say(cli, "work mode of '%s' %s", id, r > 0 ? "is off" : "was already off");
	print_switched(cli, id, 0, r > 0);
	return r > 0 ? HF_EXIT_DONE : HF_EXIT_NO;
}

/* -- status ----------------------------------------------------------------------------- */

static json_t *json_of(const struct hf_keep_info *info)
{
	json_t *object = json_object();

	hf_view_set_name(&object, info->id);
	hf_view_set(&object, "goal", info->goal[0] ? hf_view_text(info->goal) : json_null());
	hf_view_set(&object, "until", info->until[0] ? hf_view_text(info->until) : json_null());
	hf_view_set(&object, "until_timeout_ms", info->until[0] ? hf_view_number(info->until_ns, HF_MSEC) : json_null());
	hf_view_set(&object, "cwd", hf_view_text(info->cwd));
	hf_view_set(&object, "since", hf_view_time(info->since));
	hf_view_set(&object, "left_ms", hf_view_number(info->left_ns, HF_MSEC));
	hf_view_set(&object, "max", hf_view_number(info->max, 1));
	hf_view_set(&object, "blocks", hf_view_number(info->blocks, 1));
	hf_view_set(&object, "blocks_total", hf_view_number((int64_t)info->total, 1));
	hf_view_set(&object, "tools", hf_view_number((int64_t)info->tools, 1));
	if (!object)
		cli_die_oom();
	return object;
}

static void show(void *arg, const struct hf_keep_info *info)
{
	struct cli *cli = arg;
	AUTO(hf_buf_done) struct hf_buf left = HF_BUF_INIT;

	if (cli->json) {
		cli_print_json(json_of(info));
		return;
	}
	hf_buf_add_duration(&left, info->left_ns);
	cli_print_shown(info->id);
	printf("  on, %s left, %llu blocks, %llu tool calls", left.s, (unsigned long long)info->total,
	       (unsigned long long)info->tools);
	if (info->goal[0]) {
		fputs("; goal: ", stdout);
		cli_print_shown(info->goal);
	}
	if (info->until[0]) {
		fputs("; until: ", stdout);
		cli_print_shown(info->until);
	}
	putchar('\n');
}

int cmd_keep_status(struct cli *cli, int argc, char **argv)
{
	const char *session = NULL, *own = own_id();
	int all = 0;
	const struct option_spec specs[] = {
		{ "session", 0, OPTION_TEXT, &session, "ID", "the session (default: $HOLDFAST_SESSION, the client's id, or all)" },
		{ "all", 'a', OPTION_FLAG, &all, NULL, "all sessions in work mode" },
		{ 0 },
	};
	AUTO(hook_close) struct hook_context context = { 0 };
	struct hf_err err = HF_ERR_INIT;
	const char *id;
	int r, status, n = cli_options(cli, specs, argc, argv, 0, 0);

	if (n < 0)
		return cli_options_status(n);
	status = hook_open(cli, 0, &context);
	if (status != HF_EXIT_DONE)
		return status;
	id = all ? NULL : session ? session : own;
	r = id ? hf_keep_look(context.hooks, id, show, cli, &err) : hf_keep_list(context.hooks, show, cli, &err);
	if (r < 0)
		return cli_fail(cli, &err);
	if (r == 0 && id)
		return cli_fail_words(cli, HF_E_NO_SESSION, HF_EXIT_NO, "'%s' is not in work mode", id);
	if (r == 0)
		return cli_fail_words(cli, HF_E_NO_SESSION, HF_EXIT_NO, "no session is in work mode");
	return HF_EXIT_DONE;
}
