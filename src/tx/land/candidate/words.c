/* tx/land/candidate/words.c - the words of landings. */
#include "hf/base/words.h"
#include "holdfast/land.h"

static const struct hf_word states[] = { HF_LAND_STATE_LIST(HF_WORD) { 0 } };
static const struct hf_word merges[] = { HF_LAND_MERGE_LIST(HF_WORD) { 0 } };

const char *hf_land_state_word(enum hf_land_state state)
{
	return hf_word_of(states, (int)state);
}

const char *hf_land_merge_word(enum hf_land_merge merge)
{
	return hf_word_of(merges, (int)merge);
}

int hf_land_merge_of(const char *word)
{
	return hf_word_number(merges, word);
}
