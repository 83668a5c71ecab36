/* lock/local/store.c - opening the local store, and its table of verbs. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/local/local.h"
#include "hf/lock/local/ops.h"
#include "hf/sys/io.h"
#include "hf/sys/noinherit.h"
#include "hf/sys/state.h"

/* Tests set their own: hf_locks_store. */
#define GUARD_WAIT_NS (10 * HF_SEC)

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

static void local_free(void *store)
{
	struct hf_local *locks = store;

	if (!locks)
		return;
	/* Without the mutex: nobody else uses it, and in a forked child it may stay locked. */
	while (locks->n_late > 0)
		hf_noinherit_close(&locks->late[--locks->n_late]);
	hf_auto_close(&locks->dirfd);
	hf_auto_close(&locks->wait_fd);
	hf_auto_close(&locks->spare_fd);
	/* In a forked child the mutex may be held by a thread that does not exist. */
	if (locks->self.pid == getpid())
		(void)pthread_mutex_destroy(&locks->mutex);
	free(locks);
}

static void auto_local_free(struct hf_local **locks)
{
	local_free(*locks);
}

int hf_local_open(struct hf_state *state, struct hf_journal *journal, const struct hf_proc_id *self,
		  void **ret_store, struct hf_err *err)
{
	AUTO(auto_local_free) struct hf_local *locks = calloc(1, sizeof(*locks));
	struct rlimit limit;
	int r;

	if (!locks)
		return hf_fail_sys(err, ENOMEM, "memory", "locks");
	locks->state = state;
	locks->journal = journal;
	locks->dirfd = locks->wait_fd = locks->spare_fd = -1;
	locks->judge_flags = hf_state_is_shared(state) ? HF_PROC_SHARED : 0;
	locks->fsize_limit = UINT64_MAX;
	locks->guard_wait_ns = GUARD_WAIT_NS;
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		locks->fsize_limit = limit.rlim_cur;
	(void)pthread_mutex_init(&locks->mutex, NULL);
	/* Where we are is part of who we are. */
	locks->self = *self;
	locks->here = (struct hf_here){ .pid_ns = self->pid_ns, .time_ns = self->time_ns };
	memcpy(locks->here.boot_id, self->boot_id, sizeof(locks->here.boot_id));
	r = hf_boot_offset(&locks->here, &locks->boot_offset_ns, err);
	if (r == 0)
		r = hf_state_subdir(state, "locks", 1, &locks->dirfd, err);
	if (r == 0)
		r = hf_private_subdir(locks->dirfd, ".wait", "locks/.wait", 1, &locks->wait_fd,
				      err);
	if (r < 0)
		return r;
	locks->spare_fd = hf_open_at(AT_FDCWD, "/dev/null", O_RDONLY, 0);
	if (locks->spare_fd < 0)
		locks->spare_fd = -1; /* only a reserve */
	*ret_store = ptr_take(&locks);
	return 0;
}

static void set_patience(void *store, int64_t ns)
{
	((struct hf_local *)store)->guard_wait_ns = ns > 0 ? ns : GUARD_WAIT_NS;
}

const struct hf_store_ops hf_local_ops = {
	.acquire = hf_local_acquire,
	.renew = hf_local_renew,
	.release = hf_local_release,
	.add_owner = hf_local_add_owner,
	.check = hf_local_check,
	.guarded = hf_local_guarded,
	.take_away = hf_local_take_away,
	.look = hf_local_look,
	.list = hf_local_list,
	.set_patience = set_patience,
	.free = local_free,
};
