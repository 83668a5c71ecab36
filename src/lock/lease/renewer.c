/* lock/lease/renewer.c - the holder's side of the renewer: starting it, hearing it, and the clock of the lease. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "hf/base/buf.h"
#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/context.h"
#include "hf/lock/lease/renewer.h"
#include "hf/sys/calls.h"
#include "hf/sys/fd/poll.h"
#include "hf/sys/program.h"
#include "hf/sys/state/state.h"

#define RELEASE_NS (5 * HF_SEC) /* two calls of the usual limit and a little */

static void set_clock(struct hf_renewer *renewer, struct hf_boot since, int64_t grace_ns)
{
	struct itimerspec at = { 0 };
	int64_t sixth = renewer->ttl_ns / 6, due;

	renewer->since = since;
	renewer->end_at.ns = since.ns + renewer->ttl_ns - renewer->margin_ns;
	renewer->stop_at.ns = renewer->end_at.ns - (grace_ns < sixth ? grace_ns : sixth);
	due = hf_boot_now().ns < renewer->stop_at.ns ? renewer->stop_at.ns : renewer->end_at.ns;
	at.it_value.tv_sec = due / HF_SEC;
	at.it_value.tv_nsec = due % HF_SEC + 1;
	if (renewer->timer >= 0)
		(void)timerfd_settime(renewer->timer, TFD_TIMER_ABSTIME, &at, NULL);
}

int hf_renewer_begin(struct hf_renewer *renewer, struct hf_lock *lock, int64_t grace_ns, int64_t ttl_ns)
{
	const struct hf_store *store = hf_locks_store(hf_lock_locks(lock));

	*renewer = (struct hf_renewer)HF_RENEWER_INIT;
	renewer->lock = lock;
	renewer->name = hf_lock_name(lock);
	renewer->ttl_ns = (ttl_ns + HF_SEC - 1) / HF_SEC * HF_SEC; /* as the store rounds it */
	renewer->margin_ns = store->margin ? store->margin(ttl_ns) : 0;
	renewer->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (renewer->timer < 0)
		return -errno;
	renewer->grace_ns = grace_ns;
	set_clock(renewer, hf_lock_since(lock), grace_ns);
	return 0;
}

static int write_order(const struct hf_renewer_order *order, struct hf_buf *out)
{
	char id[HF_PROC_TEXT_MAX];

	(void)hf_proc_format(order->owner, id);
	hf_buf_add_text(out, "{\"store\":");
	(void)hf_buf_add_json(out, order->url, strlen(order->url), 4096);
	hf_buf_add_text(out, ",\"dir\":");
	(void)hf_buf_add_json(out, order->dir, strlen(order->dir), 4096);
	hf_buf_add_format(out, ",\"kind\":%d,\"name\":", (int)order->lock.kind);
	hf_buf_add_char(out, '"');
	/* A name may have bytes that JSON has not. */
	for (const char *c = order->lock.name; *c; c++)
		hf_buf_add_format(out, "%02x", (unsigned char)*c);
	hf_buf_add_format(out, "\",\"token\":\"%llu\",\"above\":\"%llu\",\"since\":\"%lld\",\"ttl\":\"%lld\",\"margin\":\"%lld\","
			  "\"wait\":\"%lld\",\"owner\":\"%s\",\"kill\":%d}\n",
			  (unsigned long long)order->token, (unsigned long long)order->above, (long long)order->since,
			  (long long)order->ttl_ns, (long long)order->margin_ns, (long long)order->wait_ns, id, order->kill_owner);
	return out->err;
}

static int send_order(int fd, const struct hf_renewer_order *order)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;
	int r = write_order(order, &text);

	if (r < 0)
		return r;
	return send(fd, text.s, text.len, MSG_NOSIGNAL) == (ssize_t)text.len ? 0 : -errno;
}

int hf_renewer_spawn(char *const *argv, const char *why, int *ret_socket, pid_t *ret_pid, struct hf_err *err)
{
	AUTO_FD program = -1, ours = -1, theirs = -1;
	char path[64];
	int ends[2], r;

	r = hf_program_open(HF_RENEW_PROGRAM, why, &program, err);
	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
		return FAIL_SYS(err, "socketpair", HF_RENEW_PROGRAM);
	ours = ends[0];
	theirs = ends[1];
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", program);
	if (hf_sys.spawn_session(path, argv, theirs, ret_pid) < 0)
		return FAIL_SYS(err, "spawn", HF_RENEW_PROGRAM);
	*ret_socket = fd_take(&ours);
	return 0;
}

int hf_renewer_start(struct hf_renewer *renewer, const struct hf_proc_id *owner, int kill_owner, struct hf_err *err)
{
	char *argv[] = { (char[]){ HF_RENEW_PROGRAM }, (char *)(uintptr_t)hf_lock_name(renewer->lock), NULL };
	const struct hf_context *context = hf_lock_locks(renewer->lock)->context;
	struct hf_store *store = context->store;
	const struct hf_renewer_order order = { .url = context->url, .dir = context->fences.state->path,
						.lock = { hf_lock_locks(renewer->lock)->kind, hf_lock_name(renewer->lock) },
						.owner = owner, .token = hf_lock_token(renewer->lock),
						.since = renewer->since.ns, .ttl_ns = renewer->ttl_ns,
						.margin_ns = renewer->margin_ns, .kill_owner = kill_owner };
	AUTO_FD ours = -1;
	int r;

	if (renewer->fd >= 0)
		return 0;
	r = hf_renewer_spawn(argv, "a lock in a store of several machines needs this program", &ours, &renewer->pid, err);
	if (r < 0)
		return r;
	r = send_order(ours, &order);
	if (r < 0)
		return hf_fail_sys(err, -r, "send", HF_RENEW_PROGRAM);
	renewer->fd = fd_take(&ours);
	if (store->ops->rest)
		store->ops->rest(store);
	return 0;
}

int hf_renewer_adopt(struct hf_renewer *renewer, int fd, const char *name, int64_t grace_ns, const struct hf_renewer_order *order)
{
	int r = send_order(fd, order);

	*renewer = (struct hf_renewer)HF_RENEWER_INIT;
	renewer->name = name;
	renewer->grace_ns = grace_ns;
	renewer->fd = fd;
	if (r == 0) {
		renewer->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
		r = renewer->timer < 0 ? -errno : 0;
	}
	return r;
}

/* One message. 1, 0: none is there, or -1: the renewer has ended. */
static int hear(struct hf_renewer *renewer, struct hf_renewer_news *ret)
{
	ssize_t n = recv(renewer->fd, ret, sizeof(*ret), MSG_DONTWAIT);

	/* It ended without reading our last word: that is told once, before what it said. */
	if (n < 0 && errno == ECONNRESET)
		n = recv(renewer->fd, ret, sizeof(*ret), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n != (ssize_t)sizeof(*ret))
		return -1;
	ret->text[sizeof(ret->text) - 1] = '\0';
	return 1;
}

static void take_news(struct hf_renewer *renewer, const struct hf_renewer_news *news)
{
	if (news->word == HF_RENEWER_ASKED) {
		hf_copy_text(renewer->asked, sizeof(renewer->asked), news->text);
		return;
	}
	if (news->word == HF_RENEWER_HELD) {
		renewer->token = news->token;
		renewer->margin_ns = news->margin_ns;
	}
	if (news->word == HF_RENEWER_BUSY)
		renewer->holder = news->holder;
	if (news->word == HF_RENEWER_PROVEN)
		renewer->n_proven = news->code;
	if ((news->word == HF_RENEWER_PROVEN || news->word == HF_RENEWER_HELD) && !renewer->lost) {
		if (news->ttl_ns > 0)
			renewer->ttl_ns = news->ttl_ns;
		set_clock(renewer, (struct hf_boot){ news->since }, renewer->grace_ns);
	} else if (news->word == HF_RENEWER_LOST) {
		renewer->lost = 1;
	} else if (news->word == HF_RENEWER_RELEASED) {
		renewer->released = 1; /* its owner has ended */
	}
	if (news->word != HF_RENEWER_PROVEN && news->word != HF_RENEWER_HELD) {
		hf_copy_text(renewer->why, sizeof(renewer->why), news->text);
		renewer->code = news->code;
	}
}

int hf_renewer_acquired(struct hf_renewer *renewer, struct hf_err *err)
{
	struct hf_renewer_news news;
	int r = 0;

	while (renewer->token == 0 && renewer->code == 0 && (r = hear(renewer, &news)) == 1)
		take_news(renewer, &news);
	if (renewer->token != 0)
		return 1;
	if (renewer->code < 0)
		return FAIL(err, renewer->code, "lock", renewer->name, "%s", renewer->why);
	return r < 0 ? FAIL(err, HF_E_STORE, "lock", renewer->name, "%s was killed", HF_RENEW_PROGRAM) : 0;
}

enum hf_renewer_state hf_renewer_step(struct hf_renewer *renewer)
{
	struct hf_renewer_news news;
	int64_t now;
	int r = 1;

	while (renewer->fd >= 0 && (r = hear(renewer, &news)) == 1)
		take_news(renewer, &news);
	/* It was killed: the caller starts another one, until the lease is over. */
	if (r < 0)
		hf_auto_close(&renewer->fd);
	now = hf_boot_now().ns;
	if (renewer->released)
		return HF_RENEWER_HOLDS;
	if (renewer->lost || now >= renewer->end_at.ns)
		return HF_RENEWER_OVER;
	if (now < renewer->stop_at.ns)
		return HF_RENEWER_HOLDS;
	set_clock(renewer, renewer->since, renewer->grace_ns); /* the timer goes on to the end */
	return HF_RENEWER_ENDS;
}

/* Until a message of one of these words comes. */
static int await_word(struct hf_renewer *renewer, int64_t limit_ns, int word, struct hf_err *err)
{
	struct hf_mono until = hf_mono_in(limit_ns);
	struct hf_renewer_news news;

	while (hf_mono_left(until) > 0) {
		struct pollfd fds = { .fd = renewer->fd, .events = POLLIN };
		int r = hear(renewer, &news);

		if (r == 0) {
			(void)hf_poll_until(&fds, 1, until);
			continue;
		}
		if (r < 0)
			return FAIL(err, HF_E_STORE, "renew", renewer->name, "%s ended: %s", HF_RENEW_PROGRAM,
				    renewer->why[0] ? renewer->why : "it was killed");
		take_news(renewer, &news);
		if (news.word == word)
			return 0;
		if (news.word == HF_RENEWER_LOST || news.word == HF_RENEWER_FAILED)
			return FAIL(err, news.code < 0 ? news.code : HF_E_STORE, "renew", renewer->name, "%s",
				    news.text);
	}
	return FAIL(err, HF_E_STORE, "renew", renewer->name, "no answer in time");
}

void hf_renewer_ask(struct hf_renewer *renewer)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "P%d", ++renewer->n_asked);

	if (renewer->fd >= 0)
		(void)!send(renewer->fd, text, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int hf_renewer_await(struct hf_renewer *renewer, int64_t limit_ns, struct hf_err *err)
{
	return await_word(renewer, limit_ns, HF_RENEWER_PROVEN, err);
}

int hf_renewer_end(struct hf_renewer *renewer, struct hf_err *err)
{
	int r = 0;

	if (renewer->released)
		r = 0;
	else if (renewer->fd < 0)
		r = renewer->lock ? hf_lock_release(renewer->lock, err)
				  : FAIL(err, HF_E_STORE, "release", renewer->name, "%s was killed", HF_RENEW_PROGRAM);
	else if (send(renewer->fd, "R", 1, MSG_NOSIGNAL) < 0 && errno != EPIPE)
		r = FAIL_SYS(err, "send", HF_RENEW_PROGRAM);
	else
		r = await_word(renewer, RELEASE_NS, HF_RENEWER_RELEASED, err);
	/* The owner has ended, and a waiter of this machine that saw it has taken the place away already: that is as good, and holdfast-renew says so, too. */
	if (r == HF_E_STALE)
		r = 0;
	hf_renewer_leave(renewer);
	return r;
}

void hf_renewer_leave(struct hf_renewer *renewer)
{
	hf_auto_close(&renewer->fd);
	hf_auto_close(&renewer->timer);
}
