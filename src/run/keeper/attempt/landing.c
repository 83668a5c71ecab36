/*
 * run/keeper/attempt/landing.c - a success is put in its place by a child, while the keeper goes on polling.
 *
 * The child can be killed at any instruction: the stage's landed() finds out what is there then. So a stop needs no
 * protocol with it, and the record says LANDING before it is made (stage.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/run/keeper/keeper.h"
#include "hf/sys/calls.h"

/* What lies under a sandbox may go on changing; verifying for ever is not landing. */
#define VERIFY_AGAIN_MAX 5

static _Noreturn void land_main(struct hf_keeper *k, void (*act)(void *arg, char *const *envp), pid_t parent, int go)
{
	sigset_t none;
	char byte;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* It may have died before the line above. */
	if (getppid() != parent)
		_exit(HF_EXIT_AROUND);
	/* In front on the terminal, where that is the caller's: it may ask there. */
	if (k->group == 0 || k->own_session || setpgid(0, k->group) < 0)
		(void)setpgid(0, 0);
	(void)prctl(PR_SET_NAME, "hf-landing");
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (hf_sys.read(go, &byte, 1) == 1)
		act(k->stage->arg, k->envp);
	_exit(0);
}

/* 0 with *ret filled, or -errno. Without a pidfd it could not be looked after: then it does not start. */
static int fork_landing(struct hf_keeper *k, void (*act)(void *arg, char *const *envp), struct hf_child *ret)
{
	pid_t parent = getpid();
	AUTO_FD go = -1;
	int ends[2], error;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	go = ends[0];
	ret->go = ends[1];

	/* By the C library: what runs there allocates and takes locks. */
	ret->pid = fork();
	if (ret->pid == 0) {
		(void)close(ret->go);
		land_main(k, act, parent, go);
	}
	if (ret->pid < 0)
		return -errno;
	/* Ours and not yet reaped: the number is its own. */
	ret->pidfd = hf_sys.pidfd_open(ret->pid, 0);
	error = errno;
	if (ret->pidfd >= 0)
		return hf_spawn_go(ret);
	hf_auto_close(&ret->go);
	hf_keeper_reap_child(k, ret);
	return -error;
}

static struct hf_result fail(int error)
{
	return hf_result_make(HF_OUTCOME_FAILED, HF_EXIT_AROUND, "its work was not committed: %s", strerrordesc_np(error));
}

/* The first cause stays, as of a command (judge.c). */
static enum hf_cause cause_of(const struct hf_watched *w)
{
	return w->interrupted && (w->cause == HF_CAUSE_NONE || w->cause == HF_CAUSE_STOP || w->cause == HF_CAUSE_HANGUP) ?
		       HF_CAUSE_INTERRUPT : w->cause;
}

/* The stage knows that it was interrupted, and not by which signal. */
static void set_status(const struct hf_keeper *k, struct hf_result *result)
{
	if (result->outcome == HF_OUTCOME_INTERRUPTED && k->interrupted)
		result->exit_status = HF_EXIT_SIGNAL + k->interrupted;
}

struct hf_result hf_keeper_seal(struct hf_keeper *k, const struct hf_result *ended)
{
	AUTO(hf_child_done) struct hf_child child = HF_CHILD_INIT;
	const struct hf_stage *stage = k->stage;
	struct hf_limits none = { .has_deadline = 0 };
	struct hf_result result = *ended;
	struct hf_watched w;
	int r;

	if (!stage || !stage->seal || !stage->is_sealed(stage->arg) || k->over != HF_CAUSE_NONE)
		return result;
	memset(&k->record.leader, 0, sizeof(k->record.leader));
	k->record.phase = HF_PHASE_VERIFYING;
	(void)hf_keeper_note(k);
	r = fork_landing(k, stage->seal, &child);
	if (r < 0)
		return fail(-r);
	w = hf_keeper_watch(k, &child, &none);
	(void)stage->sealed(stage->arg, cause_of(&w), &result);
	set_status(k, &result);
	return result;
}

/* By a child, and why that one was ended. 0 or -errno. */
static int land_apart(struct hf_keeper *k, enum hf_cause *ret_cause)
{
	AUTO(hf_child_done) struct hf_child child = HF_CHILD_INIT;
	struct hf_limits none = { .has_deadline = 0 };
	struct hf_watched w;
	int r = fork_landing(k, k->stage->land, &child);

	if (r < 0)
		return r;
	w = hf_keeper_watch(k, &child, &none);
	*ret_cause = cause_of(&w);
	return 0;
}

/* Lands once. *ret_again: verify again, and then once more. */
static struct hf_result land_once(struct hf_keeper *k, const struct hf_result *verified, int *ret_again)
{
	const struct hf_stage *stage = k->stage;
	struct hf_result result = *verified;
	enum hf_cause cause = HF_CAUSE_NONE;
	int r, kind;

	*ret_again = 0;
	if (k->over != HF_CAUSE_NONE)
		return hf_judge_cause(k->over, k->interrupted, " before the commit");
	kind = stage->is_landing ? stage->is_landing(stage->arg) : 0;
	/* Our own clock may have stood still, and another machine may have the name: the store is asked before anything is changed (L5). */
	if (kind != HF_STAGE_EMPTY && hf_keeper_await_proof(k))
		return hf_judge_cause(k->over, k->interrupted, " before the commit");
	memset(&k->record.leader, 0, sizeof(k->record.leader));
	k->record.phase = HF_PHASE_LANDING;
	r = kind == 1 ? hf_keeper_save(k) : hf_keeper_note(k);
	if (r == HF_E_STALE)
		return hf_judge_cause(HF_CAUSE_LOST, 0, "");
	if (r == 0 && kind != HF_STAGE_EMPTY)
		r = land_apart(k, &cause);
	if (r < 0)
		return fail(r < -4095 ? EIO : -r);
	r = stage->landed(stage->arg, cause, &result);
	set_status(k, &result);
	*ret_again = r == HF_STAGE_VERIFY;
	k->landed = r == 0 && result.outcome == HF_OUTCOME_SUCCEEDED;
	return result;
}

struct hf_result hf_keeper_land(struct hf_keeper *k, const struct hf_result *verified)
{
	struct hf_result result = *verified;
	int again = 1;

	for (int i = 0; again && result.outcome == HF_OUTCOME_SUCCEEDED; i++) {
		struct hf_result before = result;

		result = land_once(k, &before, &again);
		if (again && i < VERIFY_AGAIN_MAX)
			result = hf_keeper_verify(k);
	}
	return result;
}
