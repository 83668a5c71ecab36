/* cli/session/fleet/elsewhere.h - a session that runs, or ran last, on another machine of the store. */
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
 * Is the last session of that name another machine's? Without --store and HOLDFAST_STORE nothing is asked. 1; 0: it is this machine's, or nobody's;
 * -1: the store does not tell, and `err` says why.
 */
int elsewhere_find(struct cli *cli, struct session_context *context, const char *name, struct elsewhere *ret, struct hf_err *err);

/* The verbs, for such a session. The status. */
int elsewhere_stop(struct cli *cli, struct elsewhere *elsewhere, int64_t grace_ns, int several);
int elsewhere_wait(struct cli *cli, struct elsewhere *elsewhere, int64_t wait_ns, int late_status);
int elsewhere_status(struct cli *cli, struct elsewhere *elsewhere);

/* Logs stay where they are: HF_EXIT_DONE when that is here; else says where it is. */
int elsewhere_log(struct cli *cli, struct session_context *context, const char *name);

/* A line, or a member of `object`, for `why`. */
void elsewhere_why(struct cli *cli, struct hf_locks *locks, const char *name, json_t *object);

/* ps --all-hosts */
int elsewhere_list(struct cli *cli, int all, int no_cut, char **names, int n);

#endif
