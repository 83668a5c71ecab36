/* lock/local/store.c - opening the local store, and its table of verbs. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/local/record/holders.h"
#include "hf/lock/local/local.h"
#include "hf/lock/local/ops.h"
#include "hf/sys/io.h"
#include "hf/sys/fd/noinherit.h"
#include "hf/sys/state/state.h"

/* Only for a channel that cannot be opened or written: nothing else is found by this clock alone. */
#define LOST_CLOCK_NS (10 * HF_SEC)

int64_t hf_local_now(const struct hf_local *locks)
{
	return hf_boot_now().ns - locks->boot_offset_ns;
}

int hf_local_may_write(const struct hf_local *locks, size_t len, off_t at)
{
	return (uint64_t)at + len <= locks->fsize_limit;
}

void hf_local_close_late(struct hf_local *locks, int *fd)
{
	(void)pthread_mutex_lock(&locks->mutex);
	if (*fd >= 0 && locks->n_late < HF_LATE_MAX)
		locks->late[locks->n_late++] = fd_take(fd);
	(void)pthread_mutex_unlock(&locks->mutex);
	hf_noinherit_close(fd);
}

void hf_local_close_now(struct hf_local *locks)
{
	(void)pthread_mutex_lock(&locks->mutex);
	while (locks->n_late > 0)
		hf_noinherit_close(&locks->late[--locks->n_late]);
	(void)pthread_mutex_unlock(&locks->mutex);
}

static int another(const struct hf_local *locks)
{
	return fcntl(locks->kinds[HF_LOCK_KIND_NAME].fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

void hf_local_borrow(struct hf_local *locks)
{
	(void)pthread_mutex_lock(&locks->release_mutex);
	hf_auto_close(&locks->release_fd);
}

void hf_local_give_back(struct hf_local *locks, int *fd)
{
	locks->release_fd = hf_noinherit_turn(fd, locks->kinds[HF_LOCK_KIND_NAME].fd);
	if (locks->release_fd < 0)
		locks->release_fd = another(locks);
	(void)pthread_mutex_unlock(&locks->release_mutex);
}

void hf_local_refill(struct hf_local *locks)
{
	(void)pthread_mutex_lock(&locks->mutex);
	if (locks->spare_fd < 0)
		locks->spare_fd = another(locks);
	(void)pthread_mutex_unlock(&locks->mutex);
}

static void local_free(struct hf_store *store)
{
	struct hf_local *locks = hf_local_of(store);

	/* Without the mutex: nobody else uses it, and in a forked child it may stay locked. */
	while (locks->n_late > 0)
		hf_noinherit_close(&locks->late[--locks->n_late]);
	for (int i = 0; i < HF_LOCK_KINDS; i++) {
		hf_auto_close(&locks->kinds[i].fd);
		hf_auto_close(&locks->kinds[i].wait_fd);
	}
	hf_auto_close(&locks->spare_fd);
	hf_auto_close(&locks->release_fd);
	/* In a forked child the mutex may be held by a thread that does not exist. */
	if (locks->self.pid == getpid()) {
		(void)pthread_mutex_destroy(&locks->mutex);
		(void)pthread_mutex_destroy(&locks->release_mutex);
	}
	free(locks);
}

static void auto_local_free(struct hf_local **locks)
{
	if (*locks)
		local_free(&(*locks)->base);
}

static enum hf_liveness local_judge(struct hf_store *store, const struct hf_owner *owner,
				    char evidence[HF_EVIDENCE_MAX])
{
	return hf_holder_liveness(hf_local_judge(hf_local_of(store), &owner->id, NULL, evidence));
}

static void set_patience(struct hf_store *store, int64_t ns)
{
	hf_local_of(store)->guard_wait_ns = ns;
}

static const struct hf_store_ops ops = {
	.acquire = hf_local_acquire,
	.renew = hf_local_renew,
	.release = hf_local_release,
	.add_owner = hf_local_add_owner,
	.check = hf_local_check,
	.raise = hf_local_raise,
	.hold = hf_local_hold,
	.let_go = hf_local_let_go,
	.judge = local_judge,
	.take_away = hf_local_take_away,
	.look = hf_local_look,
	.list = hf_local_list,
	.list_waited = hf_local_list_waited,
	.forget = hf_local_forget,
	.forget_idle = hf_local_forget_idle,
	.set_patience = set_patience,
	.free = local_free,
};

/* Opens the directories of a kind in locks/. */
static int open_kind(int locks_fd, struct hf_kind_dir *dir, int create, struct hf_err *err)
{
	const char *word = hf_lock_kind_word(dir->kind);
	AUTO_FD fd = -1, wait_fd = -1;
	char shown[32];
	int r;

	(void)snprintf(shown, sizeof(shown), "locks/%s", word);
	r = hf_private_subdir(locks_fd, word, shown, create, &fd, err);
	if (r < 0)
		return r;
	(void)snprintf(shown, sizeof(shown), "locks/%s/.wait", word);
	r = hf_private_subdir(fd, ".wait", shown, 1, &wait_fd, err);
	if (r < 0)
		return r;
	dir->fd = fd_take(&fd);
	dir->wait_fd = fd_take(&wait_fd);
	atomic_store_explicit(&dir->is_open, 1, memory_order_release);
	return 0;
}

static int open_kind_late(struct hf_local *locks, struct hf_kind_dir *dir, int create,
			  struct hf_err *err)
{
	AUTO_FD locks_fd = -1;
	int r = hf_state_subdir(locks->state, "locks", 1, &locks_fd, err);

	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&locks->mutex);
	r = dir->is_open ? 0 : open_kind(locks_fd, dir, create, err);
	(void)pthread_mutex_unlock(&locks->mutex);
	return r;
}

int hf_local_dir(struct hf_local *locks, enum hf_lock_kind kind, int create,
		 struct hf_kind_dir **ret_dir, struct hf_err *err)
{
	struct hf_kind_dir *dir = &locks->kinds[kind];
	struct hf_err why = HF_ERR_INIT;
	int r = 0;

	*ret_dir = dir;
	if (atomic_load_explicit(&dir->is_open, memory_order_acquire))
		return 0;
	r = open_kind_late(locks, dir, create, &why);
	if (r == -EROFS && !create)
		return -ENOENT;
	if (r < 0 && r != -ENOENT && err)
		*err = why;
	return r;
}

int hf_local_open(const struct hf_store_args *args, struct hf_store **ret_store, struct hf_err *err)
{
	const struct hf_proc_id *self = args->self;
	AUTO(auto_local_free) struct hf_local *locks = NULL;
	struct rlimit limit;
	int r;

	if (args->url[0])
		return FAIL(err, -EINVAL, "store", args->url,
			    "local: takes no address; its files are in the state directory");
	locks = calloc(1, sizeof(*locks));
	if (!locks)
		return hf_fail_sys(err, ENOMEM, "memory", "locks");
	locks->base = (struct hf_store){ .ops = &ops,
					 .caps = HF_STORE_SEES_DEATH | HF_STORE_HAS_SLOTS | HF_STORE_ONE_HOST |
						 HF_STORE_KEEPS_EXPIRED | HF_STORE_GIVES,
					 .series = "local" };
	locks->state = args->state;
	locks->journal = args->journal;
	locks->spare_fd = locks->release_fd = -1;
	for (int i = 0; i < HF_LOCK_KINDS; i++) {
		locks->kinds[i].kind = (enum hf_lock_kind)i;
		locks->kinds[i].fd = locks->kinds[i].wait_fd = -1;
	}
	locks->judge_flags = hf_state_is_shared(args->state) ? HF_PROC_SHARED : 0;
	locks->fsize_limit = UINT64_MAX;
	locks->guard_wait_ns = HF_STORE_PATIENCE_NS;
	locks->forget_margin_us = HF_FORGET_MARGIN_US;
	locks->lost_clock_ns = LOST_CLOCK_NS;
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		locks->fsize_limit = limit.rlim_cur;
	(void)pthread_mutex_init(&locks->mutex, NULL);
	(void)pthread_mutex_init(&locks->release_mutex, NULL);
	/* The namespaces are part of an identity. */
	locks->self = *self;
	locks->here = (struct hf_here){ .pid_ns = self->pid_ns, .time_ns = self->time_ns };
	memcpy(locks->here.boot_id, self->boot_id, sizeof(locks->here.boot_id));
	r = hf_boot_offset(&locks->here, &locks->boot_offset_ns, err);
	/* Kept for the other kinds and as the spare descriptor. */
	if (r == 0)
		r = hf_state_subdir(args->state, "locks", 1, &locks->spare_fd, err);
	if (r == 0)
		r = open_kind(locks->spare_fd, &locks->kinds[HF_LOCK_KIND_NAME], 1, err);
	/* Read-only, and there has been no lock: none is shown, and none can be taken. */
	if (r < 0 && r != -EROFS)
		return r;
	if (r == 0 && (locks->release_fd = another(locks)) < 0)
		return FAIL_SYS(err, "dup", "locks");
	*ret_store = &ptr_take(&locks)->base;
	return 0;
}
