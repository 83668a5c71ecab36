/* run/keeper/keeper.c - the keeper's life: lock, admission, what was before, the attempts, the end. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/proc/blocked.h"
#include "hf/proc/here.h"
#include "hf/run/keeper/keeper.h"
#include "hf/run/session/owner.h"
#include "hf/run/supervisor/remains.h"
#include "hf/sys/calls.h"

void hf_keeper_tell(struct hf_keeper *k, const struct hf_link_news *news, int fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec data = { .iov_base = (void *)(uintptr_t)news, .iov_len = sizeof(*news) };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1 };

	if (fd >= 0) {
		struct cmsghdr *header;

		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	}
	/* Only the last word is waited for: a supervisor that is stopped must not stop us. */
	(void)sendmsg(k->link, &message, MSG_NOSIGNAL | (news->kind == HF_LINK_ENDED ? 0 : MSG_DONTWAIT));
}

/* -- who we are ------------------------------------------------------------------- */

/* Is the supervisor gone? */
static int is_orphan(const struct hf_keeper *k)
{
	return getppid() != k->parent || (k->parent != k->supervisor && hf_pidfd_exited(k->supervisor_fd) != 0);
}

static int set_up(struct hf_keeper *k, struct hf_state *state, struct hf_err *err)
{
	static const int wanted[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD };
	struct hf_journal *journal = NULL;
	sigset_t set;
	int r;

	/* Out of the terminal's reach: Ctrl-C and Ctrl-Z are for the command. Where that gets a
	 * pty, we lead the pty's session: Ctrl-Z stops nobody whose parent is outside of it. */
	k->own_session = hf_keeper_wants_pty(k) && setsid() >= 0;
	if (!k->own_session)
		(void)setpgid(0, 0);
	/* A waiter for this name in our own tree tells from it that it will never get it. */
	(void)prctl(PR_SET_NAME,
		    k->o.flags & HF_RUN_LEAVE_RUNNING ? HF_COMM_LEAVER : HF_COMM_KEEPER);
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
	 * whom it waits for. Tied to the thread that forked us, which is the only one there. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Opened first, still our parent after: it is the one. */
	if (is_orphan(k))
		return FAIL(err, HF_E_GONE, "supervisor", k->name, "it is gone already");
	/* Supervision works without its journal. */
	if (hf_journal_open(state, NULL, &journal, NULL) < 0)
		journal = NULL;
	r = hf_sessions_open(state, journal, &k->sessions, err);
	if (r == 0)
		r = hf_proc_self(&k->record.keeper, err);
	if (r == 0)
		r = hf_proc_identify((int32_t)k->supervisor, &k->record.supervisor, err);
	return r;
}

/* -- may it start? ------------------------------------------------------------------ */

static int refuse(struct hf_keeper *k, const struct hf_err *err)
{
	char text[HF_ERR_TEXT_MAX];
	struct hf_field fields[] = { HF_FIELD_TEXT("action", "run"), HF_FIELD_TEXT("reason", text) };

	(void)hf_err_format(err, text, sizeof(text));
	hf_session_event(k->sessions, HF_EV_SESSION_REFUSED, k->name, fields, 2);
	return err->code;
}

static uint64_t current_depth(void)
{
	const char *text = getenv("HOLDFAST_DEPTH");
	uint64_t depth = 0;

	/* One that cannot be read is taken for the deepest: it was not us who wrote it. */
	if (text && text[0] && hf_parse_u64(text, strlen(text), UINT32_MAX - 1, &depth) < 0)
		return UINT32_MAX - 1;
	return depth;
}

static int check_depth(struct hf_keeper *k, struct hf_err *err)
{
	uint64_t depth = current_depth();

	if (depth < k->o.max_depth)
		return 0;
	(void)FAIL(err, HF_E_LIMIT, "depth", k->name,
		   "this would be session %llu within sessions, and the most is %u (--max-depth)",
		   (unsigned long long)depth + 1, k->o.max_depth);
	return refuse(k, err);
}

int hf_group_name(const char *group, char out[HF_NAME_MAX + 1])
{
	return (size_t)snprintf(out, HF_NAME_MAX + 1, "group:%s", group) > HF_NAME_MAX ? -1 : 0;
}

/* A place among those of the group that may run at once. */
static int take_slot(struct hf_keeper *k, struct hf_err *err)
{
	struct hf_lock_opts opts = { .size = sizeof(opts),
				     .mode = HF_LOCK_SLOTS,
				     .slots = k->o.max_active,
				     .ttl_ns = k->o.ttl_ns };
	char name[HF_NAME_MAX + 1];
	int r;

	if (k->o.max_active == 0)
		return 0;
	if (hf_group_name(k->o.group, name) < 0)
		return FAIL(err, HF_E_NAME, "group", k->name, "the group's name is too long");
	r = hf_lock_acquire(k->sessions->locks, name, &opts, &k->slot, NULL, err);
	/* For both of us, as the name is: it is free when the tree is empty. Of more than half of
	 * all slots there can be, some have to do with one. */
	if (r == 0)
		r = hf_lock_add_owner(k->slot, &k->record.supervisor, err);
	if (r == -ENOSPC)
		r = 0;
	if (r == 0 || (r != HF_E_BUSY && r != HF_E_MODE))
		return r;
	if (r == HF_E_MODE)
		(void)FAIL(err, HF_E_LIMIT, "group", k->name,
			   "the group '%s' runs with another --max-active now", k->o.group);
	else
		(void)FAIL(err, HF_E_LIMIT, "group", k->name,
			   "%u of %u sessions of the group '%s' are active (--max-active)",
			   k->o.max_active, k->o.max_active, k->o.group);
	return refuse(k, err);
}

/* The name, for both of us: it is free only when both are gone. */
static int take_lock(struct hf_keeper *k, struct hf_holder *ret_blocker, struct hf_err *err)
{
	struct hf_link_news news = { .kind = HF_LINK_HELD };
	struct hf_lock_opts opts = { .size = sizeof(opts),
				     .wait_ns = k->o.wait_ns,
				     .ttl_ns = k->o.ttl_ns };
	int r = hf_lock_acquire(k->sessions->locks, k->name, &opts, &k->lock, ret_blocker, err);

	if (r < 0)
		return r;
	/* From here on there may be a tree, which is ended before we are. */
	(void)prctl(PR_SET_PDEATHSIG, 0);
	k->record.token = hf_lock_token(k->lock);
	k->renew_at = hf_mono_in(k->o.ttl_ns / 3);
	k->lost_at = hf_mono_in(k->o.ttl_ns);
	r = hf_lock_add_owner(k->lock, &k->record.supervisor, err);
	news.report.token = k->record.token;
	if (r == 0)
		hf_keeper_tell(k, &news, -1);
	if (r == 0 && is_orphan(k))
		r = FAIL(err, HF_E_GONE, "supervisor", k->name, "it is gone already");
	return r;
}

/* -- what was before ------------------------------------------------------------------ */

static int resume(struct hf_keeper *k, const struct hf_session_record *old, struct hf_err *err)
{
	int r = 0;

	if (!(k->o.flags & HF_RUN_RESUME))
		return 0;
	k->record.attempt = old->attempt;
	if (old->token == 0)
		r = FAIL(err, HF_E_NO_SESSION, "resume", k->name, "there is nothing to resume");
	else if (old->outcome == HF_OUTCOME_SUCCEEDED)
		r = FAIL(err, HF_E_FINISHED, "resume", k->name,
			 "attempt %u succeeded; run it anew without --resume", old->attempt);
	if (r < 0)
		return refuse(k, err);
	if (!k->o.argv) {
		r = hf_session_load_command(k->sessions, k->name, &k->stored_argv, err);
		k->o.argv = k->stored_argv;
	}
	return r;
}

static int settle(struct hf_keeper *k, struct hf_err *err)
{
	struct hf_session_record old;
	int killed;
	int r = hf_remains_settle(k->sessions, k->name, k->record.token, &old, &killed, err);

	if (r < 0)
		return r == HF_E_REMAINS ? refuse(k, err) : r;
	/* Notices and failures are counted over runs: a loop may be cron's. */
	k->record.failures = old.failures;
	k->record.same = old.same;
	k->record.outcome = old.outcome;
	k->record.exit_status = old.exit_status;
	k->record.ran_ns = old.ran_ns;
	k->record.ended = old.ended;
	(void)snprintf(k->record.cause, sizeof(k->record.cause), "%s", old.cause);
	return resume(k, &old, err);
}

/* -- what the command gets --------------------------------------------------------------- */

static void shown_command(char *const *argv, char out[HF_RUN_COMMAND_MAX + 1])
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;

	for (size_t i = 0; argv[i] && text.len < HF_RUN_COMMAND_MAX + 4; i++) {
		if (i > 0)
			hf_buf_add_char(&text, ' ');
		hf_buf_add(&text, argv[i], strnlen(argv[i], HF_RUN_COMMAND_MAX + 4));
	}
	hf_session_clean_text(out, HF_RUN_COMMAND_MAX + 1, text.s);
}

static int add_variable(struct hf_keeper *k, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int add_variable(struct hf_keeper *k, const char *format, ...)
{
	size_t n = 0;
	va_list args;
	int len;

	while (k->env_set[n])
		n++;
	va_start(args, format);
	len = vasprintf(&k->env_set[n], format, args);
	va_end(args);
	if (len < 0)
		k->env_set[n] = NULL;
	return len < 0;
}

int hf_keeper_environment(struct hf_keeper *k)
{
	static const char *const unset[] = { "HOLDFAST_DEADLINE", NULL };
	const char *around = getenv(HF_MARK_VARIABLE);
	unsigned long long token = k->record.token;
	int bad = 0;

	free(k->envp);
	for (size_t i = 0; k->env_set[i]; i++) {
		free(k->env_set[i]);
		k->env_set[i] = NULL;
	}
	bad |= add_variable(k, HF_MARK_VARIABLE "=%s%llu%s%s", k->tree.mark, token,
			    around && around[0] ? ":" : "", around ? around : "");
	bad |= add_variable(k, "HOLDFAST_SESSION=%s", k->name);
	bad |= add_variable(k, "HOLDFAST_LOCK=%s", k->name);
	bad |= add_variable(k, "HOLDFAST_TOKEN=%llu", token);
	bad |= add_variable(k, "HOLDFAST_DIR=%s", hf_state_path(k->sessions->state));
	bad |= add_variable(k, "HOLDFAST_DEPTH=%llu", (unsigned long long)current_depth() + 1);
	bad |= add_variable(k, "HOLDFAST_ATTEMPT=%u", k->record.attempt);
	/* For people and scripts, so by their clock; in seconds. */
	if (k->o.deadline_ns)
		bad |= add_variable(k, "HOLDFAST_DEADLINE=%lld",
				    (long long)((hf_wall_now().ns + k->o.deadline_ns) / HF_SEC));
	k->envp = bad ? NULL : hf_spawn_environment(k->env_set, unset);
	return k->envp ? 0 : -ENOMEM;
}

/* Everything that a tree needs before its first process. */
static int prepare(struct hf_keeper *k, struct hf_err *err)
{
	/* What outlives us goes on writing; nobody would read a pipe then. */
	int bounded = k->o.log_max != HF_RUN_LOG_UNLIMITED &&
		      !(k->detached && k->o.flags & HF_RUN_LEAVE_RUNNING);
	int r;

	(void)hf_mark_prefix(k->sessions->dir_inode, k->name, k->tree.mark);
	/* What is left running belongs to the session around us, and keeps the mark of that. */
	if (!(k->o.flags & HF_RUN_LEAVE_RUNNING))
		hf_session_set_marks(k->sessions, &k->record);
	k->tree.limit = k->record.mark;
	shown_command(k->o.argv, k->record.command);
	k->record.started = hf_wall_now();
	k->record.hang_ns = k->o.hang_ns;
	k->record.grace_ns = k->o.grace_ns > 0 ? k->o.grace_ns : 0;
	k->record.loop = (k->o.flags & HF_RUN_LOOP) != 0;
	k->record.logged = k->detached || (k->o.flags & HF_RUN_LOG) != 0;
	r = hf_session_save_command(k->sessions, k->name, k->o.argv, err);
	if (r == 0 && k->record.logged)
		r = hf_log_begin(&k->output.log, k->sessions, k->name, k->record.token,
				 (k->o.flags & HF_RUN_RESUME) != 0, bounded ? k->o.log_max : 0, err);
	if (r < 0)
		return r;
	k->output.direct = k->detached && !bounded;
	k->output.alone = k->detached && bounded;
	if (k->o.tree != HF_TREE_WALK) {
		(void)hf_cgroup_sweep();
		r = hf_cgroup_make(k->record.token, &k->tree.group);
		if (r < 0 && k->o.tree == HF_TREE_CGROUP)
			return hf_fail_sys(err, -r, "cgroup", k->name);
		if (r == 0) {
			hf_copy_text(k->record.cgroup, sizeof(k->record.cgroup), k->tree.group.path);
			k->record.cgroup_inode = k->tree.group.inode;
		}
	}
	return 0;
}

/* -- the end ------------------------------------------------------------------------------- */

/*
 * The lock was broken and nobody has it: then the outcome can still be recorded, by who takes
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
	/* Unless a successor came and went, or somebody has reaped it. */
	if (hf_session_load(k->sessions, k->name, &now, NULL) == 0 && now.token == k->record.token &&
	    now.phase != HF_PHASE_ENDED)
		(void)hf_session_save(k->sessions, &k->record, hf_lock_token(lock), NULL);
	(void)hf_lock_release(lock, NULL);
	hf_lock_free(lock);
}

/* The outcome is on disk; now the name may be somebody else's. */
static void finish(struct hf_keeper *k)
{
	record_lost(k);
	/* Its name is never used again, so this is safe even when the lock is another's by now. */
	if (k->tree.group.fd >= 0 &&
	    !(k->o.flags & HF_RUN_LEAVE_RUNNING && hf_cgroup_populated(&k->tree.group) > 0))
		hf_cgroup_remove(&k->tree.group);
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
	r = set_up(k, state, &news.err);
	if (r == 0)
		r = check_depth(k, &news.err);
	if (r == 0)
		r = take_lock(k, &news.report.blocker, &news.err);
	if (r == 0)
		r = settle(k, &news.err);
	if (r == 0)
		r = take_slot(k, &news.err);
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
	finish(k);
	hf_keeper_tell(k, &news, -1);
	_exit(0);
}
