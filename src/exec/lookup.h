/*
 * exec/lookup.h - find the program that a command line begins with.
 *
 * Asked before an agent works for an hour, so that a mistyped verifier is refused at once. Only a certain answer
 * counts: a line that is more than words and "&&", a path, a builtin, and a PATH with directories that the agent may
 * fill count as found.
 */
#ifndef EXEC_LOOKUP_H
#define EXEC_LOOKUP_H

#include "holdfast/err.h"

/*
 * `what` ("verifier") and `line` as given to sh -c; NULL or "": none. `env`: variables that are set before those of
 * this process, or NULL. `dir`: where it will run, absolute. 0, or -ENOENT: the program is not found.
 */
int hf_lookup_line(const char *what, const char *line, const char *const *env, const char *dir, struct hf_err *err);

/* 1 for a builtin or reserved word of a shell. */
int hf_lookup_is_builtin(const char *word);

#endif
