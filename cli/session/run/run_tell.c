/* cli/session/run/run_tell.c - run: reports the outcome as text, as JSON and as an exit status. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/exec/lookup.h"
#include "hf/view/lock.h"
#include "hf/view/session/session.h"
#include "hf/view/plan/tx.h"
#include "holdfast/hook.h"
#include "lock/lock.h"
#include "session/run/run.h"
#include "session/session.h"

struct busy {
	const struct run *run;
	json_t *object; /* with --json */
	uint64_t token; /* the token of the holder */
	int known;
};

static void say_session(void *arg, const struct hf_session_info *info)
{
	AUTO(hf_buf_done) struct hf_buf age = HF_BUF_INIT;
	struct busy *busy = arg;
	char here[PATH_MAX];

	/* An ended session does not hold the name, unless it ended a moment ago. */
	if (info->outcome != HF_OUTCOME_NONE && info->token != busy->token)
		return;
	hf_view_duration(&age, info->age_ns);
	if (info->outcome != HF_OUTCOME_NONE)
		cli_say(busy->run->cli, "session '%s' has just ended: %s", info->name, info->cause);
	else if (info->state == HF_SESSION_STARTING && !info->command[0])
		cli_say(busy->run->cli, "session '%s' is just starting", info->name);
	else if (info->state == HF_SESSION_UNREADABLE)
		cli_say(busy->run->cli, "session '%s' has been running for %s; its record is damaged", info->name, age.s);
	else
		cli_say(busy->run->cli, "session '%s' is %s, for %s, attempt %u: %s", info->name,
			hf_session_word(info->state), age.s, info->attempt, info->command);
	if (info->cwd && info->cwd[0] && (!getcwd(here, sizeof(here)) || strcmp(here, info->cwd) != 0))
		cli_say(busy->run->cli, "it runs in %s; names are shared by all directories of a user", info->cwd);
	if (busy->object)
		cli_set(busy->object, "session", hf_view_session(info, NULL));
	busy->known = 1;
}

static int skip(struct run *run, const struct hf_run_report *report, const struct hf_err *err)
{
	struct lock_context lock = { 0 };

	if (lock_open_here(run->cli, &lock) == HF_EXIT_DONE)
		lock_journal_timeout(&lock, HF_EV_LOCK_SKIPPED, run->name,
				     err->code == HF_E_BUSY ? 0 : run->lock.wait_ns, &report->blocker,
				     err);
	lock_close(&lock);
	cli_say(run->cli, "skipped: session '%s': %s", run->name, err->detail);
	return HF_EXIT_DONE;
}

/* Reports that the name is taken: the holder, its age and command, and the next commands. */
static int say_busy(struct run *run, const struct hf_run_report *report, const struct hf_err *err)
{
	AUTO(session_close) struct session_context context = { 0 };
	int status = (int)run->lock.busy_status;
	struct busy busy = { .run = run, .token = report->blocker.token };

	if (run->lock.on_timeout == ON_TIMEOUT_SKIP)
		return skip(run, report, err);
	if (run->cli->json)
		busy.object = hf_view_conflict(HF_LOCK_KIND_NAME, run->name, &report->blocker, err, status);
	/* The holder is unknown if other waiters were first, or if a process was stopped while it had the record locked. */
	if (report->blocker.id.pid == 0) {
		cli_say(run->cli, "session '%s': %s; wait with -w 30s, or see 'holdfast why %s'", run->name,
			err->detail, cli_word(run->name));
		if (busy.object)
			cli_print_json(busy.object);
		return status;
	}
	if (report->blocker.host[0])
		cli_say(run->cli, "'%s' is taken in the store, on %s", run->name, report->blocker.host);
	else if (session_open(run->cli, &context) != HF_EXIT_DONE ||
	    hf_session_look(context.sessions, run->name, say_session, &busy, NULL) < 0 || !busy.known)
		cli_say(run->cli, "'%s' is locked, but not by a session", run->name);
	cli_say(run->cli, "held by %s", err->detail);
	if (busy.known)
		cli_say(run->cli, "wait with -w 30s or 'holdfast wait %s', see 'holdfast ps' and "
				  "'holdfast logs %s', end it with 'holdfast stop %s'",
			cli_word(run->name), cli_word(run->name), cli_word(run->name));
	else
		cli_say(run->cli, "wait with -w 30s, see 'holdfast why %s', or end it with 'holdfast lock "
				  "break --reason TEXT %s'",
			cli_word(run->name), cli_word(run->name));
	if (busy.object)
		cli_print_json(busy.object);
	return status;
}

static int say_failed(struct run *run, int r, const struct hf_run_report *report, const struct hf_err *err)
{
	int status;

	if (r == HF_E_BUSY || r == HF_E_TIMEOUT)
		return say_busy(run, report, err);
	/* A full group counts like a taken name. The keeper has written the event (L8). */
	if (r == HF_E_LIMIT && strcmp(err->op, "group") == 0 && run->lock.on_timeout == ON_TIMEOUT_SKIP) {
		cli_say(run->cli, "skipped: session '%s': %s", run->name, err->detail);
		return HF_EXIT_DONE;
	}
	status = r == HF_E_LIMIT ? (int)run->lock.busy_status : hf_err_exit_status(err->code);
	status = cli_fail_as(run->cli, err, status == HF_EXIT_OS ? HF_EXIT_AROUND : status);
	if (r == HF_E_DIRTY)
		run_in_tell_refused(&run->in, run->cli->state);
	return status;
}

/* Writes the result of a refused run, for readers of --result and --json-fd. A skip prints nothing else. */
static int write_failed(const struct run *run, const struct hf_err *err, int status)
{
	char text[HF_ERR_TEXT_MAX], reason[HF_VIEW_CODE_MAX];
	int skipped = run->cli->json && status == HF_EXIT_DONE;
	json_t *object;

	if (!run->in.result && run->more.json_fd < 0 && !skipped)
		return status;
	(void)hf_err_format(err, text, sizeof(text));
	hf_view_error_code(err->code, reason);
	object = json_object();
	hf_view_set_name(&object, run->name);
	hf_view_set(&object, "outcome", json_null());
	hf_view_set(&object, "exit", json_integer(status));
	hf_view_set(&object, "cause", hf_view_text(text));
	hf_view_set(&object, "by", json_string("holdfast"));
	hf_view_set(&object, "reason", json_string(reason));
	if (!object)
		cli_die_oom();
	(void)run_in_result(&run->in, object);
	(void)run_more_json(run->cli, &run->more, object);
	if (skipped)
		cli_print_json(object);
	else
		json_decref(object);
	return status;
}

int run_fail(struct run *run, int r, const struct hf_run_report *report, const struct hf_err *err)
{
	return write_failed(run, err, say_failed(run, r, report, err));
}

/* Returns 1 if the command succeeded, but Holdfast refused its result. */
static int is_no(const struct hf_run_report *report, const struct hf_tx_report *landed)
{
	return report->outcome == HF_OUTCOME_VERIFY_FAILED || report->outcome == HF_OUTCOME_CONFLICT || report->outcome == HF_OUTCOME_DECLINED ||
	       (report->outcome == HF_OUTCOME_FAILED && (landed->refused || landed->no_change));
}

int run_tell(const struct run *run, const struct hf_run_report *report, const struct hf_tx_report *landed)
{
	int status = report->exit_status;

	if (is_no(report, landed))
		status = (int)run->lock.busy_status;
	if (run->cli->json || run->in.result || run->more.json_fd >= 0) {
		json_t *object = hf_view_report(run->name, report, status);

		hf_view_set(&object, "landed", hf_view_landed(landed));
		if (!object)
			cli_die_oom();
		if ((run_in_result(&run->in, object) != HF_EXIT_DONE || run_more_json(run->cli, &run->more, object) != HF_EXIT_DONE) &&
		    status == HF_EXIT_DONE)
			status = HF_EXIT_AROUND;
		if (run->cli->json)
			cli_print_json(object);
		else
			json_decref(object);
	}
	if (report->outlived > 0)
		cli_say(run->cli, "session '%s': %u %s outlived the command and %s ended: %s", run->name,
			report->outlived, report->outlived == 1 ? "process" : "processes",
			report->outlived == 1 ? "was" : "were", report->outlived_names);
	switch (report->outcome) {
	case HF_OUTCOME_NONE:
		if (!run->cli->json) {
			cli_print_shown(run->name);
			printf(" runs in the background: pid %d, attempt %u\n", (int)report->pid,
			       report->attempt);
		}
		/* Users cannot guess the keys. */
		if (run->terminal && run->cli->terminal)
			cli_say(run->cli, "'holdfast attach %s' connects to its terminal; Ctrl-P Ctrl-Q leaves it", cli_word(run->name));
		break;
	case HF_OUTCOME_FAILED:
		/* A later step failed, or the memory limit ended the command: its status alone does not say so. */
		if ((landed->plan[0] && (report->exit_status == HF_EXIT_AROUND || landed->no_change)) || strstr(report->cause, "(--mem)"))
			cli_say(run->cli, "session '%s': failed: %s", run->name, report->cause);
		break;
	case HF_OUTCOME_SUCCEEDED:
		/* The exit status is enough; more output would disturb. */
		break;
	case HF_OUTCOME_VERIFY_FAILED:
		/* The cause alone is enough: "verify failed: exit 1". */
		cli_say(run->cli, "session '%s': %s", run->name, report->cause);
		break;
	case HF_OUTCOME_TIMED_OUT:
	case HF_OUTCOME_STOPPED:
	case HF_OUTCOME_LOST_LOCK:
	case HF_OUTCOME_ABANDONED:
	case HF_OUTCOME_NOT_STARTED:
	case HF_OUTCOME_INTERRUPTED:
	case HF_OUTCOME_GAVE_UP:
	case HF_OUTCOME_CONFLICT:
	case HF_OUTCOME_DECLINED:
	default:
		cli_say(run->cli, "session '%s': %s: %s", run->name, hf_outcome_word(report->outcome),
			report->cause);
		break;
	}
	if (report->outcome == HF_OUTCOME_NOT_STARTED && status == HF_EXIT_NO_FILE && run->command &&
	    (strpbrk(run->command, " \t\n;|&<>$") || hf_lookup_is_builtin(run->command)))
		cli_say(run->cli, "to run a line by a shell, write -c LINE instead of -- CMD");
	run_in_tell(&run->in, report, landed);
	run_more_tell(run->cli, &run->more, run->name, report);
	return status;
}
