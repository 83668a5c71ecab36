/*
 * lock/local/queue/channel.c - the wake-up channel of one waiter: a FIFO, <kind>/.wait/<key>.<ticket>.
 *
 * A ticket is given once, so a channel belongs to one wait of one process for ever, and
 * what comes late finds nobody or does no harm.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/local/queue/channel.h"
#include "hf/lock/local/record/guard.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"
#include "hf/sys/fd/noinherit.h"

#define CHANNEL_NAME_MAX (HF_NAME_KEY_MAX + 24)

/*
 * How often a channel is opened and written to before it is given up. A waiter that is not
 * told sleeps until its own clock: an error that passes must not cost that.
 */
#define TRIES 4

static void channel_name(const char *key, uint64_t ticket, char out[CHANNEL_NAME_MAX])
{
	/* Base 36 keeps the longest key and its ticket within a file name. */
	static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
	char text[16];
	size_t at = sizeof(text), len = strlen(key);

	text[--at] = '\0';
	do {
		text[--at] = digits[ticket % 36];
		ticket /= 36;
	} while (ticket > 0);
	text[--at] = '.';
	memcpy(out, key, len);
	memcpy(out + len, text + at, sizeof(text) - at);
}

int hf_channel_make(struct hf_guard *guard, uint64_t ticket, int *ret_channel, struct hf_err *err)
{
	const int flags = O_RDWR | O_NONBLOCK | O_NOFOLLOW;
	const uint64_t look_again = HF_LOOK_AGAIN;
	char name[CHANNEL_NAME_MAX];
	uint64_t back;
	int fd;

	channel_name(guard->key, ticket, name);
	if (hf_sys.mkfifoat(guard->dir->wait_fd, name, 0600) < 0)
		return errno == EEXIST ? -EEXIST : FAIL_SYS(err, "mkfifo", guard->name);
	/* For reading and writing: a channel without writers would not be quiet but closed. In a
	 * forked child it would look as if we lived, and be given the lock, when we are dead. */
	fd = hf_noinherit_open_noatime(guard->dir->wait_fd, name, flags, 0);
	/* The umask took the owner's bits: no other process knows the channel yet. */
	if (fd == -EACCES && hf_mend_mode(guard->dir->wait_fd, name, S_IFIFO, 0600) > 0)
		fd = hf_noinherit_open_noatime(guard->dir->wait_fd, name, flags, 0);
	if (fd < 0) {
		(void)hf_sys.unlinkat(guard->dir->wait_fd, name, 0);
		return hf_fail_sys(err, -fd, "open channel", guard->name);
	}
	/*
	 * One message there and back: the kernel keeps the page it took for it, and the process that
	 * gives us the lock need not wait for one. Should it stay, it does no harm.
	 */
	if (hf_sys.write(fd, &look_again, sizeof(look_again)) == sizeof(look_again))
		(void)!hf_sys.read(fd, &back, sizeof(back));
	*ret_channel = fd;
	return 0;
}

void hf_channel_remove(const struct hf_kind_dir *dir, const char *key, uint64_t ticket)
{
	char name[CHANNEL_NAME_MAX];

	if (ticket == 0)
		return;
	channel_name(key, ticket, name);
	(void)hf_sys.unlinkat(dir->wait_fd, name, 0);
}

/* A write that must not raise SIGPIPE: it is held back and, if it was ours, taken away. */
static ssize_t write_masked(int fd, const void *from, size_t len)
{
	const struct timespec at_once = { 0, 0 };
	sigset_t pipe_only, before, pending;
	int was_pending;
	ssize_t n;

	(void)sigemptyset(&pipe_only);
	(void)sigaddset(&pipe_only, SIGPIPE);
	(void)pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
	was_pending = sigismember(&before, SIGPIPE) == 1 && sigpending(&pending) == 0 &&
		      sigismember(&pending, SIGPIPE) == 1;
	n = hf_sys.write(fd, from, len);
	if (n < 0 && errno == EPIPE && !was_pending)
		(void)sigtimedwait(&pipe_only, NULL, &at_once);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return n;
}

static int send_once(struct hf_local *locks, int fd, uint64_t token)
{
	/* The waiter may die between the opening of its channel and this (L13). */
	int masked = atomic_load_explicit(&locks->masks_pipe, memory_order_relaxed);
	ssize_t n = masked ? -1 : hf_sys.write_quiet(fd, &token, sizeof(token));

	if (!masked && n < 0 && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL)) {
		atomic_store_explicit(&locks->masks_pipe, 1, memory_order_relaxed);
		masked = 1;
	}
	if (masked)
		n = write_masked(fd, &token, sizeof(token));
	return n == sizeof(token) ? 0 : n < 0 ? -errno : -EIO;
}

int hf_channel_send(struct hf_local *locks, int fd, uint64_t token)
{
	int r = send_once(locks, fd, token);

	for (int try = 1; try < TRIES && r < 0 && r != -EPIPE; try++)
		r = send_once(locks, fd, token);
	return r;
}

/* Is that the channel of a holder? It may still have it open. */
static int is_holders(const struct hf_lock_record *record, const char *key, const char *channel)
{
	char name[CHANNEL_NAME_MAX];

	for (uint32_t i = 0; record && i < record->n_holders; i++) {
		channel_name(key, record->holders[i].ticket, name);
		if (strcmp(name, channel) == 0)
			return 1;
	}
	return 0;
}

void hf_channel_recall(struct hf_local *locks, const struct hf_kind_dir *dir, const char *key,
		       const struct hf_lock_record *record, int sweep)
{
	size_t len = strlen(key);
	AUTO_DIR all = NULL;
	struct dirent *entry;

	(void)hf_open_dir(dir->wait_fd, ".", &all);
	while (all && (entry = readdir(all))) {
		AUTO_FD channel = -1;

		if (strncmp(entry->d_name, key, len) != 0 || entry->d_name[len] != '.' ||
		    is_holders(record, key, entry->d_name))
			continue;
		channel = hf_open_at(dir->wait_fd, entry->d_name,
				     O_WRONLY | O_NONBLOCK | O_NOFOLLOW, 0);
		if (channel >= 0)
			(void)hf_channel_send(locks, channel, HF_LOOK_AGAIN);
		else if (sweep && channel == -ENXIO)
			(void)hf_sys.unlinkat(dir->wait_fd, entry->d_name, 0);
	}
}

int hf_channel_is_open(const struct hf_kind_dir *dir, const char *key, uint64_t ticket)
{
	AUTO_FD fd = -1;
	char name[CHANNEL_NAME_MAX];

	channel_name(key, ticket, name);
	fd = hf_open_at(dir->wait_fd, name, O_WRONLY | O_NONBLOCK | O_NOFOLLOW, 0);
	return fd >= 0;
}

/* Makes room for a descriptor, when there is none left. */
static void make_room(struct hf_local *locks)
{
	hf_local_close_now(locks);
	(void)pthread_mutex_lock(&locks->mutex);
	hf_auto_close(&locks->spare_fd);
	(void)pthread_mutex_unlock(&locks->mutex);
}

int hf_channel_open(struct hf_guard *guard, uint64_t ticket, int flags)
{
	char name[CHANNEL_NAME_MAX];
	int fd, before = 0;

	channel_name(guard->key, ticket, name);
	flags |= O_NONBLOCK | O_NOFOLLOW;
	fd = hf_open_at(guard->dir->wait_fd, name, flags, 0);
	/* That its waiter is gone is believed when it is said twice. */
	for (int try = 1; try < TRIES && fd < 0 && fd != before; try++) {
		before = fd == -ENXIO || fd == -ENOENT ? fd : 0;
		if (fd == -EMFILE || fd == -ENFILE)
			make_room(guard->locks);
		fd = hf_open_at(guard->dir->wait_fd, name, flags, 0);
	}
	return fd;
}
