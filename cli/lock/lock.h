/* cli/lock/lock.h - functions shared by the lock commands: options, opening, and the policy for a busy lock. */
#ifndef CLI_LOCK_LOCK_H
#define CLI_LOCK_LOCK_H

#include "cli.h"
#include "holdfast/lock.h"

enum on_timeout {
	ON_TIMEOUT_FAIL,    /* exit 1, or -E N */
	ON_TIMEOUT_SKIP,    /* do not run the command, write lock_skipped, exit 0 */
	ON_TIMEOUT_PROCEED, /* run it without the lock, write lock_fail_open */
};

struct lock_options {
	int no_wait;
	int64_t wait_ns; /* -1: no limit */
	int shared;
	const char *slots_word;
	uint64_t slots; /* 0: not a slots lock */
	int64_t ttl_ns; /* 0: no lease; before lock_options_check(), -1: not given */
	const char *on_timeout_word;
	uint64_t busy_status; /* -E */
	enum on_timeout on_timeout;
};

#define LOCK_OPTIONS_INIT { .wait_ns = -1, .ttl_ns = -1, .busy_status = HF_EXIT_NO }

/* Rows for the option tables of lock run and acquire. */
#define LOCK_OPTION_SPECS(o)                                                                                    \
	{ "nonblock", 'n', OPTION_FLAG, &(o).no_wait, NULL, "do not wait" },                                    \
	{ "wait", 'w', OPTION_DURATION, &(o).wait_ns, "[DUR]", "wait at most DUR (default: no limit)" },        \
	{ "shared", 's', OPTION_FLAG, &(o).shared, NULL, "share it with other shared holders" },                \
	{ "slots", 0, OPTION_TEXT, &(o).slots_word, "N", "at most N holders at once (1 to 64)" },               \
	LOCK_LEASE_SPECS(o, "fail|skip|proceed")

/* Rows for a session's lock: exclusive; it waits only with -w. */
#define SESSION_LOCK_SPECS(o)                                                                                   \
	{ "nonblock", 'n', OPTION_FLAG, &(o).no_wait, NULL, "do not wait for the name (the default)" },         \
	{ "wait", 'w', OPTION_DURATION, &(o).wait_ns, "[DUR]", "wait for the name and for a place in the group, at most DUR" }, \
	{ "shared", 's', OPTION_FLAG, &(o).shared, NULL, NULL },                                                \
	{ "slots", 0, OPTION_TEXT, &(o).slots_word, "N", NULL },                                                \
	LOCK_LEASE_SPECS(o, "fail|skip")

#define LOCK_LEASE_SPECS(o, policies)                                                                           \
	{ "ttl", 0, OPTION_DURATION, &(o).ttl_ns, "DUR", "lease: the lock is lost if not renewed within DUR" },               \
	{ "on-timeout", 0, OPTION_TEXT, &(o).on_timeout_word, policies, "what to do if it stays busy (fail)" }, \
	{ "conflict-exit-code", 'E', OPTION_COUNT, &(o).busy_status, "N", "exit status if it stays busy (1)" }

#define LOCK_KIND_SPEC(word) \
	{ "kind", 0, OPTION_TEXT, &(word), "KIND", "name (default), group, file, plan, target or land" }

/* Checks the options together. Returns HF_EXIT_DONE, or HF_EXIT_USAGE after reporting why. */
int lock_options_check(struct cli *cli, struct lock_options *o);

/* Returns the library's options. `owner` may be NULL. */
struct hf_lock_opts lock_options_for(const struct lock_options *o, const struct hf_proc_id *owner,
				     unsigned flags);

struct lock_context;

/* Like hf_lock_acquire(), but shows a wait of more than a second on the terminal. */
int lock_take(const struct cli *cli, const struct lock_context *context, const char *name, const struct hf_lock_opts *opts,
	      struct hf_lock **ret_lock, struct hf_holder *ret_blocker, struct hf_err *err);

/* The open objects that a lock command works with. */
struct lock_context {
	struct hf_journal *journal; /* NULL if it cannot be opened */
	struct hf_locks *locks;
	enum hf_lock_kind kind; /* kind of the names; 0: name */
	struct hf_err err; /* why `locks` is NULL although the journal is open */
};

/* Opens state, journal and locks. Returns HF_EXIT_DONE, or the exit status after reporting why. */
int lock_open(struct cli *cli, struct lock_context *ret);
/* Like lock_open(), but always opens the locks of this machine. */
int lock_open_here(struct cli *cli, struct lock_context *ret);
/* Like lock_open(), for the kind that --kind names (NULL: name). */
int lock_open_kind(struct cli *cli, const char *word, struct lock_context *ret);

/* Returns the kind that `word` names, or -1. */
int lock_kind(const char *word);

void lock_close(struct lock_context *context);

/* Returns the error's detail; without a detail, the whole message. */
const char *lock_why(const struct hf_err *err, char text[HF_ERR_TEXT_MAX]);

/* Returns 1 if the lock is busy, so that the policy decides; 0 if `result` is an error. */
int lock_is_timeout(int result);

/* Journals that the work is skipped or continues without the lock (L8). */
void lock_journal_timeout(const struct lock_context *context, enum hf_event event, const char *name,
			  int64_t waited_ns, const struct hf_holder *blocker,
			  const struct hf_err *err);

/* Prints the refusal as text or JSON: the holder, its age, the proof that it is alive, and the next commands. */
int lock_say_busy(const struct cli *cli, enum hf_lock_kind kind, const char *name,
		  const struct hf_holder *blocker, const struct hf_err *err, int status);

/*
 * Applies the policy after the lock was not acquired, and writes the event. Sets *ret_go to 1 if the
 * work continues without the lock; otherwise returns the exit status.
 */
int lock_settle(struct cli *cli, const struct lock_context *context, const struct lock_options *o,
		const char *name, int r, struct hf_mono start, const struct hf_holder *blocker,
		const struct hf_err *err, int *ret_go);

/* Gets the identity of the process `pid_word`, or of our parent if it is NULL. Returns like lock_open(). */
int lock_owner(const struct cli *cli, const char *pid_word, struct hf_proc_id *ret);

/* Warns if the parent, which has just got the lock, is a shell that ends after this command (short_lived.c). */
void lock_warn_short_lived(const struct cli *cli, const char *name);

#endif
