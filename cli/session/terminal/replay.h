/*
 * cli/session/terminal/replay.h - shows the history of a terminal again.
 *
 * The bytes go to the terminal unchanged, so that the screen becomes the same again. Only queries are left out (status, cursor, size,
 * colours, version): a terminal answers them by typing, and the answer would reach a command that is not waiting for it.
 */
#ifndef CLI_SESSION_TERMINAL_REPLAY_H
#define CLI_SESSION_TERMINAL_REPLAY_H

#include "hf/base/buf.h"
#include "hf/base/escapes.h"

struct replay {
	struct hf_escapes escapes;
};

/* Adds `bytes` without queries to `out`. Sequences may be split at any byte. */
void replay_add(struct replay *replay, const char *bytes, size_t n, struct hf_buf *out);

#endif
