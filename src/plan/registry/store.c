/* plan/registry/store.c - plans on disk: opening them, their directories, names and locks. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hf/base/buf.h"
#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/room.h"
#include "hf/name/names.h"
#include "hf/plan/registry/registry.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"
#include "hf/sys/state/state.h"

int hf_plans_open(struct hf_state *state, struct hf_journal *journal, struct hf_plans **ret_plans,
		  struct hf_err *err)
{
	AUTO_FREE struct hf_plans *plans = NULL;
	int r;

	if (!state || !ret_plans)
		return FAIL(err, -EINVAL, "arguments", "hf_plans_open", "NULL");
	plans = calloc(1, sizeof(*plans));
	if (!plans)
		return hf_fail_sys(err, ENOMEM, "memory", "plans");
	plans->state = state;
	plans->journal = journal;
	plans->process = getpid();
	r = hf_room_open(state, journal, "plans", &plans->dirfd, &plans->locks, err);
	if (r < 0)
		return r;
	*ret_plans = ptr_take(&plans);
	return 0;
}

void hf_plans_free(struct hf_plans *plans)
{
	if (!plans)
		return;
	hf_locks_free(plans->locks);
	hf_auto_close(&plans->dirfd);
	free(plans);
}

int hf_plans_check(const struct hf_plans *plans, const char *plan, struct hf_err *err)
{
	char key[HF_NAME_KEY_MAX];
	int r;

	if (!plans)
		return FAIL(err, -EINVAL, "arguments", "plan", "NULL");
	if (plans->process != getpid())
		return FAIL(err, HF_E_FORKED, "plan", plan ? plan : "plan",
			    "open the plans again in this process");
	r = hf_name_key(plan, plan ? strlen(plan) : 0, key, err);
	return r < 0 ? r : 0;
}

void hf_plan_event(const struct hf_plans *plans, enum hf_event event, const char *plan,
		   const struct hf_field *fields, size_t n)
{
	if (plans->journal)
		(void)hf_journal_append(plans->journal, event, plan, fields, n, 0, NULL);
}

int hf_plan_refused(const struct hf_plans *plans, const char *plan, const char *action, int r,
		    const struct hf_err *why, struct hf_err *err)
{
	const struct hf_err_info *info = hf_err_info(r);

	if (err && err != why)
		*err = *why;
	/* That of a stale token left its own event. */
	if (info && info->exit_status == 3 && r != HF_E_STALE) {
		struct hf_field fields[] = { HF_FIELD_TEXT("action", action),
					     HF_FIELD_TEXT("reason", why->detail[0] ? why->detail :
									      info->text) };

		hf_plan_event(plans, HF_EV_PLAN_REFUSED, plan, fields, 2);
	}
	return r;
}

/* -- directories ---------------------------------------------------------------- */

/* A session of that name has a plan, which is named "run:NAME". */
static int is_of_run(const struct hf_plans *plans, const char *plan)
{
	char name[HF_NAME_MAX + sizeof(HF_PLAN_OF_RUN)], key[HF_NAME_KEY_MAX];
	struct stat st;

	return (size_t)snprintf(name, sizeof(name), "%s%s", HF_PLAN_OF_RUN, plan) < sizeof(name) &&
	       hf_name_key(name, strlen(name), key, NULL) >= 0 && plans->dirfd >= 0 && hf_sys.fstatat(plans->dirfd, key, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

int hf_plan_dir(struct hf_plans *plans, const char *plan, int create, int *ret_fd,
		struct hf_err *err)
{
	char key[HF_NAME_KEY_MAX], word[HF_SHELL_WORD_MAX];
	int r = hf_name_key(plan, strlen(plan), key, err);

	if (r >= 0 && plans->dirfd < 0)
		r = create ? hf_fail_sys(err, EROFS, "mkdir", "plans") : -ENOENT;
	else if (r >= 0)
		r = hf_private_subdir(plans->dirfd, key, key, create, ret_fd, err);
	if (r == -ENOENT && is_of_run(plans, plan))
		return FAIL(err, HF_E_NO_PLAN, "plan", plan, "the plan of that session is '%s%.80s'", HF_PLAN_OF_RUN, plan);
	if (r == -ENOENT && hf_plan_is_of_run(plan))
		return FAIL(err, HF_E_NO_PLAN, "plan", plan, "'holdfast plan list' shows the plans");
	if (r == -ENOENT)
		return FAIL(err, HF_E_NO_PLAN, "plan", plan, "'holdfast plan new %s' makes it", hf_shell_word(plan, word));
	return r;
}

int hf_sandbox_dir(int plan_fd, const char *sandbox, int create, int *ret_fd, struct hf_err *err)
{
	char key[HF_NAME_KEY_MAX];
	AUTO_FD all = -1;
	int r = hf_name_key(sandbox, strlen(sandbox), key, err);

	if (r >= 0)
		r = hf_private_subdir(plan_fd, "s", "s", create, &all, err);
	if (r >= 0)
		r = hf_private_subdir(all, key, key, create, ret_fd, err);
	if (r == -ENOENT)
		return FAIL(err, HF_E_NO_SANDBOX, "sandbox", sandbox, "its directory is gone");
	return r;
}

void hf_sandbox_path(const struct hf_plans *plans, const char *plan, const char *sandbox,
		     const char *part, struct hf_buf *out)
{
	char key[HF_NAME_KEY_MAX] = "", skey[HF_NAME_KEY_MAX] = "";

	(void)!hf_name_key(plan, strlen(plan), key, NULL);
	(void)!hf_name_key(sandbox, strlen(sandbox), skey, NULL);
	hf_buf_add_format(out, "%s/plans/%s/s/%s/%s", hf_state_path(plans->state), key, skey, part);
}

int hf_plan_each(struct hf_plans *plans, int (*fn)(void *arg, const char *plan), void *arg,
		 struct hf_err *err)
{
	AUTO(hf_names_done) struct hf_names names = { 0 };
	int r = hf_names_read(plans->dirfd, &names);

	if (r < 0)
		return hf_fail_sys(err, -r, "readdir", "plans");
	for (size_t i = 0; i < names.n; i++) {
		r = fn(arg, names.list[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

/* -- locks ----------------------------------------------------------------------- */

void hf_target_lock_name(const struct hf_target *target, char out[HF_NAME_MAX + 1])
{
	(void)snprintf(out, HF_NAME_MAX + 1, "%llx:%llx", (unsigned long long)target->dev,
		       (unsigned long long)target->ino);
}

int hf_plan_lock(struct hf_plans *plans, const char *plan, int64_t wait_ns,
		 struct hf_lock **ret_lock, struct hf_err *err)
{
	struct hf_lock_opts opts = { .size = sizeof(opts), .wait_ns = wait_ns };

	return hf_lock_acquire(hf_locks_kind(plans->locks, HF_LOCK_KIND_PLAN), plan, &opts, ret_lock,
			       NULL, err);
}

void hf_plan_unlock(struct hf_lock **lock)
{
	if (!*lock)
		return;
	(void)hf_lock_release(*lock, NULL);
	hf_lock_free(*lock);
	*lock = NULL;
}
