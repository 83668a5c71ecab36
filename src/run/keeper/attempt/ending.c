/* run/keeper/attempt/ending.c - one switch for each event of a tree that is being ended. */
#include "hf/run/keeper/attempt/ending.h"

/*
 * Between two rounds of KILL. One round is the rule; the next is for processes that were forked
 * meanwhile. Looking again at every exit would take the processor from those that are ending.
 */
#define KILL_AGAIN_NS (10 * HF_MSEC)

/* The leader has so much of the grace for itself. */
#define LEADER_SHARE 3

const char *hf_cause_text(enum hf_cause cause)
{
	static const char *const texts[] = {
		[HF_CAUSE_NONE] = "the command had exited",
		[HF_CAUSE_DEADLINE] = "the deadline was reached",
		[HF_CAUSE_IDLE] = "no output for too long",
		[HF_CAUSE_INTERRUPT] = "it was interrupted",
		[HF_CAUSE_STOP] = "it was asked to stop",
		[HF_CAUSE_HANGUP] = "the terminal was closed",
		[HF_CAUSE_LOST] = "the lock was lost",
		[HF_CAUSE_CUT_OFF] = "its name in the store was lost, or its lease was not renewed",
		[HF_CAUSE_SUPERVISOR] = "the supervisor was killed",
	};

	return texts[cause];
}

static struct hf_mono after(struct hf_mono now, int64_t ns)
{
	return (struct hf_mono){ .ns = ns > INT64_MAX - now.ns ? INT64_MAX : now.ns + ns };
}

static void hasten(struct hf_mono *at, struct hf_mono sooner)
{
	if (sooner.ns < at->ns)
		*at = sooner;
}

static enum hf_act kill_now(struct hf_ending *e, struct hf_mono now)
{
	e->phase = HF_ENDING_KILL;
	e->again_at = after(now, KILL_AGAIN_NS);
	return HF_ACT_KILL;
}

/* A request by a person or a program; the same request again is passed on again. */
static int is_request(enum hf_cause cause)
{
	return cause == HF_CAUSE_STOP || cause == HF_CAUSE_HANGUP;
}

enum hf_act hf_ending_ask(struct hf_ending *e, enum hf_cause cause, int64_t grace_ns, struct hf_mono now)
{
	struct hf_mono kill_at = after(now, grace_ns > 0 ? grace_ns : 0);
	struct hf_mono rest_at = after(now, grace_ns > 0 ? grace_ns / LEADER_SHARE : 0);

	/* What the command left behind when it ended by itself has no other cause (see judge.c). */
	if (e->cause == HF_CAUSE_NONE && !e->leader_gone)
		e->cause = cause;
	if (grace_ns < 0)
		return e->phase == HF_ENDING_KILL ? HF_ACT_NOTHING : kill_now(e, now);
	switch (e->phase) {
	case HF_ENDING_QUIET:
		e->phase = e->whole ? HF_ENDING_TREE : HF_ENDING_LEADER;
		e->kill_at = kill_at;
		e->rest_at = rest_at;
		return e->whole ? HF_ACT_TERM_TREE : HF_ACT_TERM_LEADER;
	case HF_ENDING_LEADER:
		hasten(&e->kill_at, kill_at);
		hasten(&e->rest_at, rest_at);
		return is_request(cause) ? HF_ACT_TERM_LEADER : HF_ACT_NOTHING;
	case HF_ENDING_TREE:
		hasten(&e->kill_at, kill_at);
		return is_request(cause) ? HF_ACT_TERM_TREE : HF_ACT_NOTHING;
	case HF_ENDING_KILL:
	default:
		return HF_ACT_NOTHING;
	}
}

enum hf_act hf_ending_leader_exited(struct hf_ending *e, int64_t grace_ns, struct hf_mono now)
{
	e->leader_gone = 1;
	switch (e->phase) {
	case HF_ENDING_QUIET:
		if (grace_ns < 0)
			return kill_now(e, now);
		e->phase = HF_ENDING_TREE;
		e->kill_at = after(now, grace_ns);
		return HF_ACT_TERM_TREE;
	case HF_ENDING_LEADER:
		e->phase = HF_ENDING_TREE;
		return HF_ACT_TERM_TREE;
	case HF_ENDING_TREE:
	case HF_ENDING_KILL:
	default:
		return HF_ACT_NOTHING;
	}
}

enum hf_act hf_ending_time(struct hf_ending *e, struct hf_mono now)
{
	switch (e->phase) {
	case HF_ENDING_LEADER:
		if (now.ns >= e->kill_at.ns)
			return kill_now(e, now);
		if (now.ns < e->rest_at.ns)
			return HF_ACT_NOTHING;
		e->phase = HF_ENDING_TREE;
		return HF_ACT_TERM_REST;
	case HF_ENDING_TREE:
		return now.ns >= e->kill_at.ns ? kill_now(e, now) : HF_ACT_NOTHING;
	case HF_ENDING_KILL:
		return now.ns >= e->again_at.ns ? kill_now(e, now) : HF_ACT_NOTHING;
	case HF_ENDING_QUIET:
	default:
		return HF_ACT_NOTHING;
	}
}

int64_t hf_ending_due(const struct hf_ending *e, struct hf_mono now)
{
	int64_t at;

	switch (e->phase) {
	case HF_ENDING_LEADER:
		at = e->rest_at.ns < e->kill_at.ns ? e->rest_at.ns : e->kill_at.ns;
		break;
	case HF_ENDING_TREE:
		at = e->kill_at.ns;
		break;
	case HF_ENDING_KILL:
		at = e->again_at.ns;
		break;
	case HF_ENDING_QUIET:
	default:
		return INT64_MAX;
	}
	return at > now.ns ? at - now.ns : 0;
}
