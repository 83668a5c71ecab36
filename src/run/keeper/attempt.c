/* run/keeper/attempt.c - one attempt: intent, start, watch, verify, judge. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "holdfast/exit.h"
#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/run/keeper/keeper.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

#define STATUS_TIMED_OUT HF_EXIT_TIMED_OUT
#define STATUS_AROUND    HF_EXIT_AROUND
#define STATUS_SIGNAL    HF_EXIT_SIGNAL

int hf_keeper_save(struct hf_keeper *k)
{
	int r;

	if (k->lost)
		return HF_E_STALE;
	r = hf_session_save(k->sessions, &k->record, k->record.token, NULL);
	/* The next renewal finds it as well; nothing is written behind a successor's back. */
	if (r == HF_E_STALE)
		k->renew_at = hf_mono_now();
	return r;
}

static void set_outcome(struct hf_keeper *k, enum hf_outcome outcome, int status,
			const char *format, ...) __attribute__((format(printf, 4, 5)));

static void set_outcome(struct hf_keeper *k, enum hf_outcome outcome, int status,
			const char *format, ...)
{
	char cause[HF_RUN_CAUSE_MAX];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(cause, sizeof(cause), format, args);
	va_end(args);
	k->record.outcome = outcome;
	k->record.exit_status = status;
	hf_session_clean_text(k->record.cause, sizeof(k->record.cause), cause);
}

/* The exit status that a shell would give. */
static int shell_status(const struct hf_watched *w)
{
	return w->code == CLD_EXITED ? w->status : STATUS_SIGNAL + w->status;
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

/* What the command's end means. Only exit 0, with nothing else against it, is success. */
static void judge(struct hf_keeper *k, const struct hf_watched *w)
{
	int status = shell_status(w);
	char how[48];

	describe(w, how, sizeof(how));
	switch (w->end) {
	case HF_END_DEADLINE:
	case HF_END_IDLE:
		set_outcome(k, HF_OUTCOME_TIMED_OUT, STATUS_TIMED_OUT, "%s", hf_end_text(w->end));
		return;
	case HF_END_STOP:
	case HF_END_HANGUP:
		/* It may have ended well when asked to; it was not finished all the same. */
		set_outcome(k, HF_OUTCOME_STOPPED,
			    status ? status
				   : STATUS_SIGNAL + (w->end == HF_END_STOP ? SIGTERM : SIGHUP),
			    "%s (%s)", hf_end_text(w->end), how);
		return;
	case HF_END_LOST:
		set_outcome(k, HF_OUTCOME_LOST_LOCK, STATUS_AROUND, "%s", hf_end_text(w->end));
		return;
	case HF_END_SUPERVISOR:
		set_outcome(k, HF_OUTCOME_ABANDONED, STATUS_AROUND, "%s", hf_end_text(w->end));
		return;
	case HF_END_NONE:
	case HF_END_LEFTOVERS:
	default:
		/* A terminal that is closed may end it before it ends us: it was asked to stop. */
		set_outcome(k,
			    w->code != CLD_EXITED && w->status == SIGHUP ? HF_OUTCOME_STOPPED
			    : status					 ? HF_OUTCOME_FAILED
									 : HF_OUTCOME_SUCCEEDED,
			    status, "%s", how);
		return;
	}
}

/* -- starting -------------------------------------------------------------------- */

static struct hf_spawn spawn_of(struct hf_keeper *k, char *const *argv)
{
	return (struct hf_spawn){ .argv = argv,
				  .envp = k->envp,
				  .stdio = { k->output.child[0], k->output.child[1],
					     k->output.child[2] },
				  .terminal = k->output.terminal >= 0,
				  .group = k->group,
				  .mask = &k->mask,
				  .cgroup = &k->tree.group,
				  .mark = k->record.mark };
}

int hf_keeper_wants_pty(const struct hf_keeper *k)
{
	return !k->detached && (k->o.flags & HF_RUN_LOG || k->o.idle_ns > 0) && isatty(STDIN_FILENO) &&
	       isatty(STDOUT_FILENO);
}

/* Captured output needs pipes, or a pty when somebody sits at a terminal. */
static int open_output(struct hf_keeper *k)
{
	struct hf_link_news news = { .kind = HF_LINK_TERMINAL };
	int r;

	if (k->output.log.fd < 0 && k->o.idle_ns == 0)
		return 0;
	r = hf_output_open(&k->output, k->own_session);
	if (r < 0 || k->output.terminal < 0)
		return r;
	if (ioctl(k->output.terminal, TIOCSCTTY, 0) < 0)
		return -errno;
	hf_keeper_tell(k, &news, k->output.streams[0].from);
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
	if (k->output.on_pty)
		hf_keeper_tell(k, &news, -1);
	k->output.on_pty = 0;
}

static void tell_started(struct hf_keeper *k)
{
	struct hf_link_news news = { .kind = HF_LINK_STARTED };
	struct hf_field fields[] = { HF_FIELD_INT("attempt", k->record.attempt),
				     HF_FIELD_INT("leader", k->record.leader.pid),
				     HF_FIELD_TEXT("command", k->record.command),
				     HF_FIELD_TEXT("tree", k->tree.group.fd >= 0 ? "cgroup" : "walk") };

	news.report.token = k->record.token;
	news.report.attempt = k->record.attempt;
	news.report.pid = k->record.leader.pid;
	news.report.supervisor = k->record.supervisor;
	hf_session_event(k->sessions, HF_EV_SESSION_STARTED, k->name, fields, 4);
	/* Who waits for the start of a loop waits for its first attempt. In the foreground
	 * nobody does, and a message would only wake the supervisor. */
	if (k->detached && !k->is_started)
		hf_keeper_tell(k, &news, -1);
	k->is_started = 1;
}

/*
 * Makes the child, writes down who it is, and only then lets it go. 0 or -errno; *ret_ours:
 * it failed here, and not in the command's exec.
 */
static int start(struct hf_keeper *k, struct hf_child *child, int *ret_ours)
{
	AUTO_FD unsynced = -1;
	struct hf_spawn spawn;
	int r = open_output(k);

	*ret_ours = 1;
	if (r < 0)
		return r;
	spawn = spawn_of(k, k->o.argv);
	r = hf_spawn(&spawn, child);
	hf_output_close_child(&k->output);
	if (r < 0)
		return r;
	r = hf_proc_identify((int32_t)child->pid, &k->record.leader, NULL);
	k->record.phase = HF_PHASE_RUNNING;
	k->record.began_ns = hf_boot_now().ns;
	k->record.deadline_ns = k->o.deadline_ns ? k->record.began_ns + k->o.deadline_ns : 0;
	if (r == 0)
		r = k->lost ? HF_E_STALE
			    : hf_session_write(k->sessions, &k->record, k->record.token, &unsynced, NULL);
	*ret_ours = r < 0;
	/* What the death of a process cannot undo is enough to let it go; while it becomes the
	 * command, the disk gets it too, before anybody learns that it runs. */
	if (r == 0)
		r = hf_spawn_go(child);
	if (r == 0 && unsynced >= 0)
		(void)hf_sys.fdatasync(unsynced);
	if (r == 0)
		r = hf_spawn_result(child);
	if (r == 0)
		tell_started(k);
	else
		hf_child_done(child); /* one that was not let go ends now */
	return r;
}

/*
 * A child that was made and did not become the command: it is about to exit. Only that one is
 * awaited: what an earlier attempt left running may go on.
 */
static void reap_child(struct hf_keeper *k, const struct hf_child *child)
{
	siginfo_t info;

	while (child->pid > 0 && waitid(P_PID, (id_t)child->pid, &info, WEXITED) < 0 && errno == EINTR)
		continue;
	hf_output_drain(&k->output);
}

/* The command never ran. What was made for it is taken back. */
static void not_started(struct hf_keeper *k, const struct hf_child *child, int error, int ours)
{
	reap_child(k, child);
	if (error == HF_E_STALE)
		set_outcome(k, HF_OUTCOME_LOST_LOCK, STATUS_AROUND, "%s", hf_end_text(HF_END_LOST));
	else if (ours)
		set_outcome(k, HF_OUTCOME_NOT_STARTED, STATUS_AROUND, "it could not be started: %s",
			    error < -4095 ? hf_err_info(error) ? hf_err_info(error)->text : "error"
					  : strerrordesc_np(-error));
	else
		set_outcome(k, HF_OUTCOME_NOT_STARTED, hf_spawn_status(-error), "%.100s: %s",
			    k->o.argv[0], strerrordesc_np(-error));
}

/* -- helpers: verifier, until, notify ---------------------------------------------- */

/* A file that holds `text`, to be read from its start; -1 on failure. */
static int text_file(const char *text)
{
	AUTO_FD fd = memfd_create("holdfast", MFD_CLOEXEC);

	if (fd < 0 || hf_write_all(fd, text, strlen(text)) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return -1;
	return fd_take(&fd);
}

struct hf_watched hf_keeper_helper(struct hf_keeper *k, const char *command, int64_t limit_ns,
				   const char *input)
{
	AUTO(hf_child_done) struct hf_child child = HF_CHILD_INIT;
	AUTO_FD stdin_fd = input ? text_file(input) : hf_open_at(AT_FDCWD, "/dev/null", O_RDONLY, 0);
	char shell[] = "sh", dash_c[] = "-c";
	char *argv[] = { shell, dash_c, (char *)(uintptr_t)command, NULL };
	struct hf_watched none = { .code = 0, .status = ENOMEM };
	struct hf_spawn spawn;
	int r = 0;

	/* Its output goes where the command's goes; a terminal of its own it does not get. */
	if (k->output.log.fd >= 0)
		r = hf_output_open(&k->output, 0);
	if (r == 0) {
		spawn = spawn_of(k, argv);
		spawn.stdio[0] = stdin_fd;
		r = hf_spawn(&spawn, &child);
	}
	hf_output_close_child(&k->output);
	if (r == 0)
		r = hf_spawn_go(&child);
	if (r == 0)
		r = hf_spawn_result(&child);
	if (r < 0) {
		none.status = -r;
		hf_auto_close(&child.go);
		reap_child(k, &child);
		return none;
	}
	return hf_keeper_watch(k, &child, limit_ns, 0);
}

/* Positive proof: only exit 0 of the verifier leaves the outcome a success. */
static void verify(struct hf_keeper *k)
{
	struct hf_watched w;
	char how[48];

	if (!k->o.verify || k->record.outcome != HF_OUTCOME_SUCCEEDED)
		return;
	if (k->end != HF_END_NONE) {
		set_outcome(k, HF_OUTCOME_STOPPED, STATUS_SIGNAL + SIGTERM,
			    "%s before it could be verified", hf_end_text(k->end));
		return;
	}
	/* Nothing is a success until it is verified, and the command runs no more. */
	set_outcome(k, HF_OUTCOME_NONE, 0, "%s", "");
	memset(&k->record.leader, 0, sizeof(k->record.leader));
	k->record.phase = HF_PHASE_VERIFYING;
	(void)hf_keeper_save(k);
	w = hf_keeper_helper(k, k->o.verify, k->o.verify_ns, NULL);
	if (w.end >= HF_END_STOP) {
		judge(k, &w);
	} else if (w.code == 0) {
		set_outcome(k, HF_OUTCOME_VERIFY_FAILED, 1, "the verifier could not be run: %s",
			    strerrordesc_np(w.status));
	} else if (w.end != HF_END_NONE) {
		set_outcome(k, HF_OUTCOME_VERIFY_FAILED, 1, "the verifier did not end in time");
		k->end = HF_END_NONE;
	} else if (w.code != CLD_EXITED || w.status != 0) {
		describe(&w, how, sizeof(how));
		set_outcome(k, HF_OUTCOME_VERIFY_FAILED, 1, "the verifier said no: %s", how);
	} else {
		set_outcome(k, HF_OUTCOME_SUCCEEDED, 0, "exit 0, verified");
	}
}

/* -- the whole ---------------------------------------------------------------------- */

/*
 * An end that comes of losing the lock may be seen before the loss is: a successor ends
 * what it finds, the command first. What cannot be recorded any more is no outcome.
 */
static void check_lost(struct hf_keeper *k)
{
	if (!k->lost && hf_lock_check_token(k->sessions->locks, k->name, k->record.token, NULL) !=
				HF_E_STALE)
		return;
	k->lost = 1;
	k->end = HF_END_LOST;
	set_outcome(k, HF_OUTCOME_LOST_LOCK, STATUS_AROUND, "%s", hf_end_text(HF_END_LOST));
}

/* Counts, times and the event. The caller saves. */
static void conclude(struct hf_keeper *k, enum hf_outcome before, const char *cause_before)
{
	struct hf_session_record *r = &k->record;
	enum hf_outcome outcome = r->outcome;
	char cause[HF_RUN_CAUSE_MAX];

	memcpy(cause, r->cause, sizeof(cause));
	r->ended = hf_wall_now();
	r->ran_ns = r->began_ns ? hf_boot_now().ns - r->began_ns : 0;
	/* It is compared with the attempt before. */
	r->outcome = before;
	hf_copy_text(r->cause, sizeof(r->cause), cause_before);
	hf_session_conclude(k->sessions, r, outcome, r->exit_status, cause);
}

void hf_keeper_attempt(struct hf_keeper *k)
{
	AUTO(hf_child_done) struct hf_child child = HF_CHILD_INIT;
	char cause_before[HF_RUN_CAUSE_MAX];
	enum hf_outcome before = k->record.outcome;
	int r, ours = 1;

	(void)snprintf(cause_before, sizeof(cause_before), "%s", k->record.cause);
	k->record.phase = HF_PHASE_STARTING;
	k->record.attempt++;
	k->record.kills = 0;
	k->record.began_ns = 0;
	k->record.deadline_ns = 0;
	r = hf_keeper_save(k);
	if (r == 0)
		r = hf_keeper_environment(k);
	if (r == 0)
		r = start(k, &child, &ours);
	if (r < 0) {
		not_started(k, &child, r, ours);
		close_terminal(k);
	} else {
		struct hf_watched w = hf_keeper_watch(k, &child, k->o.deadline_ns, k->o.idle_ns);

		close_terminal(k);
		judge(k, &w);
		if (k->o.flags & HF_RUN_LEAVE_RUNNING && hf_tree_reap(&k->tree)) {
			struct hf_field left[] = { HF_FIELD_INT("attempt", k->record.attempt) };

			hf_session_event(k->sessions, HF_EV_SESSION_LEFT_RUNNING, k->name, left, 1);
		}
		/* A reason to end the session does not end it twice; limits are of one attempt. */
		if (k->end < HF_END_STOP)
			k->end = HF_END_NONE;
		verify(k);
	}
	check_lost(k);
	conclude(k, before, cause_before);
}
