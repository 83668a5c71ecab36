/*
 * cli/session/terminal/replay.h - what a terminal showed before, to be shown again.
 *
 * The bytes go to the terminal as they are, so that the screen becomes what it was, but questions are left out: a terminal answers them
 * by typing, and the answer would reach a command that has not asked now. Such are reports of status, cursor, size, colours and version.
 */
#ifndef CLI_SESSION_TERMINAL_REPLAY_H
#define CLI_SESSION_TERMINAL_REPLAY_H

#include "hf/base/buf.h"

struct replay {
	enum { REPLAY_TEXT, REPLAY_ESCAPE, REPLAY_CSI, REPLAY_STRING, REPLAY_STRING_ESCAPE } state;
	struct hf_buf sequence; /* that was begun */
};

#define REPLAY_INIT { REPLAY_TEXT, HF_BUF_INIT }

void replay_done(struct replay *replay);

/* Adds what of `bytes` is shown again to `out`. A sequence may be cut anywhere. */
void replay_add(struct replay *replay, const char *bytes, size_t n, struct hf_buf *out);

#endif
