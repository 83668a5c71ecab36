/* cli/session/status.c - status: describes a session; without a name, all sessions that need a person. */
#include <stdio.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/view/session/session.h"
#include "session/fleet/elsewhere.h"
#include "session/session.h"

struct status {
	struct cli *cli;
	struct hf_facts *facts;
	int only_needing;
	json_t *list; /* with --json and without names */
	size_t shown;
};

/* -- lines ---------------------------------------------------------------------------- */

/* Begins a line: "  word       ". */
static void begin(struct hf_buf *out, const char *word)
{
	hf_buf_add_format(out, "  %-10s ", word);
}

static void add_shown_line(struct hf_buf *out, const char *word, const char *text)
{
	begin(out, word);
	hf_buf_add_shown(out, text, strlen(text));
	hf_buf_add_char(out, '\n');
}

static void add_head(struct hf_buf *out, const struct hf_session_info *info, const struct hf_view_facts *facts)
{
	int ended = info->outcome != HF_OUTCOME_NONE;

	hf_buf_add_shown(out, info->name, strlen(info->name));
	hf_buf_add_format(out, ": %s", ended ? hf_outcome_word(info->outcome) : hf_session_word(info->state));
	if (info->state == HF_SESSION_QUEUED && facts->wait.is_known)
		hf_buf_add_format(out, " (place %zu of %zu)", facts->wait.place, facts->wait.of);
	if (ended && info->ended.ns > 0) {
		hf_buf_add_char(out, ' ');
		hf_view_ago(out, hf_wall_now().ns - info->ended.ns);
	} else if (!ended && info->age_ns >= 0) {
		hf_buf_add_text(out, " for ");
		hf_view_duration(out, info->age_ns);
	}
	if (ended && info->cause[0]) {
		hf_buf_add_text(out, ": ");
		hf_buf_add_shown(out, hf_need_reason(info), strlen(hf_need_reason(info)));
	}
	if (ended && info->ran_ns >= 0) {
		hf_buf_add_text(out, ", ran ");
		hf_view_duration(out, info->ran_ns);
	}
	hf_buf_add_char(out, '\n');
}

static void add_needs(struct hf_buf *out, const struct hf_session_info *info, const struct hf_view_facts *facts)
{
	struct hf_needs needs;

	hf_needs_find(info, facts, &needs);
	for (size_t i = 0; i < needs.n; i++) {
		hf_buf_add_text(out, "! ");
		hf_buf_add_shown(out, needs.list[i].text, strlen(needs.list[i].text));
		hf_buf_add_text(out, "\n    ");
		hf_need_command(&needs.list[i], info, facts, out);
		hf_buf_add_char(out, '\n');
	}
}

static void add_background(struct hf_buf *out, const struct hf_session_info *info)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;

	if (hf_session_add_background(info, &text))
		hf_buf_add_format(out, "  %s\n", text.s);
}

static void add_figures(struct hf_buf *out, const struct hf_session_info *info)
{
	if (info->cpu_ns >= 0) {
		begin(out, "cpu");
		hf_view_duration(out, info->cpu_ns);
		if (info->cpu_permille >= 0)
			hf_buf_add_format(out, ", now %d.%d %%", info->cpu_permille / 10, info->cpu_permille % 10);
		hf_buf_add_char(out, '\n');
	}
	if (info->memory_peak_bytes >= 0) {
		begin(out, "memory");
		if (info->memory_bytes >= 0) {
			hf_view_size(out, info->memory_bytes);
			hf_buf_add_text(out, ", ");
		}
		hf_buf_add_text(out, "at most ");
		hf_view_size(out, info->memory_peak_bytes);
		hf_buf_add_char(out, '\n');
	}
	if (info->output_bytes >= 0) {
		begin(out, "output");
		hf_view_size(out, info->output_bytes);
		if (info->output_age_ns >= 0) {
			hf_buf_add_text(out, ", the last ");
			hf_view_ago(out, info->output_age_ns);
		}
		hf_buf_add_char(out, '\n');
	}
	if (info->last_line)
		add_shown_line(out, "last line", info->last_line);
}

static void add_times(struct hf_buf *out, const struct hf_session_info *info)
{
	if (info->deadline_left_ns >= 0) {
		begin(out, "deadline");
		hf_view_duration(out, info->deadline_left_ns);
		hf_buf_add_text(out, " left of ");
		hf_view_duration(out, info->deadline_ns);
		hf_buf_add_char(out, '\n');
	}
	if (info->next_in_ns >= 0) {
		begin(out, "next");
		hf_buf_add_text(out, "in ");
		hf_view_duration(out, info->next_in_ns);
		hf_buf_add_char(out, '\n');
	}
	if (info->last.outcome != HF_OUTCOME_NONE) {
		begin(out, "last");
		hf_buf_add_format(out, "%s ", hf_outcome_word(info->last.outcome));
		if (info->last.ended.ns > 0)
			hf_view_ago(out, hf_wall_now().ns - info->last.ended.ns);
		hf_buf_add_text(out, ": ");
		hf_buf_add_shown(out, info->last.cause, strlen(info->last.cause));
		hf_buf_add_char(out, '\n');
	}
}

static void add_wait(struct hf_buf *out, const struct hf_view_wait *wait)
{
	if (!wait->is_known)
		return;
	begin(out, "waits");
	hf_view_duration(out, wait->waited_ns);
	hf_buf_add_format(out, ", place %zu of %zu, for %s '", wait->place, wait->of,
			  wait->kind == HF_LOCK_KIND_GROUP ? "a place in the group" : "the lock");
	hf_buf_add_shown(out, wait->name, strlen(wait->name));
	hf_buf_add_char(out, '\'');
	if (wait->holder_pid > 0) {
		hf_buf_add_format(out, ", held by pid %d", (int)wait->holder_pid);
		if (wait->holder[0]) {
			hf_buf_add_text(out, " of session '");
			hf_buf_add_shown(out, wait->holder, strlen(wait->holder));
			hf_buf_add_char(out, '\'');
		}
		hf_buf_add_text(out, " for ");
		hf_view_duration(out, wait->holder_held_ns);
	}
	hf_buf_add_char(out, '\n');
}

/* "memory 4G (cgroup), 2 CPUs (affinity), 500 processes (cgroup), nice 5" */
static void add_limits(struct hf_buf *out, const struct hf_session_limits *limits)
{
	const char *comma = "";

	if (!limits->mem_max && !limits->cpus_centi && !limits->pids_max && !limits->nice)
		return;
	begin(out, "limits");
	if (limits->mem_max) {
		hf_buf_add_text(out, "memory ");
		hf_view_size(out, (int64_t)limits->mem_max);
		hf_buf_add_text(out, limits->by_cgroup & HF_LIMITED_MEMORY ? " (cgroup)" : " (each process)");
		comma = ", ";
	}
	if (limits->cpus_centi) {
		hf_buf_add_format(out, "%s%g CPUs%s", comma, limits->cpus_centi / 100.0,
				  limits->by_cgroup & HF_LIMITED_CPUS ? " (cgroup)" : " (affinity)");
		comma = ", ";
	}
	if (limits->pids_max) {
		hf_buf_add_format(out, "%s%u processes%s", comma, limits->pids_max,
				  limits->by_cgroup & HF_LIMITED_PIDS ? " (cgroup)" : " (all of the user's)");
		comma = ", ";
	}
	if (limits->nice)
		hf_buf_add_format(out, "%snice %u", comma, limits->nice);
	hf_buf_add_char(out, '\n');
}

static void print_session(const struct hf_session_info *info, const struct hf_view_facts *facts)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;

	add_head(&out, info, facts);
	add_needs(&out, info, facts);
	add_background(&out, info);
	if (info->command[0])
		add_shown_line(&out, "command", info->command);
	if (info->cwd && info->cwd[0])
		add_shown_line(&out, "directory", info->cwd);
	if (info->group)
		add_shown_line(&out, "group", info->group);
	if (info->attempt > 1)
		hf_buf_add_format(&out, "  %-10s %u\n", "attempt", info->attempt);
	if (info->pid > 0)
		hf_buf_add_format(&out, "  %-10s %d, %lld process%s (%s)\n", "pid", (int)info->pid, (long long)info->processes,
				  info->processes == 1 ? "" : "es", info->tree);
	add_times(&out, info);
	add_wait(&out, &facts->wait);
	add_figures(&out, info);
	add_limits(&out, &info->limits);
	if (info->outlived > 0)
		hf_buf_add_format(&out, "  %-10s %u ended: %s\n", "outlived", info->outlived, info->outlived_names);
	hf_buf_add_format(&out, "  %-10s %llu\n", "token", (unsigned long long)info->token);
	if (out.err)
		cli_die_oom();
	(void)fwrite(out.s, 1, out.len, stdout);
}

static void show(void *arg, const struct hf_session_info *info)
{
	struct status *status = arg;
	struct hf_view_facts facts;
	struct hf_needs needs;
	json_t *object;

	hf_facts_of(status->facts, info, &facts);
	hf_needs_find(info, &facts, &needs);
	if (status->only_needing && needs.n == 0)
		return;
	if (!status->cli->json) {
		if (status->shown++ > 0)
			putchar('\n');
		print_session(info, &facts);
		return;
	}
	object = hf_view_session(info, &facts);
	if (!object)
		cli_die_oom();
	if (!status->list)
		cli_print_json(object);
	else if (json_array_append_new(status->list, object) < 0)
		cli_die_oom();
}

/* Shows all sessions that need a person. */
static int show_needing(struct status *status, struct session_context *context)
{
	struct hf_err err = HF_ERR_INIT;
	json_t *object = json_object();

	status->only_needing = 1;
	status->list = status->cli->json ? json_array() : NULL;
	if (hf_session_list_recent(context->sessions, HF_NEED_ENDED_NS, show, status, &err) < 0) {
		json_decref(object);
		json_decref(status->list);
		return cli_fail(status->cli, &err);
	}
	if (status->cli->json) {
		cli_set(object, "sessions", status->list);
		cli_print_json(object);
		return HF_EXIT_DONE;
	}
	json_decref(object);
	if (status->shown == 0)
		cli_say(status->cli, "no session needs you; 'holdfast ps' shows all");
	return HF_EXIT_DONE;
}

int cmd_status(struct cli *cli, int argc, char **argv)
{
	struct status status = { .cli = cli };
	AUTO(session_close) struct session_context context = { 0 };
	int first, n = cli_options(cli, NULL, argc, argv, 0, INT_MAX - 1);

	if (n < 0)
		return cli_options_status(n);
	first = session_open(cli, &context);
	if (first != HF_EXIT_DONE)
		return first;
	status.facts = hf_facts_open(cli->state, context.sessions);
	if (n == 0)
		first = show_needing(&status, &context);
	for (int i = 0; i < n; i++) {
		AUTO(elsewhere_done) struct elsewhere elsewhere = { 0 };
		struct hf_err err = HF_ERR_INIT;
		int one;

		/* A session on this machine can be shown without the store. */
		if (elsewhere_find(cli, &context, argv[i], &elsewhere, NULL) == 1)
			one = elsewhere_status(cli, &elsewhere);
		else
			one = hf_session_look(context.sessions, argv[i], show, &status, &err) < 0 ? cli_fail(cli, &err) : HF_EXIT_DONE;

		if (first == HF_EXIT_DONE)
			first = one;
	}
	hf_facts_free(status.facts);
	return first;
}
