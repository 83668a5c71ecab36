/* run/keeper/attempt/attempt.c - one attempt: intent, start, watch, verify, outcome. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/run/keeper/keeper.h"
#include "hf/run/session/notes/activity.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

/* -- the record -------------------------------------------------------------------- */

static int saved(struct hf_keeper *k, int r)
{
	/* The next renewal finds it as well; nothing is written behind a successor's back. */
	if (r == HF_E_STALE)
		hf_renewal_hurry(&k->renewal);
	return r;
}

int hf_keeper_save(struct hf_keeper *k)
{
	int r = k->lost ? HF_E_STALE
			: saved(k, hf_session_save(k->sessions, &k->record, k->record.token, NULL));

	if (r == 0)
		hf_keeper_store_done(k, 1);
	hf_keeper_fleet_tell(k);
	return r;
}

int hf_keeper_note(struct hf_keeper *k)
{
	int r = k->lost ? HF_E_STALE
			: saved(k, hf_session_note(k->sessions, &k->record, k->record.token, NULL));

	hf_keeper_fleet_tell(k);
	return r;
}

/* -- starting -------------------------------------------------------------------- */

#define BEFORE_START " before its start"

/* A supervisor that was stopped does not take the pty now; the command need not wait for that. */
#define TERMINAL_NS (2 * HF_SEC)

int hf_keeper_logs(const struct hf_keeper *k)
{
	/* What is left running would lose its output with our end of a pipe. */
	return !(k->o.flags & HF_RUN_NO_LOG) &&
	       (k->detached || k->o.flags & HF_RUN_LOG || !(k->o.flags & HF_RUN_LEAVE_RUNNING));
}

int hf_keeper_wants_pty(const struct hf_keeper *k)
{
	if (k->detached)
		return (k->o.flags & HF_RUN_TERMINAL) && hf_keeper_logs(k) && !(k->o.flags & HF_RUN_LEAVE_RUNNING);
	return !k->detached && (hf_keeper_logs(k) || k->o.idle_ns > 0) && isatty(STDIN_FILENO) &&
	       isatty(STDOUT_FILENO);
}

/* Captured output needs pipes, or a pty when the session is on a terminal. */
static int open_streams(struct hf_keeper *k)
{
	struct hf_link_news news = { .kind = HF_LINK_TERMINAL };
	struct hf_mono limit = hf_mono_in(TERMINAL_NS);
	int r;

	k->output.log.attempt = k->record.attempt;
	k->output.size = k->viewers.size;
	if (!hf_log_is_on(&k->output.log) && k->o.idle_ns == 0 && !k->own_session)
		return 0;
	r = hf_output_open(&k->output, k->own_session ? HF_OUTPUT_TERMINAL : HF_OUTPUT_PIPES);
	if (r < 0 || k->output.terminal < 0)
		return r;
	if (ioctl(k->output.terminal, TIOCSCTTY, 0) < 0)
		return -errno;
	/* In the background the keeper has both sides: what is typed comes from viewers. */
	if (k->detached) {
		k->viewers.pty = fcntl(k->output.streams[0].from, F_DUPFD_CLOEXEC, 3);
		return k->viewers.pty < 0 ? -errno : 0;
	}
	atomic_store(&k->gate->has_pty, 0);
	hf_keeper_tell(k, &news, k->output.streams[0].from);
	/* The caller's terminal is raw before the first output comes, or lines would end twice. */
	while (!atomic_load(&k->gate->has_pty) && hf_mono_left(limit) > 0)
		(void)hf_sys.poll(NULL, 0, 1);
	return 0;
}

/* The command on the pty has ended: the caller's terminal is an ordinary one again. */
static void close_terminal(struct hf_keeper *k)
{
	struct hf_link_news news = { .kind = HF_LINK_TERMINAL };
	AUTO_FD terminal = k->output.on_pty ? hf_open_at(AT_FDCWD, "/dev/tty", O_RDWR | O_NOCTTY, 0) : -1;

	/* Given up before its other end is closed: that would be a hangup for us. */
	if (terminal >= 0)
		(void)ioctl(terminal, TIOCNOTTY);
	if (k->output.on_pty && !k->detached)
		hf_keeper_tell(k, &news, -1);
	hf_auto_close(&k->viewers.pty);
	k->output.on_pty = 0;
}

static void tell_started(struct hf_keeper *k)
{
	struct hf_link_news news = { .kind = HF_LINK_STARTED };
	struct hf_field fields[] = { HF_FIELD_INT("attempt", k->record.attempt),
				     HF_FIELD_INT("leader", k->record.leader.pid),
				     HF_FIELD_TEXT("command", k->record.command),
				     HF_FIELD_TEXT("tree", k->tree.group.fd >= 0 ? "cgroup" : "walk") };

	hf_report_init(&news.report);
	news.report.token = k->record.token;
	news.report.attempt = k->record.attempt;
	news.report.pid = k->record.leader.pid;
	news.report.supervisor = k->record.supervisor;
	hf_session_event(k->sessions, HF_EV_SESSION_STARTED, k->name, fields, 4);
	/* A caller that waits for the start of a loop waits for its first attempt. In the foreground
	 * nobody does, and a message would only wake the supervisor. */
	if (k->detached && !k->is_started)
		hf_keeper_tell(k, &news, -1);
	if (!k->is_started)
		hf_keeper_notify_start(k);
	k->is_started = 1;
}

/*
 * Is the intent on disk before the child is made? For a stage, which makes what only the token on record
 * leads to after a power cut; and for a deadline, whose clock must not run while the disk is waited for. Else
 * the child is made first, and the intent has its identity.
 */
static int saves_first(const struct hf_keeper *k)
{
	return k->o.deadline_ns > 0 || (k->stage && k->stage->begin);
}

/* The clock of the attempt starts. It means nothing after a reboot, so it is not synced: the clock runs. */
static int note_running(struct hf_keeper *k)
{
	k->record.phase = HF_PHASE_RUNNING;
	k->record.began_ns = hf_boot_now().ns;
	k->record.deadline_ns = k->o.deadline_ns ? k->record.began_ns + k->o.deadline_ns : 0;
	return hf_keeper_note(k);
}

/* It shares our memory until it has become its command: we sleep until then. */
static int let_go(struct hf_keeper *k, struct hf_child *child)
{
	int r = hf_spawn_go(child), result = r < 0 ? r : hf_spawn_result(child);

	/* While the command begins, which takes longer. */
	if (r == 0 && !saves_first(k))
		(void)note_running(k);
	return result;
}

/*
 * Makes the child, writes its identity down, and only then lets it go. 0 or -errno; *ret_ours:
 * it failed here, and not in the command's exec; -ECANCELED: the session is to end, and nothing was let go.
 * *ret_begun: from here on its deadline counts.
 */
static int start(struct hf_keeper *k, struct hf_child *child, struct hf_mono *ret_begun, int *ret_ours)
{
	struct hf_spawn spawn;
	int r = open_streams(k);

	*ret_ours = 1;
	if (r == 0)
		r = hf_keeper_give_input(k);
	if (r == 0)
		r = hf_keeper_ready(k);
	/* It has what that says of the place that the command is to work in. */
	if (r == 0)
		r = hf_keeper_environment(k);
	if (r < 0)
		return r;
	spawn = hf_keeper_spawn(k, k->o.argv, 1);
	spawn.shares_memory = 1;
	r = hf_spawn(&spawn, child);
	hf_output_close_child(&k->output);
	if (r < 0)
		return r;
	r = hf_proc_identify_open(&k->record.keeper, (int32_t)child->pid, child->pidfd, &k->record.leader, NULL);
	/* If we die, the next run finds and ends it by its identity. */
	if (r == 0)
		r = saves_first(k) ? note_running(k) : hf_keeper_save(k);
	/* What came while the disk was waited for. */
	hf_keeper_listen(k);
	if (r == 0 && k->over != HF_CAUSE_NONE)
		r = -ECANCELED;
	*ret_ours = r < 0;
	*ret_begun = hf_mono_now();
	if (r == 0)
		r = let_go(k, child);
	if (r < 0)
		hf_child_done(child); /* one that was not let go ends now */
	r = hf_keeper_entered(k, child, r);
	if (r == 0)
		tell_started(k);
	else
		hf_child_done(child);
	return r;
}

/* -- its end ---------------------------------------------------------------------- */

static void tell_left_running(struct hf_keeper *k)
{
	struct hf_field fields[] = { HF_FIELD_INT("attempt", k->record.attempt) };

	if (k->o.flags & HF_RUN_LEAVE_RUNNING && hf_tree_reap(&k->tree))
		hf_session_event(k->sessions, HF_EV_SESSION_LEFT_RUNNING, k->name, fields, 1);
}

/* What outlived the command and was ended: one event, and the record for later looks (L8). */
static void tell_outlived(struct hf_keeper *k, const struct hf_tree_names *outlived)
{
	struct hf_field fields[] = { HF_FIELD_INT("attempt", k->record.attempt),
				     HF_FIELD_INT("count", outlived->count),
				     HF_FIELD_TEXT("names", outlived->names) };

	k->record.outlived = outlived->count;
	hf_copy_text(k->record.outlived_names, sizeof(k->record.outlived_names), outlived->names);
	if (outlived->count > 0)
		hf_session_event(k->sessions, HF_EV_SESSION_OUTLIVED, k->name, fields, 3);
}

/* Processes that were killed so far for the limit of the session's memory. */
static int64_t oom_kills(const struct hf_keeper *k)
{
	int64_t n = k->record.limited & HF_LIMITED_MEMORY ? hf_cgroup_number(&k->tree.group, "memory.events", "oom_kill ") : 0;

	return n > 0 ? n : 0;
}

/* `before`: oom_kills() at the start of the command. */
static void judge_memory(const struct hf_keeper *k, const struct hf_watched *w, int64_t before, struct hf_result *result)
{
	hf_judge_memory(w, oom_kills(k) - before, k->o.mem_max && !(k->record.limited & HF_LIMITED_MEMORY), result);
}

struct hf_result hf_keeper_verify(struct hf_keeper *k)
{
	int64_t before = oom_kills(k);
	struct hf_result result;
	struct hf_watched w;

	if (k->over != HF_CAUSE_NONE)
		return hf_judge_cause(k->over, k->interrupted, " before it could be verified");
	memset(&k->record.leader, 0, sizeof(k->record.leader));
	k->record.phase = HF_PHASE_VERIFYING;
	(void)hf_keeper_note(k);
	w = hf_keeper_helper(k, k->o.verify, k->o.verify_ns, 1);
	result = hf_judge_verifier(&w, &k->stage_err);
	judge_memory(k, &w, before, &result);
	return result;
}

/*
 * An end that comes of losing the lock may be seen before the loss is: a successor ends
 * what it finds, the command first. What cannot be recorded any more is no outcome.
 */
static int is_lost(struct hf_keeper *k)
{
	if (!k->lost &&
	    hf_lock_check_token(k->sessions->locks, k->name, k->record.token, NULL) != HF_E_STALE)
		return 0;
	k->lost = 1;
	if (k->over == HF_CAUSE_NONE)
		k->over = HF_CAUSE_LOST;
	return 1;
}

/* The command ran; what came of it. */
static struct hf_result finish(struct hf_keeper *k, const struct hf_watched *w, int64_t oom_before)
{
	struct hf_result result = hf_judge_command(w);

	k->command_status = hf_shell_status(w);
	if (result.outcome == HF_OUTCOME_TIMED_OUT && k->o.flags & HF_RUN_PRESERVE_STATUS && k->command_status > 0)
		result.exit_status = k->command_status;
	judge_memory(k, w, oom_before, &result);
	tell_left_running(k);
	tell_outlived(k, &w->outlived);
	/* It would have learned that itself, had it had the caller's file (L14). */
	if (result.outcome == HF_OUTCOME_SUCCEEDED && k->output.failed)
		result = hf_result_make(HF_OUTCOME_FAILED, HF_EXIT_AROUND, "its output could not be written: %s",
					strerrordesc_np(k->output.failed));
	if (result.outcome == HF_OUTCOME_SUCCEEDED && k->o.verify)
		result = hf_keeper_seal(k, &result);
	if (result.outcome == HF_OUTCOME_SUCCEEDED && k->o.verify)
		result = hf_keeper_verify(k);
	return result;
}

static struct hf_result run_command(struct hf_keeper *k)
{
	AUTO(hf_child_done) struct hf_child child = HF_CHILD_INIT;
	struct hf_limits limits = { .has_deadline = k->o.deadline_ns > 0, .idle_ns = k->o.idle_ns };
	struct hf_watched watched;
	struct hf_mono begun;
	int64_t oom_before = oom_kills(k);
	int ours = 1, tries = 0, r;

	k->stage_err.code = 0;
	k->command_status = -1;
	do {
		r = start(k, &child, &begun, &ours);
		if (r != 0)
			hf_keeper_reap_child(k, &child);
	} while (r == HF_STAGE_AGAIN && tries++ == 0);
	if (r != 0) {
		close_terminal(k);
		if (r == -ECANCELED && ours)
			return hf_judge_cause(k->over, k->interrupted, BEFORE_START);
		return hf_judge_not_started(k->o.argv[0], r, ours, &k->stage_err);
	}
	limits.deadline.ns = begun.ns + k->o.deadline_ns;
	watched = hf_keeper_watch(k, &child, &limits);
	close_terminal(k);
	return finish(k, &watched, oom_before);
}

/* Between the stage's begin and end. */
static struct hf_result run_staged(struct hf_keeper *k)
{
	const struct hf_stage none = { 0 }, *stage = k->stage ? k->stage : &none;
	struct hf_err err = HF_ERR_INIT;
	int r = stage->begin ? stage->begin(stage->arg, k->record.attempt, &err) : 0;
	struct hf_result result;

	if (r < 0)
		return hf_judge_not_started(k->o.argv[0], r, 1, &err);
	result = run_command(k);
	if (!stage->end)
		return result;
	if (is_lost(k))
		result = hf_judge_cause(HF_CAUSE_LOST, 0, "");
	if (result.outcome == HF_OUTCOME_SUCCEEDED && stage->land)
		result = hf_keeper_land(k, &result);
	if (is_lost(k) && !k->landed)
		result = hf_judge_cause(HF_CAUSE_LOST, 0, "");
	r = stage->end(stage->arg, result.outcome);
	k->record.kept = r == HF_STAGE_KEPT;
	if (r < 0 && result.outcome == HF_OUTCOME_SUCCEEDED)
		return hf_result_make(HF_OUTCOME_FAILED, HF_EXIT_AROUND, "its work was not kept: %s",
				      strerrordesc_np(-r));
	return result;
}

struct hf_result hf_keeper_attempt(struct hf_keeper *k)
{
	struct hf_session_record *record = &k->record;
	struct hf_result result;
	int r;

	k->interrupted = 0;
	k->landed = 0;
	record->phase = HF_PHASE_STARTING;
	record->attempt++;
	record->kills = 0;
	record->began_ns = 0;
	record->deadline_ns = 0;
	record->next_ns = 0;
	record->measured = 0;
	record->outlived = 0;
	record->outlived_names[0] = '\0';
	record->kept = 0;
	memset(&record->leader, 0, sizeof(record->leader));
	hf_activity_forget(k->sessions, k->name);
	r = saves_first(k) ? hf_keeper_save(k) : 0;
	/* What came while the lock, the remains and the disk were waited for. */
	hf_keeper_listen(k);
	if (r < 0)
		result = hf_judge_not_started(k->o.argv[0], r, 1, NULL);
	else if (k->over != HF_CAUSE_NONE)
		result = hf_judge_cause(k->over, k->interrupted, BEFORE_START);
	else
		result = run_staged(k);
	/* Before the lock is asked: its guard may be stuck, and that is no time of the command's. */
	record->ended = hf_wall_now();
	record->ran_ns = record->began_ns ? hf_boot_now().ns - record->began_ns : 0;
	hf_keeper_account(k);
	if (is_lost(k) && !k->landed)
		result = hf_judge_cause(HF_CAUSE_LOST, 0, "");
	hf_session_conclude(k->sessions, record, result.outcome, result.exit_status, result.cause);
	return result;
}
