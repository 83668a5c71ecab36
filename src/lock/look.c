/* lock/look.c - the state of locks for people and programs. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/local.h"
#include "hf/lock/ops.h"
#include "hf/sys/io.h"

static size_t read_waiters(struct hf_guard *guard, struct hf_waiter *to, size_t cap)
{
	int64_t now = hf_boot_now().ns;
	struct hf_lock_entry entry;
	uint64_t from = 0;
	size_t n = 0;

	for (; n < cap && hf_queue_first(guard, from, &entry); n++) {
		to[n] = (struct hf_waiter){ .id = entry.waiter,
					    .thread = entry.waiter_thread,
					    .mode = entry.mode,
					    .waited_ns = now - entry.since_ns };
		from = entry.ticket + 1;
	}
	return n;
}

static int show(struct hf_guard *guard, hf_lock_look_fn *fn, void *arg, struct hf_err *err)
{
	AUTO_FREE struct hf_holder *holders = NULL;
	AUTO_FREE struct hf_waiter *waiters = NULL;
	size_t room = (size_t)(guard->record.next - guard->record.first);
	struct hf_lock_info info = { .name = guard->name,
				     .token = guard->record.token,
				     .slots = guard->record.slots,
				     .n_holders = guard->record.n_holders };

	holders = calloc(info.n_holders + 1, sizeof(*holders));
	waiters = calloc(room + 1, sizeof(*waiters));
	if (!holders || !waiters)
		return hf_fail_sys(err, ENOMEM, "memory", guard->name);
	for (size_t i = 0; i < info.n_holders; i++)
		hf_holder_show(guard->locks, &guard->record, &guard->record.holders[i], &holders[i]);
	info.n_waiters = read_waiters(guard, waiters, room);
	info.holders = holders;
	info.waiters = waiters;
	hf_guard_drop(guard);
	fn(arg, &info);
	return 0;
}

int hf_local_look(void *store, const char *name, hf_lock_look_fn *fn, void *arg,
		  struct hf_err *err)
{
	AUTO_GUARD(guard);
	int r = hf_guard_take(store, name, 0, hf_mono_in(HF_GUARD_WAIT_NS), &guard, err);

	if (r == -ENOENT)
		return FAIL(err, HF_E_NOT_HELD, "look", name, "there is no such lock");
	return r < 0 ? r : show(&guard, fn, arg, err);
}

int hf_local_list(void *store, hf_lock_look_fn *fn, void *arg, struct hf_err *err)
{
	struct hf_local *locks = store;
	int fd = hf_open_at(locks->dirfd, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int r = 0;

	if (!dir) {
		r = hf_fail_sys(err, fd < 0 ? -fd : errno, "opendir", "locks");
		hf_auto_close(&fd);
		return r;
	}
	while (r >= 0 && (entry = readdir(dir))) {
		char name[HF_NAME_MAX + 1];
		int len = hf_name_unkey(entry->d_name, strlen(entry->d_name), name, NULL);

		/* A dot is never part of a key: queues and channels are passed over here. */
		if (len < 0 || strlen(name) != (size_t)len)
			continue;
		r = hf_local_look(store, name, fn, arg, err);
		if (r == HF_E_NOT_HELD)
			r = 0; /* quarantined or deleted meanwhile */
	}
	(void)closedir(dir);
	return r;
}
