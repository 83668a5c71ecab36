/* cli/hook/hook.h - what the commands about work mode and hooks share. */
#ifndef CLI_HOOK_HOOK_H
#define CLI_HOOK_HOOK_H

#include "cli.h"
#include "holdfast/hook.h"
#include "holdfast/journal.h"

struct hook_context {
	struct hf_journal *journal; /* NULL: none */
	struct hf_hooks *hooks;
};

/* Opens state, journal and hooks. Returns HF_EXIT_DONE or the status after saying why. */
int hook_open(struct cli *cli, unsigned state_flags, struct hook_context *ret);
void hook_close(struct hook_context *context);

/* One call of a hook by a client. */
struct hook {
	struct cli *cli;
	const char *word;    /* "stop" */
	const char *session; /* --session */
	struct hook_context context;
	struct hf_buf input;
	struct hf_hook_event *event;
	const char *id;      /* of the session; NULL: none */
};

/* Reads the event. 1: go on; 0: nothing is to be done, exit 0. */
int hook_begin(struct hook *hook);
void hook_done(struct hook *hook);

/* The journal, opened when there is something to say: most calls are of no interest. NULL: none. */
struct hf_journal *hook_journal(struct hook *hook);

#endif
