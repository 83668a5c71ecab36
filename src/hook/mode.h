/*
 * hook/mode.h - the record of a work mode: modes/KEY in the state directory.
 *
 * One JSON object of at most HF_MODE_MAX bytes, changed by one write under a flock on the file itself,
 * which is unlinked when work mode ends:
 *
 *     AUTO(hf_mode_close) struct hf_mode mode = HF_MODE_INIT;
 *     r = hf_mode_open(hooks, id, 0, &mode, &err);      1: locked and read; 0: there is none
 *     mode.blocks++;
 *     r = hf_mode_save(&mode, &err);
 */
#ifndef HOOK_MODE_H
#define HOOK_MODE_H

#include "hf/sys/state/state.h"
#include "holdfast/hook.h"
#include "holdfast/name.h"

#define HF_MODE_MAX 16384

struct hf_hooks {
	struct hf_state *state;
	struct hf_journal *journal; /* may be NULL */
	int dirfd;                  /* modes/; -1: not opened yet */
};

struct hf_mode {
	struct hf_hooks *hooks;
	int fd; /* -1: none */
	size_t size; /* of the file, as far as it was read */
	char key[HF_NAME_KEY_MAX];

	/* The record. */
	char id[HF_NAME_MAX + 1];
	char goal[HF_KEEP_GOAL_MAX + 1];
	char until[HF_KEEP_UNTIL_MAX + 1];
	char *cwd;                   /* owned */
	struct hf_wall since;
	int64_t ttl_ns;
	int64_t until_ns;            /* what the until command may take */
	uint32_t max;
	char turn[HF_NAME_MAX + 1];  /* that `blocks` counts */
	uint32_t blocks;
	uint32_t idle;               /* blocks in a row without progress */
	uint64_t tools;              /* tool calls, ever */
	uint64_t tools_seen;         /* of them before the last block */
	uint64_t total;
	/* The last stop that was answered. */
	uint64_t digest;
	struct hf_boot asked;        /* since when a hook asks the until command about it; 0: none does */
	struct hf_boot answered;     /* when; 0: none was */
	int answer_block;
};

#define HF_MODE_INIT { .fd = -1 }

/*
 * Opens, locks and reads the record of `id`. With `create` a missing or unreadable one is made, all
 * empty but for the id. Returns 1; 0 when there is none; an error. A record that fails its checks is
 * put away, with one event, and is none.
 */
int hf_mode_open(struct hf_hooks *hooks, const char *id, int create, struct hf_mode *ret,
		 struct hf_err *err);

/* Is there a record? It is not read. 1, 0, or an error. */
int hf_mode_exists(struct hf_hooks *hooks, const char *id, struct hf_err *err);

/* Writes the record. */
int hf_mode_save(struct hf_mode *mode, struct hf_err *err);

/* Ends work mode: removes the record, with a keep_ended event that says why. */
int hf_mode_end(struct hf_mode *mode, const char *why, struct hf_err *err);

/* Unlocks and frees. */
void hf_mode_close(struct hf_mode *mode);

/* How much of its time is left; 0: none. A beginning in the future counts as now. */
int64_t hf_mode_left(const struct hf_mode *mode);

/* The names of all records, sorted, as ids. Calls `fn` until it returns less than 0. */
int hf_mode_each(struct hf_hooks *hooks, int (*fn)(void *arg, const char *id), void *arg,
		 struct hf_err *err);

/* One event about `id`; without a journal, or when it cannot be written, nothing. */
void hf_hook_tell(const struct hf_hooks *hooks, enum hf_event event, const char *id,
		  const struct hf_field *fields, size_t n);

#endif
