/* plan/registry/state.c - the states of a plan and which may follow which. */
#include <string.h>

#include "hf/base/fail.h"
#include "hf/base/words.h"
#include "hf/plan/registry/registry.h"

#define BIT(state) (1U << HF_PLAN_##state)

/* For each state those that may follow. Nothing follows CLEANED: the record goes. */
static const unsigned next[] = {
	[HF_PLAN_CREATED] = BIT(ACTIVE) | BIT(PREPARED) | BIT(ROLLED_BACK) | BIT(ERRORED) | BIT(CLEANED),
	[HF_PLAN_ACTIVE] = BIT(PREPARED) | BIT(ROLLED_BACK) | BIT(ERRORED) | BIT(CLEANED),
	/* Back to ACTIVE after a conflict, to COMMITTED after an undo that was not possible. */
	[HF_PLAN_PREPARED] = BIT(ACTIVE) | BIT(COMMITTED) | BIT(ROLLED_BACK) | BIT(ERRORED),
	[HF_PLAN_COMMITTED] = BIT(PREPARED) | BIT(ERRORED) | BIT(CLEANED),
	[HF_PLAN_ROLLED_BACK] = BIT(CLEANED),
	[HF_PLAN_ERRORED] = BIT(ACTIVE) | BIT(PREPARED) | BIT(ROLLED_BACK) | BIT(CLEANED),
	[HF_PLAN_CLEANED] = 0,
};

#define STATE(name, number) { HF_PLAN_##name, #name },
static const struct hf_word states[] = { HF_PLAN_STATE_LIST(STATE) { 0 } };
static const struct hf_word strategies[] = { HF_STRATEGY_LIST(HF_WORD) { 0 } };

const char *hf_plan_state_word(enum hf_plan_state state)
{
	return hf_word_of(states, (int)state);
}

int hf_plan_state_of(const char *word)
{
	return hf_word_number(states, word);
}

const char *hf_strategy_word(enum hf_strategy strategy)
{
	return hf_word_of(strategies, (int)strategy);
}

int hf_strategy_of(const char *word)
{
	return hf_word_number(strategies, word);
}

int hf_plan_may_become(enum hf_plan_state from, enum hf_plan_state to)
{
	return (size_t)from < sizeof(next) / sizeof(next[0]) &&
	       (size_t)to < sizeof(next) / sizeof(next[0]) && (next[from] & 1U << to) != 0;
}

int hf_plan_is_of_run(const char *plan)
{
	return strncmp(plan, HF_PLAN_OF_RUN, strlen(HF_PLAN_OF_RUN)) == 0;
}

int hf_plan_become(struct hf_plan_record *record, enum hf_plan_state to, const char *reason,
		   struct hf_err *err)
{
	if (!hf_plan_may_become(record->state, to))
		return FAIL(err, HF_E_PLAN_STATE, "plan", record->name,
			    "it is %s and cannot become %s%s%.120s", hf_plan_state_word(record->state),
			    hf_plan_state_word(to), record->reason[0] ? "; " : "", record->reason);
	record->state = to;
	hf_copy_text(record->reason, sizeof(record->reason), reason ? reason : "");
	return 0;
}
