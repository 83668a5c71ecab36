/*
 * hook/settings/settings.h - our hooks in the text of a client's settings.
 *
 * All of these work on texts; install.c has the files. A text is edited, never written anew: every byte
 * that is not of our hooks stays. What is put in stands directly behind an opening bracket, so that
 * taking it out gives the same bytes again: behind the bracket of something that had members it begins
 * with a line end and ends with a comma; in something empty it has neither. Something that was made for
 * our hooks begins with a line end, and goes with them.
 */
#ifndef HOOK_SETTINGS_SETTINGS_H
#define HOOK_SETTINGS_SETTINGS_H

#include <jansson.h>

#include "hf/base/buf.h"
#include "holdfast/hook.h"

#define HF_SETTINGS_MAX (4 << 20) /* bytes of a file of settings */

/* How jansson reads settings: what other parsers accept is no reason to refuse them. */
#define HF_SETTINGS_JSON (JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL)

/* -- what a client is to have: settings_form.c ------------------------------------------- */

struct hf_settings_want {
	enum hf_client client;
	const char *program; /* a path, or "holdfast" */
	const char *dir;     /* its --dir; NULL: none */
	int guard;           /* hook guard as well */
};

/*
 * An object that has for each event the array of our handlers, in the client's form and units. NULL: no
 * memory, or a path that is not UTF-8.
 */
json_t *hf_settings_handlers(const struct hf_settings_want *want);

/* Do the client's events have groups of handlers, or handlers? */
int hf_settings_has_groups(enum hf_client client);

/* Does this client read settings with comments? */
int hf_settings_takes_comments(enum hf_client client);

/* Is that a Holdfast handler? It calls `holdfast hook VERB`, by whatever path. */
int hf_settings_is_ours(json_t *handler);

/* -- is it JSON: settings_check.c ---------------------------------------------------------- */

enum { HF_STRIP_COMMENTS = 1, HF_STRIP_COMMAS = 2 };

/* The text without comments, or without commas before a closing bracket. Returns the line of the first; 0: none. */
size_t hf_settings_strip(const char *text, size_t len, unsigned what, struct hf_buf *out);

/*
 * Can the client read it? Returns 0, or HF_E_FORMAT with the line and what is wrong there. With `fix` what
 * can be put right is, in *text: comments, commas before a closing bracket, an empty file; returns 1 then.
 */
int hf_settings_check(enum hf_client client, struct hf_buf *text, int fix, const char *path, struct hf_err *err);

/* -- a plugin: plugin.c -------------------------------------------------------------------- */

/* Writes our hooks as a plugin of Copilot into the state directory. *ret_path, for free(), is its directory. */
int hf_hook_plugin(struct hf_state *state, const struct hf_settings_want *want, char **ret_path, struct hf_err *err);

/* -- editing: settings_edit.c -------------------------------------------------------------- */

/* The text of a file that has nothing but our hooks. */
int hf_settings_make(const struct hf_settings_want *want, struct hf_buf *out, struct hf_err *err);

/* Puts in the hooks of `want`, and takes out other Holdfast hooks. 1; 0: they are all there; HF_E_FORMAT. */
int hf_settings_put(const struct hf_settings_want *want, struct hf_buf *text, const char *path, struct hf_err *err);

/*
 * Takes them out. Returns how many; HF_E_FORMAT. *ret_empty: nothing is left of a text that
 * hf_settings_make made.
 */
int hf_settings_take(enum hf_client client, struct hf_buf *text, int *ret_empty, const char *path, struct hf_err *err);

/* How many Holdfast handlers it has. *ret_same: they are those of `want`. */
int hf_settings_count(const struct hf_settings_want *want, const struct hf_buf *text, int *ret_same,
		      const char *path, struct hf_err *err);

#endif
