/*
 * lock/local/forget.c - acting on a name that nobody holds or waits for, and removing its record.
 *
 * Why a record may be removed, although other processes may have its file open and be about to lock it:
 *
 *   - It is unlinked under its guard, when it has no living holder and no waiter. A process that takes the guard of the
 *     unlinked file afterwards finds that the file has no link any more and opens the name anew (guard.c, guard_fill). It
 *     has believed nothing that stood there: the link count is asked before the record is read, but for a process that
 *     looks for its own token (read_held), and that is in no record without holders.
 *   - Tokens rise all the same (L2): they are taken from the token clock of the kind where that is ahead of the record, and
 *     that clock is on disk and never goes back (token.c). So only a record is removed whose token lies HF_FORGET_MARGIN_US behind it:
 *     further than the note of the clock can lag, or tokens be ahead of it.
 *   - Tickets are taken from the wall clock where the queue is empty. One that is given twice, after that clock was set back,
 *     meets no waiter: there was none.
 *   - An empty file is being made by a process that asks for the lock, and that opens it anew when it finds it removed. So that this
 *     comes to an end, it is removed only when it is older than EMPTY_NS: the process that made it has been killed.
 *   - The fence of the name stays (fence.h).
 */
#include <errno.h>
#include <sys/stat.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/local/inspect.h"
#include "hf/lock/local/ops.h"
#include "hf/lock/local/queue/queue.h"
#include "hf/lock/local/record/guard.h"
#include "hf/lock/local/record/holders.h"
#include "hf/lock/local/record/token.h"
#include "hf/sys/calls.h"
#include "hf/sys/fd/poll.h"

#define EMPTY_NS HF_SEC

/* With an action the guard is taken also where there is no record, and makes an empty file for that. */
static int makes_file(const struct hf_forget *how)
{
	return how->action != NULL;
}

/* 1 when a holder lives, or may, or a process waits. */
static int is_wanted(struct hf_guard *guard)
{
	struct hf_lock_entry entry;
	char evidence[HF_EVIDENCE_MAX];

	for (uint32_t i = 0; i < guard->record.n_holders; i++)
		if (hf_holder_liveness(hf_local_judge(guard->locks, &guard->record.holders[i].id, NULL, evidence)) != HF_DEAD)
			return 1;
	return hf_queue_first(guard, 0, &entry) != 0;
}

/* 1 when the file, which is empty, was made long ago. */
static int is_left_empty(const struct hf_guard *guard)
{
	struct stat st;

	return hf_sys.fstat(guard->fd, &st) == 0 && hf_wall_now().ns - (st.st_ctim.tv_sec * HF_SEC + st.st_ctim.tv_nsec) > EMPTY_NS;
}

/* How far the record's token lies behind the token clock; -1: it is not to be removed. */
static int64_t behind_us(struct hf_guard *guard, const struct hf_forget *how)
{
	if (!guard->is_new)
		return (int64_t)(hf_token_next(guard) - guard->record.token);
	return makes_file(how) || is_left_empty(guard) ? INT64_MAX : -1;
}

static int forget(struct hf_guard *guard, const struct hf_forget *how, struct hf_err *err)
{
	int64_t margin_us = guard->locks->forget_margin_us, quiet_us = how->quiet_ns / HF_USEC;
	int64_t least_us = quiet_us > margin_us ? quiet_us : margin_us;
	int r;

	if (is_wanted(guard))
		return FAIL(err, HF_E_BUSY, "forget", guard->name, "it is held or waited for");
	r = how->action ? how->action(how->arg) : 0;
	if (r < 0)
		return r;
	if (how->keep_record || behind_us(guard, how) < least_us)
		return 0;
	/* Of a holder that died the takeover is told, as by the next process that would have asked for the lock (L8). */
	(void)hf_record_reap(guard, 0);
	if (hf_sys.unlinkat(guard->dir->fd, guard->key, 0) < 0)
		return FAIL_SYS(err, "unlinkat", guard->name);
	guard->dirty = 0;
	guard->written = 1;
	return 1;
}

int hf_local_forget(struct hf_store *store, const struct hf_lock_ref *lock, const struct hf_forget *how, struct hf_err *err)
{
	struct hf_local *locks = hf_local_of(store);
	AUTO_GUARD(guard);
	int r = hf_guard_take(locks, lock, makes_file(how), hf_mono_in(locks->guard_wait_ns), &guard, err);

	if (r == -ENOENT)
		return FAIL(err, HF_E_NOT_HELD, "forget", lock->name, "no such lock");
	if (r < 0)
		return r;
	r = forget(&guard, how, err);
	/* An empty file, made for this alone: nobody has believed anything of it. */
	if (r <= 0 && guard.is_new && makes_file(how))
		(void)hf_sys.unlinkat(guard.dir->fd, guard.key, 0);
	(void)hf_guard_finish(&guard, NULL);
	return r;
}

struct forget_all {
	struct hf_store *store;
	const struct hf_forget *how;
	struct hf_mono deadline;
	int forgotten;
};

static int forget_one(void *arg, const struct hf_lock_ref *lock)
{
	struct forget_all *all = arg;

	if (hf_local_forget(all->store, lock, all->how, NULL) > 0)
		all->forgotten++;
	return hf_mono_left(all->deadline) == 0 ? 1 : 0;
}

int hf_local_forget_idle(struct hf_store *store, enum hf_lock_kind kind, int64_t quiet_ns, int64_t limit_ns, struct hf_err *err)
{
	const struct hf_forget how = { .quiet_ns = quiet_ns };
	struct forget_all all = { .store = store, .how = &how, .deadline = hf_mono_limit(limit_ns) };
	int r = hf_local_each(hf_local_of(store), kind, forget_one, &all, err);

	return r < 0 ? r : all.forgotten;
}
