/*
 * lock/queue.c - the waiters of one lock, first come first served, and waking them.
 *
 * Everything here runs under the guard. A waiter's place is its ticket; its
 * entry stands in the ring behind the record, at ticket modulo the ring's size.
 * Whoever comes upon an entry whose process has died takes it out.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/local.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

#define CHANNEL_NAME_MAX (HF_NAME_KEY_MAX + 24)

static void channel_name(const char *key, uint64_t ticket, char out[CHANNEL_NAME_MAX])
{
	/* Base 36 keeps the longest key and its ticket within a file name. */
	static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
	char text[16];
	size_t at = sizeof(text);

	text[--at] = '\0';
	do {
		text[--at] = digits[ticket % 36];
		ticket /= 36;
	} while (ticket > 0);
	(void)snprintf(out, CHANNEL_NAME_MAX, "%s.%s", key, text + at);
}

static off_t entry_at(uint64_t ticket)
{
	return HF_LOCK_RECORD_MAX + (off_t)(ticket % HF_LOCK_QUEUE_MAX * HF_LOCK_ENTRY_SIZE);
}

int hf_queue_read(struct hf_guard *guard, uint64_t ticket, struct hf_lock_entry *ret)
{
	uint8_t bytes[HF_LOCK_ENTRY_SIZE];
	ssize_t n;

	n = hf_pread_all(guard->fd, (char *)bytes, sizeof(bytes), entry_at(ticket));
	if (n < 0)
		return (int)n;
	return n == sizeof(bytes) ? hf_lock_entry_decode(bytes, ticket, ret) : HF_E_FORMAT;
}

static int write_entry(struct hf_guard *guard, const struct hf_lock_entry *entry)
{
	uint8_t bytes[HF_LOCK_ENTRY_SIZE];
	size_t done;

	hf_lock_entry_encode(entry, bytes);
	return hf_pwrite_all(guard->fd, (const char *)bytes, sizeof(bytes),
			     entry_at(entry->ticket), &done);
}

int hf_queue_join(struct hf_guard *guard, struct hf_lock_entry *entry, struct hf_err *err)
{
	uint64_t now_us = (uint64_t)(hf_wall_now().ns / HF_USEC);
	int r;

	if (guard->record.next - guard->record.first >= HF_LOCK_QUEUE_MAX)
		return FAIL(err, -EAGAIN, "queue", guard->name, "%d waiters are the most",
			    HF_LOCK_QUEUE_MAX);
	/* Like tokens, so that waiters of a record that was deleted are never taken for these. */
	if (guard->record.first == guard->record.next && guard->record.next < now_us)
		guard->record.first = guard->record.next = now_us;
	entry->ticket = guard->record.next;
	entry->state = HF_ENTRY_WAITING;
	r = write_entry(guard, entry);
	if (r < 0)
		return hf_fail_sys(err, -r, "queue", guard->name);
	guard->record.next++;
	return 0;
}

int hf_queue_channel(struct hf_guard *guard, uint64_t ticket, int *ret_channel,
		     struct hf_err *err)
{
	char name[CHANNEL_NAME_MAX];
	int fd;

	channel_name(guard->key, ticket, name);
	if (hf_sys.mkfifoat(guard->locks->wait_fd, name, 0600) < 0)
		return FAIL_SYS(err, "mkfifo", guard->name);
	/* For reading and writing: a channel without writers would not be quiet but closed. */
	fd = hf_open_at(guard->locks->wait_fd, name, O_RDWR | O_NONBLOCK | O_NOFOLLOW, 0);
	if (fd < 0) {
		(void)hf_sys.unlinkat(guard->locks->wait_fd, name, 0);
		return hf_fail_sys(err, -fd, "open channel", guard->name);
	}
	*ret_channel = fd;
	return 0;
}

static void remove_channel(struct hf_guard *guard, uint64_t ticket)
{
	char name[CHANNEL_NAME_MAX];

	channel_name(guard->key, ticket, name);
	(void)hf_sys.unlinkat(guard->locks->wait_fd, name, 0);
}

void hf_queue_forget(struct hf_local *locks, const char *name, uint64_t ticket)
{
	char key[HF_NAME_KEY_MAX], channel[CHANNEL_NAME_MAX];

	if (ticket == 0 || hf_name_key(name, strlen(name), key, NULL) < 0)
		return;
	channel_name(key, ticket, channel);
	(void)hf_sys.unlinkat(locks->wait_fd, channel, 0);
}

/*
 * A waiter may die between the opening of its channel and this. That must not raise
 * SIGPIPE in us (L13): it is held back and, if it was ours, taken away again.
 */
static int send_message(int fd, uint64_t token)
{
	const struct timespec at_once = { 0, 0 };
	sigset_t pipe_only, before, pending;
	int was_pending, r;

	(void)sigemptyset(&pipe_only);
	(void)sigaddset(&pipe_only, SIGPIPE);
	(void)pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
	was_pending = sigismember(&before, SIGPIPE) == 1 && sigpending(&pending) == 0 &&
		      sigismember(&pending, SIGPIPE) == 1;
	r = hf_sys.write(fd, &token, sizeof(token)) == sizeof(token) ? 0 : -1;
	if (r < 0 && errno == EPIPE && !was_pending)
		(void)sigtimedwait(&pipe_only, NULL, &at_once);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

void hf_queue_recall(struct hf_local *locks, const char *key)
{
	size_t len = strlen(key);
	int fd = hf_open_at(locks->wait_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir)
		hf_auto_close(&fd);
	while (dir && (entry = readdir(dir))) {
		AUTO_FD channel = -1;

		if (strncmp(entry->d_name, key, len) != 0 || entry->d_name[len] != '.')
			continue;
		channel = hf_open_at(locks->wait_fd, entry->d_name, O_WRONLY | O_NONBLOCK | O_NOFOLLOW,
				     0);
		if (channel >= 0)
			(void)send_message(channel, 0);
		else if (channel == -ENXIO)
			(void)hf_sys.unlinkat(locks->wait_fd, entry->d_name, 0);
	}
	if (dir)
		(void)closedir(dir);
}

void hf_queue_leave(struct hf_guard *guard, const struct hf_lock_entry *entry)
{
	struct hf_lock_entry gone = *entry;

	/* First: whoever dies after this leaves a waiter without a channel, which is passed
	 * over; the other way round a channel would stay behind for ever. */
	remove_channel(guard, entry->ticket);
	gone.state = HF_ENTRY_GONE;
	/* An entry that cannot be written is found out by the death of its process. */
	(void)write_entry(guard, &gone);
	if (guard->record.first == entry->ticket)
		guard->record.first++;
}

/* The living waiter of `ticket`: 1; 0 none (a dead one is taken out). */
static int examine(struct hf_guard *guard, uint64_t ticket, struct hf_lock_entry *ret)
{
	char evidence[HF_EVIDENCE_MAX];
	int r = hf_queue_read(guard, ticket, ret);

	if (r == 0 && ret->state == HF_ENTRY_WAITING) {
		int verdict = hf_local_judge(guard->locks, &ret->waiter, NULL, evidence);

		if (verdict == 0 || verdict == HF_E_UNKNOWN)
			return 1;
		hf_queue_leave(guard, ret);
		return 0;
	}
	/* Gone, so the front moves past it. A read error says nothing, so that one stays. */
	if ((r == 0 || r == HF_E_FORMAT) && guard->record.first == ticket)
		guard->record.first++;
	return 0;
}

int hf_queue_first(struct hf_guard *guard, uint64_t from, struct hf_lock_entry *ret)
{
	uint64_t ticket = from > guard->record.first ? from : guard->record.first;

	for (; ticket < guard->record.next; ticket++)
		if (examine(guard, ticket, ret))
			return 1;
	return 0;
}

int hf_queue_previous(struct hf_guard *guard, uint64_t before, struct hf_lock_entry *ret)
{
	for (uint64_t ticket = before; ticket > guard->record.first; ticket--)
		if (examine(guard, ticket - 1, ret))
			return 1;
	return 0;
}

/* Reads the ring from `ticket` on, at most up to its end. Returns entries read or -errno. */
static ssize_t read_run(struct hf_guard *guard, uint64_t ticket, uint64_t end, uint8_t *to)
{
	uint64_t index = ticket % HF_LOCK_QUEUE_MAX, run = end - ticket;
	ssize_t n;

	if (run > HF_LOCK_QUEUE_MAX - index)
		run = HF_LOCK_QUEUE_MAX - index;
	n = hf_pread_all(guard->fd, (char *)to, run * HF_LOCK_ENTRY_SIZE, entry_at(ticket));
	return n < 0 ? n : n / HF_LOCK_ENTRY_SIZE;
}

int hf_queue_snapshot(struct hf_guard *guard, struct hf_lock_entry **ret_entries, size_t *ret_n)
{
	uint64_t first = guard->record.first, next = guard->record.next;
	size_t room = (size_t)(next - first), n = 0;
	AUTO_FREE struct hf_lock_entry *entries = calloc(room + 1, sizeof(*entries));
	AUTO_FREE uint8_t *bytes = malloc((room + 1) * HF_LOCK_ENTRY_SIZE);

	if (!entries || !bytes)
		return -ENOMEM;
	for (uint64_t ticket = first; ticket < next;) {
		ssize_t got = read_run(guard, ticket, next, bytes);

		if (got < 0)
			return (int)got;
		if (got == 0)
			break;
		for (ssize_t i = 0; i < got; i++, ticket++)
			if (hf_lock_entry_decode(bytes + i * HF_LOCK_ENTRY_SIZE, ticket,
						 &entries[n]) == 0 &&
			    entries[n].state == HF_ENTRY_WAITING)
				n++;
	}
	*ret_entries = ptr_take(&entries);
	*ret_n = n;
	return 0;
}

/*
 * Opens a channel. For writing, success means that its waiter lives (or just died, which
 * the next one sees): a FIFO that nobody has open for reading gives -ENXIO. When
 * descriptors have run out, the spare one is given up for it.
 */
static int open_channel(struct hf_guard *guard, uint64_t ticket, int flags)
{
	struct hf_local *locks = guard->locks;
	char name[CHANNEL_NAME_MAX];
	int fd;

	channel_name(guard->key, ticket, name);
	flags |= O_NONBLOCK | O_NOFOLLOW;
	fd = hf_open_at(locks->wait_fd, name, flags, 0);
	if (fd != -EMFILE && fd != -ENFILE)
		return fd;
	(void)pthread_mutex_lock(&locks->mutex);
	hf_auto_close(&locks->spare_fd);
	(void)pthread_mutex_unlock(&locks->mutex);
	return hf_open_at(locks->wait_fd, name, flags, 0);
}

void hf_queue_nudge(struct hf_guard *guard, uint64_t ticket)
{
	struct hf_lock_entry entry;

	if (hf_queue_first(guard, ticket + 1, &entry)) {
		AUTO_FD fd = open_channel(guard, entry.ticket, O_WRONLY);

		if (fd >= 0)
			(void)send_message(fd, 0);
	}
}

void hf_queue_retell(struct hf_guard *guard, uint64_t except)
{
	for (uint32_t i = 0; i < guard->record.n_holders; i++) {
		uint64_t ticket = guard->record.holders[i].ticket;
		AUTO_FD fd = ticket != 0 && ticket != except
				     ? open_channel(guard, ticket, O_WRONLY)
				     : -1;

		if (fd >= 0)
			(void)send_message(fd, 0);
	}
}

/* Waiters that are let in together, with their channels held open until they are told. */
struct grants {
	struct {
		struct hf_lock_entry entry;
		uint64_t token;
		int channel;
	} items[HF_LOCK_SLOTS_MAX];
	size_t count;
};

static int held_alone(const struct hf_lock_record *record)
{
	return record->n_holders > 0 && record->slots == 0 &&
	       !(record->holders[0].flags & HF_HOLDER_SHARED);
}

/* Adds those whose turn it is to the record, in order; the first that must wait ends it. */
static void choose(struct hf_guard *guard, struct grants *grants)
{
	struct hf_lock_record *record = &guard->record;

	while (record->first < record->next && !held_alone(record) &&
	       grants->count < HF_LOCK_SLOTS_MAX) {
		struct hf_lock_entry entry;
		int channel, r = hf_queue_read(guard, record->first, &entry);

		if (r == HF_E_FORMAT || (r == 0 && entry.state == HF_ENTRY_GONE)) {
			record->first++;
			continue;
		}
		if (r < 0 || !hf_record_admits(record, entry.mode) ||
		    (record->n_holders > 0 && entry.slots != record->slots))
			return;
		channel = open_channel(guard, record->first, O_WRONLY);
		if (channel == -ENXIO || channel == -ENOENT) {
			hf_queue_leave(guard, &entry);
			continue;
		}
		if (channel < 0)
			return;
		record->first++;
		grants->items[grants->count].entry = entry;
		grants->items[grants->count].token = hf_record_add(record, &entry);
		grants->items[grants->count++].channel = channel;
	}
}

/* A waiter that could not be told: it does not have the lock, and looks for itself. */
static void ungrant(struct hf_guard *guard, uint64_t token)
{
	int index = hf_record_find(&guard->record, token);

	if (index >= 0)
		hf_record_remove(&guard->record, (uint32_t)index);
}

int hf_queue_admit(struct hf_guard *guard, struct hf_err *err)
{
	const struct hf_lock_entry *last;
	struct grants grants;
	int r, failed = 0;

	grants.count = 0;
	choose(guard, &grants);
	last = grants.count > 0 ? &grants.items[grants.count - 1].entry : NULL;
	/*
	 * The one behind watches only the last of them; it must know of the others, and
	 * of leases. It is told first, and looks when we are done or dead.
	 */
	if (last && (!held_alone(&guard->record) || last->ttl_ms > 0))
		hf_queue_nudge(guard, last->ticket);
	r = hf_guard_write(guard, err);
	/* Holders of too many places: then without the new ones, who will ask again. */
	if (r == -E2BIG && grants.count > 0) {
		for (size_t i = 0; i < grants.count; i++) {
			ungrant(guard, grants.items[i].token);
			grants.items[i].token = 0;
		}
		r = hf_guard_write(guard, err);
	}
	for (size_t i = 0; i < grants.count; i++) {
		if (r < 0 || send_message(grants.items[i].channel, grants.items[i].token) < 0) {
			ungrant(guard, grants.items[i].token);
			if (r == 0) /* it has just died, and its place is passed */
				remove_channel(guard, grants.items[i].entry.ticket);
			failed = 1;
		}
	}
	for (size_t i = 0; i < grants.count; i++)
		hf_auto_close(&grants.items[i].channel);
	if (r == 0 && failed)
		r = hf_guard_write(guard, err);
	if (last) {
		guard->told_ticket = last->ticket;
		guard->told_pid = last->waiter.pid;
	}
	return r;
}

int hf_queue_unclaimed(struct hf_guard *guard)
{
	for (uint32_t i = 0; i < guard->record.n_holders; i++) {
		uint64_t ticket = guard->record.holders[i].ticket;
		AUTO_FD fd = ticket ? open_channel(guard, ticket, O_RDONLY) : -1;
		struct pollfd p = { .fd = fd, .events = POLLIN };

		if (fd >= 0 && hf_sys.poll(&p, 1, 0) > 0 && p.revents & POLLIN)
			return 1;
	}
	return 0;
}

/* Takes the message with `token` out of the channel, if it is still there. */
static int take_back(struct hf_guard *guard, uint64_t ticket, uint64_t token)
{
	AUTO_FD fd = open_channel(guard, ticket, O_RDWR);
	uint64_t message;

	while (fd >= 0 && hf_sys.read(fd, &message, sizeof(message)) == sizeof(message))
		if (message == token) {
			(void)send_message(fd, 0); /* it will find that it has to queue again */
			return 1;
		}
	return 0;
}

int hf_queue_revoke(struct hf_guard *guard)
{
	struct hf_lock_record *record = &guard->record;
	uint64_t now_us = (uint64_t)(hf_wall_now().ns / HF_USEC);
	int revoked = 0;

	for (uint32_t i = 0; i < record->n_holders;) {
		const struct hf_lock_holder *holder = &record->holders[i];

		/* The age is wall time and may be wrong; then it is only asked early. */
		if (holder->ticket != 0 && now_us - holder->token >= HF_LOCK_TURN_NS / HF_USEC &&
		    take_back(guard, holder->ticket, holder->token)) {
			hf_record_remove(record, i);
			revoked++;
		} else {
			i++;
		}
	}
	return revoked;
}
