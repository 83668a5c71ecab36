/* run/keeper/loop.c - again and again: when the next attempt begins, and when there is none. */
#include <signal.h>
#include <sys/wait.h>

#include "holdfast/exit.h"
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

/* Ctrl-C is meant for the loop as well, as in a shell; killed by it, or by the custom of 128 + N. */
static int is_interrupted(const struct hf_session_record *record)
{
	return record->outcome == HF_OUTCOME_FAILED &&
	       (record->exit_status == HF_EXIT_SIGNAL + SIGINT || record->exit_status == HF_EXIT_SIGNAL + SIGQUIT);
}

/* What ended it was meant for the session, not for one attempt. */
static int is_over(const struct hf_keeper *k)
{
	return is_interrupted(&k->record) || k->end != HF_END_NONE || k->record.outcome == HF_OUTCOME_LOST_LOCK ||
	       k->record.outcome == HF_OUTCOME_ABANDONED;
}

static int is_reached(struct hf_keeper *k)
{
	struct hf_watched w;

	if (!k->o.until)
		return 0;
	w = hf_keeper_helper(k, k->o.until, UNTIL_NS, NULL);
	if (k->end < HF_END_STOP)
		k->end = HF_END_NONE;
	return w.code == CLD_EXITED && w.status == 0 && w.end == HF_END_NONE;
}

/* Is there to be another attempt? `*ret_done`: the loop has reached what it was for. */
static int goes_on(struct hf_keeper *k, uint32_t runs, int *ret_done)
{
	*ret_done = 0;
	if (!(k->o.flags & HF_RUN_LOOP) || is_over(k))
		return 0;
	*ret_done = is_reached(k);
	return !*ret_done && !is_over(k) && (k->o.max_runs == 0 || runs < k->o.max_runs);
}

/* What the loop was for holds: that is its outcome, whatever its last attempt came to. */
static void reach(struct hf_keeper *k)
{
	if (k->record.outcome == HF_OUTCOME_SUCCEEDED)
		return;
	k->record.outcome = HF_OUTCOME_SUCCEEDED;
	k->record.exit_status = 0;
	k->record.failures = 0;
	k->record.same = 1;
	hf_session_clean_text(k->record.cause, sizeof(k->record.cause),
			      "what the loop was to wait for holds");
}

int hf_keeper_loop(struct hf_keeper *k)
{
	struct hf_mono begun;
	uint32_t runs = 0;
	int more, done;

	do {
		int64_t wait, left;

		begun = hf_mono_now();
		hf_keeper_attempt(k);
		runs++;
		more = goes_on(k, runs, &done);
		if (done)
			reach(k);
		k->record.phase = more ? HF_PHASE_WAITING : HF_PHASE_ENDED;
		(void)hf_keeper_save(k);
		hf_keeper_notify(k);
		if (!more)
			break;
		left = k->o.every_ns - (hf_mono_now().ns - begun.ns);
		wait = backoff(k);
		wait = wait > left ? wait : left;
		if (wait > 0 && hf_keeper_sleep(k, wait)) {
			/* Asked to end between two attempts: the last outcome stands. */
			k->record.phase = HF_PHASE_ENDED;
			(void)hf_keeper_save(k);
			break;
		}
	} while (more);
	return k->record.exit_status;
}
