/* cli/session_common.c - opening, and a session as JSON. */
#include <string.h>

#include "hf/base/parse.h"
#include "session.h"

int session_open(struct cli *cli, struct session_context *ret)
{
	struct hf_err err = HF_ERR_INIT;
	int status = EXIT_DONE;
	struct hf_state *state = cli_state(cli, 0, &status);

	*ret = (struct session_context){ 0 };
	if (!state)
		return status;
	/* Sessions work without their journal; that it is missing is said. */
	if (hf_journal_open(state, NULL, &ret->journal, &err) < 0) {
		cli_say(cli, "no journal: %s: %s", err.subject, err.detail);
		ret->journal = NULL;
	}
	if (hf_sessions_open(state, ret->journal, &ret->sessions, &err) < 0) {
		ret->sessions = NULL;
		return cli_fail(cli, &err);
	}
	return EXIT_DONE;
}

void session_close(struct session_context *context)
{
	hf_sessions_free(context->sessions);
	hf_journal_free(context->journal);
}

void session_add_duration(struct hf_buf *out, int64_t ns)
{
	if (ns < 0)
		hf_buf_add_char(out, '-');
	else
		hf_buf_add_duration(out, ns);
}

void session_add_size(struct hf_buf *out, int64_t bytes)
{
	if (bytes < 0)
		hf_buf_add_char(out, '-');
	else if (bytes < INT64_C(10) << 20)
		hf_buf_add_format(out, "%lldK", (long long)(bytes >> 10));
	else
		hf_buf_add_format(out, "%lldM", (long long)(bytes >> 20));
}

static json_t *known(int64_t value, int64_t unit)
{
	return value < 0 ? json_null() : json_integer(value / unit);
}

static json_t *time_json(struct hf_wall time)
{
	char text[HF_WALL_TEXT_MAX];

	if (time.ns == 0)
		return json_null();
	hf_wall_format(time, text);
	return json_string(text);
}

json_t *session_process_json(const struct hf_proc_id *id)
{
	json_t *object;
	char text[HF_PROC_TEXT_MAX];

	if (id->pid == 0)
		return json_null();
	object = json_object();
	(void)hf_proc_format(id, text);
	cli_set(object, "pid", json_integer(id->pid));
	cli_set(object, "id", json_string(text));
	return object;
}

static json_t *end_json(const struct hf_session_end *end)
{
	json_t *object;

	if (end->outcome == HF_OUTCOME_NONE)
		return json_null();
	object = json_object();
	cli_set(object, "outcome", json_string(hf_outcome_word(end->outcome)));
	cli_set(object, "exit", json_integer(end->exit_status));
	cli_set(object, "cause", cli_text(end->cause));
	cli_set(object, "ended", time_json(end->ended));
	cli_set(object, "ran_ms", known(end->ran_ns, HF_MSEC));
	return object;
}

json_t *session_json(const struct hf_session_info *info)
{
	json_t *object = json_object();
	int ended = info->outcome != HF_OUTCOME_NONE;

	cli_set(object, "name", cli_text(info->name));
	cli_set(object, "state", json_string(hf_session_word(info->state)));
	cli_set(object, "outcome", ended ? json_string(hf_outcome_word(info->outcome)) : json_null());
	cli_set(object, "exit", ended ? json_integer(info->exit_status) : json_null());
	cli_set(object, "cause", ended ? cli_text(info->cause) : json_null());
	cli_set(object, "last", end_json(&info->last));
	cli_set(object, "pid", info->pid ? json_integer(info->pid) : json_null());
	cli_set(object, "supervisor", session_process_json(&info->supervisor));
	cli_set(object, "keeper", session_process_json(&info->keeper));
	cli_set(object, "leader", session_process_json(&info->leader));
	/* Attempts count from 1: 0 is not known. */
	cli_set(object, "attempt", info->attempt ? json_integer(info->attempt) : json_null());
	cli_set(object, "failures", json_integer(info->failures));
	cli_set(object, "loop", json_boolean(info->loop));
	cli_set(object, "token", json_integer((json_int_t)info->token));
	cli_set(object, "tree", json_string(info->tree));
	cli_set(object, "command", cli_text(info->command));
	cli_set(object, "started", time_json(info->started));
	cli_set(object, "ended", time_json(info->ended));
	cli_set(object, "age_ms", known(info->age_ns, HF_MSEC));
	cli_set(object, "ran_ms", known(info->ran_ns, HF_MSEC));
	cli_set(object, "deadline_left_ms", known(info->deadline_left_ns, HF_MSEC));
	cli_set(object, "output_age_ms", known(info->output_age_ns, HF_MSEC));
	cli_set(object, "processes", known(info->processes, 1));
	cli_set(object, "memory_bytes", known(info->memory_bytes, 1));
	cli_set(object, "cpu_ms", known(info->cpu_ns, HF_MSEC));
	cli_set(object, "log_bytes", known(info->log_bytes, 1));
	cli_set(object, "log_dropped_bytes", known(info->log_dropped_bytes, 1));
	if (info->evidence[0])
		cli_set(object, "evidence", cli_text(info->evidence));
	return object;
}
