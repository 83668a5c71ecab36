/* run/session/inspect.c - what a session is doing: its record, its processes, and what they use. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/run/options_json.h"
#include "hf/run/session/log/log.h"
#include "hf/run/session/notes/beat.h"
#include "hf/run/session/inspect.h"
#include "hf/run/session/notes/queued.h"
#include "hf/run/session/notes/activity.h"
#include "hf/run/session/notes/seen.h"
#include "hf/run/session/record/stored.h"
#include "hf/run/session/notes/usage.h"
#include "hf/proc/stat.h"
#include "hf/sys/calls.h"

/* -- state ------------------------------------------------------------------------ */

enum hf_session_state hf_session_state_of(enum hf_outcome outcome)
{
	switch (outcome) {
	case HF_OUTCOME_SUCCEEDED:
		return HF_SESSION_DONE;
	case HF_OUTCOME_VERIFY_FAILED:
		return HF_SESSION_VERIFY_FAILED;
	case HF_OUTCOME_STOPPED:
	case HF_OUTCOME_INTERRUPTED:
		return HF_SESSION_STOPPED;
	case HF_OUTCOME_NONE:
	case HF_OUTCOME_GAVE_UP:
	case HF_OUTCOME_CONFLICT:
	case HF_OUTCOME_DECLINED:
	case HF_OUTCOME_FAILED:
	case HF_OUTCOME_TIMED_OUT:
	case HF_OUTCOME_LOST_LOCK:
	case HF_OUTCOME_ABANDONED:
	case HF_OUTCOME_NOT_STARTED:
	default:
		return HF_SESSION_FAILED;
	}
}

/* Stopped by a signal, and of the identity that is on record. */
static int is_stopped(const struct hf_sessions *sessions, const struct hf_proc_id *id)
{
	AUTO_FD pidfd = -1;
	struct hf_stat st;
	int32_t number;

	return id->pid > 0 && hf_proc_open(id, sessions->judge_flags, &pidfd, NULL) == 0 &&
	       hf_proc_number(pidfd, id->pid, &number) == 0 && hf_stat_read(number, &st) == 0 &&
	       (st.state == 'T' || st.state == 't');
}

static enum hf_session_state live_state(const struct hf_sessions *sessions,
					const struct hf_session_record *r, int64_t output_age)
{
	switch (r->phase) {
	case HF_PHASE_STOPPING:
		return HF_SESSION_STOPPING;
	case HF_PHASE_STARTING:
		return HF_SESSION_STARTING;
	case HF_PHASE_LANDING:
		return HF_SESSION_LANDING;
	case HF_PHASE_WAITING:
		return r->failures > 0 ? HF_SESSION_FAILING : HF_SESSION_WAITING;
	case HF_PHASE_RUNNING:
	case HF_PHASE_VERIFYING:
	case HF_PHASE_ENDED:
	default:
		break;
	}
	if (is_stopped(sessions, &r->leader) || is_stopped(sessions, &r->keeper))
		return HF_SESSION_SUSPENDED;
	if (output_age >= 0 && output_age > r->hang_ns)
		return HF_SESSION_HUNG;
	/* Health is what came of it, not that it is awake. */
	if (r->loop && r->failures > 0)
		return HF_SESSION_FAILING;
	return r->phase == HF_PHASE_VERIFYING ? HF_SESSION_VERIFYING : HF_SESSION_RUNNING;
}

int hf_session_is_kept(const struct hf_sessions *sessions, const struct hf_session_record *r,
		       char evidence[HF_EVIDENCE_MAX])
{
	/* The keeper's evidence is the one that is shown; the supervisor's when it is gone. */
	return hf_proc_liveness(&r->keeper, sessions->judge_flags, evidence) != HF_DEAD ||
	       hf_proc_liveness(&r->supervisor, sessions->judge_flags, evidence) != HF_DEAD;
}

/* -- numbers ------------------------------------------------------------------------ */

static void measure(struct hf_sessions *sessions, const struct hf_session_record *r, struct hf_session_info *info)
{
	struct hf_usage_now now;
	struct hf_usage seen;

	if (hf_usage_measure(r, &now) < 0)
		return;
	hf_usage_read(sessions, r->name, r->token, &seen);
	info->processes = now.processes;
	info->memory_bytes = now.memory_bytes;
	info->memory_peak_bytes = now.memory_bytes > seen.peak_bytes ? now.memory_bytes : seen.peak_bytes;
	/* Between two attempts the record has what was used until then. */
	if (r->measured && r->peak_bytes > info->memory_peak_bytes)
		info->memory_peak_bytes = r->peak_bytes;
	info->cpu_ns = now.cpu_ns;
	info->cpu_permille = hf_usage_permille(&seen, &now, r->began_ns);
}

static int64_t output_age(const struct hf_session_record *r, const struct hf_log_figures *log)
{
	int64_t age, ran = hf_boot_now().ns - r->began_ns;

	if (log->changed.ns == 0)
		return -1;
	age = hf_wall_now().ns - log->changed.ns;
	/* A clock that was set back says nothing; and nobody was silent before they began. */
	if (age < 0)
		return -1;
	return r->began_ns > 0 && age > ran ? ran : age;
}

/* So long may everybody be silent: the heartbeat, which is a file, is read only when it would matter. */
#define USUAL_SILENCE_NS (20 * HF_SEC)

/* How long nothing was heard: no output, and no heartbeat. */
static int64_t silence(struct hf_sessions *sessions, const struct hf_session_record *r, int64_t age)
{
	int64_t beat = age > r->hang_ns || age > USUAL_SILENCE_NS ? hf_beat_age(sessions, r->name, r->token) : -1;

	return beat >= 0 && beat < age ? beat : age;
}

/* -- the whole ------------------------------------------------------------------------ */

static const struct hf_session_info nothing_known = {
	.cause = "",
	.command = "",
	.outlived_names = "",
	.last = { .cause = "", .ran_ns = -1 },
	.tree = "walk",
	.age_ns = -1,
	.ran_ns = -1,
	.deadline_ns = -1,
	.deadline_left_ns = -1,
	.output_age_ns = -1,
	.processes = -1,
	.memory_bytes = -1,
	.cpu_ns = -1,
	.log_bytes = -1,
	.log_dropped_bytes = -1,
	.idle_ns = -1,
	.silent_ns = -1,
	.next_in_ns = -1,
	.cpu_permille = -1,
	.memory_peak_bytes = -1,
	.output_bytes = -1,
	.activity_text = "",
	.activity_age_ns = -1,
};

/* A clock that was set back since makes the age unknown, not zero. */
static int64_t age_of(struct hf_wall start)
{
	return start.ns > 0 && start.ns <= hf_wall_now().ns ? hf_wall_now().ns - start.ns : -1;
}

/* How the attempt ended that the record knows: of the session, or, while that runs, before it. */
static struct hf_session_end end_of(const struct hf_session_record *r)
{
	return (struct hf_session_end){ .outcome = r->outcome,
					.exit_status = r->exit_status,
					.cause = r->cause,
					.ended = r->ended,
					.ran_ns = r->ran_ns > 0 ? r->ran_ns : -1 };
}

static void show_ended(const struct hf_session_record *r, struct hf_session_info *info)
{
	struct hf_session_end end = end_of(r);

	info->state = hf_session_state_of(r->outcome);
	info->outcome = end.outcome;
	info->exit_status = end.exit_status;
	info->cause = end.cause;
	info->ended = end.ended;
	info->ran_ns = end.ran_ns;
	info->outlived = r->outlived;
	info->outlived_names = r->outlived_names;
	info->kept = r->kept;
	if (r->measured) {
		info->cpu_ns = r->cpu_ns;
		info->memory_peak_bytes = r->peak_bytes;
		info->output_bytes = r->output_bytes;
	}
}

static void show_live(struct hf_sessions *sessions, const struct hf_session_record *r,
		      const struct hf_log_figures *log, struct hf_activity_note *note, struct hf_session_info *info)
{
	int64_t left = r->deadline_ns - hf_boot_now().ns;

	if (!hf_session_is_kept(sessions, r, info->evidence)) {
		info->state = HF_SESSION_DEAD_UNREAPED;
		return;
	}
	info->output_age_ns = output_age(r, log);
	info->silent_ns = silence(sessions, r, info->output_age_ns);
	if (r->leader.pid > 0 && hf_activity_read(sessions, r->name, r->token, note) && note->activity != HF_ACTIVITY_NONE) {
		info->activity = note->activity;
		info->activity_text = note->text;
		info->activity_age_ns = note->age_ns;
		if (note->activity == HF_ACTIVITY_WORKING && note->age_ns < HF_RUN_BUSY_NS)
			info->silent_ns = 0;
	}
	info->state = live_state(sessions, r, info->silent_ns);
	if (r->phase == HF_PHASE_WAITING && r->next_ns > 0)
		info->next_in_ns = r->next_ns > hf_boot_now().ns ? r->next_ns - hf_boot_now().ns : 0;
	info->pid = r->leader.pid;
	if (r->deadline_ns > 0)
		info->deadline_left_ns = left > 0 ? left : 0;
	measure(sessions, r, info);
}

void hf_session_show(struct hf_sessions *sessions, const struct hf_session_record *r,
		     hf_session_fn *fn, void *arg)
{
	AUTO(hf_stored_done) struct hf_stored stored = { 0 };
	struct hf_log_figures log = { .bytes = -1 };
	struct hf_session_info info = nothing_known;
	char last_line[HF_LOG_LAST_MAX];
	struct hf_activity_note note = { .age_ns = -1 };

	info.name = r->name;
	info.command = r->command;
	info.token = r->token;
	info.attempt = r->attempt;
	info.failures = r->failures;
	info.loop = r->loop;
	info.supervisor = r->supervisor;
	info.keeper = r->keeper;
	info.leader = r->leader;
	info.tree = r->cgroup[0] ? "cgroup" : "walk";
	info.started = r->started;
	info.age_ns = age_of(r->started);
	if (hf_stored_load(sessions, r->name, r->options, 0, &stored, NULL) == 0) {
		info.argv = stored.o.argv;
		info.cwd = stored.o.cwd;
		info.group = stored.o.group;
		info.idle_ns = stored.o.idle_ns > 0 ? stored.o.idle_ns : -1;
		info.max_active = stored.o.max_active;
		info.priority = stored.o.priority;
		info.limits = (struct hf_session_limits){ .mem_max = stored.o.mem_max,
							  .cpus_centi = stored.o.cpus_centi,
							  .pids_max = stored.o.pids_max,
							  .nice = stored.o.nice,
							  .by_cgroup = r->limited };
		info.end_background = (stored.o.flags & HF_RUN_END_BACKGROUND) != 0;
	}
	info.seen = hf_session_is_seen(sessions, r->name, r->token);
	if (r->logged && hf_log_measure(sessions, r->name, r->log, &log) == 0) {
		info.log_bytes = log.bytes;
		info.log_dropped_bytes = log.dropped;
	}
	if (r->deadline_ns > 0 && r->began_ns > 0)
		info.deadline_ns = r->deadline_ns - r->began_ns;
	if (r->phase == HF_PHASE_ENDED) {
		show_ended(r, &info);
	} else {
		info.last = end_of(r);
		if (log.bytes >= 0)
			info.output_bytes = log.bytes + log.dropped;
		show_live(sessions, r, &log, &note, &info);
		if (r->logged && hf_log_last_line(sessions, r->name, last_line, &info.last_line_partial))
			info.last_line = last_line;
	}
	fn(arg, &info);
}

/* What is known of a session whose keeper lives, but whose record does not tell. */
static void show_owner(struct hf_sessions *sessions, const char *name, const struct hf_session_owner *owner, int damaged,
		       const struct hf_session_record *before, hf_session_fn *fn, void *arg)
{
	struct hf_session_info info = nothing_known;
	char command[HF_RUN_COMMAND_MAX + 1];
	struct hf_run_opts queued = { 0 };

	info.name = name;
	info.state = damaged ? HF_SESSION_UNREADABLE : HF_SESSION_STARTING;
	info.token = owner->token;
	info.keeper = owner->keeper;
	info.supervisor = owner->supervisor;
	info.started = owner->since;
	info.age_ns = age_of(owner->since);
	if (before)
		info.last = end_of(before);
	memcpy(info.evidence, owner->evidence, sizeof(info.evidence));
	if (!damaged && hf_queued_load(sessions, name, owner->token, &queued)) {
		info.state = HF_SESSION_QUEUED;
		hf_session_shown_command(queued.argv, command);
		info.command = command;
		info.argv = queued.argv;
		info.cwd = queued.cwd;
		info.group = queued.group;
		info.max_active = queued.max_active;
		info.priority = queued.priority;
	}
	fn(arg, &info);
	hf_options_free(&queued);
}

int hf_session_load_kept(struct hf_sessions *sessions, const char *name, struct hf_session_record *ret,
			 struct hf_session_owner *ret_owner, struct hf_err *err)
{
	int r = hf_session_load(sessions, name, ret, err);

	if ((r < 0 && r != HF_E_NO_SESSION && r != HF_E_FORMAT) || (r == 0 && ret->phase != HF_PHASE_ENDED))
		return r;
	if (!hf_session_find_owner(sessions, name, ret_owner))
		/* A short session may have written its first record and ended in the meantime. */
		return r == HF_E_NO_SESSION ? hf_session_load(sessions, name, ret, err) : r;
	if (r == 0 && ret->token == ret_owner->token)
		return r;
	/* The record may have come while the owner was looked for. */
	if (r != HF_E_FORMAT)
		r = hf_session_load(sessions, name, ret, NULL);
	if (r == 0 && ret->token == ret_owner->token)
		return 0;
	if (r == 0)
		return HF_KEPT_BEFORE;
	/* Something runs: then there was a record, whatever became of it. */
	return r == HF_E_FORMAT || ret_owner->has_child || hf_session_was_put_away(sessions, name)
		       ? HF_KEPT_DAMAGED
		       : HF_KEPT_NO_RECORD;
}

int hf_session_show_one(struct hf_sessions *sessions, const char *name, hf_session_fn *fn, void *arg,
			struct hf_err *err)
{
	struct hf_session_record record;
	struct hf_session_owner owner;
	int r = hf_session_load_kept(sessions, name, &record, &owner, err);

	if (r == 0)
		hf_session_show(sessions, &record, fn, arg);
	else if (r > 0)
		show_owner(sessions, name, &owner, r == HF_KEPT_DAMAGED, r == HF_KEPT_BEFORE ? &record : NULL, fn, arg);
	return r < 0 ? r : 0;
}

static int look(struct hf_sessions *sessions, const char *name, hf_session_fn *fn, void *arg,
		struct hf_err *err)
{
	return fn ? hf_session_show_one(sessions, name, fn, arg, err)
		  : FAIL(err, -EINVAL, "arguments", "hf_session_look", "NULL");
}

int hf_session_look(struct hf_sessions *sessions, const char *name, hf_session_fn *fn, void *arg,
		    struct hf_err *err)
{
	return hf_err_wrap(err, look(sessions, name, fn, arg, err), "session", name);
}
