/* cli/session/fleet/elsewhere.c - ps, status, wait and stop of sessions on other machines of the store. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/view/session/fleet.h"
#include "hf/view/session/session.h"
#include "screen/table.h"
#include "session/fleet/elsewhere.h"

#define RECENT_NS (INT64_C(86400) * HF_SEC)

/* How long to wait for the end after a request: the session's grace period, and two passes through the store. */
#define STOP_NS (60 * HF_SEC)

void elsewhere_done(struct elsewhere *e)
{
	lock_close(&e->store);
	e->store = (struct lock_context){ 0 };
}

struct here {
	uint64_t token;
	int runs;
};

static void note_here(void *arg, const struct hf_session_info *info)
{
	struct here *here = arg;

	here->token = info->token;
	here->runs = info->outcome == HF_OUTCOME_NONE;
}

int elsewhere_find(struct cli *cli, struct session_context *context, const char *name, struct elsewhere *ret, struct hf_err *err)
{
	struct here here = { 0 };
	int r;

	if (!cli_store(cli))
		return 0;
	(void)!hf_session_look(context->sessions, name, note_here, &here, NULL);
	if (here.runs)
		return 0;
	r = hf_locks_open_store(cli_store(cli), cli->state, NULL, &ret->store.locks, err);
	if (r == 0)
		r = hf_fleet_look(ret->store.locks, name, &ret->session, err);
	if (r == 0)
		return ret->session.token > here.token;
	return r == HF_E_NO_SESSION ? 0 : -1;
}

static int fail(struct cli *cli, int r, const struct hf_err *err, int late_status)
{
	int status = cli_fail(cli, err);

	return r == HF_E_TIMEOUT ? late_status : status;
}

static void say_unknown(struct cli *cli, const struct hf_fleet_session *session)
{
	cli_say(cli, "session '%s': its lease expired before %s reported an outcome; check that host", session->name, session->host);
}

int elsewhere_stop(struct cli *cli, struct elsewhere *e, int64_t grace_ns, int several)
{
	struct hf_fleet_session *session = &e->session;
	int64_t limit = STOP_NS + (grace_ns > 0 ? grace_ns : 0);
	struct hf_err err = HF_ERR_INIT;
	const char *word = "already-gone";
	int status = HF_EXIT_NO, r = HF_E_STALE;

	if (session->outcome == HF_OUTCOME_NONE && session->state != HF_SESSION_DEAD_UNREAPED) {
		r = hf_fleet_stop(e->store.locks, session, grace_ns, &err);
		if (r == 0)
			cli_say(cli, "asked %s to stop it", session->host);
		if (r == 0)
			r = hf_fleet_wait(e->store.locks, session, limit, &err);
		if (r < 0 && r != HF_E_STALE)
			return fail(cli, r, &err, HF_EXIT_NO);
	}
	if (r == 0 && session->outcome == HF_OUTCOME_STOPPED) {
		word = "stopped";
		status = HF_EXIT_DONE;
	}
	if (session->state == HF_SESSION_DEAD_UNREAPED)
		say_unknown(cli, session);
	if (cli->json) {
		json_t *object = json_object();

		cli_set(object, "name", cli_text(session->name));
		cli_set(object, "host", cli_text(session->host));
		cli_set(object, "outcome", json_string(word));
		cli_set(object, "exit", json_integer(status));
		cli_print_json(object);
		return status;
	}
	if (several) {
		cli_print_shown(session->name);
		fputs(": ", stdout);
	}
	puts(word);
	return status;
}

int elsewhere_wait(struct cli *cli, struct elsewhere *e, int64_t wait_ns, int late_status)
{
	struct hf_fleet_session *session = &e->session;
	struct hf_err err = HF_ERR_INIT;
	int r = hf_fleet_wait(e->store.locks, session, wait_ns, &err);

	if (r < 0)
		return fail(cli, r, &err, late_status);
	cli_keep_status(cli);
	if (cli->json)
		cli_print_json(hf_view_fleet_session(session));
	if (session->state == HF_SESSION_DEAD_UNREAPED) {
		say_unknown(cli, session);
		return HF_EXIT_AROUND;
	}
	return session->exit_status;
}

int elsewhere_status(struct cli *cli, struct elsewhere *e)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	const struct hf_fleet_session *session = &e->session;

	if (cli->json) {
		cli_print_json(hf_view_fleet_session(session));
		return HF_EXIT_DONE;
	}
	hf_buf_add_shown(&out, session->name, strlen(session->name));
	hf_buf_add_text(&out, ": ");
	hf_view_fleet_line(&out, session);
	hf_buf_add_format(&out, "\n  %-10s ", "command");
	hf_buf_add_shown(&out, session->command, strlen(session->command));
	hf_buf_add_format(&out, "\n  %-10s %llu\n  %-10s record, log and files are on ", "token", (unsigned long long)session->token, "");
	hf_buf_add_shown(&out, session->host, strlen(session->host));
	hf_buf_add_char(&out, '\n');
	if (out.err)
		cli_die_oom();
	(void)fwrite(out.s, 1, out.len, stdout);
	return HF_EXIT_DONE;
}

int elsewhere_log(struct cli *cli, struct session_context *context, const char *name)
{
	AUTO(elsewhere_done) struct elsewhere e = { 0 };

	if (elsewhere_find(cli, context, name, &e, NULL) != 1)
		return HF_EXIT_DONE;
	cli_say(cli, "the log of session '%s' is on %s: run 'holdfast logs %s' there", name, e.session.host, cli_word(name));
	return HF_EXIT_NO;
}

void elsewhere_why(struct cli *cli, struct hf_locks *locks, const char *name, json_t *object)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_fleet_session session;

	if (!cli_store(cli) || hf_fleet_look(locks, name, &session, NULL) < 0)
		return;
	if (object) {
		cli_set(object, "session", hf_view_fleet_session(&session));
		return;
	}
	hf_buf_add_text(&out, "  session: ");
	hf_view_fleet_line(&out, &session);
	if (out.err)
		cli_die_oom();
	puts(out.s);
}

/* -- ps --all-hosts ------------------------------------------------------------------------ */

struct list {
	struct cli *cli;
	int all;
	char **names;
	int n;
	struct table table;
	json_t *json;
};

static int is_wanted(const struct list *list, const struct hf_fleet_session *session)
{
	for (int i = 0; i < list->n; i++)
		if (strcmp(list->names[i], session->name) == 0)
			return 1;
	return list->n == 0 && (list->all || session->outcome == HF_OUTCOME_NONE || hf_wall_now().ns - session->ended.ns < RECENT_NS);
}

static void note(void *arg, const struct hf_fleet_session *session)
{
	struct list *list = arg;
	struct table_row *row;

	if (!is_wanted(list, session))
		return;
	if (list->cli->json) {
		if (json_array_append_new(list->json, hf_view_fleet_session(session)) < 0)
			cli_die_oom();
		return;
	}
	row = table_row_new();
	row->tone = hf_view_session_tone(session->state);
	hf_view_fleet_cells(session, row->cells);
	table_add(&list->table, row);
}

int elsewhere_list(struct cli *cli, int all, int no_cut, char **names, int n)
{
	static const int shown[] = { HF_FLEET_COLUMN_NAME, HF_FLEET_COLUMN_HOST, HF_FLEET_COLUMN_STATE, HF_FLEET_COLUMN_AGE,
				     HF_FLEET_COLUMN_PID,  HF_FLEET_COLUMN_TRY,  HF_FLEET_COLUMN_COMMAND };
	struct list list = { .cli = cli, .all = all, .names = names, .n = n, .json = json_array(),
			     .table = { .columns = hf_view_fleet_columns, .shown = shown, .n_shown = HF_VIEW_FLEET_COLUMNS,
					.toned = HF_FLEET_COLUMN_STATE, .no_cut = no_cut } };
	AUTO(lock_close) struct lock_context store = { 0 };
	struct hf_err err = HF_ERR_INIT;
	int status;

	if (!cli_store(cli))
		status = cli_usage(cli, "--all-hosts needs a store: --store URL or HOLDFAST_STORE");
	else
		status = lock_open(cli, &store);
	if (status == HF_EXIT_DONE && hf_fleet_list(store.locks, note, &list, &err) < 0)
		status = cli_fail(cli, &err);
	if (status == HF_EXIT_DONE && cli->json) {
		json_t *object = json_object();

		cli_set(object, "sessions", json_incref(list.json));
		cli_print_json(object);
	} else if (status == HF_EXIT_DONE && list.table.n > 0) {
		table_print(cli, &list.table, 0, "");
	} else if (status == HF_EXIT_DONE) {
		cli_say(cli, "no session in the store is running or ended within a day");
	}
	table_done(&list.table);
	json_decref(list.json);
	return status;
}
