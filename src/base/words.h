/*
 * base/words.h - enum values and their words, from the lists X(name, number, word) of public headers.
 *
 *     static const struct hf_word words[] = { HF_STRATEGY_LIST(HF_WORD) { 0 } };
 */
#ifndef BASE_WORDS_H
#define BASE_WORDS_H

struct hf_word {
	int number;
	const char *text; /* NULL ends the list */
};

#define HF_WORD(name, number, text) { number, text },

/* The word of a number; "unknown" for one that is not in the list. */
const char *hf_word_of(const struct hf_word *words, int number);

/* The number of a word. -EINVAL: it is not in the list, or NULL. */
int hf_word_number(const struct hf_word *words, const char *text);

#endif
