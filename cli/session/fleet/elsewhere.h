/* cli/session/fleet/elsewhere.h - sessions that run, or ran last, on another machine of the store. */
#ifndef CLI_SESSION_FLEET_ELSEWHERE_H
#define CLI_SESSION_FLEET_ELSEWHERE_H

#include "holdfast/fleet.h"
#include "lock/lock.h"
#include "session/session.h"

struct elsewhere {
	struct lock_context store;
	struct hf_fleet_session session;
};

void elsewhere_done(struct elsewhere *elsewhere);

/*
 * Finds out whether the last session with this name is on another machine. Returns 1 if it is; 0 if it is on this machine, if the name
 * is unknown, or if no store is set; -1 if the store cannot answer (`err` has the reason).
 */
int elsewhere_find(struct cli *cli, struct session_context *context, const char *name, struct elsewhere *ret, struct hf_err *err);

/* The verbs for such a session. Each returns the exit status. */
int elsewhere_stop(struct cli *cli, struct elsewhere *elsewhere, int64_t grace_ns, int several);
int elsewhere_wait(struct cli *cli, struct elsewhere *elsewhere, int64_t wait_ns, int late_status);
int elsewhere_status(struct cli *cli, struct elsewhere *elsewhere);

/* Returns HF_EXIT_DONE if the session's log is on this machine; otherwise reports where it is. */
int elsewhere_log(struct cli *cli, struct session_context *context, const char *name);

/* Prints a line for `why`, or adds a member to `object`. */
void elsewhere_why(struct cli *cli, struct hf_locks *locks, const char *name, json_t *object);

/* Implements ps --all-hosts. */
int elsewhere_list(struct cli *cli, int all, int no_cut, char **names, int n);

#endif
