/* tx/land/candidate/lock.c - waiting for a candidate or a branch. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/sys/calls.h"
#include "hf/tx/land/candidate/lock.h"

/* For a process that looks whether a candidate has to be recovered, or begins, seals or drops it: all of that is short. */
#define SHORT_NS (2 * HF_SEC)

/* While it waits: readable every second, and when the caller's descriptor is. */
struct watch {
	const struct hf_land_opts *opts;
	struct hf_forecast *forecast; /* NULL: none */
	int timer, both;
	int result; /* of `alive` */
};

static void watch_done(struct watch *watch)
{
	hf_auto_close(&watch->timer);
	hf_auto_close(&watch->both);
}

/* 1: go on waiting. */
static int go_on(void *arg)
{
	struct watch *watch = arg;
	uint64_t ticks;

	if (read(watch->timer, &ticks, sizeof(ticks)) != sizeof(ticks))
		return 0; /* the caller's */
	if (watch->forecast)
		hf_forecast_look(watch->forecast);
	watch->result = watch->opts->alive ? watch->opts->alive(watch->opts->arg) : 0;
	return watch->result >= 0;
}

static int watch_begin(struct watch *watch)
{
	const struct timespec often = { 0, watch->forecast ? HF_FORECAST_NS : HF_SEC - 1 };
	const struct itimerspec every = { often, often };
	struct epoll_event event = { .events = EPOLLIN };

	watch->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	watch->both = epoll_create1(EPOLL_CLOEXEC);
	if (watch->timer < 0 || watch->both < 0 || timerfd_settime(watch->timer, 0, &every, NULL) < 0 ||
	    epoll_ctl(watch->both, EPOLL_CTL_ADD, watch->timer, &event) < 0)
		return -errno;
	if (watch->opts->cancel_fd > 0 &&
	    epoll_ctl(watch->both, EPOLL_CTL_ADD, watch->opts->cancel_fd, &event) < 0)
		return -errno;
	return 0;
}

/* The name of the lock says nothing to people: "b:DEV:INO:BRANCH" is a branch, "n:NAME" a candidate. */
static void tell_what(const char *lock_name, struct hf_err *err)
{
	const char *at = lock_name;

	if (!err || !strstr(err->subject, lock_name))
		return;
	for (int i = lock_name[0] == 'b' ? 3 : 1; at && i > 0; i--) {
		at = strchr(at, ':');
		at = at ? at + 1 : NULL;
	}
	if (lock_name[0] == 'n')
		hf_copy_text(err->subject, sizeof(err->subject), at ? at : "candidate");
	else if (at)
		(void)snprintf(err->subject, sizeof(err->subject), "branch '%.200s'", at);
	else
		hf_copy_text(err->subject, sizeof(err->subject), "its branch"); /* a long name: the lock has only a hash of it */
}

int hf_land_lock(struct hf_landings *landings, const char *lock_name, const struct hf_land_opts *opts,
		 struct hf_lock **ret_lock, struct hf_err *err)
{
	return hf_land_lock_branch(landings, lock_name, opts, NULL, ret_lock, err);
}

int hf_land_lock_branch(struct hf_landings *landings, const char *lock_name, const struct hf_land_opts *opts,
			struct hf_forecast *forecast, struct hf_lock **ret_lock, struct hf_err *err)
{
	AUTO(watch_done) struct watch watch = { .opts = opts, .forecast = forecast, .timer = -1, .both = -1 };
	struct hf_lock_opts how = { .size = sizeof(how), .wait_ns = SHORT_NS };
	int r = 0;

	if (opts) {
		how.wait_ns = opts->wait_ns;
		how.cancel_fd = opts->cancel_fd;
	}
	if (opts && (opts->alive || forecast)) {
		r = watch_begin(&watch);
		how.cancel_fd = watch.both;
		how.go_on = go_on;
		how.go_on_arg = &watch;
	}
	if (r < 0)
		return hf_fail_sys(err, -r, "timerfd_create", lock_name);
	r = hf_lock_acquire(hf_locks_kind(landings->locks, HF_LOCK_KIND_LAND), lock_name, &how, ret_lock, NULL, err);
	if (r < 0)
		tell_what(lock_name, err);
	if (r == HF_E_TIMEOUT && !opts) {
		r = HF_E_BUSY; /* being landed */
		if (err)
			err->code = r;
	}
	return r == HF_E_CANCELLED && watch.result < 0 ? watch.result : r;
}

void hf_land_unlock(struct hf_lock **lock)
{
	if (!*lock)
		return;
	(void)hf_lock_release(*lock, NULL);
	hf_lock_free(*lock);
	*lock = NULL;
}
