/* cli/cmd_session.c - stop, wait, reap: what is done to a session from outside. */
#include <stdio.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/view/session.h"
#include "session.h"

/* -- stop --------------------------------------------------------------------------- */

/* One word for each way a stop can go; what is no outcome of it is an error. */
static const char *stop_word(int r)
{
	switch (r) {
	case HF_STOP_STOPPED:
		return "stopped";
	case HF_STOP_KILLED:
		return "killed";
	case HF_STOP_ALREADY_GONE:
		return "already-gone";
	case HF_E_NO_SESSION:
		return "not-found";
	case HF_E_RECYCLED:
	case HF_E_UNKNOWN:
		return "identity-mismatch";
	default:
		return NULL;
	}
}

static int stop_status(int r)
{
	if (r < 0)
		return hf_err_exit_status(r);
	return r == HF_STOP_ALREADY_GONE ? HF_EXIT_NO : HF_EXIT_DONE;
}

int cmd_stop(struct cli *cli, int argc, char **argv)
{
	int64_t grace_ns = -1;
	const struct option_spec specs[] = {
		{ "grace", 0, OPTION_DURATION, &grace_ns, "DUR", "between TERM and KILL (the session's own)" },
		{ 0 },
	};
	AUTO(session_close) struct session_context context = { 0 };
	struct hf_err err = HF_ERR_INIT;
	const char *word;
	int r, status, n = cli_options(cli, specs, argc, argv, 1, 1);

	if (n < 0)
		return cli_options_status(n);
	status = session_open(cli, &context);
	if (status != HF_EXIT_DONE)
		return status;
	/* On the command line 0 means at once, and nothing means the session's own. */
	r = hf_session_stop(context.sessions, argv[0],
			    grace_ns < 0 ? 0 : grace_ns == 0 ? -1 : grace_ns, &err);
	word = stop_word(r);
	if (!word)
		return cli_fail(cli, &err);
	if (r < 0) {
		char text[HF_ERR_TEXT_MAX];

		(void)hf_err_format(&err, text, sizeof(text));
		cli_say(cli, "%s", text);
	}
	if (cli->json) {
		json_t *object = json_object();

		cli_set(object, "name", cli_text(argv[0]));
		cli_set(object, "outcome", json_string(word));
		cli_set(object, "exit", json_integer(stop_status(r)));
		cli_print_json(object);
	} else {
		puts(word);
	}
	return stop_status(r);
}

/* -- wait ---------------------------------------------------------------------------- */

struct waited {
	struct cli *cli;
	int status;
};

static void tell_end(void *arg, const struct hf_session_info *info)
{
	struct waited *waited = arg;

	cli_keep_status(waited->cli);
	waited->status = info->exit_status;
	if (info->state == HF_SESSION_DEAD_UNREAPED) {
		waited->status = HF_EXIT_AROUND;
		cli_say(waited->cli, "session '%s': its supervisor and keeper are gone; 'holdfast reap %s' "
				     "ends what they left", info->name, info->name);
	}
	if (waited->cli->json)
		cli_print_json(hf_view_session(info));
}

int cmd_wait(struct cli *cli, int argc, char **argv)
{
	struct waited waited = { .cli = cli };
	uint64_t late_status = HF_EXIT_NO;
	struct hf_wait_opts opts = { .size = sizeof(opts), .wait_ns = -1 };
	const struct option_spec specs[] = {
		{ "wait", 'w', OPTION_DURATION, &opts.wait_ns, "DUR", "at most DUR (else for ever)" },
		{ "conflict-exit-code", 'E', OPTION_COUNT, &late_status, "N", "exit status when it has not ended (1)" },
		{ 0 },
	};
	AUTO(session_close) struct session_context context = { 0 };
	struct hf_err err = HF_ERR_INIT;
	int r, status, n = cli_options(cli, specs, argc, argv, 1, 1);

	if (n < 0)
		return cli_options_status(n);
	if (late_status > 255)
		return cli_usage(cli, "-E goes from 0 to 255");
	status = session_open(cli, &context);
	if (status != HF_EXIT_DONE)
		return status;
	r = hf_session_wait(context.sessions, argv[0], &opts, tell_end, &waited, &err);
	if (r == 0)
		return waited.status;
	status = cli_fail(cli, &err);
	return r == HF_E_TIMEOUT ? (int)late_status : status;
}

/* -- reap ----------------------------------------------------------------------------- */

struct reaping {
	struct cli *cli;
	struct hf_sessions *sessions;
	json_t *list;
	int status;
};

static void reap_one(struct reaping *reaping, const char *name)
{
	struct hf_err err = HF_ERR_INIT;
	int killed = hf_session_reap(reaping->sessions, name, &err);

	if (killed < 0) {
		reaping->status = cli_fail(reaping->cli, &err);
		return;
	}
	if (reaping->cli->json) {
		json_t *object = json_object();

		cli_set(object, "name", cli_text(name));
		cli_set(object, "killed", json_integer(killed));
		if (json_array_append_new(reaping->list, object) < 0)
			cli_die_oom();
	} else {
		cli_print_shown(name);
		printf(": %d %s ended\n", killed, killed == 1 ? "process" : "processes");
	}
}

static void reap_if_dead(void *arg, const struct hf_session_info *info)
{
	if (info->state == HF_SESSION_DEAD_UNREAPED)
		reap_one(arg, info->name);
}

int cmd_reap(struct cli *cli, int argc, char **argv)
{
	struct reaping reaping = { .cli = cli, .status = HF_EXIT_DONE };
	AUTO(session_close) struct session_context context = { 0 };
	struct hf_err err = HF_ERR_INIT;
	int status, n = cli_options(cli, NULL, argc, argv, 0, 1);

	if (n < 0)
		return cli_options_status(n);
	status = session_open(cli, &context);
	if (status != HF_EXIT_DONE)
		return status;
	reaping.sessions = context.sessions;
	reaping.list = json_array();
	(void)hf_sessions_sweep(context.sessions);
	if (n > 0)
		reap_one(&reaping, argv[0]);
	else if (hf_session_list(context.sessions, reap_if_dead, &reaping, &err) < 0)
		reaping.status = cli_fail(cli, &err);
	if (cli->json && reaping.status == HF_EXIT_DONE) {
		json_t *object = json_object();

		cli_set(object, "reaped", json_incref(reaping.list));
		cli_print_json(object);
	}
	json_decref(reaping.list);
	return reaping.status;
}
