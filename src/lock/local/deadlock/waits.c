/* lock/local/deadlock/waits.c - reading records and queues without a guard. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/local/record/guard.h"
#include "hf/lock/local/peek.h"
#include "hf/lock/local/queue/queue.h"
#include "hf/lock/local/deadlock/waits.h"
#include "hf/sys/io.h"

static void waited_done(struct hf_waited_lock **lock)
{
	if (*lock)
		free((*lock)->entries);
	free(*lock);
}

/* Reads the lock of that key. 1; 0 it has no waiters, or cannot be read; -ENOMEM. */
static int read_lock(struct hf_kind_dir *dir, const char *key, struct hf_waited_lock **ret)
{
	AUTO(waited_done) struct hf_waited_lock *lock = calloc(1, sizeof(*lock));
	/* hf_queue_snapshot wants a guard; it looks at the descriptor and at the record only. */
	AUTO_FREE struct hf_guard *reading = calloc(1, sizeof(*reading));
	AUTO_FD fd = -1;
	struct stat st;

	if (!lock || !reading)
		return -ENOMEM;
	if (hf_name_unkey(key, strlen(key), lock->name, NULL) < 0)
		return 0;
	hf_copy_text(lock->key, sizeof(lock->key), key);
	lock->dir = dir;
	fd = hf_open_noatime(dir->fd, key, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd < 0 || hf_stat_at(fd, "", &st) < 0 || hf_check_private(&st, key, NULL) < 0 ||
	    hf_peek_record(fd, &lock->record) < 0)
		return 0;
	reading->fd = fd;
	reading->record = lock->record;
	if (hf_queue_snapshot(reading, &lock->entries, &lock->n_entries) < 0 || lock->n_entries == 0)
		return 0;
	*ret = ptr_take(&lock);
	return 1;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

struct keys {
	char **list;
	size_t n, room;
};

static void keys_done(struct keys *keys)
{
	for (size_t i = 0; i < keys->n; i++)
		free(keys->list[i]);
	free(keys->list);
}

/* A channel is called "<key>.<ticket>", and a key has no dot. */
static int add_key(struct keys *keys, const char *channel)
{
	size_t len = strcspn(channel, ".");
	char *key;

	if (len == 0 || channel[len] == '\0' || len >= HF_NAME_KEY_MAX)
		return 0;
	/* The directory often has those of one lock behind each other. */
	if (keys->n > 0 && strncmp(keys->list[keys->n - 1], channel, len) == 0 &&
	    keys->list[keys->n - 1][len] == '\0')
		return 0;
	if (keys->n == keys->room) {
		size_t room = keys->room ? 2 * keys->room : 16;
		char **grown = realloc(keys->list, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		keys->list = grown;
		keys->room = room;
	}
	key = strndup(channel, len);
	if (!key)
		return -ENOMEM;
	keys->list[keys->n++] = key;
	return 0;
}

/* The keys of all channels, sorted; some more than once. */
static int read_keys(const struct hf_kind_dir *of, struct keys *keys)
{
	AUTO_DIR dir = NULL;
	struct dirent *entry;
	int r = hf_open_dir(of->wait_fd, ".", &dir);

	while (r == 0 && (entry = readdir(dir)))
		r = add_key(keys, entry->d_name);
	if (keys->n > 0)
		qsort(keys->list, keys->n, sizeof(*keys->list), by_name);
	return r;
}

/* Adds the locks of one kind. */
static int read_kind(struct hf_kind_dir *dir, struct hf_waits *ret)
{
	AUTO(keys_done) struct keys keys = { 0 };
	struct hf_waited_lock **grown;
	int r = read_keys(dir, &keys);

	if (r < 0 || keys.n == 0)
		return r;
	grown = realloc(ret->locks, (ret->n + keys.n) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	ret->locks = grown;
	for (size_t i = 0; i < keys.n && r >= 0; i++) {
		if (i > 0 && strcmp(keys.list[i], keys.list[i - 1]) == 0)
			continue;
		r = read_lock(dir, keys.list[i], &ret->locks[ret->n]);
		if (r > 0)
			ret->n++;
	}
	return r < 0 ? r : 0;
}

int hf_waits_read(struct hf_local *locks, struct hf_waits *ret)
{
	int r = 0;

	*ret = (struct hf_waits){ 0 };
	for (int kind = 0; kind < HF_LOCK_KINDS && r == 0; kind++) {
		struct hf_kind_dir *dir;

		/* A cycle may lead through a name, a group and a file. */
		r = hf_local_dir(locks, (enum hf_lock_kind)kind, 0, &dir, NULL);
		r = r == -ENOENT ? 0 : r == 0 ? read_kind(dir, ret) : r;
	}
	return r;
}

void hf_waits_done(struct hf_waits *waits)
{
	for (size_t i = 0; i < waits->n; i++)
		waited_done(&waits->locks[i]);
	free(waits->locks);
}
