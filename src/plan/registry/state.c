/* plan/registry/state.c - the states of a plan and which may follow which. */
#include <string.h>

#include "hf/base/fail.h"
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

const char *hf_plan_state_word(enum hf_plan_state state)
{
	switch (state) {
#define WORD(name, number)   \
	case HF_PLAN_##name: \
		return #name;
		HF_PLAN_STATE_LIST(WORD)
#undef WORD
	default:
		return "unknown";
	}
}

const char *hf_strategy_word(enum hf_strategy strategy)
{
	switch (strategy) {
#define WORD(name, number, word) \
	case HF_STRATEGY_##name: \
		return word;
		HF_STRATEGY_LIST(WORD)
#undef WORD
	default:
		return "unknown";
	}
}

int hf_strategy_of(const char *word)
{
#define OF(name, number, text)       \
	if (strcmp(word, text) == 0) \
		return HF_STRATEGY_##name;
	HF_STRATEGY_LIST(OF)
#undef OF
	return -EINVAL;
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
			    "it is %s, and cannot become %s%s%.120s", hf_plan_state_word(record->state),
			    hf_plan_state_word(to), record->reason[0] ? "; " : "", record->reason);
	record->state = to;
	hf_copy_text(record->reason, sizeof(record->reason), reason ? reason : "");
	return 0;
}
