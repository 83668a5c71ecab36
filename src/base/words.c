/* base/words.c - looking words up. */
#include <errno.h>
#include <string.h>

#include "hf/base/words.h"

const char *hf_word_of(const struct hf_word *words, int number)
{
	for (; words->text; words++)
		if (words->number == number)
			return words->text;
	return "unknown";
}

int hf_word_number(const struct hf_word *words, const char *text)
{
	for (; text && words->text; words++)
		if (strcmp(words->text, text) == 0)
			return words->number;
	return -EINVAL;
}
