/* hook/stop.c - may the client stop? The order of the decision is that of holdfast/hook.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/exec/command.h"
#include "hf/hook/mode.h"
#include "hf/proc/stat.h"
#include "hf/sys/io.h"
#include "hf/sys/fd/noinherit.h"
#include "holdfast/run.h"

#define DEFAULT_GOAL "Your work is not done yet."

/* No model answers faster: a stop that comes sooner after the last answer is that stop again. */
#define SAME_NS (20 * HF_MSEC)

#define UNTIL_GRACE_NS (1 * HF_SEC)
#define ASKED_PAUSE_NS (20 * HF_MSEC)

/* -- 2: the Holdfast session that this process is in ------------------------------------ */

struct own {
	uint64_t token; /* of the run that this process belongs to; 0: not known */
	int over;
};

static void judge_own(void *arg, const struct hf_session_info *info)
{
	struct own *own = arg;
	int runs = info->state == HF_SESSION_STARTING || info->state == HF_SESSION_RUNNING ||
		   info->state == HF_SESSION_HUNG || info->state == HF_SESSION_UNREADABLE;

	own->over = !runs || info->deadline_left_ns == 0 || (own->token && info->token != own->token);
}

/* Is the session stopping, over, or lost? What cannot be found out is no reason to block. */
static int is_session_over(const struct hf_hooks *hooks)
{
	const char *name = getenv("HOLDFAST_SESSION"), *token = getenv("HOLDFAST_TOKEN");
	struct hf_sessions *sessions = NULL;
	struct own own = { 0, 0 };
	int r;

	if (!name || !name[0])
		return 0;
	if (token && hf_parse_u64(token, strlen(token), UINT64_MAX, &own.token) < 0)
		own.token = 0;
	r = hf_sessions_open(hooks->state, NULL, &sessions, NULL);
	if (r == 0)
		r = hf_session_look(sessions, name, judge_own, &own, NULL);
	hf_sessions_free(sessions);
	return r < 0 || own.over;
}

/* -- 6: the until command ------------------------------------------------------------------ */

static int go_to(void *cwd)
{
	return chdir(cwd) < 0 ? -errno : 0;
}

/* Runs it where work mode was switched on, with everything it starts ended after it. 1: it succeeded. */
static int is_until_met(const struct hf_mode *mode)
{
	char *argv[] = { (char *)"/bin/sh", (char *)"-c", (char *)mode->until, NULL };
	struct hf_command command = { .argv = argv,
				      .envp = environ,
				      .in = -1,
				      .out = -1,
				      .limit_ns = mode->until_ns,
				      .grace_ns = UNTIL_GRACE_NS,
				      .enter = go_to,
				      .enter_arg = mode->cwd };
	struct hf_command_result result;

	hf_command_run(&command, &result);
	return result.error == 0 && result.exec_error == 0 && !result.timed_out && result.signal == 0 &&
	       result.code == CLD_EXITED && result.status == 0;
}

/* -- the decision ---------------------------------------------------------------------------- */

/* When this process was started, to the tick below; 0: not known. */
static int64_t started_ns(void)
{
	long ticks = sysconf(_SC_CLK_TCK);
	struct hf_stat stat;

	if (ticks <= 0 || hf_stat_read(0, &stat) < 0)
		return 0;
	return (int64_t)(stat.start_ticks * (uint64_t)(HF_SEC / ticks));
}

static int is_same_stop(const struct hf_mode *mode, const struct hf_hook_event *event)
{
	int64_t started;

	if (mode->answered.ns == 0 || mode->answered.ns > hf_boot_now().ns || mode->digest != event->digest)
		return 0;
	if (event->dated)
		return 1;
	started = started_ns();
	return started > 0 && started < mode->answered.ns + SAME_NS;
}

/* The same stop, which another hook is asking the until command about at this moment. */
static int is_being_asked(const struct hf_mode *mode, const struct hf_hook_event *event)
{
	int64_t since = hf_boot_now().ns - mode->asked.ns;

	return mode->asked.ns != 0 && mode->digest == event->digest && since >= 0 &&
	       since < mode->until_ns + 2 * UNTIL_GRACE_NS;
}

/* Counts begin anew with a turn. Where turns have no id, the first stop of one says that none was blocked. */
static void note_turn(struct hf_mode *mode, const struct hf_hook_event *event)
{
	int is_new = event->turn[0] ? strcmp(event->turn, mode->turn) != 0 : event->was_blocked == 0;

	if (!is_new)
		return;
	mode->blocks = 0;
	mode->idle = 0;
	memcpy(mode->turn, event->turn, strlen(event->turn) + 1);
}

static void allow(struct hf_stop_answer *answer, const char *why)
{
	*answer = (struct hf_stop_answer){ .why = why };
}

static void block(const struct hf_mode *mode, const struct hf_hook_event *event, struct hf_stop_answer *answer)
{
	char tasks[80] = "";

	if (event->background > 0)
		(void)snprintf(tasks, sizeof(tasks), " %d background %s still running: wait for %s.", event->background,
			       event->background == 1 ? "task is" : "tasks are",
			       event->background == 1 ? "it" : "them");
	*answer = (struct hf_stop_answer){ .block = 1, .why = "goal" };
	(void)snprintf(answer->reason, sizeof(answer->reason), "%s%s%s%s%s", mode->goal[0] ? mode->goal : DEFAULT_GOAL,
		       tasks, mode->until[0] ? " It is done when this succeeds: " : "", mode->until,
		       " (holdfast keep off ends this.)");
}

/* One event for a stop that is let through although work mode was on, and one for each block (L8). */
static void tell(const struct hf_mode *mode, const struct hf_stop_answer *answer)
{
	struct hf_field fields[] = { HF_FIELD_TEXT("reason", answer->why), HF_FIELD_INT("blocks", mode->blocks) };

	hf_hook_tell(mode->hooks, answer->block ? HF_EV_STOP_BLOCKED : HF_EV_STOP_ALLOWED, mode->id, fields, 2);
}

/* Everything but the until command. Returns 1 when that has to be asked. */
static int decide(struct hf_mode *mode, const struct hf_hook_event *event, struct hf_stop_answer *answer)
{
	int progress = mode->tools != mode->tools_seen || event->background > 0;

	note_turn(mode, event);
	if (mode->blocks >= mode->max) {
		allow(answer, "limit");
		mode->blocks = mode->idle = 0; /* this once */
	} else if (!progress && mode->idle >= HF_KEEP_IDLE) {
		allow(answer, "idle");
		mode->idle = 0;
	} else if (mode->until[0]) {
		return 1;
	} else {
		block(mode, event, answer);
	}
	return 0;
}

/* Writes the answer down, so that the same stop gets it again. */
static int note_answer(struct hf_mode *mode, const struct hf_hook_event *event, const struct hf_stop_answer *answer,
		       struct hf_err *err)
{
	if (answer->block) {
		int progress = mode->tools != mode->tools_seen || event->background > 0;

		mode->blocks++;
		mode->total++;
		mode->idle = progress ? 1 : mode->idle + 1;
		mode->tools_seen = mode->tools;
	}
	mode->digest = event->digest;
	mode->asked.ns = 0;
	mode->answered = hf_boot_now();
	mode->answer_block = answer->block;
	return hf_mode_save(mode, err);
}

/*
 * Asks the until command without the record's lock, for it may take long and may use work mode itself.
 * Work mode that was switched off or on again meanwhile is judged as it is now.
 */
static int ask_until(struct hf_mode *mode, const struct hf_hook_event *event, struct hf_stop_answer *answer,
		     struct hf_err *err)
{
	struct hf_hooks *hooks = mode->hooks;
	struct hf_wall since = mode->since;
	char id[HF_NAME_MAX + 1];
	int met, r;

	memcpy(id, mode->id, sizeof(id));
	mode->digest = event->digest;
	mode->asked = hf_boot_now();
	r = hf_mode_save(mode, err);
	if (r < 0)
		return r;
	hf_noinherit_close(&mode->fd);
	met = is_until_met(mode);
	hf_mode_close(mode);
	*mode = (struct hf_mode)HF_MODE_INIT;
	r = hf_mode_open(hooks, id, 0, mode, err);
	if (r <= 0) {
		allow(answer, "off");
		return r;
	}
	if (met && mode->since.ns == since.ns) {
		allow(answer, "done");
		return hf_mode_end(mode, "the until command succeeded", err);
	}
	block(mode, event, answer);
	return 1;
}

int hf_hook_stop(struct hf_hooks *hooks, const char *id, const struct hf_hook_event *event,
		 struct hf_stop_answer *ret_answer, struct hf_err *err)
{
	AUTO(hf_mode_close) struct hf_mode mode = HF_MODE_INIT;
	struct hf_stop_answer answer;
	int r;

	allow(ret_answer, "off");
	if (event->kind == HF_HOOK_SUBAGENT_STOP || event->kind == HF_HOOK_STOP_FAILURE)
		return 0;
	r = hf_mode_open(hooks, id, 0, &mode, err);
	while (r > 0 && is_being_asked(&mode, event)) {
		hf_mode_close(&mode);
		mode = (struct hf_mode)HF_MODE_INIT;
		hf_pause(ASKED_PAUSE_NS);
		r = hf_mode_open(hooks, id, 0, &mode, err);
	}
	if (r <= 0)
		return r;
	if (is_session_over(hooks)) {
		allow(&answer, "stopping");
		tell(&mode, &answer);
		*ret_answer = answer;
		return 0;
	}
	if (hf_mode_left(&mode) == 0) {
		allow(ret_answer, "expired");
		return hf_mode_end(&mode, "its time has expired", err);
	}
	if (mode.since.ns > hf_wall_now().ns)
		mode.since = hf_wall_now(); /* from the future: its time begins now */
	if (is_same_stop(&mode, event)) {
		if (mode.answer_block)
			block(&mode, event, ret_answer);
		return 0;
	}
	r = decide(&mode, event, &answer);
	if (r == 1)
		r = ask_until(&mode, event, &answer, err);
	else
		r = 1;
	if (r > 0)
		r = note_answer(&mode, event, &answer, err);
	if (r < 0)
		return r;
	if (mode.fd >= 0 && strcmp(answer.why, "done") != 0)
		tell(&mode, &answer);
	*ret_answer = answer;
	return 0;
}
