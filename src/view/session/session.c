/* view/session/session.c - a session as JSON. */
#include <string.h>

#include "hf/view/session/session.h"

static json_t *end_json(const struct hf_session_end *end)
{
	json_t *object;

	if (end->outcome == HF_OUTCOME_NONE)
		return json_null();
	object = json_object();
	hf_view_set(&object, "outcome", json_string(hf_outcome_word(end->outcome)));
	hf_view_set(&object, "exit", json_integer(end->exit_status));
	hf_view_set(&object, "cause", hf_view_text(end->cause));
	hf_view_set(&object, "ended", hf_view_time(end->ended));
	hf_view_set(&object, "ran_ms", hf_view_number(end->ran_ns, HF_MSEC));
	return object;
}

static json_t *words_json(char *const *words)
{
	json_t *array;

	if (!words)
		return json_null();
	array = json_array();
	for (size_t i = 0; words[i]; i++)
		hf_view_add(&array, hf_view_text(words[i]));
	return array;
}

/* Of a single run there is one attempt; a loop's limit is not on record. */
static json_t *attempts_max(const struct hf_session_info *info)
{
	return info->loop || info->attempt != 1 ? json_null() : json_integer(1);
}

static void set_end(json_t **object, const struct hf_session_info *info)
{
	int ended = info->outcome != HF_OUTCOME_NONE;

	hf_view_set(object, "started", hf_view_time(info->started));
	hf_view_set(object, "age_ms", hf_view_number(info->age_ns, HF_MSEC));
	hf_view_set(object, "ended", hf_view_time(info->ended));
	hf_view_set(object, "ran_ms", hf_view_number(info->ran_ns, HF_MSEC));
	hf_view_set(object, "outcome", ended ? json_string(hf_outcome_word(info->outcome)) : json_null());
	hf_view_set(object, "exit", ended ? json_integer(info->exit_status) : json_null());
	hf_view_set(object, "cause", ended ? hf_view_text(info->cause) : json_null());
	hf_view_set(object, "last", end_json(&info->last));
}

static void set_figures(json_t **object, const struct hf_session_info *info)
{
	hf_view_set(object, "deadline_ms", hf_view_number(info->deadline_ns, HF_MSEC));
	hf_view_set(object, "deadline_left_ms", hf_view_number(info->deadline_left_ns, HF_MSEC));
	hf_view_set(object, "idle_ms", hf_view_number(info->idle_ns, HF_MSEC));
	hf_view_set(object, "output_age_ms", hf_view_number(info->output_age_ns, HF_MSEC));
	hf_view_set(object, "cpu_pct", info->cpu_permille < 0 ? json_null() : json_real(info->cpu_permille / 10.0));
	hf_view_set(object, "cpu_ms", hf_view_number(info->cpu_ns, HF_MSEC));
	hf_view_set(object, "memory_bytes", hf_view_number(info->memory_bytes, 1));
	hf_view_set(object, "memory_peak_bytes", hf_view_number(info->memory_peak_bytes, 1));
	hf_view_set(object, "processes", hf_view_number(info->processes, 1));
	hf_view_set(object, "last_line", hf_view_text(info->last_line));
	hf_view_set(object, "last_line_partial", info->last_line ? json_boolean(info->last_line_partial) : json_null());
	hf_view_set(object, "output_bytes", hf_view_number(info->output_bytes, 1));
	hf_view_set(object, "next_in_ms", hf_view_number(info->next_in_ns, HF_MSEC));
	hf_view_set(object, "log_bytes", hf_view_number(info->log_bytes, 1));
	hf_view_set(object, "log_dropped_bytes", hf_view_number(info->log_dropped_bytes, 1));
}

/* The report of its program, or null. */
static json_t *activity_json(const struct hf_session_info *info)
{
	json_t *object;

	if (info->activity == HF_ACTIVITY_NONE)
		return json_null();
	object = json_object();
	hf_view_set(&object, "state", json_string(hf_activity_word(info->activity)));
	hf_view_set(&object, "text", hf_view_text(info->activity_text[0] ? info->activity_text : NULL));
	hf_view_set(&object, "since", hf_view_time((struct hf_wall){ hf_wall_now().ns - info->activity_age_ns }));
	return object;
}

/* What it may use, and by what that is bounded; null: there is no limit. */
static json_t *limits_json(const struct hf_session_limits *limits)
{
	json_t *object;

	if (!limits->mem_max && !limits->cpus_centi && !limits->pids_max && !limits->nice)
		return json_null();
	object = json_object();
	hf_view_set(&object, "memory_bytes", limits->mem_max ? json_integer((json_int_t)limits->mem_max) : json_null());
	hf_view_set(&object, "memory_by", limits->mem_max ? json_string(limits->by_cgroup & HF_LIMITED_MEMORY ? "cgroup" : "process") : json_null());
	hf_view_set(&object, "cpus", limits->cpus_centi ? json_real(limits->cpus_centi / 100.0) : json_null());
	hf_view_set(&object, "cpus_by", limits->cpus_centi ? json_string(limits->by_cgroup & HF_LIMITED_CPUS ? "cgroup" : "affinity") : json_null());
	hf_view_set(&object, "pids", limits->pids_max ? json_integer(limits->pids_max) : json_null());
	hf_view_set(&object, "pids_by", limits->pids_max ? json_string(limits->by_cgroup & HF_LIMITED_PIDS ? "cgroup" : "user") : json_null());
	hf_view_set(&object, "nice", limits->nice ? json_integer(limits->nice) : json_null());
	return object;
}

static void set_processes(json_t **object, const struct hf_session_info *info)
{
	hf_view_set(object, "pid", info->pid ? json_integer(info->pid) : json_null());
	hf_view_set(object, "supervisor", hf_view_process(&info->supervisor));
	hf_view_set(object, "keeper", hf_view_process(&info->keeper));
	hf_view_set(object, "leader", hf_view_process(&info->leader));
	hf_view_set(object, "tree", json_string(info->tree));
	hf_view_set(object, "evidence", hf_view_text(info->evidence[0] ? info->evidence : NULL));
}

/* What outlived a command and was ended, or null when nothing did. */
static json_t *outlived_json(uint32_t count, const char *names)
{
	json_t *object = count > 0 ? json_object() : json_null();

	if (count > 0) {
		hf_view_set(&object, "count", json_integer(count));
		hf_view_set(&object, "names", hf_view_text(names));
	}
	return object;
}

json_t *hf_view_session(const struct hf_session_info *info, const struct hf_view_facts *facts)
{
	static const struct hf_view_wait none;
	json_t *object = json_object();
	struct hf_needs needs;

	hf_needs_find(info, facts, &needs);

	hf_view_set_name(&object, info->name);
	hf_view_set(&object, "state", json_string(hf_session_word(info->state)));
	/* Attempts count from 1: with 0 nothing of the record is known. */
	hf_view_set(&object, "attempt", info->attempt ? json_integer(info->attempt) : json_null());
	hf_view_set(&object, "attempts_max", attempts_max(info));
	hf_view_set(&object, "failures", info->attempt ? json_integer(info->failures) : json_null());
	hf_view_set(&object, "loop", info->attempt ? json_boolean(info->loop) : json_null());
	hf_view_set(&object, "token", json_integer((json_int_t)info->token));
	hf_view_set(&object, "command", hf_view_text(info->command[0] ? info->command : NULL));
	hf_view_set(&object, "argv", words_json(info->argv));
	hf_view_set(&object, "cwd", hf_view_text(info->cwd && info->cwd[0] ? info->cwd : NULL));
	hf_view_set(&object, "group", hf_view_text(info->group));
	hf_view_set(&object, "priority", json_integer(info->priority));
	set_end(&object, info);
	hf_view_set(&object, "outlived", outlived_json(info->outlived, info->outlived_names));
	set_figures(&object, info);
	hf_view_set(&object, "activity", activity_json(info));
	hf_view_set(&object, "limits", limits_json(&info->limits));
	set_processes(&object, info);
	hf_view_set(&object, "waits_for", hf_view_wait(facts ? &facts->wait : &none));
	/* Of parts that do not exist yet. */
	hf_view_set(&object, "plan", json_null());
	hf_view_set(&object, "land", json_null());
	hf_view_set(&object, "seen", json_boolean(info->seen));
	hf_view_set(&object, "needs", hf_view_needs(&needs));
	return object;
}

/* Is the exit status the command's own? Else it is what came of it around the command. */
static int is_of_command(const struct hf_run_report *report, int exit_status)
{
	switch (report->outcome) {
	case HF_OUTCOME_SUCCEEDED:
	case HF_OUTCOME_FAILED:
	case HF_OUTCOME_STOPPED:
	case HF_OUTCOME_INTERRUPTED:
	case HF_OUTCOME_TIMED_OUT:
		return report->command_status >= 0 && report->command_status == exit_status;
	case HF_OUTCOME_NONE:
	case HF_OUTCOME_VERIFY_FAILED:
	case HF_OUTCOME_LOST_LOCK:
	case HF_OUTCOME_ABANDONED:
	case HF_OUTCOME_NOT_STARTED:
	case HF_OUTCOME_GAVE_UP:
	case HF_OUTCOME_CONFLICT:
	case HF_OUTCOME_DECLINED:
	default:
		return 0;
	}
}

json_t *hf_view_report(const char *name, const struct hf_run_report *report, int exit_status)
{
	int ended = report->outcome != HF_OUTCOME_NONE;
	json_t *object = json_object();

	hf_view_set_name(&object, name);
	hf_view_set(&object, "outcome", ended ? json_string(hf_outcome_word(report->outcome)) : json_null());
	hf_view_set(&object, "exit", ended ? json_integer(exit_status) : json_null());
	hf_view_set(&object, "cause", ended ? hf_view_text(report->cause) : json_null());
	hf_view_set(&object, "by", ended ? json_string(is_of_command(report, exit_status) ? "command" : "holdfast") : json_null());
	hf_view_set(&object, "reason", ended && !is_of_command(report, exit_status) ? json_string(hf_outcome_word(report->outcome)) : json_null());
	hf_view_set(&object, "ran_ms", hf_view_number(report->ran_ns, HF_MSEC));
	hf_view_set(&object, "cpu_ms", hf_view_number(report->cpu_ns, HF_MSEC));
	hf_view_set(&object, "memory_peak_bytes", hf_view_number(report->memory_peak_bytes, 1));
	hf_view_set(&object, "output_bytes", hf_view_number(report->output_bytes, 1));
	hf_view_set(&object, "pid", report->pid ? json_integer(report->pid) : json_null());
	hf_view_set(&object, "supervisor", hf_view_process(&report->supervisor));
	hf_view_set(&object, "attempt", report->attempt ? json_integer(report->attempt) : json_null());
	hf_view_set(&object, "token", report->token ? json_integer((json_int_t)report->token) : json_null());
	hf_view_set(&object, "resumed", hf_view_text(report->resumed[0] ? report->resumed : NULL));
	hf_view_set(&object, "outlived", outlived_json(report->outlived, report->outlived_names));
	return object;
}
