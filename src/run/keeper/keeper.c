/* run/keeper/keeper.c - the keeper's life: lock, admission, what was before, the attempts, the end. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/exec/lookup.h"
#include "hf/lock/store.h"
#include "hf/proc/blocked.h"
#include "hf/proc/here.h"
#include "hf/run/keeper/keeper.h"
#include "hf/run/session/owner.h"
#include "hf/run/session/notes/recent.h"
#include "hf/run/session/remove.h"
#include "hf/run/supervisor/remains/remains.h"
#include "hf/sys/calls.h"
#include "hf/sys/fd/fdpass.h"

void hf_keeper_tell(struct hf_keeper *k, const struct hf_link_news *news, int fd)
{
	/* Only the last word is waited for: a supervisor that is stopped must not stop us. */
	(void)hf_send_fd(k->link, news, sizeof(*news), news->kind == HF_LINK_ENDED ? 0 : MSG_DONTWAIT, fd);
}

/* -- identity ------------------------------------------------------------------- */

int hf_keeper_is_orphan(const struct hf_keeper *k)
{
	return getppid() != k->parent || (k->parent != k->supervisor && hf_pidfd_exited(k->supervisor_fd) != 0);
}

void hf_keeper_set_comm(const struct hf_keeper *k)
{
	(void)prctl(PR_SET_NAME,
		    k->o.flags & HF_RUN_LEAVE_RUNNING ? HF_COMM_LEAVER : HF_COMM_KEEPER);
}

static int set_up(struct hf_keeper *k, struct hf_state *state, struct hf_err *err)
{
	static const int wanted[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD };
	struct hf_journal *journal = NULL;
	sigset_t set;
	int r;

	/* Out of the terminal's reach: Ctrl-C and Ctrl-Z are for the command. Where that gets a
	 * pty, we lead the pty's session: Ctrl-Z stops nobody whose parent is outside of it. */
	hf_keeper_peek(k, state);
	k->own_session = hf_keeper_wants_pty(k) && setsid() >= 0;
	/* What has a terminal asks for its kind; a cron job has none. */
	if (k->own_session && k->detached)
		(void)setenv("TERM", "xterm-256color", 0);
	if (!k->own_session)
		(void)setpgid(0, 0);
	hf_keeper_set_comm(k);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return FAIL_SYS(err, "subreaper", k->name);
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		sigaddset(&set, wanted[i]);
	k->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (k->signals < 0)
		return FAIL_SYS(err, "signalfd", k->name);
	if (k->supervisor_fd < 0)
		k->supervisor_fd = hf_sys.pidfd_open(k->supervisor, 0);
	if (k->supervisor_fd < 0)
		return FAIL_SYS(err, "pidfd_open", "the supervisor");
	/* While it waits for the lock it looks at nothing else: its place in the queue ends with
	 * for which process it waits. Tied to the thread that forked us, which is the only one there. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Opened first, still our parent after: it is the one. */
	if (hf_keeper_is_orphan(k))
		return FAIL(err, HF_E_GONE, "supervisor", k->name, "it is already gone");
	/* Supervision works without its journal. */
	if (hf_journal_open(state, NULL, &journal, NULL) < 0)
		journal = NULL;
	r = hf_sessions_open(state, journal, &k->sessions, err);
	if (r < 0)
		return r;
	k->record.keeper = *hf_locks_self(k->sessions->locks);
	return hf_proc_identify_open(&k->record.keeper, (int32_t)k->supervisor, k->supervisor_fd, &k->record.supervisor,
				     err);
}

/* -- what was before ------------------------------------------------------------------ */

/* A stage that says nothing but a number. */
static int fail_stage(const struct hf_keeper *k, int r, const char *step, struct hf_err *err)
{
	return err->code ? r : hf_fail_sys(err, -r, step, k->name);
}

static int settle(struct hf_keeper *k, struct hf_err *err)
{
	struct hf_session_record old;
	int killed;
	int r = hf_remains_settle(k->sessions, k->name, k->record.token, &old, &killed, err);

	if (r < 0)
		return r == HF_E_REMAINS ? hf_keeper_refuse(k, err) : r;
	/* Notices and failures are counted over runs: a loop may be cron's. */
	k->record.failures = old.failures;
	k->record.same = old.same;
	k->options_before = old.options;
	/* Read under our lock: nobody has written since. */
	k->record.tail = old.tail;
	k->record.outcome = old.outcome;
	k->record.exit_status = old.exit_status;
	k->record.ran_ns = old.ran_ns;
	k->record.ended = old.ended;
	(void)snprintf(k->record.cause, sizeof(k->record.cause), "%s", old.cause);
	if (old.token != 0 && k->stage && k->stage->recover) {
		r = k->stage->recover(k->stage->arg, old.token, err);
		if (r < 0)
			return fail_stage(k, r, "recover", err);
	}
	return hf_keeper_resume(k, &old, err);
}

/* A mistyped one would be noticed when the command has done its work. */
static int check_lines(const struct hf_keeper *k, struct hf_err *err)
{
	const struct {
		const char *what, *line;
	} lines[] = { { "verifier", k->o.verify }, { "until", k->o.until }, { "notify", k->o.notify } };
	char dir[PATH_MAX];
	int r = 0;

	if (!getcwd(dir, sizeof(dir)))
		return 0;
	for (size_t i = 0; r == 0 && i < sizeof(lines) / sizeof(lines[0]); i++)
		r = hf_lookup_line(lines[i].what, lines[i].line, (const char *const *)k->given.env, dir, err);
	return r;
}

/* The options are known: what the layer above has to say. A refusal has left its event. */
static int admit(struct hf_keeper *k, struct hf_err *err)
{
	struct hf_stage_session session = { .name = k->name,
					    .token = k->record.token,
					    .o = &k->o,
					    .resumed = (k->o.flags & HF_RUN_RESUME) != 0 };
	int r = hf_keeper_enter_directory(k, err);

	if (r == 0 && check_lines(k, err) < 0)
		return hf_keeper_refuse(k, err);
	if (r < 0 || !k->stage || !k->stage->admit)
		return r;
	r = k->stage->admit(k->stage->arg, &session, err);
	if (r == HF_STAGE_NONE)
		k->stage = NULL;
	return r < 0 ? hf_keeper_refuse(k, err) : 0;
}

/* -- what the command gets --------------------------------------------------------------- */

/* *ret_limit: what came of the limits, which need no group. */
static int make_group(struct hf_keeper *k, int *ret_limit, struct hf_err *err)
{
	struct hf_cgroup own = HF_CGROUP_INIT;
	int r = k->o.tree == HF_TREE_WALK ? -ENOTSUP : hf_cgroup_own(&own);

	if (r == 0) {
		(void)hf_cgroup_sweep(&own);
		r = hf_cgroup_make(&own, k->record.token, &k->tree.group);
	}
	*ret_limit = hf_keeper_limit(k, &own, err);
	hf_cgroup_done(&own);
	if (r == 0) {
		hf_copy_text(k->record.cgroup, sizeof(k->record.cgroup), k->tree.group.path);
		k->record.cgroup_inode = k->tree.group.inode;
	}
	return r;
}

/* The log that was asked for is there before the command; one that was not begins with the first output. */
static int begin_log(struct hf_keeper *k, struct hf_err *err)
{
	/* What outlives us goes on writing; nobody would read a pipe then. */
	int direct = k->detached && k->o.flags & HF_RUN_LEAVE_RUNNING, asked = k->detached || k->o.flags & HF_RUN_LOG;
	struct hf_log_plan plan = { .sessions = k->sessions,
				    .name = k->name,
				    .token = k->record.token,
				    .max = direct || k->o.log_max == HF_RUN_LOG_UNLIMITED ? 0 : k->o.log_max,
				    .keep = (k->o.flags & HF_RUN_RESUME) != 0 };

	k->output.direct = direct;
	k->output.alone = k->detached && !direct;
	k->output.passive = !asked;
	k->record.log = hf_log_run(k->sessions, k->name, k->record.token, plan.keep);
	if (k->own_session && k->detached) {
		int r = hf_viewers_open(&k->viewers, k->sessions, k->name);

		if (r < 0)
			return hf_fail_sys(err, -r, "terminal", k->name);
	}
	if (asked)
		return hf_log_begin(&k->output.log, k->sessions, k->name, plan.token, plan.keep, plan.max, err);
	hf_log_begin_later(&k->output.log, &plan);
	return 0;
}

/*
 * Everything that a tree needs before its first process. What can fail comes first, and changes
 * nothing of the run before: its options and its log are still the session's then.
 */
static int prepare(struct hf_keeper *k, struct hf_err *err)
{
	int r, limited;

	(void)hf_mark_prefix(k->sessions->dir_inode, k->name, k->tree.mark);
	/* What is left running belongs to the session around us, and keeps the mark of that. */
	if (!(k->o.flags & HF_RUN_LEAVE_RUNNING))
		hf_session_set_marks(k->sessions, &k->record);
	k->tree.limit = k->record.mark;
	hf_session_shown_command(k->o.argv, k->record.command);
	k->record.started = hf_wall_now();
	k->record.hang_ns = k->o.hang_ns;
	k->record.grace_ns = k->o.grace_ns > 0 ? k->o.grace_ns : 0;
	k->record.loop = (k->o.flags & HF_RUN_LOOP) != 0;
	k->record.logged = hf_keeper_logs(k);
	k->record.outlived = 0;
	k->record.outlived_names[0] = '\0';
	r = make_group(k, &limited, err);
	if (r < 0 && k->o.tree == HF_TREE_CGROUP)
		return hf_fail_sys(err, -r, "cgroup", k->name);
	if (limited < 0)
		return hf_keeper_refuse(k, err);
	r = hf_recent_add(k->sessions, k->name);
	if (r < 0)
		return hf_fail_sys(err, -r, "recent", k->name);
	r = hf_keeper_store(k, err);
	if (r == 0 && k->record.logged)
		r = begin_log(k, err);
	return r;
}

/* -- the end ------------------------------------------------------------------------------- */

/*
 * The lock was broken and nobody has it: then the outcome can still be recorded, by taking
 * the lock for that. Else the session would look as if its keepers had been killed.
 */
static void record_lost(struct hf_keeper *k)
{
	struct hf_lock_opts opts = { .size = sizeof(opts),
				     .ttl_ns = HF_RUN_TTL_NS,
				     .owner = &k->record.keeper };
	struct hf_session_record now;
	struct hf_lock *lock = NULL;

	if (!k->lost || hf_lock_acquire(k->sessions->locks, k->name, &opts, &lock, NULL, NULL) < 0)
		return;
	k->record.phase = HF_PHASE_ENDED;
	/* Unless a successor came and went, or a reap has completed it. */
	if (hf_session_load(k->sessions, k->name, &now, NULL) == 0 && now.token == k->record.token &&
	    now.phase != HF_PHASE_ENDED)
		(void)hf_session_save(k->sessions, &k->record, hf_lock_token(lock), NULL);
	(void)hf_lock_release(lock, NULL);
	hf_lock_free(lock);
}

/* The outcome is on disk; now the name may be another session's. */
static void finish(struct hf_keeper *k)
{
	record_lost(k);
	hf_keeper_store_done(k, 0);
	/* Its name is never used again, so this is safe even when the lock is another's by now. */
	if (k->tree.group.fd >= 0 &&
	    !(k->o.flags & HF_RUN_LEAVE_RUNNING && hf_cgroup_populated(&k->tree.group) > 0))
		hf_cgroup_remove(&k->tree.group);
	hf_keeper_leave_fleet(k);
	if (k->slot)
		(void)hf_lock_release(k->slot, NULL);
	if (k->lock && !k->lost)
		(void)hf_lock_release(k->lock, NULL);
}

_Noreturn void hf_keeper_main(struct hf_keeper *k, struct hf_state *state)
{
	struct hf_link_news news = { .kind = HF_LINK_ENDED };
	int r;

	for (int i = 0; i < 2; i++)
		hf_auto_close(&k->not_ours[i]);
	k->command_status = -1;
	r = set_up(k, state, &news.err);
	if (r == 0)
		r = hf_keeper_check_depth(k, &news.err);
	if (r == 0)
		r = hf_keeper_take_lock(k, &news.report.blocker, &news.err);
	if (r == 0)
		r = settle(k, &news.err);
	if (r == 0)
		r = hf_keeper_take_slot(k, &news.err);
	if (r == 0)
		r = hf_keeper_join_fleet(k, &news.report.blocker, &news.err);
	if (r == 0)
		r = admit(k, &news.err);
	if (r == 0)
		r = prepare(k, &news.err);
	if (r == 0)
		news.report.exit_status = hf_keeper_loop(k);
	news.result = r;
	news.report.token = k->record.token;
	news.report.attempt = k->record.attempt;
	news.report.supervisor = k->record.supervisor;
	news.report.outcome = r == 0 ? k->record.outcome : HF_OUTCOME_NONE;
	memcpy(news.report.cause, k->record.cause, sizeof(news.report.cause));
	/* As one that waits for its name: it came to an end, and not to an error. */
	if (r == HF_E_CANCELLED) {
		hf_keeper_report_given_up(k, &news.report);
		news.result = 0;
	}
	memcpy(news.report.resumed, k->resumed, sizeof(news.report.resumed));
	news.report.outlived = k->record.outlived;
	news.report.command_status = k->command_status;
	news.report.ran_ns = r == 0 && k->record.ran_ns > 0 ? k->record.ran_ns : -1;
	news.report.cpu_ns = k->record.measured ? k->record.cpu_ns : -1;
	news.report.memory_peak_bytes = k->record.measured ? k->record.peak_bytes : -1;
	news.report.output_bytes = k->record.measured ? k->record.output_bytes : -1;
	memcpy(news.report.outlived_names, k->record.outlived_names, sizeof(news.report.outlived_names));
	finish(k);
	hf_viewers_done(&k->viewers);
	if (r == 0 && k->o.flags & HF_RUN_REMOVE && !k->lost)
		(void)!hf_session_remove(k->sessions, k->name, k->record.token, NULL);
	hf_keeper_tell(k, &news, -1);
	if (r == 0)
		hf_sessions_prune_now_and_then(k->sessions);
	hf_notifier_leave(k);
	_exit(0);
}
