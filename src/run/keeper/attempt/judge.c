/* run/keeper/attempt/judge.c - outcomes. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "hf/base/escapes.h"
#include "hf/exec/spawn.h"
#include "hf/run/keeper/attempt/judge.h"
#include "hf/run/session/record/store.h"

struct hf_result hf_result_make(enum hf_outcome outcome, int exit_status, const char *format, ...)
{
	struct hf_result result = { .outcome = outcome, .exit_status = exit_status };
	char cause[HF_RUN_CAUSE_MAX];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(cause, sizeof(cause), format, args);
	va_end(args);
	(void)hf_plain_text(result.cause, sizeof(result.cause), cause, strlen(cause));
	return result;
}

int hf_shell_status(const struct hf_watched *w)
{
	return w->code == CLD_EXITED ? w->status : HF_EXIT_SIGNAL + w->status;
}

static void describe(const struct hf_watched *w, char *out, size_t cap)
{
	const char *name = w->code == CLD_EXITED ? NULL : sigabbrev_np(w->status);

	if (w->code == CLD_EXITED)
		(void)snprintf(out, cap, "exit %d", w->status);
	else
		(void)snprintf(out, cap, "killed by SIG%s%s", name ? name : "?",
			       w->code == CLD_DUMPED ? " (core dumped)" : "");
}

/* Ctrl-C that we did not see: killed by it, or by the custom of 128 + N. */
static int interrupt_of(const struct hf_watched *w)
{
	int status = hf_shell_status(w);

	if (w->interrupted)
		return w->interrupted;
	return status == HF_EXIT_SIGNAL + SIGINT || status == HF_EXIT_SIGNAL + SIGQUIT
		       ? status - HF_EXIT_SIGNAL
		       : 0;
}

struct hf_result hf_judge_cause(enum hf_cause cause, int interrupted, const char *when)
{
	const char *text = hf_cause_text(cause);

	switch (cause) {
	case HF_CAUSE_INTERRUPT:
		return hf_result_make(HF_OUTCOME_INTERRUPTED,
				      HF_EXIT_SIGNAL + (interrupted ? interrupted : SIGINT), "%s%s", text, when);
	case HF_CAUSE_HANGUP:
		return hf_result_make(HF_OUTCOME_STOPPED, HF_EXIT_SIGNAL + SIGHUP, "%s%s", text, when);
	case HF_CAUSE_LOST:
	case HF_CAUSE_CUT_OFF:
		return hf_result_make(HF_OUTCOME_LOST_LOCK, HF_EXIT_AROUND, "%s", text);
	case HF_CAUSE_SUPERVISOR:
		return hf_result_make(HF_OUTCOME_ABANDONED, HF_EXIT_AROUND, "%s", text);
	case HF_CAUSE_DEADLINE:
	case HF_CAUSE_IDLE:
		return hf_result_make(HF_OUTCOME_TIMED_OUT, HF_EXIT_TIMED_OUT, "%s", text);
	case HF_CAUSE_NONE:
	case HF_CAUSE_STOP:
	default:
		return hf_result_make(HF_OUTCOME_STOPPED, HF_EXIT_SIGNAL + SIGTERM, "%s%s", text, when);
	}
}

/* It ended by itself, or was interrupted. */
static struct hf_result judge_exit(const struct hf_watched *w, const char *how)
{
	int interrupt = interrupt_of(w), status = hf_shell_status(w);

	/* It may have exited 0: many clients do on Ctrl-C. It was not finished all the same. */
	if (interrupt)
		return hf_result_make(HF_OUTCOME_INTERRUPTED, HF_EXIT_SIGNAL + interrupt, "%s (%s)",
				      hf_cause_text(HF_CAUSE_INTERRUPT), how);
	/* A terminal that is closed may end it before it ends us: it was asked to stop. */
	if (w->code != CLD_EXITED && w->status == SIGHUP)
		return hf_result_make(HF_OUTCOME_STOPPED, status, "%s", how);
	return hf_result_make(status ? HF_OUTCOME_FAILED : HF_OUTCOME_SUCCEEDED, status, "%s", how);
}

struct hf_result hf_judge_command(const struct hf_watched *w)
{
	struct hf_result result;
	char how[48], when[64];

	describe(w, how, sizeof(how));
	if (w->cause == HF_CAUSE_NONE)
		return judge_exit(w, how);
	(void)snprintf(when, sizeof(when), " (%s)", how);
	/* The first cause stays: a stop hastens the end of a command that was interrupted before. */
	if (w->interrupted && (w->cause == HF_CAUSE_STOP || w->cause == HF_CAUSE_HANGUP))
		return hf_judge_cause(HF_CAUSE_INTERRUPT, w->interrupted, when);
	result = hf_judge_cause(w->cause, w->interrupted, when);
	/* A command that was asked to stop has its own status; 0 would say that it was finished. */
	if (result.outcome == HF_OUTCOME_STOPPED && hf_shell_status(w) != 0)
		result.exit_status = hf_shell_status(w);
	return result;
}

struct hf_result hf_judge_verifier(const struct hf_watched *w, const struct hf_err *why)
{
	char how[48], text[HF_ERR_TEXT_MAX];

	describe(w, how, sizeof(how));
	if (w->cause > HF_CAUSE_IDLE)
		return hf_judge_command(w);
	if (w->interrupted)
		return hf_judge_cause(HF_CAUSE_INTERRUPT, w->interrupted, " during the verification");
	if (w->code == 0) {
		if (why->code)
			(void)hf_err_format(why, text, sizeof(text));
		return hf_result_make(HF_OUTCOME_VERIFY_FAILED, 1, "verify could not be run: %s",
				      why->code ? text : strerrordesc_np(w->status));
	}
	if (w->cause != HF_CAUSE_NONE)
		return hf_result_make(HF_OUTCOME_VERIFY_FAILED, 1, "verify did not end in time");
	/* The shell could not run a command: the verifier gave no verdict. */
	if (w->code == CLD_EXITED && (w->status == HF_EXIT_NO_EXEC || w->status == HF_EXIT_NO_FILE))
		return hf_result_make(HF_OUTCOME_VERIFY_FAILED, 1, "verify could not be run: %s (%s)", how,
				      w->status == HF_EXIT_NO_FILE ? "a command was not found" : "a command is not executable");
	if (w->code != CLD_EXITED || w->status != 0)
		return hf_result_make(HF_OUTCOME_VERIFY_FAILED, 1, "verify failed: %s", how);
	return hf_result_make(HF_OUTCOME_SUCCEEDED, 0, "exit 0, verified");
}

struct hf_result hf_judge_not_started(const char *word, int error, int ours, const struct hf_err *why)
{
	char text[HF_ERR_TEXT_MAX];

	if (error == HF_E_STALE)
		return hf_judge_cause(HF_CAUSE_LOST, 0, "");
	if (why && why->code) {
		(void)hf_err_format(why, text, sizeof(text));
		return hf_result_make(HF_OUTCOME_NOT_STARTED, HF_EXIT_AROUND, "it could not be started: %s", text);
	}
	if (ours)
		return hf_result_make(HF_OUTCOME_NOT_STARTED, HF_EXIT_AROUND, "it could not be started: %s",
				      error < -4095 ? hf_err_info(error) ? hf_err_info(error)->text : "error"
						    : strerrordesc_np(-error));
	return hf_result_make(HF_OUTCOME_NOT_STARTED, hf_spawn_status(-error), "%.100s: %s", word,
			      strerrordesc_np(-error));
}

/* Signals that a process dies of when it gets no memory: by its allocator, its runtime, or in exec. */
static int is_death_for_memory(int status)
{
	static const int deaths[] = { SIGSEGV, SIGABRT, SIGBUS, SIGKILL, SIGILL, SIGTRAP };

	for (size_t i = 0; i < sizeof(deaths) / sizeof(deaths[0]); i++)
		if (status == HF_EXIT_SIGNAL + deaths[i])
			return 1;
	return 0;
}

void hf_judge_memory(const struct hf_watched *w, int64_t oom_kills, int is_bounded, struct hf_result *result)
{
	if (w->cause != HF_CAUSE_NONE || w->code == 0 || result->outcome == HF_OUTCOME_SUCCEEDED ||
	    (oom_kills <= 0 && !(is_bounded && is_death_for_memory(hf_shell_status(w)))))
		return;
	*result = hf_result_make(result->outcome, result->exit_status, "%s; %s (--mem)", result->cause,
				 oom_kills > 0 ? "it reached the memory limit" : "its processes have a memory limit");
}
