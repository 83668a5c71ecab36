/* cli/lock/lock.h - what the lock commands share: options, opening, and what a time-out means. */
#ifndef CLI_LOCK_LOCK_H
#define CLI_LOCK_LOCK_H

#include "cli.h"
#include "holdfast/lock.h"

enum on_timeout {
	ON_TIMEOUT_FAIL,    /* exit 1, or -E N */
	ON_TIMEOUT_SKIP,    /* do not run it, exit 0, lock_skipped */
	ON_TIMEOUT_PROCEED, /* run it without the lock, lock_fail_open */
};

struct lock_options {
	int no_wait;
	int64_t wait_ns; /* -1: for ever */
	int shared;
	const char *slots_word;
	uint64_t slots; /* 0: not a slots lock */
	int64_t ttl_ns; /* 0: no lease; before lock_options_check -1 for that */
	const char *on_timeout_word;
	uint64_t busy_status; /* -E */
	enum on_timeout on_timeout;
};

#define LOCK_OPTIONS_INIT { .wait_ns = -1, .ttl_ns = -1, .busy_status = HF_EXIT_NO }

/* The rows of these options, for the tables of lock run and acquire. */
#define LOCK_OPTION_SPECS(o)                                                                                    \
	{ "nonblock", 'n', OPTION_FLAG, &(o).no_wait, NULL, "do not wait" },                                    \
	{ "wait", 'w', OPTION_DURATION, &(o).wait_ns, "[DUR]", "wait at most DUR (else for ever)" },            \
	{ "shared", 's', OPTION_FLAG, &(o).shared, NULL, "together with others that are shared" },              \
	{ "slots", 0, OPTION_TEXT, &(o).slots_word, "N", "at most N at once (1 to 64)" },                       \
	LOCK_LEASE_SPECS(o, "fail|skip|proceed")

/* A session's lock: exclusive, and it does not wait unless it is told to. */
#define SESSION_LOCK_SPECS(o)                                                                                   \
	{ "nonblock", 'n', OPTION_FLAG, &(o).no_wait, NULL, "do not wait for the name (the default)" },         \
	{ "wait", 'w', OPTION_DURATION, &(o).wait_ns, "[DUR]", "wait for the name, and for a place in the group (at most DUR)" }, \
	{ "shared", 's', OPTION_FLAG, &(o).shared, NULL, NULL },                                                \
	{ "slots", 0, OPTION_TEXT, &(o).slots_word, "N", NULL },                                                \
	LOCK_LEASE_SPECS(o, "fail|skip")

#define LOCK_LEASE_SPECS(o, policies)                                                                           \
	{ "ttl", 0, OPTION_DURATION, &(o).ttl_ns, "DUR", "a lease: lost if not renewed in DUR" },               \
	{ "on-timeout", 0, OPTION_TEXT, &(o).on_timeout_word, policies, "what to do when it stays busy (fail)" }, \
	{ "conflict-exit-code", 'E', OPTION_COUNT, &(o).busy_status, "N", "exit status when it stays busy (1)" }

#define LOCK_KIND_SPEC(word) \
	{ "kind", 0, OPTION_TEXT, &(word), "KIND", "name (default), group, file, plan, target or land" }

/* Checks them together. Returns HF_EXIT_DONE, or HF_EXIT_USAGE after saying why. */
int lock_options_check(struct cli *cli, struct lock_options *o);

/* The library's options for these. `owner` may be NULL. */
struct hf_lock_opts lock_options_for(const struct lock_options *o, const struct hf_proc_id *owner,
				     unsigned flags);

struct lock_context;

/* Acquires it; a wait of more than a second is told on the terminal. As hf_lock_acquire. */
int lock_take(const struct cli *cli, const struct lock_context *context, const char *name, const struct hf_lock_opts *opts,
	      struct hf_lock **ret_lock, struct hf_holder *ret_blocker, struct hf_err *err);

/* What the commands work with. */
struct lock_context {
	struct hf_journal *journal; /* NULL when it cannot be opened */
	struct hf_locks *locks;
	enum hf_lock_kind kind; /* of the names that are spoken of; 0: name */
	struct hf_err err; /* why there are no locks, when only they are missing */
};

/* Opens state, journal and locks. Returns HF_EXIT_DONE or the status after saying why. */
int lock_open(struct cli *cli, struct lock_context *ret);
/* The same for the locks of this machine, whatever store is set. */
int lock_open_here(struct cli *cli, struct lock_context *ret);
/* The same for the locks of the kind that --kind names (NULL: name). */
int lock_open_kind(struct cli *cli, const char *word, struct lock_context *ret);

/* The kind of that word, or -1. */
int lock_kind(const char *word);

void lock_close(struct lock_context *context);

/* Its detail, or all of it where there is none. */
const char *lock_why(const struct hf_err *err, char text[HF_ERR_TEXT_MAX]);

/* Is it a refusal by time or by others, which the policy decides, and not an error? */
int lock_is_timeout(int result);

/* Journals that the work is skipped or goes on without the lock (L8). */
void lock_journal_timeout(const struct lock_context *context, enum hf_event event, const char *name,
			  int64_t waited_ns, const struct hf_holder *blocker,
			  const struct hf_err *err);

/* The refusal for people and as JSON: the holder, since when, the proof that it lives, what to do. */
int lock_say_busy(const struct cli *cli, enum hf_lock_kind kind, const char *name,
		  const struct hf_holder *blocker, const struct hf_err *err, int status);

/*
 * The lock was not acquired: what the policy says, with its event. *ret_go is 1 when the work
 * goes on without it; else the status is what to exit with.
 */
int lock_settle(struct cli *cli, const struct lock_context *context, const struct lock_options *o,
		const char *name, int r, struct hf_mono start, const struct hf_holder *blocker,
		const struct hf_err *err, int *ret_go);

/* Identity of the process of that pid, or of our parent when it is NULL. Status as above. */
int lock_owner(const struct cli *cli, const char *pid_word, struct hf_proc_id *ret);

/* Says so when the parent, which has just got the lock, is a shell that ends after this command (short_lived.c). */
void lock_warn_short_lived(const struct cli *cli, const char *name);

#endif
