/*
 * lock/etcd/renewing.c - what holdfast-renew does: it keeps one lease alive, and watches over the lock's place.
 *
 * It renews after a third of the lease. The place is watched, so that a break or a lease that was ended by hand is known at once;
 * whatever the watch says, only a renewal that is proven or refused counts. A cluster that does not answer is asked again every
 * tenth, until the lease counted from the last proof is over.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/lock/context.h"
#include "hf/lock/etcd/attempt.h"
#include "hf/lock/etcd/renewing.h"
#include "hf/lock/etcd/wire/watch.h"
#include "hf/lock/lease/renewer.h"
#include "hf/sys/calls.h"
#include "hf/sys/fd/poll.h"
#include "hf/sys/io.h"
#include "holdfast/exit.h"

/* How often it is asked whether what its starter left is gone. */
#define GONE_NS (50 * HF_MSEC)

void hf_renewing_tell(const struct hf_renewing *w, int word, const struct hf_err *err)
{
	struct hf_renewer_news news = { .word = word, .since = w->since.ns, .ttl_ns = w->ttl_ns,
					.margin_ns = w->margin_ns, .token = w->token };

	if (err) {
		news.code = err->code;
		hf_copy_text(news.text, sizeof(news.text), err->detail[0] ? err->detail : err->op);
	}
	if (word == HF_RENEWER_PROVEN)
		news.code = w->answered;
	if (word == HF_RENEWER_ASKED)
		hf_copy_text(news.text, sizeof(news.text), w->asked);
	if (w->socket >= 0)
		(void)send(w->socket, &news, sizeof(news), MSG_NOSIGNAL);
}

/* -- the order ------------------------------------------------------------------------------- */

static int read_text(const json_t *order, const char *key, char *to, size_t cap)
{
	const char *text = json_string_value(json_object_get(order, key));

	if (!text || strlen(text) >= cap)
		return -EINVAL;
	hf_copy_text(to, cap, text);
	return 0;
}

static int read_name(const json_t *order, char name[HF_NAME_MAX + 1])
{
	static const char hex[] = "0123456789abcdef";
	char text[2 * HF_NAME_MAX + 1];
	size_t n = 0;

	if (read_text(order, "name", text, sizeof(text)) < 0)
		return -EINVAL;
	for (; text[2 * n] && text[2 * n + 1]; n++) {
		const char *high = strchr(hex, text[2 * n]), *low = strchr(hex, text[2 * n + 1]);

		if (!high || !low)
			return -EINVAL;
		name[n] = (char)((high - hex) << 4 | (low - hex));
	}
	name[n] = '\0';
	return 0;
}

int hf_renewing_read_order(struct hf_renewing *w)
{
	static char text[16384];
	ssize_t n = recv(w->socket, text, sizeof(text), 0);
	json_t *order;
	char id[HF_PROC_TEXT_MAX];
	int r = -EINVAL;

	for (int i = 0; n < 0 && errno == EAGAIN && i < 5; i++) {
		(void)hf_poll_until(&(struct pollfd){ .fd = w->socket, .events = POLLIN }, 1, hf_mono_in(HF_SEC));
		n = recv(w->socket, text, sizeof(text), 0);
	}
	order = n > 0 ? json_loadb(text, (size_t)n, 0, NULL) : NULL;
	if (json_is_object(order) && read_text(order, "store", w->url, sizeof(w->url)) == 0 &&
	    read_text(order, "dir", w->dir, sizeof(w->dir)) == 0 && read_text(order, "owner", id, sizeof(id)) == 0 &&
	    read_name(order, w->name) == 0 && hf_proc_parse(id, strlen(id), &w->owner, NULL) == 0) {
		w->lock = (struct hf_lock_ref){ (enum hf_lock_kind)hf_json_number(order, "kind"), w->name };
		w->token = (uint64_t)hf_json_number(order, "token");
		w->since.ns = hf_json_number(order, "since");
		w->ttl_ns = hf_json_number(order, "ttl");
		w->margin_ns = hf_json_number(order, "margin");
		w->kill_owner = (int)hf_json_number(order, "kill");
		w->wait_ns = hf_json_number(order, "wait");
		w->above = (uint64_t)hf_json_number(order, "above");
		r = w->ttl_ns >= 0 ? 0 : -EINVAL;
	}
	json_decref(order);
	return r;
}

/* -- the work -------------------------------------------------------------------------------- */

static int64_t left(const struct hf_renewing *w)
{
	return w->since.ns + w->ttl_ns - w->margin_ns - hf_boot_now().ns;
}

/* Its calls leave time to ask another server before the lease is over. */
static void set_limit(struct hf_renewing *w)
{
	w->etcd->until.ns = w->since.ns + w->ttl_ns - w->margin_ns;
}

static int owner_lives(const struct hf_renewing *w)
{
	struct pollfd fd = { .fd = w->owner_fd, .events = POLLIN };

	return w->owner_fd >= 0 && poll(&fd, 1, 0) == 0;
}

static int end_lost(const struct hf_renewing *w, const struct hf_err *err)
{
	hf_renewing_tell(w, HF_RENEWER_LOST, err);
	/* A second hand beside the holder's own, which may be stopped. Told before: the holder is to know why its command dies. */
	if (w->kill_owner && w->owner_fd >= 0)
		(void)hf_sys.pidfd_send_signal(w->owner_fd, SIGKILL);
	return HF_EXIT_REFUSED;
}

static int end_released(struct hf_renewing *w, int asked)
{
	struct hf_err err = HF_ERR_INIT;
	int r;

	w->etcd->until.ns = 0; /* a release counts after the lease, too */
	r = asked ? hf_lock_release_as(hf_locks_kind(w->locks, w->lock.kind), w->name, w->token, NULL, &err)
		  : hf_etcd_abandon(w->etcd, &w->lock, w->token, &err);

	hf_renewing_tell(w, r == 0 || r == HF_E_STALE ? HF_RENEWER_RELEASED : HF_RENEWER_FAILED, r < 0 ? &err : NULL);
	return r == 0 ? HF_EXIT_DONE : HF_EXIT_OS;
}

static void hear_asked(struct hf_renewing *w, const char *asked)
{
	if (!w->hooks || !asked[0] || strcmp(asked, w->asked) == 0)
		return;
	hf_copy_text(w->asked, sizeof(w->asked), asked);
	w->hooks->asked(w->arg, w->asked);
}

/* 0: goes on; else what to exit with, plus one. */
static int renew(struct hf_renewing *w)
{
	struct hf_err err = HF_ERR_INIT;
	struct hf_lease lease;
	int question = w->question;
	int r = hf_etcd_renew_proven(w->etcd, &w->lock, w->token, &w->kept, &lease, &err);

	if (r == 0) {
		w->since = lease.since;
		w->ttl_ns = lease.ttl_ns;
		set_limit(w);
		w->next = hf_mono_in(w->ttl_ns / 3);
		w->answered = question;
		hf_renewing_tell(w, HF_RENEWER_PROVEN, NULL);
		hear_asked(w, w->kept.place.asked);
		return 0;
	}
	if (r == HF_E_STALE || left(w) <= 0)
		return end_lost(w, &err) + 1;
	w->next = hf_mono_in(w->ttl_ns / 10);
	return 0;
}

/* What was sent to us: "R" asks for the release, "P" and a number for a proof that begins now. 1: release. */
static int hear(struct hf_renewing *w)
{
	static char text[HF_BOARD_TEXT_MAX + 1];
	static char last[HF_BOARD_TEXT_MAX + 1];
	ssize_t n, n_last = 0;
	int release = 0;

	while (!release && (n = recv(w->socket, text, sizeof(text) - 1, MSG_DONTWAIT)) > 0) {
		release = n == 1 && text[0] == 'R';
		if (release)
			break;
		text[n] = '\0';
		if (text[0] == 'P') {
			uint64_t number = 0;

			(void)hf_parse_u64(text + 1, (size_t)n - 1, INT32_MAX, &number);
			w->question = (int)number;
			w->next = hf_mono_now();
			continue;
		}
		memcpy(last, text, (size_t)n);
		last[n] = '\0';
		n_last = n;
	}
	/* Of several words the last one says what is. */
	if (w->hooks && n_last > 0)
		w->hooks->heard(w->arg, last, (size_t)n_last);
	if (release)
		return 1;
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		hf_auto_close(&w->socket);
	return 0;
}

/* How long nothing has to be done. */
static int64_t quiet_for(const struct hf_renewing *w)
{
	int64_t ns = hf_mono_left(w->next);

	if (ns > left(w) && left(w) > 0)
		ns = left(w);
	return w->hooks && w->socket < 0 && ns > GONE_NS ? GONE_NS : ns;
}

/* One watch of the place; a new one is opened when it has said something, has ended, or its server does not answer. */
static int watch_once(struct hf_renewing *w)
{
	AUTO(hf_watch_close) struct hf_watch watch = { 0 };
	struct hf_watch_aim aim = { .only_deletes = !w->hooks };
	int ended = 0, r = hf_etcd_place_of(w->etcd, &w->lock, w->token, &aim, NULL);

	if (r == HF_E_STALE)
		return renew(w);
	if (r == 0) {
		hear_asked(w, aim.asked);
		r = hf_watch_open(w->etcd, &aim, &watch, NULL);
	}
	ended = r < 0;
	for (;;) {
		struct pollfd fds[] = { { .fd = w->socket, .events = POLLIN }, { .fd = w->owner_fd, .events = POLLIN } };
		int64_t sleep_ns = quiet_for(w);

		r = 0;
		if (sleep_ns > 0 && ended)
			(void)hf_poll_until(fds, 2, hf_mono_in(sleep_ns < HF_SEC ? sleep_ns : HF_SEC));
		else if (sleep_ns > 0)
			r = hf_watch_wait(&watch, fds, 2, sleep_ns);
		if (fds[0].fd >= 0 && fds[0].revents && hear(w))
			return end_released(w, 1) + 1;
		if (fds[1].fd >= 0 && fds[1].revents)
			return end_released(w, 0) + 1;
		if (w->hooks && w->socket < 0 && w->hooks->gone(w->arg))
			return end_released(w, 1) + 1;
		if (left(w) <= 0 && hf_mono_left(w->next) > 0)
			w->next = hf_mono_now();
		if (r > 0)
			return renew(w);
		if (hf_mono_left(w->next) == 0) {
			int status = renew(w);

			if (status != 0 || ended || r < 0 || !hf_watch_is_current(&watch))
				return status;
		} else if (ended && sleep_ns > 0) {
			return 0; /* after a pause: try to watch again */
		}
		ended = ended || r < 0;
	}
}

int hf_renewing_open(struct hf_renewing *w, struct hf_journal *journal, struct hf_err *err)
{
	int r = hf_state_open(w->dir, 0, &w->state, err);

	if (r == 0)
		r = hf_locks_open_store(w->url, w->state, journal, &w->locks, err);
	if (r == 0 && !hf_board_is_there(w->locks))
		r = FAIL(err, -EINVAL, "store", w->url, "it serves only this machine");
	if (r == 0)
		w->etcd = hf_etcd_of(hf_locks_store(w->locks));
	return r;
}

void hf_renewing_close(struct hf_renewing *w)
{
	hf_locks_free(w->locks);
	hf_state_free(w->state);
	hf_auto_close(&w->owner_fd);
	hf_auto_close(&w->socket);
}

/* Nothing of its starter's: its terminal, its pipes, its directory, its signals. */
void hf_renewing_stand_alone(void)
{
	AUTO_FD null = hf_open_at(AT_FDCWD, "/dev/null", O_RDWR, 0);
	sigset_t none;

	if (null >= 0) {
		(void)dup2(null, STDOUT_FILENO);
		(void)dup2(null, STDERR_FILENO);
	}
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)!chdir("/");
}

int hf_renewing_run(struct hf_renewing *w)
{
	int64_t age = hf_boot_now().ns - w->since.ns;
	int r = 0;

	set_limit(w);
	/* What it has acquired itself it need not prove at once. */
	w->next = hf_mono_in(w->ttl_ns / 3 - age);
	if (!w->hooks || age > w->ttl_ns / 6)
		r = renew(w);
	while (r == 0)
		r = watch_once(w);
	return r - 1;
}

int hf_renewer_main(int socket)
{
	AUTO(hf_renewing_close) struct hf_renewing w = HF_RENEWING_INIT;
	struct hf_err err = HF_ERR_INIT;
	int r;

	w.socket = socket;
	hf_renewing_stand_alone();
	if (hf_renewing_read_order(&w) < 0 || w.token == 0 || w.ttl_ns == 0)
		return HF_EXIT_USAGE;
	/* Without a journal: that its lock was released is no refusal to tell of. */
	r = hf_renewing_open(&w, NULL, &err);
	if (r == 0 && hf_proc_open(&w.owner, 0, &w.owner_fd, &err) < 0)
		w.owner_fd = -1;
	if (r < 0) {
		hf_renewing_tell(&w, HF_RENEWER_FAILED, &err);
		return HF_EXIT_OS;
	}
	return owner_lives(&w) ? hf_renewing_run(&w) : end_released(&w, 0);
}
