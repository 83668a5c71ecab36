/*
 * run/stage.h - the places of a session where a layer above acts: before, inside and after each attempt.
 *
 * The layer `tx` fills these with plans: run and plan do not know each other. A callback that is NULL
 * is not called. All but `enter`, `seal` and `land` are called by the keeper, which holds the session's lock, in this order:
 *
 *     recover(token)   once, before anything else: the run of that token was the last one of this name.
 *                      Its tree is proven empty. It may have been killed anywhere, so this is to finish
 *                      or undo what it began, and finds nothing to do after an ordinary end.
 *     merge(stored)    of a resumed session: what was stored of hf_run_opts.stage; the result is in force, and stored
 *     admit(session)   the options are known: may it start? An error is the session's, which then leaves no record
 *     begin(attempt)   the intent to start is on disk, nothing is forked yet
 *     ready()          before each fork of a command that is to enter: the command, then the verifier
 *     enter()          in the child, after it was let go and before its exec.
 *                      Only what is safe after fork; it may take on namespaces, mounts, a directory
 *     entered(...)     after that: it runs, or why not
 *     seal()           in a child of its own, when the command has succeeded and a verifier is to follow: what the command made is set
 *                      apart from what the verifier will write. Polled as land() is; only if is_sealed says 1
 *     sealed(...)      that child has ended: may it be verified?
 *     land()           in a child of its own, when command and verifier have succeeded: what was made is put in its place.
 *                      Meanwhile the keeper polls: the lease is renewed, and a stop ends this child (TERM, grace, KILL)
 *     landed(...)      that child has ended, in whatever way: what is there now? It makes the result of the attempt
 *     end(outcome)     once for each begin that returned 0: the tree is empty, all is judged, nothing is recorded yet
 *     done()           the outcome is on disk
 *
 * Each returns 0 or an error. If recover, merge or admit fails, nothing is started. If begin, ready or enter fails, the attempt is
 * not-started. If end fails, a success becomes a failure (L14). When the keeper is killed, end is not called;
 * recover is, by the next run of that name.
 *
 * Landing. The record says so (HF_PHASE_LANDING) before the child is made, durably when there is something to land. Once it says so,
 * nobody but hf_stage_settle brings that attempt to an outcome: the supervisor when the keeper was killed, the next run and
 * hf_session_reap when both were. So what is reported is what is there (L14).
 *
 * The keeper does nothing else meanwhile: a callback that may take longer than a third of the lease (HF_RUN_TTL_NS)
 * has to renew it (hf_lock_renew_token), and signals wait until it returns.
 */
#ifndef RUN_STAGE_H
#define RUN_STAGE_H

#include <sys/types.h>

#include "hf/base/buf.h"
#include "hf/exec/tree.h"
#include "hf/run/keeper/attempt/judge.h"
#include "holdfast/journal.h"
#include "holdfast/run.h"

/* The session, once its options are known. */
struct hf_stage_session {
	const char *name;
	uint64_t token;
	const struct hf_run_opts *o;  /* complete */
	int resumed;
};

/* What admit() may say besides 0 and an error: it has nothing to do with this session, and is not called again. */
#define HF_STAGE_NONE 1

/* What entered() may say besides 0 and an error: it was made ready in another way; try once more. */
#define HF_STAGE_AGAIN 1

/* Returned by end(): work that did not land was kept. */
#define HF_STAGE_KEPT 1

/* What is_landing() may say besides 0 and 1: there is nothing to land, so landed() is asked at once, and land() is not called. */
#define HF_STAGE_EMPTY 2

/*
 * What landed() may say besides 0: what lies under it has changed, so verify again, then land again. Its result is that of an
 * attempt for which this was done too often.
 */
#define HF_STAGE_VERIFY 1

struct hf_stage {
	int (*recover)(void *arg, uint64_t token, struct hf_err *err);
	/* `given`, `stored` may be NULL; *ret_text is to be freed, or NULL: none. */
	int (*merge)(void *arg, const char *given, const char *stored, char **ret_text, struct hf_err *err);
	void (*describe)(void *arg, const char *text, struct hf_buf *out);
	int (*admit)(void *arg, const struct hf_stage_session *session, struct hf_err *err);
	int (*begin)(void *arg, uint32_t attempt, struct hf_err *err);
	char *const *(*environment)(void *arg); /* more "K=V" for the command; NULL-ended, or NULL */
	int (*ready)(void *arg, struct hf_err *err);
	int (*enter)(void *arg);
	/* `result`: of hf_spawn_result. Processes that it brought into the tree are noted there. */
	int (*entered)(void *arg, pid_t pid, int result, struct hf_tree *tree, struct hf_err *err);
	int (*is_sealed)(void *arg);
	/* `envp`: the variables of the command, for what runs as it did; NULL: none are known. */
	void (*seal)(void *arg, char *const *envp);
	/* As landed(); less than 0: *result is that of the attempt, which is not verified. */
	int (*sealed)(void *arg, enum hf_cause cause, struct hf_result *result);
	/* Is there something to land? 1: its record is synced first; 0: perhaps; HF_STAGE_EMPTY. */
	int (*is_landing)(void *arg);
	void (*land)(void *arg, char *const *envp);
	/* `cause`: why the child was ended, HF_CAUSE_NONE: by itself. *result is that of command and verifier, and may be replaced. */
	int (*landed)(void *arg, enum hf_cause cause, struct hf_result *result);
	int (*end)(void *arg, enum hf_outcome outcome);
	/* 1: run the attempt again at once, because of how it ended. */
	int (*again)(void *arg, enum hf_outcome outcome);
	void (*done)(void *arg);
	void *arg;
};

/* hf_run_supervise with a stage; NULL: none. */
int hf_run_supervise_staged(struct hf_state *state, const char *name, const struct hf_run_opts *opts,
			    const struct hf_stage *stage, struct hf_run_report *ret_report,
			    struct hf_err *err);

/* The attempt that is to be settled, and what it came to. */
struct hf_stage_unsettled {
	const char *name;
	uint64_t token;
	uint32_t attempt;
};

/*
 * What became of an attempt whose keeper died while it landed: finishes or undoes that, and makes its result. Defined by the
 * layer `tx`; a program without that layer leaves such a session as it is (weak: NULL there). Returns 0, or an error: it cannot
 * be told now, and nothing is to be recorded.
 */
int hf_stage_settle(struct hf_state *state, struct hf_journal *journal, const struct hf_stage_unsettled *attempt,
		    struct hf_result *ret, struct hf_err *err) __attribute__((weak));

/*
 * Returns 1 if the session left work that neither landed nor was committed nor dropped, also if that cannot be known. Such a session is not forgotten.
 * Does not fork. The layer `tx` defines it, like hf_stage_settle.
 */
int hf_stage_holds_work(struct hf_state *state, const char *name) __attribute__((weak));

#endif
