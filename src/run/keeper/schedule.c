/* run/keeper/schedule.c - attempt after attempt: when the next one begins, when there is none, and what the loop came to. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "hf/base/fail.h"
#include "hf/run/keeper/keeper.h"

#define UNTIL_NS (60 * HF_SEC) /* for the command that says whether to go on */

/* Doubles with each failure in a row, up to the cap. */
static int64_t backoff(const struct hf_keeper *k)
{
	int64_t ns = k->o.backoff_ns;

	if (k->record.failures == 0)
		return 0;
	for (uint32_t i = 1; i < k->record.failures && ns < k->o.backoff_max_ns; i++)
		ns *= 2;
	return ns < k->o.backoff_max_ns ? ns : k->o.backoff_max_ns;
}

/* Until the next attempt, after one that began then. */
static int64_t pause_of(const struct hf_keeper *k, struct hf_mono begun)
{
	int64_t left = k->o.every_ns - (hf_mono_now().ns - begun.ns), wait = backoff(k);

	wait = wait > left ? wait : left;
	return wait > 0 ? wait : 0;
}

/* What ended the attempt was meant for the session, not for this one attempt. */
static int is_over(const struct hf_keeper *k, const struct hf_result *last)
{
	return k->over != HF_CAUSE_NONE || last->outcome == HF_OUTCOME_INTERRUPTED ||
	       last->outcome == HF_OUTCOME_LOST_LOCK || last->outcome == HF_OUTCOME_ABANDONED;
}

static int is_reached(struct hf_keeper *k)
{
	struct hf_watched w;

	if (!k->o.until)
		return 0;
	w = hf_keeper_helper(k, k->o.until, UNTIL_NS, 0);
	return w.code == CLD_EXITED && w.status == 0 && w.cause == HF_CAUSE_NONE && w.interrupted == 0;
}

/* Where the loop stands after an attempt. */
enum next {
	NEXT_AGAIN,   /* another attempt */
	NEXT_AT_ONCE, /* the stage wants this one again, without a pause */
	NEXT_LAST,    /* that was the last one, and its outcome is the session's */
	NEXT_REACHED, /* the --until condition became true */
	NEXT_GAVE_UP, /* it did not, in as many attempts as were allowed */
};

static enum next next_of(struct hf_keeper *k, const struct hf_result *last, uint32_t runs)
{
	if (!is_over(k, last) && k->stage && k->stage->again && k->stage->again(k->stage->arg, last->outcome))
		return NEXT_AT_ONCE;
	if (!(k->o.flags & HF_RUN_LOOP) || is_over(k, last))
		return NEXT_LAST;
	if (is_reached(k))
		return NEXT_REACHED;
	if (is_over(k, last))
		return NEXT_LAST;
	if (k->o.max_runs == 0 || runs < k->o.max_runs)
		return NEXT_AGAIN;
	return k->o.until ? NEXT_GAVE_UP : NEXT_LAST;
}

/*
 * The loop was ended early. Without its supervisor or its lock it is lost, whatever its last attempt did. A loop that was
 * asked to end has the outcome of its last attempt, but a success counts only if no attempt and no condition was left (L14).
 */
static int judge_ended(const struct hf_keeper *k, const struct hf_result *last, uint32_t runs, struct hf_result *ret)
{
	int is_endless = !k->o.until && k->o.max_runs == 0, is_complete = !k->o.until && k->o.max_runs > 0 && runs >= k->o.max_runs;
	char when[64] = " before the --until condition became true";

	if (!(k->o.flags & HF_RUN_LOOP) || k->over == HF_CAUSE_NONE || is_complete)
		return 0;
	if (k->over < HF_CAUSE_LOST && (is_endless || last->outcome != HF_OUTCOME_SUCCEEDED))
		return 0;
	if (!k->o.until)
		(void)snprintf(when, sizeof(when), " after %u of %u attempts", runs, k->o.max_runs);
	*ret = hf_judge_cause(k->over, k->interrupted, when);
	return 1;
}

/* What the session came to, when that is not what its last attempt did. Returns 1 then. */
static int judge_loop(const struct hf_keeper *k, const struct hf_result *last, enum next next, uint32_t runs,
		      struct hf_result *ret)
{
	switch (next) {
	case NEXT_REACHED:
		*ret = hf_result_make(HF_OUTCOME_SUCCEEDED, 0, "the --until condition became true");
		return last->outcome != HF_OUTCOME_SUCCEEDED;
	case NEXT_GAVE_UP:
		*ret = hf_result_make(HF_OUTCOME_GAVE_UP, 1,
				      "the --until condition did not become true in %u attempts (the last: %.500s)",
				      runs, last->cause);
		return 1;
	case NEXT_LAST:
		return judge_ended(k, last, runs, ret);
	case NEXT_AGAIN:
	case NEXT_AT_ONCE:
	default:
		return 0;
	}
}

/* The outcome of the whole loop takes the place of its last attempt's, which may have ended long before. */
static void set_outcome(struct hf_session_record *record, const struct hf_result *result)
{
	record->ended = hf_wall_now();
	record->outcome = result->outcome;
	record->exit_status = result->exit_status;
	record->same = 1;
	if (result->outcome == HF_OUTCOME_SUCCEEDED)
		record->failures = 0;
	else if (record->failures == 0)
		record->failures = 1;
	hf_copy_text(record->cause, sizeof(record->cause), result->cause);
}

static void tell_gave_up(struct hf_keeper *k, uint32_t runs)
{
	struct hf_field fields[] = { HF_FIELD_INT("token", (int64_t)k->record.token),
				     HF_FIELD_INT("attempts", runs), HF_FIELD_TEXT("cause", k->record.cause) };

	hf_session_event(k->sessions, HF_EV_SESSION_GAVE_UP, k->name, fields, 3);
}

/*
 * The outcome reaches the record, however long a process is stopped inside the guard: nobody else can
 * take the name meanwhile, and a session that is over must not look as if it had been killed.
 */
static int save_end(struct hf_keeper *k)
{
	int r = hf_keeper_save(k);

	while (r == -ETIMEDOUT && k->record.phase == HF_PHASE_ENDED)
		r = hf_keeper_save(k);
	return r;
}

/* Returns 1 when the record now has another outcome than the last attempt. */
static int conclude_loop(struct hf_keeper *k, const struct hf_result *last, enum next next, uint32_t runs, struct hf_mono begun)
{
	struct hf_result result;
	int is_other = judge_loop(k, last, next, runs, &result);

	k->record.phase = next <= NEXT_AT_ONCE ? HF_PHASE_WAITING : HF_PHASE_ENDED;
	k->record.next_ns = next == NEXT_AGAIN ? hf_boot_now().ns + pause_of(k, begun) : 0;
	if (is_other)
		set_outcome(&k->record, &result);
	if (next == NEXT_GAVE_UP)
		tell_gave_up(k, runs);
	if (save_end(k) == 0 && k->stage && k->stage->done)
		k->stage->done(k->stage->arg);
	return is_other;
}

int hf_keeper_loop(struct hf_keeper *k)
{
	enum next next = NEXT_AGAIN;

	for (uint32_t runs = 1; next <= NEXT_AT_ONCE; runs++) {
		struct hf_mono begun = hf_mono_now();
		struct hf_result last = hf_keeper_attempt(k);
		int64_t wait;
		int stopped;

		next = next_of(k, &last, runs);
		(void)conclude_loop(k, &last, next, runs, begun);
		hf_keeper_notify(k);
		wait = pause_of(k, begun);
		if (next > NEXT_AT_ONCE)
			break;
		if (next == NEXT_AT_ONCE) {
			runs--; /* it is the same one, and counts once */
			wait = 0;
		}
		stopped = wait > 0 ? hf_keeper_sleep(k, wait) : k->over != HF_CAUSE_NONE;
		if (!stopped)
			continue;
		/* Ended between two attempts. */
		next = NEXT_LAST;
		if (conclude_loop(k, &last, next, runs, begun))
			hf_keeper_notify(k);
	}
	if (k->over == HF_CAUSE_SUPERVISOR && !k->told_killed)
		hf_keeper_tell_killed(k, 0, k->over);
	return k->record.exit_status;
}
