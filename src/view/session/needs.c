/* view/session/needs.c - the codes, one function each. */
#include <stdio.h>
#include <string.h>

#include "hf/base/buf.h"
#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/view/session/needs.h"
#include "holdfast/name.h"
#include "holdfast/plan.h"

/* "6 min", "3 h": for a sentence. */
static const char *span(int64_t ns, char out[32])
{
	int64_t sec = ns > 0 ? ns / HF_SEC : 0;

	if (sec < 120)
		(void)snprintf(out, 32, "%lld s", (long long)sec);
	else if (sec < 7200)
		(void)snprintf(out, 32, "%lld min", (long long)(sec / 60));
	else
		(void)snprintf(out, 32, "%lld h", (long long)(sec / 3600));
	return out;
}

static struct hf_need *add(struct hf_needs *needs, const char *code, const char *action, struct hf_wall since)
{
	struct hf_need *need = &needs->list[needs->n < HF_NEEDS_MAX - 1 ? needs->n : HF_NEEDS_MAX - 1];

	needs->n = (size_t)(need - needs->list) + 1;
	*need = (struct hf_need){ .code = code, .action = action, .since = since };
	return need;
}

static struct hf_wall ago(int64_t ns)
{
	return (struct hf_wall){ hf_wall_now().ns - ns };
}

/* -- ended -------------------------------------------------------------------------- */

/* The code of an end that a person has to look at; NULL: of none. */
static const char *code_of_end(const struct hf_session_info *info, const struct hf_view_facts *facts)
{
	switch (info->outcome) {
	case HF_OUTCOME_VERIFY_FAILED:
		return facts && facts->land == HF_LAND_REJECTED ? "land-rejected" : "verify-failed";
	case HF_OUTCOME_GAVE_UP:
		return "gave-up";
	case HF_OUTCOME_CONFLICT:
		return "conflict";
	case HF_OUTCOME_FAILED:
		return facts && facts->land == HF_LAND_REJECTED ? "land-rejected" : "failed";
	case HF_OUTCOME_TIMED_OUT:
	case HF_OUTCOME_LOST_LOCK:
	case HF_OUTCOME_ABANDONED:
	case HF_OUTCOME_NOT_STARTED:
		return "failed";
	/* Stopped, interrupted, declined: a person did that, and knows. Only the work is left to be decided on. */
	case HF_OUTCOME_STOPPED:
	case HF_OUTCOME_INTERRUPTED:
	case HF_OUTCOME_DECLINED:
	case HF_OUTCOME_SUCCEEDED:
		return facts && facts->work == HF_WORK_UNLANDED ? "unlanded" : NULL;
	case HF_OUTCOME_NONE:
	default:
		return NULL;
	}
}

static const char *words_of_end(const char *code, enum hf_outcome outcome)
{
	if (strcmp(code, "land-rejected") == 0)
		return "landing rejected";
	if (strcmp(code, "unlanded") == 0)
		return "ended without landing";
	switch (outcome) {
	case HF_OUTCOME_VERIFY_FAILED:
		return "verify failed";
	case HF_OUTCOME_GAVE_UP:
		return "gave up";
	case HF_OUTCOME_CONFLICT:
		return "conflict";
	case HF_OUTCOME_TIMED_OUT:
		return "timed out";
	case HF_OUTCOME_LOST_LOCK:
		return "lost its lock";
	case HF_OUTCOME_ABANDONED:
		return "abandoned";
	case HF_OUTCOME_NOT_STARTED:
		return "not started";
	case HF_OUTCOME_NONE:
	case HF_OUTCOME_SUCCEEDED:
	case HF_OUTCOME_FAILED:
	case HF_OUTCOME_STOPPED:
	case HF_OUTCOME_INTERRUPTED:
	case HF_OUTCOME_DECLINED:
	default:
		return "failed";
	}
}

const char *hf_need_reason(const struct hf_session_info *info)
{
	static const char prefix[] = "verify failed: ";

	return info->outcome == HF_OUTCOME_VERIFY_FAILED && strncmp(info->cause, prefix, sizeof(prefix) - 1) == 0
		       ? info->cause + sizeof(prefix) - 1
		       : info->cause;
}

static void add_ended(const struct hf_session_info *info, const struct hf_view_facts *facts, struct hf_needs *needs)
{
	const char *code = code_of_end(info, facts);
	/* Without a recorded end, use the start. */
	struct hf_wall since = info->ended.ns ? info->ended : info->started;
	int64_t passed = hf_wall_now().ns - since.ns;
	enum hf_view_work_left work = facts ? facts->work : HF_WORK_NONE;
	/* --keep never leaves no work to show. */
	int is_shown = !facts || facts->land || work == HF_WORK_UNLANDED;
	int is_diff = is_shown && (info->outcome == HF_OUTCOME_CONFLICT || (facts && facts->has_landed) ||
				   (code && (strcmp(code, "land-rejected") == 0 || strcmp(code, "unlanded") == 0)));
	struct hf_need *need;
	char text[32];

	if (!code || since.ns == 0 || work == HF_WORK_RESOLVED || (passed > HF_NEED_ENDED_NS && work != HF_WORK_UNLANDED))
		return;
	need = add(needs, code, is_diff ? "diff" : "resume", since);
	(void)snprintf(need->text, sizeof(need->text), "%s %s ago: %s", words_of_end(code, info->outcome), span(passed, text),
		       hf_need_reason(info));
	hf_copy_text(need->brief, sizeof(need->brief), info->cause);
}

/* -- running -------------------------------------------------------------------------- */

static int works(const struct hf_session_info *info)
{
	/* What is not known counts as work: nobody is called for nothing. */
	return info->cpu_permille < 0 || info->cpu_permille >= HF_NEED_IDLE_PERMILLE;
}

static int is_at_work(const struct hf_session_info *info)
{
	return info->state == HF_SESSION_RUNNING || info->state == HF_SESSION_HUNG || info->state == HF_SESSION_FAILING;
}

int hf_session_is_silent(const struct hf_session_info *info)
{
	int64_t limit = info->idle_ns > 0 ? info->idle_ns / 3 * 2 : HF_NEED_SILENT_NS;

	return is_at_work(info) && info->pid > 0 && info->silent_ns >= 0 && info->silent_ns >= limit && !works(info);
}

static int ends_in(const char *line, const char *end)
{
	size_t len = strlen(line), n = strlen(end);

	while (len > 0 && line[len - 1] == ' ')
		len--;
	return len >= n && strncasecmp(line + len - n, end, n) == 0;
}

static int is_question(const struct hf_session_info *info)
{
	const char *line = info->last_line;

	return line && (info->last_line_partial || ends_in(line, "?") || ends_in(line, "[y/n]") || ends_in(line, ":"));
}

static void add_silent(const struct hf_session_info *info, struct hf_needs *needs)
{
	struct hf_need *need;
	char text[32], left[32] = "";

	if (!hf_session_is_silent(info))
		return;
	need = add(needs, "silent", "logs", ago(info->silent_ns));
	if (info->idle_ns > 0)
		(void)span(info->idle_ns - info->silent_ns, left);
	(void)snprintf(need->text, sizeof(need->text), "silent for %s%s%s%s", span(info->silent_ns, text),
		       left[0] ? "; ended by --idle in " : "", left, info->idle_ns > 0 ? "" : "; no work is done");
	(void)snprintf(need->brief, sizeof(need->brief), "silent for %s", span(info->silent_ns, text));
}

static void add_waits(const struct hf_session_info *info, struct hf_needs *needs)
{
	struct hf_need *need = add(needs, "waits", "attach", ago(info->activity_age_ns));
	const char *after = info->activity == HF_ACTIVITY_ERROR ? ", after an error" : "", *colon = info->activity_text[0] ? ": " : "";
	char text[32];

	(void)snprintf(need->text, sizeof(need->text), "has waited for you for %s%s%s%s", span(info->activity_age_ns, text), after, colon,
		       info->activity_text);
	(void)snprintf(need->brief, sizeof(need->brief), "waits for you%s", after);
}

static void add_blocked(const struct hf_session_info *info, struct hf_needs *needs)
{
	struct hf_need *need = add(needs, "asks", "attach", ago(info->activity_age_ns));
	const char *what = info->activity_text[0] ? info->activity_text : "it needs your answer";
	char text[32];

	(void)snprintf(need->text, sizeof(need->text), "asked %s ago: %s", span(info->activity_age_ns, text), what);
	(void)snprintf(need->brief, sizeof(need->brief), "asks: %s", what);
}

/* The report of a program is more exact than its last line. Returns 1 if the report decides. */
static int add_activity(const struct hf_session_info *info, struct hf_needs *needs)
{
	if (!is_at_work(info) || info->pid == 0)
		return 0;
	switch (info->activity) {
	case HF_ACTIVITY_WORKING:
		return info->activity_age_ns < HF_RUN_BUSY_NS;
	case HF_ACTIVITY_BLOCKED:
		add_blocked(info, needs);
		return 1;
	case HF_ACTIVITY_IDLE:
	case HF_ACTIVITY_DONE:
	case HF_ACTIVITY_ERROR:
		add_waits(info, needs);
		return 1;
	case HF_ACTIVITY_BACKGROUND:
		add_silent(info, needs);
		return 1;
	case HF_ACTIVITY_NONE:
	default:
		return 0;
	}
}

/* 1 when it seems to wait for an answer. */
static int add_asks(const struct hf_session_info *info, struct hf_needs *needs)
{
	struct hf_need *need;
	char text[32];

	if (!is_at_work(info) || info->pid == 0 || info->silent_ns < HF_NEED_ASKS_NS || works(info) || !is_question(info))
		return 0;
	need = add(needs, "asks", "attach", ago(info->silent_ns));
	(void)snprintf(need->text, sizeof(need->text), "asked %s ago: %s", span(info->silent_ns, text), info->last_line);
	(void)snprintf(need->brief, sizeof(need->brief), "asks: %s", info->last_line);
	return 1;
}

static void add_deadline(const struct hf_session_info *info, struct hf_needs *needs)
{
	const int64_t least = 120 * HF_SEC, most = 300 * HF_SEC;
	int64_t share = info->deadline_ns / 20, limit = share > least ? share : least;
	struct hf_need *need;
	char text[32];

	if (info->deadline_left_ns < 0 || info->deadline_ns <= 0 || info->pid == 0 || info->deadline_left_ns >= most ||
	    info->deadline_left_ns >= limit)
		return;
	limit = limit < most ? limit : most;
	/* A short deadline is near from the beginning on: that is how it was meant. */
	if (info->deadline_ns <= limit)
		return;
	need = add(needs, "deadline", "logs", ago(limit - info->deadline_left_ns));
	(void)snprintf(need->text, sizeof(need->text), "deadline in %s", span(info->deadline_left_ns, text));
	hf_copy_text(need->brief, sizeof(need->brief), need->text);
}

static void add_stuck(const struct hf_view_facts *facts, struct hf_needs *needs)
{
	const struct hf_view_wait *wait = facts ? &facts->wait : NULL;
	struct hf_need *need;
	char text[32];

	if (!wait || !wait->is_known || wait->waited_ns < HF_NEED_STUCK_NS || !wait->holder_silent)
		return;
	need = add(needs, "stuck", "why", ago(wait->waited_ns));
	(void)snprintf(need->text, sizeof(need->text), "waits %s, place %zu, for '%.100s'; its holder '%.100s' is silent",
		       span(wait->waited_ns, text), wait->place, wait->name, wait->holder);
	(void)snprintf(need->brief, sizeof(need->brief), "waits %s for '%.100s'", text, wait->name);
}

void hf_needs_find(const struct hf_session_info *info, const struct hf_view_facts *facts, struct hf_needs *ret)
{
	struct hf_need *need;

	ret->n = 0;
	if (info->seen)
		return;
	if (info->outcome != HF_OUTCOME_NONE) {
		add_ended(info, facts, ret);
		return;
	}
	if (info->state == HF_SESSION_DEAD_UNREAPED) {
		need = add(ret, "dead-unreaped", "reap", info->started);
		hf_copy_text(need->text, sizeof(need->text), "its supervisor and keeper were killed; processes may still be running");
		hf_copy_text(need->brief, sizeof(need->brief), "its keepers are dead");
		return;
	}
	if (info->state == HF_SESSION_UNREADABLE) {
		need = add(ret, "unreadable", "stop", info->started);
		hf_copy_text(need->text, sizeof(need->text), "it is running, but its record is damaged");
		hf_copy_text(need->brief, sizeof(need->brief), "its record is damaged");
		return;
	}
	if (!add_activity(info, ret) && !add_asks(info, ret))
		add_silent(info, ret);
	add_deadline(info, ret);
	add_stuck(facts, ret);
}

int hf_session_add_background(const struct hf_session_info *info, struct hf_buf *out)
{
	if (!is_at_work(info) || info->pid == 0 || info->activity != HF_ACTIVITY_BACKGROUND)
		return 0;
	hf_buf_add_text(out, "answered; waits for its background task ");
	hf_buf_add_shown(out, info->activity_text, strlen(info->activity_text));
	return 1;
}

/* -- shown -------------------------------------------------------------------------- */

json_t *hf_view_needs(const struct hf_needs *needs)
{
	json_t *array = json_array();

	for (size_t i = 0; i < needs->n; i++) {
		const struct hf_need *need = &needs->list[i];
		json_t *object = json_object();

		hf_view_set(&object, "code", json_string(need->code));
		hf_view_set(&object, "text", hf_view_text(need->text));
		hf_view_set(&object, "since", hf_view_time(need->since));
		hf_view_set(&object, "action", json_string(need->action));
		hf_view_add(&array, object);
	}
	return array;
}

void hf_need_command(const struct hf_need *need, const struct hf_session_info *info, const struct hf_view_facts *facts,
		     struct hf_buf *out)
{
	char name[HF_NAME_MAX + sizeof(HF_PLAN_OF_RUN)], word[HF_SHELL_WORD_MAX];
	const char *action = need->action;
	int resumes = strcmp(action, "resume") == 0, is_why = strcmp(action, "why") == 0 && facts && facts->wait.is_known;

	if (facts && facts->no_terminal && strcmp(action, "attach") == 0)
		action = "logs";
	/* With --no-log. */
	if (strcmp(action, "logs") == 0 && info->output_bytes < 0)
		action = "status";
	hf_buf_add_text(out, "holdfast ");
	if (resumes)
		hf_buf_add_text(out, "run --resume");
	else if (strcmp(action, "diff") == 0)
		hf_buf_add_text(out, facts && facts->land ? "land show" : "plan diff");
	else
		hf_buf_add_text(out, action);
	if (is_why && facts->wait.kind != HF_LOCK_KIND_NAME)
		hf_buf_add_format(out, " --kind %s", hf_lock_kind_word(facts->wait.kind));
	hf_buf_add_char(out, ' ');
	if (is_why || strcmp(action, "diff") != 0 || (facts && facts->land))
		hf_copy_text(name, sizeof(name), is_why ? facts->wait.name : info->name);
	else
		(void)snprintf(name, sizeof(name), "%s%s", HF_PLAN_OF_RUN, info->name);
	hf_buf_add_text(out, hf_shell_word(name, word));
}
