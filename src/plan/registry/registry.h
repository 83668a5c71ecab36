/*
 * plan/registry/registry.h - plans on disk: the record, its states, its lock, and where its parts lie.
 *
 *   plans/<key>/plan.json          the record; replaced as a whole (temp, rename)
 *   plans/<key>/plan.before        the one before, for when power fails (record_file.c)
 *   plans/<key>/in                 locked (shared) by each enter while its processes live; says
 *                                  which namespaces they are in (use.h)
 *   plans/<key>/s/<skey>/u, w      upper and work directory of an overlay
 *   plans/<key>/s/<skey>/c         the tree of a clone or copy
 *   plans/<key>/s/<skey>/census    names of the target at T0 (census.h); overlay
 *   plans/<key>/s/<skey>/used      a clone or copy is in use (used.h)
 *   plans/<key>/s/<skey>/manifest  what was copied (manifest.h); clone and copy
 *
 * <key> and <skey> are hf_name_key of the plan's and the sandbox's name. The holder of the
 * plan's lock changes the record, with its token proven under the guard (L5).
 */
#ifndef PLAN_REGISTRY_REGISTRY_H
#define PLAN_REGISTRY_REGISTRY_H

#include <stdint.h>
#include <sys/types.h>

#include "hf/base/buf.h"
#include "hf/proc/here.h"
#include "holdfast/name.h"
#include "holdfast/plan.h"

#define HF_PLAN_RECORD   "plan.json"
#define HF_PLAN_BEFORE   "plan.before"
#define HF_PLAN_SYNCED   "plan.synced"
#define HF_PLAN_IN       "in"
#define HF_SANDBOX_UPPER "u"
#define HF_SANDBOX_WORK  "w"
#define HF_SANDBOX_PINS  "p" /* pins.h */
#define HF_SANDBOX_TREE  "c"

struct hf_confine;
struct hf_verified;

struct hf_plans {
	struct hf_state *state;
	struct hf_journal *journal; /* may be NULL */
	struct hf_locks *locks;
	int dirfd;                  /* plans/ */
	pid_t process;              /* a forked child is refused */
	const struct hf_confine *confine; /* NULL: entries are not confined; see confine.h */
	struct hf_verified *verified; /* NULL: commits do not ask what changed since; see moved.h */
};

/* The moment from which changes of a target count as conflicts. */
struct hf_t0 {
	int64_t real_ns; /* CLOCK_REALTIME_COARSE: the clock that file systems stamp with */
	int64_t boot_ns; /* CLOCK_BOOTTIME at the same moment */
	char boot_id[HF_BOOT_ID_LEN + 1];
};

/* A target's identity. The path finds it, (dev, ino) proves it. */
struct hf_target {
	char *path; /* absolute, without symlinks when it was added; owned by the record */
	uint64_t dev, ino;
	uint64_t mnt_id;  /* statx STATX_MNT_ID: same as the state directory's: no copying at commit */
	uint64_t fs_type; /* statfs f_type */
	/* dev and mnt_id are numbers of this boot; in another one ino and fs_type must do. */
	char boot_id[HF_BOOT_ID_LEN + 1];
};

struct hf_sandbox_record {
	char name[HF_NAME_MAX + 1];
	enum hf_strategy strategy;
	char why[HF_PLAN_WHY_MAX];
	struct hf_target target;
	struct hf_t0 t0;
	/* Overlay: an enter mounted it in this boot and it was not yet settled. "" else. */
	char entered_boot[HF_BOOT_ID_LEN + 1];
	int entered; /* 1: ever; T0 stays from then on */
	int root_ns; /* 1: mounted by root without a user namespace, so trusted.overlay.* instead of user.overlay.* */
};

struct hf_plan_record {
	char name[HF_NAME_MAX + 1];
	uint64_t token; /* of the holder that wrote it */
	enum hf_plan_state state;
	char reason[HF_PLAN_WHY_MAX];
	char session[HF_NAME_MAX + 1];
	struct hf_wall created, changed;
	int torn; /* 1: in use when power failed */
	/* Phase of a commit within PREPARED: 0 none, 1 APPLY (SANDBOX, step 6); the commit's. */
	int phase;
	struct hf_sandbox_record *sandboxes;
	size_t n_sandboxes;
};

#define HF_PLAN_RECORD_INIT { .sandboxes = NULL }

/* Frees what the record holds. */
void hf_plan_record_done(struct hf_plan_record *record);

/* Is it the name of a transactional run's plan? */
int hf_plan_is_of_run(const char *plan);

/*
 * Refuses (HF_E_IN_USE) to touch the plan of a transactional run whose session is held now, unless its token is among
 * the `fences`: its own commit. No plan of a run: 0.
 */
int hf_plan_check_session(struct hf_plans *plans, const struct hf_plan_record *record, const struct hf_plan_fence *fences,
			  size_t n_fences, struct hf_err *err);

/* The sandbox of that name, or NULL. */
struct hf_sandbox_record *hf_plan_sandbox(struct hf_plan_record *record, const char *name);

/* May a plan go from one state to the other? */
/* The state of that word; -EINVAL: there is none. */
int hf_plan_state_of(const char *word);

int hf_plan_may_become(enum hf_plan_state from, enum hf_plan_state to);

/*
 * Sets state and reason (NULL: "") after checking the transition; HF_E_PLAN_STATE. Not saved.
 */
int hf_plan_become(struct hf_plan_record *record, enum hf_plan_state to, const char *reason,
		   struct hf_err *err);

/* -- record.c: to a line of JSON and back ---------------------------------------- */

void hf_plan_encode(const struct hf_plan_record *record, struct hf_buf *out);

/* Returns 0 or HF_E_FORMAT with *ret_why in words. -ENOMEM. */
int hf_plan_decode(const char *text, size_t len, struct hf_plan_record *ret, const char **ret_why);

/* -- store.c, record_file.c: files --------------------------------------------------------------- */

/* Opens plans/<key>. With `create` 0 a missing one is HF_E_NO_PLAN. */
int hf_plan_dir(struct hf_plans *plans, const char *plan, int create, int *ret_fd,
		struct hf_err *err);

/* Opens plans/<key>/s/<skey> below `plan_fd`. With `create` 0 a missing one is HF_E_NO_SANDBOX. */
int hf_sandbox_dir(int plan_fd, const char *sandbox, int create, int *ret_fd, struct hf_err *err);

/* Writes the absolute path of plans/<key>/s/<skey>/<part> to `out`. */
void hf_sandbox_path(const struct hf_plans *plans, const char *plan, const char *sandbox,
		     const char *part, struct hf_buf *out);

/*
 * Reads the record. HF_E_NO_PLAN when there is none; HF_E_FORMAT when it failed its checks:
 * then it has been put away, with one event. No lock is needed. *ret is done by the caller.
 */
int hf_plan_load(struct hf_plans *plans, const char *plan, struct hf_plan_record *ret,
		 struct hf_err *err);

enum hf_plan_save_flags {
	HF_PLAN_SAVE_DURABLE = 1 << 0,     /* fsync file and directory; else the caller's syncfs carries it */
	HF_PLAN_SAVE_OVER_SYNCED = 1 << 1, /* a sync came after the record that is replaced: it is on disk */
};

/*
 * Replaces the record, as the holder of `token`; sets record->token and ->changed. HF_E_STALE
 * when the token is no longer current; nothing is written then. The lock is hf_plan_lock's.
 */
int hf_plan_save(struct hf_plans *plans, struct hf_plan_record *record, uint64_t token,
		 unsigned flags, struct hf_err *err);

/* Removes the records that were kept when they were replaced. */
int hf_plan_forget_older(int plan_fd);

/* The same as one file operation, for a caller that is under the guard of the lock already. */
int hf_plan_save_guarded(struct hf_plans *plans, struct hf_plan_record *record, unsigned flags,
			 struct hf_err *err);

/* 1 when its record is lost, and its sandboxes are not. rm.c */
int hf_plan_is_headless(struct hf_plans *plans, const char *plan);

/* Calls `fn` with the name of each plan there is, sorted, until it returns less than 0. */
int hf_plan_each(struct hf_plans *plans, int (*fn)(void *arg, const char *plan), void *arg,
		 struct hf_err *err);

/* What every public function checks first: handle, process, name. */
int hf_plans_check(const struct hf_plans *plans, const char *plan, struct hf_err *err);

/* One event; without a journal nothing. */
void hf_plan_event(const struct hf_plans *plans, enum hf_event event, const char *plan,
		   const struct hf_field *fields, size_t n);

/* Leaves one plan_refused event when `r` is a refusal (exit status 3); returns r. (L8) */
int hf_plan_refused(const struct hf_plans *plans, const char *plan, const char *action, int r,
		    const struct hf_err *why, struct hf_err *err);

/* -- locks ------------------------------------------------------------------------ */

/* The name of a target's lock, of kind HF_LOCK_KIND_TARGET: "DEV:INO". */
void hf_target_lock_name(const struct hf_target *target, char out[HF_NAME_MAX + 1]);

/* Takes the plan's lock, of kind HF_LOCK_KIND_PLAN and the plan's name; the owner is the calling thread. Errors of hf_lock_acquire. */
int hf_plan_lock(struct hf_plans *plans, const char *plan, int64_t wait_ns,
		 struct hf_lock **ret_lock, struct hf_err *err);

/* Releases and frees; for AUTO(). NULL is fine. */
void hf_plan_unlock(struct hf_lock **lock);

/* -- use.c: which processes are inside ------------------------------------------------------------ */

/*
 * 1 when processes are in a sandbox of the plan, 0 when none is. Costs one flock, and where an
 * enter was killed a look at every process. -errno.
 */
int hf_plan_in_use(struct hf_plans *plans, const struct hf_plan_record *record, struct hf_err *err);

/* The same as an error: 0, HF_E_IN_USE with what to do, -errno. */
int hf_plan_check_unused(struct hf_plans *plans, const struct hf_plan_record *record, struct hf_err *err);

/* Settles the clones and copies of a plan whose last process has ended, for one that has ended them itself. Overlays have a helper for that. */
int hf_plan_rest(struct hf_plans *plans, const char *plan, struct hf_err *err);

/*
 * Kills what a watcher or helper that was killed has left inside (strays.h). The caller holds the plan's lock. Returns how
 * many; HF_E_IN_USE; -errno.
 */
int hf_plan_end_strays(struct hf_plans *plans, const struct hf_plan_record *record, struct hf_err *err);

/*
 * Brings a plan whose last process has ended to rest: syncs each sandbox that was used in this boot,
 * removes its marker, and notes it in the record (saved with `token`). A sandbox that
 * was in use in another boot makes the plan ERRORED and torn, with one event. The caller holds
 * the plan's lock. Returns 0; HF_E_IN_USE; -errno. Every verb that reads an upper calls this first.
 */
int hf_plan_settle(struct hf_plans *plans, struct hf_plan_record *record, uint64_t token,
		   struct hf_err *err);

/* -- target.c --------------------------------------------------------------------- */

/*
 * Opens the target (O_PATH) and proves that it is the directory that was added: no symlink on
 * the way, same device and inode. HF_E_TARGET when not.
 */
int hf_target_open(const struct hf_target *target, int *ret_fd, struct hf_err *err);

/* Takes T0: now, by the clock that file systems stamp with. */
int hf_t0_take(struct hf_t0 *ret, struct hf_err *err);

/* -- dirty.c ---------------------------------------------------------------------- */

/* 1 when the sandbox holds a change (overlay: its upper has an entry; else: by the manifest), 0, -1 not known. */
int hf_sandbox_is_dirty(int sandbox_fd, const struct hf_sandbox_record *sandbox);

/* Removes a tree, mode 000 directories included, without following anything. 0 or -errno. */
int hf_tree_remove(int dirfd, const char *name);

/* -- recover.c -------------------------------------------------------------------- */

/*
 * Recovers the plan if it is PREPARED, for functions that have no work of their own with it. The
 * caller does not hold the plan's lock yet.
 */
int hf_plan_heal(struct hf_plans *plans, const char *plan, int64_t wait_ns, struct hf_err *err);

#endif
