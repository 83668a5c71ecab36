/* hook/own.h - the Holdfast session of a hook, from its environment. */
#ifndef HOOK_OWN_H
#define HOOK_OWN_H

#include "hf/hook/mode.h"
#include "hf/run/session/notes/activity.h"
#include "holdfast/run.h"

struct hf_own {
	struct hf_sessions *sessions;
	const char *name;
	uint64_t token;
};

#define HF_OWN_INIT { NULL, NULL, 0 }

/* Returns 1, 0 outside of a session, or an error. */
int hf_own_open(struct hf_hooks *hooks, struct hf_own *ret, struct hf_err *err);
void hf_own_done(struct hf_own *own);

#endif
