/* cli/session/session.c - stop, kill, wait, reap, seen. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/view/session/session.h"
#include "session/fleet/elsewhere.h"
#include "session/session.h"

/* -- stop --------------------------------------------------------------------------- */

/* Returns a word for each outcome of a stop; NULL for an error. */
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

struct stopping {
	int64_t grace_ns; /* 0: kill at once; -1: the session's grace period */
	uint64_t token;   /* stop only this run; 0: any */
	int several;
};

/* Stops one session and prints the outcome; with its name if there are several. */
static int stop_one(struct cli *cli, struct session_context *context, const char *name, const struct stopping *how)
{
	struct hf_err err = HF_ERR_INIT;
	int64_t grace_ns = how->grace_ns < 0 ? 0 : how->grace_ns == 0 ? -1 : how->grace_ns;
	AUTO(elsewhere_done) struct elsewhere elsewhere = { 0 };
	const char *word;
	int r = elsewhere_find(cli, context, name, &elsewhere, &err);

	if (r < 0)
		return cli_fail(cli, &err);
	if (r == 1 && (how->token == 0 || how->token == elsewhere.session.token))
		return elsewhere_stop(cli, &elsewhere, grace_ns, how->several);
	r = hf_session_stop_run(context->sessions, name, how->token, grace_ns, &err);
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

		cli_set(object, "name", cli_text(name));
		cli_set(object, "outcome", json_string(word));
		cli_set(object, "exit", json_integer(stop_status(r)));
		cli_print_json(object);
	} else {
		if (how->several) {
			cli_print_shown(name);
			fputs(": ", stdout);
		}
		puts(word);
	}
	return stop_status(r);
}

struct names {
	char **list;
	int n;
};

static void names_done(struct names *names)
{
	for (int i = 0; i < names->n; i++)
		free(names->list[i]);
	free(names->list);
}

static void note_running(void *arg, const struct hf_session_info *info)
{
	struct names *names = arg;
	char **grown;

	if (info->outcome != HF_OUTCOME_NONE)
		return;
	grown = reallocarray(names->list, (size_t)names->n + 1, sizeof(*grown));
	if (!grown)
		cli_die_oom();
	names->list = grown;
	grown[names->n] = strdup(info->name);
	if (!grown[names->n++])
		cli_die_oom();
}

/* Stops all sessions but our own: a session that stopped itself could not stop the rest. */
static int stop_all(struct cli *cli, struct session_context *context, const struct stopping *how)
{
	AUTO(names_done) struct names names = { 0 };
	const char *own = getenv("HOLDFAST_SESSION");
	struct hf_err err = HF_ERR_INIT;
	int status = HF_EXIT_DONE;

	if (hf_session_list_recent(context->sessions, 0, note_running, &names, &err) < 0)
		return cli_fail(cli, &err);
	if (names.n == 0)
		cli_say(cli, "no session is running");
	for (int i = 0; i < names.n; i++) {
		int one = HF_EXIT_DONE;

		if (own && strcmp(own, names.list[i]) == 0)
			cli_say(cli, "session '%s' runs this command and is not stopped", own);
		else
			one = stop_one(cli, context, names.list[i], how);
		/* A session that has ended in the meantime counts as stopped. */
		if (one > status && one != HF_EXIT_NO)
			status = one;
	}
	return status;
}

static int stop(struct cli *cli, int argc, char **argv, int64_t grace_ns, int has_grace)
{
	struct stopping how = { .grace_ns = grace_ns };
	int all = 0;
	const struct option_spec specs[] = {
		{ "all", 'a', OPTION_FLAG, &all, NULL, "all running sessions except the one that runs this command" },
		SESSION_TOKEN_SPEC(how.token),
		{ has_grace ? "grace" : NULL, 0, OPTION_DURATION, &how.grace_ns, "DUR", "time between TERM and KILL (default: the session's)" },
		{ 0 },
	};
	AUTO(session_close) struct session_context context = { 0 };
	int status, n = cli_options(cli, specs, argc, argv, 0, INT_MAX - 1);

	if (n < 0)
		return cli_options_status(n);
	if ((n == 0) != (all == 1))
		return cli_usage(cli, all ? "--all cannot be combined with a NAME" : "missing argument");
	if (how.token && n != 1)
		return cli_usage(cli, "--token needs exactly one NAME");
	status = session_open(cli, &context);
	if (status != HF_EXIT_DONE)
		return status;
	how.several = all || n > 1;
	if (all)
		return stop_all(cli, &context, &how);
	for (int i = 0; i < n; i++) {
		int one = stop_one(cli, &context, argv[i], &how);

		if (one > status)
			status = one;
	}
	return status;
}

int cmd_stop(struct cli *cli, int argc, char **argv)
{
	return stop(cli, argc, argv, -1, 1);
}

int cmd_kill(struct cli *cli, int argc, char **argv)
{
	return stop(cli, argc, argv, 0, 0);
}

/* -- wait ---------------------------------------------------------------------------- */

struct waited {
	struct cli *cli;
	int status;
};

static void report_end(void *arg, const struct hf_session_info *info)
{
	struct waited *waited = arg;

	cli_keep_status(waited->cli);
	waited->status = info->exit_status;
	if (info->state == HF_SESSION_DEAD_UNREAPED) {
		waited->status = HF_EXIT_AROUND;
		cli_say(waited->cli, "session '%s': its supervisor and keeper died; 'holdfast reap %s' "
				     "ends the processes they left", info->name, cli_word(info->name));
	}
	if (waited->cli->json)
		cli_print_json(hf_view_session(info, NULL));
}

/* Waits for all names, within one time limit. The exit status is the first status that is not 0, in the order of the names. */
int cmd_wait(struct cli *cli, int argc, char **argv)
{
	struct waited waited = { .cli = cli };
	uint64_t late_status = HF_EXIT_NO;
	int64_t wait_ns = -1;
	const struct option_spec specs[] = {
		{ "wait", 'w', OPTION_DURATION, &wait_ns, "DUR", "wait at most DUR (default: no limit)" },
		{ "conflict-exit-code", 'E', OPTION_COUNT, &late_status, "N", "exit status if it has not ended by then (1)" },
		{ 0 },
	};
	AUTO(session_close) struct session_context context = { 0 };
	int status, first = HF_EXIT_DONE, n = cli_options(cli, specs, argc, argv, 1, INT_MAX - 1);
	struct hf_mono until;

	if (n < 0)
		return cli_options_status(n);
	if (late_status > 255)
		return cli_usage(cli, "-E must be from 0 to 255");
	status = session_open(cli, &context);
	if (status != HF_EXIT_DONE)
		return status;
	until = hf_mono_in(wait_ns);
	for (int i = 0; i < n; i++) {
		struct hf_wait_opts opts = { .size = sizeof(opts), .wait_ns = wait_ns < 0 || i == 0 ? wait_ns : hf_mono_left(until) };
		AUTO(elsewhere_done) struct elsewhere elsewhere = { 0 };
		struct hf_err err = HF_ERR_INIT;
		int r = elsewhere_find(cli, &context, argv[i], &elsewhere, &err);

		if (r < 0)
			status = cli_fail(cli, &err);
		if (r == 1)
			status = elsewhere_wait(cli, &elsewhere, opts.wait_ns, (int)late_status);
		if (r == 0) {
			r = hf_session_wait(context.sessions, argv[i], &opts, report_end, &waited, &err);
			status = r == 0 ? waited.status : cli_fail(cli, &err);
			if (r == HF_E_TIMEOUT)
				status = (int)late_status;
		}
		if (first == HF_EXIT_DONE)
			first = status;
	}
	return first;
}

/* -- reap ----------------------------------------------------------------------------- */

struct reaping {
	struct cli *cli;
	struct hf_sessions *sessions;
	json_t *list;
	uint64_t token; /* reap only this run; 0: any */
	int status;
};

static void reap_one(struct reaping *reaping, const char *name)
{
	struct hf_err err = HF_ERR_INIT;
	int killed = hf_session_reap_run(reaping->sessions, name, reaping->token, &err);

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
	const struct option_spec specs[] = { SESSION_TOKEN_SPEC(reaping.token), { 0 } };
	AUTO(session_close) struct session_context context = { 0 };
	struct hf_err err = HF_ERR_INIT;
	int status, n = cli_options(cli, specs, argc, argv, 0, 1);

	if (n < 0)
		return cli_options_status(n);
	if (reaping.token && n == 0)
		return cli_usage(cli, "--token needs the NAME of a session");
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

/* -- seen ----------------------------------------------------------------------------- */

int cmd_seen(struct cli *cli, int argc, char **argv)
{
	return session_each_named(cli, argc, argv, "seen", hf_session_set_seen);
}
