/* cli/session/session.h - what the commands about sessions share. */
#ifndef CLI_SESSION_SESSION_H
#define CLI_SESSION_SESSION_H

#include "cli.h"
#include "holdfast/run.h"

struct session_context {
	struct hf_journal *journal; /* NULL when it cannot be opened */
	struct hf_sessions *sessions;
};

/* Which run is meant, as `ps -o token` shows it. */
#define SESSION_TOKEN_SPEC(target) \
	{ "token", 0, OPTION_TOKEN, &(target), "T", "only the run that has this token (exit 3 if another one has the name by now)" }

/* Opens state, journal and sessions. Returns HF_EXIT_DONE or the status after saying why. */
int session_open(struct cli *cli, struct session_context *ret);
void session_close(struct session_context *context);

/*
 * Reads NAME... and --token T, calls `fn` for each name, and with --json says that it is done: {"name":…, done:true}. The highest
 * status counts.
 */
int session_each_named(struct cli *cli, int argc, char **argv, const char *done,
		       int (*fn)(struct hf_sessions *sessions, const char *name, uint64_t token, struct hf_err *err));

#endif
