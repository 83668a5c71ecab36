/* lock/local/inspect.c - the state of locks for people and programs. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/local/deadlock/waits.h"
#include "hf/lock/local/record/guard.h"
#include "hf/lock/local/record/holders.h"
#include "hf/lock/local/inspect.h"
#include "hf/lock/local/ops.h"
#include "hf/lock/local/queue/queue.h"
#include "hf/sys/io.h"

/* In a list, for each: one that is stuck must not hold up the others for long. */
#define LIST_WAIT_NS (500 * HF_MSEC)

static size_t show_waiters(const struct hf_local *locks, const struct hf_lock_entry *entries,
			   size_t n, struct hf_waiter *to)
{
	int64_t now = hf_local_now(locks);
	char evidence[HF_EVIDENCE_MAX];
	size_t living = 0;

	for (size_t i = 0; i < n; i++) {
		int verdict = hf_local_judge(locks, &entries[i].waiter, NULL, evidence);

		if (verdict != 0 && verdict != HF_E_UNKNOWN)
			continue;
		to[living++] = (struct hf_waiter){ .id = entries[i].waiter,
						   .thread = entries[i].waiter_thread,
						   .mode = entries[i].mode,
						   .waited_ns = now - entries[i].since_ns,
						   .priority = entries[i].priority };
	}
	return living;
}

/* Under the guard only what must be; judging a thousand processes takes its time. */
static int show(struct hf_guard *guard, hf_lock_look_fn *fn, void *arg, struct hf_err *err)
{
	AUTO_FREE struct hf_lock_entry *entries = NULL;
	AUTO_FREE struct hf_holder *holders = NULL;
	AUTO_FREE struct hf_waiter *waiters = NULL;
	struct hf_lock_info info = { .kind = guard->lock.kind,
				     .name = guard->name,
				     .token = guard->record.token,
				     .slots = guard->record.slots,
				     .n_holders = guard->record.n_holders };
	size_t n;
	int r = hf_queue_snapshot(guard, &entries, &n);

	(void)hf_guard_finish(guard, NULL);
	if (r < 0)
		return hf_fail_sys(err, -r, "queue", info.name);
	holders = calloc(info.n_holders + 1, sizeof(*holders));
	waiters = calloc(n + 1, sizeof(*waiters));
	if (!holders || !waiters)
		return hf_fail_sys(err, ENOMEM, "memory", info.name);
	for (size_t i = 0; i < info.n_holders; i++)
		hf_holder_show(guard->locks, &guard->record, &guard->record.holders[i], &holders[i]);
	hf_queue_rank(entries, n);
	info.n_waiters = show_waiters(guard->locks, entries, n, waiters);
	info.holders = holders;
	info.waiters = waiters;
	fn(arg, &info);
	return 0;
}

static int look(struct hf_local *locks, const struct hf_lock_ref *lock, int64_t wait_ns,
		hf_lock_look_fn *fn, void *arg, struct hf_err *err)
{
	AUTO_GUARD(guard);
	int r = hf_guard_take(locks, lock, 0, hf_mono_in(wait_ns), &guard, err);

	if (r == -ENOENT)
		return FAIL(err, HF_E_NOT_HELD, "look", lock->name, "no such lock");
	return r < 0 ? r : show(&guard, fn, arg, err);
}

int hf_local_look(struct hf_store *store, const struct hf_lock_ref *lock, hf_lock_look_fn *fn,
		  void *arg, struct hf_err *err)
{
	struct hf_local *locks = hf_local_of(store);

	return look(locks, lock, locks->guard_wait_ns, fn, arg, err);
}

int hf_local_each(struct hf_local *locks, enum hf_lock_kind kind,
		  int (*fn)(void *arg, const struct hf_lock_ref *lock), void *arg,
		  struct hf_err *err)
{
	AUTO_DIR all = NULL;
	struct hf_kind_dir *dir;
	struct dirent *entry;
	int r = hf_local_dir(locks, kind, 0, &dir, err);

	if (r < 0)
		return r == -ENOENT ? 0 : r; /* there has been no lock of this kind */
	r = hf_open_dir(dir->fd, ".", &all);
	if (r < 0)
		return hf_fail_sys(err, -r, "opendir", "locks");
	while (r == 0 && (entry = readdir(all))) {
		char name[HF_NAME_MAX + 1];
		int len = hf_name_unkey(entry->d_name, strlen(entry->d_name), name, NULL);

		/* A dot is never part of a key: queues and channels are passed over here. */
		if (len >= 0 && strlen(name) == (size_t)len)
			r = fn(arg, &(struct hf_lock_ref){ kind, name });
	}
	return r;
}

struct list {
	struct hf_local *locks;
	hf_lock_look_fn *fn;
	void *arg;
	int error; /* the first */
	struct hf_err *err;
};

static int list_one(void *arg, const struct hf_lock_ref *lock)
{
	struct list *list = arg;
	struct hf_err *err = list->error == 0 ? list->err : NULL;
	int r = look(list->locks, lock, LIST_WAIT_NS, list->fn, list->arg, err);

	/* Not held: quarantined or deleted meanwhile. */
	if (r < 0 && r != HF_E_NOT_HELD && list->error == 0)
		list->error = r;
	return 0;
}

int hf_local_list(struct hf_store *store, enum hf_lock_kind kind, hf_lock_look_fn *fn, void *arg,
		  struct hf_err *err)
{
	struct list list = { hf_local_of(store), fn, arg, 0, err };
	int r = hf_local_each(list.locks, kind, list_one, &list, err);

	return r < 0 ? r : list.error;
}

int hf_local_list_waited(struct hf_store *store, hf_lock_look_fn *fn, void *arg, struct hf_err *err)
{
	struct list list = { hf_local_of(store), fn, arg, 0, err };
	AUTO(hf_waits_done) struct hf_waits waits = { 0 };
	int r = hf_waits_read(list.locks, &waits);

	if (r < 0)
		return hf_fail_sys(err, -r, "queues", "locks");
	for (size_t i = 0; i < waits.n; i++)
		(void)list_one(&list, &(struct hf_lock_ref){ waits.locks[i]->dir->kind, waits.locks[i]->name });
	return list.error;
}
