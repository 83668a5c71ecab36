/*
 * run/options.h - the options of a session: one table of those that are stored, and checking, defaults, merging.
 *
 * "Given" options are as the caller set them: 0 and NULL mean that it did not. Those are stored and
 * merged. "Complete" ones have every default filled in, and are what a session runs with.
 */
#ifndef RUN_OPTIONS_H
#define RUN_OPTIONS_H

#include "hf/base/buf.h"
#include "holdfast/run.h"

enum hf_option_kind {
	HF_OPTION_DURATION, /* int64_t, from 0 */
	HF_OPTION_GRACE,    /* int64_t; negative: none at all */
	HF_OPTION_COUNT,    /* uint32_t */
	HF_OPTION_SIZE,     /* uint64_t */
	HF_OPTION_TEXT,     /* const char * */
	HF_OPTION_TREE,     /* enum hf_run_tree */
	HF_OPTION_TERM,     /* enum hf_run_term */
	HF_OPTION_FLAG,     /* a bit of `flags` */
};

struct hf_option {
	const char *key;   /* as it is stored */
	const char *label; /* for people */
	enum hf_option_kind kind;
	size_t at;         /* its offset in struct hf_run_opts; of a flag its bit */
};

/* The options that are stored; the last one has no key. */
extern const struct hf_option hf_options[];

/* The number of an option that is not a text; 0: not given. And setting it. */
int64_t hf_option_number(const struct hf_option *option, const struct hf_run_opts *o);
void hf_option_set_number(const struct hf_option *option, struct hf_run_opts *o, int64_t number);
const char **hf_option_text(const struct hf_option *option, struct hf_run_opts *o);

/* The word of a tree or term option, "" for a number that is none; and back, 0 when there is no such word. */
const char *hf_option_word(const struct hf_option *option, int64_t number);
int64_t hf_option_of_word(const struct hf_option *option, const char *word);

/* Checks given options. 0, or -EINVAL or HF_E_NAME. */
int hf_options_check(const char *name, const struct hf_run_opts *o, struct hf_err *err);

/* What the notify command is told. */
enum {
	HF_NOTIFY_CHANGE = 1,
	HF_NOTIFY_FAILURE = 2,
	HF_NOTIFY_ALWAYS = 4,
	HF_NOTIFY_START = 8,
};

/* The bits of the words in `notify_on`, with commas between them; NULL and "" mean "change". -EINVAL: one is none of the four. */
int hf_options_notify(const char *words);

/* Fills in what was not given. */
struct hf_run_opts hf_options_complete(const struct hf_run_opts *given);

/* `given` on top of `stored`, in place; the texts and words stay their owners'. `env` is not merged here. */
void hf_options_merge(struct hf_run_opts *given, const struct hf_run_opts *stored);

/* The stored flags that hold beside the given ones: of two that exclude each other, the given one counts. */
unsigned hf_options_stored_flags(const struct hf_run_opts *given, const struct hf_run_opts *stored);

/* ", deadline 1h, verify 'make test'" for what is given. */
void hf_options_describe(const struct hf_run_opts *given, struct hf_buf *out);

/* Is it NAME=VALUE with a name that Holdfast does not set itself? */
int hf_env_is_usable(const char *entry);

#endif
