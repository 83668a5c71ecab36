/*
 * tx/options.h - the options of a transactional run: as text (hf_run_opts.stage), which is how they are stored and handed over.
 *
 *     {"in":["/home/user/app"],"strategy":"overlay","keep":"always","commit":"never","retry":2,"land":"main","also":["dist"],
 *      "readonly":true,"write":["/var/cache/app"],"network":false}
 *
 * What was not given is not there. Directories are absolute, and words as in run/options_json.h. The reader believes nothing.
 */
#ifndef TX_OPTIONS_H
#define TX_OPTIONS_H

#include "hf/base/buf.h"
#include "holdfast/land.h"
#include "holdfast/tx.h"

struct hf_tx_options {
	char **dirs;  /* NULL-ended, owned */
	size_t n_dirs;
	enum hf_strategy strategy;
	enum hf_tx_keep keep;     /* never the default */
	enum hf_tx_commit commit; /* the same */
	uint32_t retry, speculate;
	unsigned flags;
	char **write;             /* NULL-ended, owned; NULL: none */
	char *land;               /* the branch, HF_TX_LAND_HEAD or HF_TX_LAND_OFF; NULL: not given */
	char *message;            /* NULL: made from the name */
	char **also;              /* NULL-ended, owned; NULL: none */
	enum hf_land_merge land_merge;
	enum hf_land_base base;
};

void hf_tx_options_done(struct hf_tx_options *options);

/* Checks given options and writes them as text; nothing is added when none was given. Directories must be there. */
int hf_tx_options_write(const struct hf_tx_opts *given, const char *name, struct hf_buf *out, struct hf_err *err);

/* Reads a text, with every default filled in. HF_E_FORMAT. */
int hf_tx_options_read(const char *text, const char *name, struct hf_tx_options *ret, struct hf_err *err);

/* `given` on top of `stored`; each may be NULL. *ret is to be freed, NULL when both are. */
int hf_tx_options_merge(const char *given, const char *stored, const char *name, char **ret, struct hf_err *err);

/* ", in /home/user/app, keep always" for people. */
void hf_tx_options_describe(const char *text, struct hf_buf *out);

#endif
