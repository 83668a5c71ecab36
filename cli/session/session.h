/* cli/session/session.h - functions shared by the commands for sessions. */
#ifndef CLI_SESSION_SESSION_H
#define CLI_SESSION_SESSION_H

#include "cli.h"
#include "holdfast/run.h"

struct session_context {
	struct hf_journal *journal; /* NULL if it cannot be opened */
	struct hf_sessions *sessions;
};

/* Selects a run by its token, which `ps -o token` shows. */
#define SESSION_TOKEN_SPEC(target) \
	{ "token", 0, OPTION_TOKEN, &(target), "T", "only the run with this token (exit 3 if the name has another run now)" }

/* Opens state, journal and sessions. Returns HF_EXIT_DONE, or the exit status after reporting why. */
int session_open(struct cli *cli, struct session_context *ret);
void session_close(struct session_context *context);

/* {"name":…, done:true} */
void session_print_done(const char *name, const char *done);

/*
 * Reads NAME... and --token T, and calls `fn` for each name. With --json prints {"name":…, done:true} for each success. Returns the
 * highest exit status.
 */
int session_each_named(struct cli *cli, int argc, char **argv, const char *done,
		       int (*fn)(struct hf_sessions *sessions, const char *name, uint64_t token, struct hf_err *err));

#endif
