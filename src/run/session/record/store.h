/*
 * run/session/record/store.h - the directory of a session: its record, its command and its logs.
 *
 *   sessions/<key>/session.jsonl   the record (record.h); the last line counts
 *   sessions/<key>/.session.jsonl.damaged   there is none, because a damaged one was put away
 *   sessions/<key>/command.json    the command, its options, directory and environment (stored.h)
 *   sessions/<key>/input.*         what the command reads as its standard input (input.h)
 *   sessions/<key>/log.*           its output, and that of the run before (log.h)
 *
 * The holder of the session's lock may write; each append is made under the guard of that
 * lock with the token proven, so a keeper that lost it cannot overwrite its successor (L5).
 */
#ifndef RUN_SESSION_RECORD_STORE_H
#define RUN_SESSION_RECORD_STORE_H

#include <sys/types.h>

#include "hf/proc/here.h"
#include "hf/run/session/record/record.h"

struct hf_sessions {
	struct hf_state *state;
	struct hf_journal *journal; /* may be NULL */
	struct hf_locks *locks;
	int dirfd;                  /* sessions/ */
	uint64_t dir_inode;         /* of the state directory: part of the marks of processes */
	uint64_t dir_device;
	unsigned judge_flags;       /* HF_PROC_SHARED on network file systems */
	pid_t process;              /* a forked child is refused */
};

/* Opens the directory of `name`. With `create` 0 a missing one is HF_E_NO_SESSION. */
int hf_session_dir(struct hf_sessions *sessions, const char *name, int create, int *ret_fd,
		   struct hf_err *err);

/* Writes the limit marks of this run, and of the session that this process is in, to the record. */
void hf_session_set_marks(const struct hf_sessions *sessions, struct hf_session_record *record);

/*
 * Reads the record of `name`. HF_E_NO_SESSION when there is none; HF_E_FORMAT when it
 * failed its checks: then it has been put away, with one event, and is as good as none.
 */
int hf_session_load(struct hf_sessions *sessions, const char *name,
		    struct hf_session_record *ret, struct hf_err *err);

/* 0 when the record is of the run that has `token`, or that is 0; else HF_E_STALE: another run has the name by now. */
int hf_session_check_run(const struct hf_session_record *record, uint64_t token, const char *action, struct hf_err *err);

/* 1 when there is no record because a damaged one was put away, and none was written since. */
int hf_session_was_put_away(struct hf_sessions *sessions, const char *name);

/*
 * Appends the record durably, as the holder of `token`. HF_E_STALE when that is no
 * longer current; nothing is written then. record->tail is for the next time.
 */
int hf_session_save(struct hf_sessions *sessions, struct hf_session_record *record,
		    uint64_t token, struct hf_err *err);

/*
 * The same without waiting for the disk: it survives the death of processes, not a power cut, after
 * which its processes are gone as well. For what is written while a clock runs. Where the file has
 * no more room (it is made anew by the next save), nothing is written: -ENOSPC.
 */
int hf_session_note(struct hf_sessions *sessions, struct hf_session_record *record,
		    uint64_t token, struct hf_err *err);

/*
 * Calls `fn` for each session there is, sorted, until it returns less than 0. With `kept` also for those
 * that run and whose directory was deleted.
 */
int hf_session_each(struct hf_sessions *sessions, int kept, int (*fn)(void *arg, const char *name), void *arg,
		    struct hf_err *err);

/* The words of a command as it is shown. */
void hf_session_shown_command(char *const *argv, char out[HF_RUN_COMMAND_MAX + 1]);

/*
 * Brings the attempt on record to its outcome: counts, compares it with the one before, and
 * leaves its session_ended event. The caller has set ended and ran_ns, and saves. For the keeper.
 */
void hf_session_conclude(struct hf_sessions *sessions, struct hf_session_record *record,
			 enum hf_outcome outcome, int exit_status, const char *cause);

/*
 * Brings a run whose keeper is dead to its end: what its own event says, where it came to
 * write one; else what it landed, if it was killed while it did (stage.h); else abandoned; with the event. The caller has
 * set ended and ran_ns for that, and saves. An error: whether it landed is not known now, and nothing is to be saved.
 */
int hf_session_complete(struct hf_sessions *sessions, struct hf_session_record *record, int exit_status,
			const char *cause, struct hf_err *err);

/* 1 when that run's session_reaped event was written, by a process that was killed before it wrote the record. */
int hf_session_is_reaped(struct hf_sessions *sessions, struct hf_session_record *record);

/* One event about a session; without a journal, or when it cannot be written, nothing. */
void hf_session_event(const struct hf_sessions *sessions, enum hf_event event, const char *name,
		      const struct hf_field *fields, size_t n);

/*
 * Moves the entry `entry` of the session's directory to quarantine, whatever it is, with one event (L8, L12).
 * 0 or -errno.
 */
int hf_session_put_away(struct hf_sessions *sessions, int dirfd, const char *name, const char *entry, const char *why,
			struct hf_err *err);

#endif
