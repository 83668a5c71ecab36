/*
 * run/options_json.h - the options of a session as JSON: in command.json (session/record/stored.h) and in the order to a
 * supervisor that is another program (supervisor/order.h).
 *
 *     "argv":["claude","-p"],"cwd":"/src/app","env":["K=V"],"options":{"deadline_ns":…,"verify":"make test"}
 *
 * A word that is not UTF-8 stands as {"hex":"ff00"}, a NULL as null. The reader believes nothing.
 */
#ifndef RUN_OPTIONS_JSON_H
#define RUN_OPTIONS_JSON_H

#include <jansson.h>

#include "hf/run/options.h"

/* More than the kernel takes as arguments, in JSON's longest form. */
#define HF_OPTIONS_JSON_MAX ((size_t)16 << 20)

/* What the values of options may be. */
enum hf_options_form {
	HF_OPTIONS_STORED, /* what a session ran with */
	HF_OPTIONS_GIVEN,  /* also what takes a stored one back: HF_RUN_NONE, "" */
};

void hf_json_add_word(struct hf_buf *out, const char *word);

/* The four members above, without braces. */
void hf_options_add_json(struct hf_buf *out, const struct hf_run_opts *given);

/* A copy to be freed; NULL when it is no word, or there is no memory. */
char *hf_json_take_word(json_t *value);

/* Reads the member `argv`. 0 when it is no list of words; null is one only in HF_OPTIONS_GIVEN. */
int hf_options_take_argv(json_t *root, enum hf_options_form form, struct hf_run_opts *ret);

/* Reads the other three. Returns NULL, or what is wrong. What was read is owned by *ret either way. */
const char *hf_options_take_rest(json_t *root, enum hf_options_form form, struct hf_run_opts *ret);

/* Frees what the two above made. */
void hf_options_free(struct hf_run_opts *o);

#endif
