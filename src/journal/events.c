/* journal/events.c - the event table: each event, its fields, and what it means. */
#include <string.h>

#include "holdfast/event.h"

#define REQUIRED(key, type) { key, HF_##type, 1 }
#define OPTIONAL(key, type) { key, HF_##type, 0 }

/* clang-format off */
#define ROW(constant, name, needs_name, summary, ...) \
	[HF_EV_##constant] = { HF_EV_##constant, #name, summary, needs_name, { __VA_ARGS__ } }

static const struct hf_event_info rows[] = {
	ROW(NOTE, note, 0, "free text from a user or script",
	    REQUIRED("text", TEXT)),
	ROW(JOURNAL_LOST, journal_lost, 0, "records could not be written and are missing",
	    REQUIRED("count", INT), REQUIRED("cause", TEXT)),
	ROW(JOURNAL_ROTATED, journal_rotated, 0, "a full segment was sealed and a new segment started",
	    REQUIRED("segment", TEXT), REQUIRED("last", INT)),
	ROW(JOURNAL_PRUNED, journal_pruned, 0, "the oldest segments were removed to keep the size limit",
	    REQUIRED("through", INT), REQUIRED("segments", INT)),
	ROW(RECORD_QUARANTINED, record_quarantined, 0, "a stored record failed its checks and was quarantined",
	    REQUIRED("file", TEXT), REQUIRED("moved_to", TEXT), REQUIRED("reason", TEXT)),
	ROW(QUARANTINE_TRIMMED, quarantine_trimmed, 0, "the oldest quarantined records were removed to keep the limits",
	    REQUIRED("entries", INT), REQUIRED("bytes", INT), REQUIRED("left", INT)),
	ROW(ID_REJECTED, id_rejected, 0, "a stored process id was not trusted; only its lease can end that record",
	    REQUIRED("where", TEXT), REQUIRED("reason", TEXT)),
	ROW(SIGNAL_SENT, signal_sent, 0, "a signal was sent to a proven process",
	    REQUIRED("target", TEXT), REQUIRED("signal", TEXT)),
	ROW(SIGNAL_REFUSED, signal_refused, 0, "a signal was not sent, with the reason",
	    REQUIRED("target", TEXT), REQUIRED("signal", TEXT), REQUIRED("reason", TEXT)),
	ROW(LOCK_FAIL_OPEN, lock_fail_open, 1, "work continued without the lock that it asked for",
	    REQUIRED("waited_ms", INT), REQUIRED("cause", TEXT), OPTIONAL("holder", TEXT),
	    OPTIONAL("kind", TEXT)),
	ROW(LOCK_SKIPPED, lock_skipped, 1, "a command was skipped because its lock was busy",
	    REQUIRED("waited_ms", INT), OPTIONAL("cause", TEXT), OPTIONAL("holder", TEXT),
	    OPTIONAL("kind", TEXT)),
	ROW(LOCK_TAKEN_OVER, lock_taken_over, 1, "a dead owner's lock was freed",
	    REQUIRED("holder", TEXT), REQUIRED("reason", TEXT), OPTIONAL("kind", TEXT)),
	ROW(LOCK_EXPIRED, lock_expired, 1, "a holder lost the lock because its lease had expired",
	    REQUIRED("holder", TEXT), REQUIRED("reason", TEXT), OPTIONAL("kind", TEXT)),
	ROW(LOCK_BROKEN, lock_broken, 1, "a holder lost the lock because it was broken on request",
	    REQUIRED("holder", TEXT), REQUIRED("reason", TEXT), OPTIONAL("kind", TEXT)),
	ROW(LOCK_REFUSED, lock_refused, 1, "a process that is not the owner was refused and changed nothing",
	    REQUIRED("action", TEXT), REQUIRED("reason", TEXT), OPTIONAL("holder", TEXT),
	    OPTIONAL("kind", TEXT)),
	ROW(LOCK_DEADLOCK, lock_deadlock, 1, "a wait that would be a deadlock was refused",
	    REQUIRED("cycle", TEXT), OPTIONAL("kind", TEXT)),
	ROW(SESSION_STARTED, session_started, 1, "a command was started under supervision",
	    REQUIRED("attempt", INT), REQUIRED("leader", INT), REQUIRED("command", TEXT), REQUIRED("tree", TEXT)),
	ROW(SESSION_STOPPING, session_stopping, 1, "a session is being ended, with the reason",
	    REQUIRED("attempt", INT), REQUIRED("cause", TEXT)),
	ROW(SESSION_KILLED, session_killed, 1, "processes of a session, its supervisor or its keeper were killed, and have ended",
	    REQUIRED("count", INT), REQUIRED("cause", TEXT)),
	ROW(SESSION_ENDED, session_ended, 1, "an attempt ended",
	    REQUIRED("token", INT), REQUIRED("attempt", INT), REQUIRED("outcome", TEXT),
	    REQUIRED("status", INT), REQUIRED("cause", TEXT), REQUIRED("ran_ms", INT)),
	ROW(SESSION_REAPED, session_reaped, 1, "processes left by a session without a keeper were ended",
	    OPTIONAL("token", INT), REQUIRED("killed", INT), REQUIRED("reason", TEXT)),
	ROW(SESSION_REFUSED, session_refused, 1, "a session was not started, or a stop was refused",
	    REQUIRED("action", TEXT), REQUIRED("reason", TEXT)),
	ROW(SESSION_LEFT_RUNNING, session_left_running, 1, "processes outlive their session, as requested",
	    REQUIRED("attempt", INT)),
	ROW(SESSION_NOTIFIED, session_notified, 1, "the notify command was run, or (125) could not be",
	    REQUIRED("outcome", TEXT), REQUIRED("same", INT), REQUIRED("status", INT), OPTIONAL("said", TEXT)),
	ROW(SESSION_OUTLIVED, session_outlived, 1, "processes outlived their command and were ended",
	    REQUIRED("attempt", INT), REQUIRED("count", INT), REQUIRED("names", TEXT)),
	ROW(SESSION_GAVE_UP, session_gave_up, 1, "a loop ended before its --until condition became true",
	    REQUIRED("token", INT), REQUIRED("attempts", INT), REQUIRED("cause", TEXT)),
	ROW(FILE_REFUSED, file_refused, 0, "a shared file was not changed, for safety",
	    REQUIRED("path", TEXT), REQUIRED("reason", TEXT)),
	ROW(FILE_ABANDONED, file_abandoned, 0, "new content was rejected: its command failed, hung or wrote nothing",
	    REQUIRED("path", TEXT), REQUIRED("cause", TEXT)),
	ROW(FILE_KEPT, file_kept, 0, "a version that an editor saved during a commit was kept under another name",
	    REQUIRED("path", TEXT), REQUIRED("kept", TEXT)),
	ROW(PLAN_ADDED, plan_added, 1, "a sandbox was added to a plan",
	    REQUIRED("sandbox", TEXT), REQUIRED("target", TEXT), REQUIRED("strategy", TEXT), OPTIONAL("why", TEXT)),
	ROW(PLAN_ENTERED, plan_entered, 1, "a command was started inside the sandboxes of a plan",
	    REQUIRED("leader", INT), REQUIRED("joined", BOOL), OPTIONAL("without", TEXT)),
	ROW(PLAN_REFUSED, plan_refused, 1, "an operation on a plan was refused, for safety",
	    REQUIRED("action", TEXT), REQUIRED("reason", TEXT)),
	ROW(PLAN_ERRORED, plan_errored, 1, "a plan needs a decision before it can continue",
	    REQUIRED("reason", TEXT)),
	ROW(PLAN_REMOVED, plan_removed, 1, "a plan and its sandboxes were removed",
	    REQUIRED("state", TEXT), REQUIRED("discarded", BOOL)),
	ROW(PLAN_CONFLICT, plan_conflict, 1, "a commit changed nothing because its targets had changed",
	    REQUIRED("count", INT), REQUIRED("first", TEXT), REQUIRED("kind", TEXT)),
	ROW(PLAN_COMMITTED, plan_committed, 1, "the changes of a plan were applied to its targets",
	    REQUIRED("token", INT), REQUIRED("added", INT), REQUIRED("changed", INT), REQUIRED("deleted", INT)),
	ROW(PLAN_ROLLED_BACK, plan_rolled_back, 1, "the changes of a plan were dropped",
	    REQUIRED("reason", TEXT)),
	ROW(PLAN_UNDONE, plan_undone, 1, "a commit was undone",
	    REQUIRED("token", INT), REQUIRED("entries", INT)),
	ROW(PLAN_RECOVERED, plan_recovered, 1, "the operation of a dead process on a plan was finished or undone",
	    REQUIRED("outcome", TEXT), REQUIRED("reason", TEXT)),
	ROW(LAND_KEPT, land_kept, 1, "a candidate's work was stored in its repository as refs/holdfast/NAME",
	    REQUIRED("branch", TEXT), REQUIRED("commit", TEXT), REQUIRED("commits", INT), REQUIRED("files", INT)),
	ROW(LAND_LANDED, land_landed, 1, "a candidate's work is part of its branch",
	    REQUIRED("branch", TEXT), REQUIRED("commit", TEXT), REQUIRED("commits", INT), REQUIRED("rebased", BOOL),
	    REQUIRED("verify_ms", INT), OPTIONAL("files", INT)),
	ROW(LAND_REJECTED, land_rejected, 1, "a candidate did not become part of its branch; its work is kept",
	    REQUIRED("branch", TEXT), REQUIRED("reason", TEXT)),
	ROW(LAND_CONFLICT, land_conflict, 1, "a candidate conflicts with other changes; its work is kept",
	    REQUIRED("branch", TEXT), REQUIRED("count", INT), REQUIRED("first", TEXT), REQUIRED("kind", TEXT)),
	ROW(LAND_DROPPED, land_dropped, 1, "a candidate was dropped, and its work removed",
	    REQUIRED("branch", TEXT), REQUIRED("commit", TEXT)),
	ROW(LAND_RECOVERED, land_recovered, 1, "the operation of a dead process on a candidate was finished or undone",
	    REQUIRED("outcome", TEXT), REQUIRED("reason", TEXT)),
	ROW(RUN_COMMITTED, run_committed, 1, "a transactional run succeeded and its changes are in their targets",
	    REQUIRED("token", INT), REQUIRED("attempt", INT), REQUIRED("added", INT), REQUIRED("changed", INT),
	    REQUIRED("deleted", INT), OPTIONAL("bytes", INT)),
	ROW(RUN_CONFLICT, run_conflict, 1, "a transactional run succeeded but was not committed, because its targets had changed",
	    REQUIRED("token", INT), REQUIRED("attempt", INT), REQUIRED("count", INT), REQUIRED("first", TEXT),
	    REQUIRED("kind", TEXT)),
	ROW(RUN_KEPT, run_kept, 1, "the sandbox of a transactional run was kept as a plan",
	    REQUIRED("token", INT), REQUIRED("attempt", INT), REQUIRED("plan", TEXT), REQUIRED("outcome", TEXT)),
	ROW(RUN_MOVED, run_moved, 1, "the targets of a transactional run changed during its verification, so it is verified again",
	    REQUIRED("token", INT), REQUIRED("attempt", INT), REQUIRED("path", TEXT)),
	ROW(KEEP_ON, keep_on, 1, "work mode was switched on: a client that wants to stop is asked to continue",
	    REQUIRED("ttl_ms", INT), REQUIRED("max", INT), REQUIRED("until", BOOL)),
	ROW(KEEP_ENDED, keep_ended, 1, "work mode ended, with the reason",
	    REQUIRED("reason", TEXT), REQUIRED("blocks", INT)),
	ROW(STOP_BLOCKED, stop_blocked, 1, "a client in work mode wanted to stop and was asked to continue",
	    REQUIRED("reason", TEXT), REQUIRED("blocks", INT)),
	ROW(STOP_ALLOWED, stop_allowed, 0, "a client was allowed to stop although work mode may be on, with the reason",
	    REQUIRED("reason", TEXT), OPTIONAL("blocks", INT)),
	ROW(HOOK_FAILED, hook_failed, 0, "a hook failed; the client continues as if it had no hook",
	    REQUIRED("hook", TEXT), REQUIRED("cause", TEXT)),
	ROW(TOOL_REFUSED, tool_refused, 0, "a tool call that would write another session's file was refused",
	    REQUIRED("tool", TEXT), REQUIRED("path", TEXT), REQUIRED("reason", TEXT)),
	ROW(CLIENT_STARTED, client_started, 1, "a client started a session; its process is proven",
	    REQUIRED("client", TEXT), REQUIRED("process", TEXT), REQUIRED("proof", TEXT)),
	ROW(CLIENT_ENDED, client_ended, 1, "a client reported that its session ends",
	    REQUIRED("client", TEXT)),
	ROW(BACKGROUND_LEFT, background_left, 1, "a client stopped and left background tasks, for which it waits",
	    REQUIRED("count", INT), REQUIRED("tasks", TEXT), REQUIRED("killed", INT)),
};
/* clang-format on */

_Static_assert(sizeof(rows) / sizeof(rows[0]) == HF_EVENT_COUNT, "one row for each event");

const struct hf_event_info *hf_event_info(enum hf_event event)
{
	return (unsigned)event < HF_EVENT_COUNT ? &rows[event] : NULL;
}

const struct hf_event_info *hf_event_find(const char *name, size_t len)
{
	for (size_t i = 0; i < HF_EVENT_COUNT; i++)
		if (strlen(rows[i].name) == len && memcmp(rows[i].name, name, len) == 0)
			return &rows[i];
	return NULL;
}
