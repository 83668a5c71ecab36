/* cli/hook/hook.h - functions shared by the commands for work mode and hooks. */
#ifndef CLI_HOOK_HOOK_H
#define CLI_HOOK_HOOK_H

#include "cli.h"
#include "holdfast/hook.h"
#include "holdfast/journal.h"

struct hook_context {
	struct hf_journal *journal; /* may be NULL */
	struct hf_hooks *hooks;
};

/* Opens state, journal and hooks. Returns HF_EXIT_DONE, or the exit status after reporting why. */
int hook_open(struct cli *cli, unsigned state_flags, struct hook_context *ret);
void hook_close(struct hook_context *context);

/* A client's call of a hook. */
struct hook {
	struct cli *cli;
	const char *word;    /* "stop" */
	const char *session; /* --session */
	struct hook_context context;
	struct hf_buf input;
	struct hf_hook_event *event;
	const char *id;      /* the session's id, or NULL */
};

/* Reads the event. Returns 1 to continue, 0 to exit 0 without doing anything. */
int hook_begin(struct hook *hook);
void hook_done(struct hook *hook);

/* Opens the journal on first use, because most calls write no event. May return NULL. */
struct hf_journal *hook_journal(struct hook *hook);

#endif
