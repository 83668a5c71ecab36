/* tx/land/candidate/words.c - the words of landings. */
#include <errno.h>
#include <string.h>

#include "holdfast/land.h"

const char *hf_land_state_word(enum hf_land_state state)
{
	switch (state) {
#define HF_LAND_STATE_WORD(name, number, word) \
	case HF_LAND_##name:                   \
		return word;
		HF_LAND_STATE_LIST(HF_LAND_STATE_WORD)
#undef HF_LAND_STATE_WORD
	default:
		return "unknown";
	}
}

const char *hf_land_merge_word(enum hf_land_merge merge)
{
	switch (merge) {
#define HF_LAND_MERGE_WORD(name, number, word) \
	case HF_LAND_##name:                   \
		return word;
		HF_LAND_MERGE_LIST(HF_LAND_MERGE_WORD)
#undef HF_LAND_MERGE_WORD
	default:
		return "unknown";
	}
}

int hf_land_merge_of(const char *word)
{
#define HF_LAND_MERGE_IS(name, number, text)    \
	if (word && strcmp(word, text) == 0)    \
		return HF_LAND_##name;
	HF_LAND_MERGE_LIST(HF_LAND_MERGE_IS)
#undef HF_LAND_MERGE_IS
	return -EINVAL;
}
