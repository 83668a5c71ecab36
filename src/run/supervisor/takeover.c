/*
 * run/supervisor/takeover.c - the supervisor without its keeper, which was killed or does not act.
 *
 * As a subreaper it has inherited the whole tree: it ends that, completes the record, and
 * frees the lock, of which it is the second owner.
 */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "holdfast/exit.h"
#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/proc/judge.h"
#include "hf/run/keeper/keeper.h"
#include "hf/run/options.h"
#include "hf/run/supervisor/supervise.h"
#include "hf/sys/apart.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

#define KEEPER_KILLED "the keeper was killed"

/* All that is below us ends here; it was the keeper's, and nobody else looks after it. */
static void end_tree(struct hf_supervisor *s)
{
	(void)hf_sys.pidfd_send_signal(s->keeper_fd, SIGKILL);
	/* Only when it is gone is all of the tree ours, and can be told from others' children. */
	hf_await_keeper(s);
	while (hf_tree_reap(&s->tree)) {
		struct pollfd fds[] = { { .fd = s->signals, .events = POLLIN } };
		struct signalfd_siginfo info;

		hf_tree_kill(&s->tree);
		(void)hf_sys.poll(fds, 1, 20);
		while (read(s->signals, &info, sizeof(info)) == sizeof(info))
			continue;
	}
}

/* In a child: sends the notice in place of the keeper. */
static _Noreturn void notify(struct hf_supervisor *s, struct hf_sessions *sessions, const struct hf_session_record *record)
{
	struct hf_keeper keeper = { .sessions = sessions,
				    .name = s->name,
				    .given = s->o,
				    .record = *record,
				    .mask = s->mask,
				    .link = -1,
				    .notices = -1,
				    .tree = HF_TREE_INIT };

	/* The stored ones: of a resumed session only the keeper has merged them. */
	if (hf_stored_load(sessions, s->name, record->options, 0, &keeper.stored, NULL) == 0 && keeper.stored.has_options)
		keeper.given = keeper.stored.o;
	keeper.o = hf_options_complete(&keeper.given);
	(void)hf_mark_prefix(sessions->dir_inode, s->name, keeper.tree.mark);
	/* Where its directory is gone, the notice is still worth sending. */
	if (keeper.o.cwd)
		(void)!chdir(keeper.o.cwd);
	hf_keeper_notify(&keeper);
	_exit(0);
}

/* The child forks the notifier and ends at once, so that a caller's process does not get the notifier as a child. */
static void send_notice(struct hf_supervisor *s, struct hf_sessions *sessions, const struct hf_session_record *record)
{
	pid_t pid;

	(void)prctl(PR_SET_CHILD_SUBREAPER, s->was_subreaper);
	pid = fork();
	if (pid == 0)
		notify(s, sessions, record);
	if (pid > 0)
		(void)hf_apart_reap(pid);
}

/* 1 when the record has its outcome now. */
static int complete_record(struct hf_supervisor *s, struct hf_sessions *sessions, struct hf_session_record *record)
{
	struct hf_field stopping[] = { HF_FIELD_INT("attempt", record->attempt), HF_FIELD_TEXT("cause", KEEPER_KILLED) };
	struct hf_field killed[] = { HF_FIELD_INT("count", s->tree.killed),
				     HF_FIELD_TEXT("cause", KEEPER_KILLED) };
	int was_stopping = record->phase == HF_PHASE_STOPPING;

	record->ended = hf_wall_now();
	/* Between two attempts of a loop the last one has its outcome already. */
	if (record->phase != HF_PHASE_WAITING)
		record->ran_ns = record->began_ns ? hf_boot_now().ns - record->began_ns : 0;
	record->kills = s->tree.killed > 0;
	/* A supervisor that lost the lock writes nothing: its successor does. */
	if (hf_lock_check_token(sessions->locks, s->name, record->token, NULL) < 0)
		return 0;
	if (!was_stopping)
		hf_session_event(sessions, HF_EV_SESSION_STOPPING, s->name, stopping, 2);
	hf_session_event(sessions, HF_EV_SESSION_KILLED, s->name, killed, 2);
	/* Else it stays as it is, for the next run. */
	return hf_session_complete(sessions, record, HF_EXIT_AROUND, KEEPER_KILLED, NULL) == 0 &&
	       hf_session_save(sessions, record, record->token, NULL) == 0;
}

/* `record` NULL: it has not come to an outcome that anybody could look up. */
static void fill_last(struct hf_supervisor *s, const struct hf_session_record *record)
{
	struct hf_run_report *report = &s->last.report;
	int ended = record && record->outcome != HF_OUTCOME_NONE;

	s->last.kind = HF_LINK_ENDED;
	s->last.result = 0;
	report->outcome = ended ? record->outcome : HF_OUTCOME_ABANDONED;
	report->exit_status = ended ? record->exit_status : HF_EXIT_AROUND;
	hf_copy_text(report->cause, sizeof(report->cause), ended ? record->cause : KEEPER_KILLED);
}

/* The record, if the keeper came so far as to write it. */
static int load_own(struct hf_supervisor *s, struct hf_sessions *sessions, struct hf_session_record *ret)
{
	return sessions && s->token != 0 && hf_session_load(sessions, s->name, ret, NULL) == 0 &&
	       ret->token == s->token;
}

struct place {
	struct hf_proc_id self;
	uint64_t token; /* of ours; 0: we have none */
};

static void find_place(void *arg, const struct hf_lock_info *info)
{
	struct place *place = arg;

	for (size_t i = 0; i < info->n_holders; i++)
		if (hf_proc_equal(&place->self, &info->holders[i].id))
			place->token = info->holders[i].token;
}

/* The place in the group, of which we are the second owner, as of the name. */
static void free_place(struct hf_supervisor *s, struct hf_sessions *sessions)
{
	struct hf_locks *groups = hf_locks_kind(sessions->locks, HF_LOCK_KIND_GROUP);
	struct place place = { .token = 0 };

	if (s->o.max_active == 0 || hf_proc_self(&place.self, NULL) < 0 ||
	    hf_lock_look(groups, s->o.group, find_place, &place, NULL) < 0 || place.token == 0)
		return;
	if (hf_lock_release_as(groups, s->o.group, place.token, NULL, NULL) < 0)
		return; /* its lease has run out, and another process has it */
}

void hf_take_over(struct hf_supervisor *s)
{
	struct hf_session_record record = { 0 };
	struct hf_sessions *sessions = NULL;
	struct hf_journal *journal = NULL;
	int known, completed, released = 0;

	s->token = atomic_load(&s->gate->token);
	if (hf_journal_open(s->state, NULL, &journal, NULL) < 0)
		journal = NULL;
	if (hf_sessions_open(s->state, journal, &sessions, NULL) < 0)
		sessions = NULL;
	known = load_own(s, sessions, &record);
	if (known && record.cgroup[0])
		(void)hf_cgroup_open(record.cgroup, record.cgroup_inode, &s->tree.group);
	if (sessions)
		(void)hf_mark_prefix(sessions->dir_inode, s->name, s->tree.mark);
	s->tree.limit = known ? record.mark : 0;
	s->tree.leader = known ? record.leader.pid : 0;
	end_tree(s);
	/* Now that the keeper is dead nobody else writes it; it may have come further. */
	known = load_own(s, sessions, &record);
	completed = known && record.phase != HF_PHASE_ENDED && complete_record(s, sessions, &record);
	hf_cgroup_remove(&s->tree.group);
	if (sessions)
		free_place(s, sessions);
	/* Refused when it was lost: the successor is untouched. */
	if (sessions && s->token != 0)
		released = hf_lock_release_as(sessions->locks, s->name, s->token, NULL, NULL);
	(void)released;
	if (completed)
		send_notice(s, sessions, &record);
	fill_last(s, known && record.phase == HF_PHASE_ENDED ? &record : NULL);
	s->last.report.token = s->token;
	s->last.report.attempt = known ? record.attempt : 0;
	hf_sessions_free(sessions);
	hf_journal_free(journal);
}
