/* plan/store.c - plans on disk: opening them, their directories, records and locks. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/registry.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"
#include "hf/sys/state.h"

#define RECORD_NEW "." HF_PLAN_RECORD ".new"
#define RECORD_MAX ((size_t)2 << 20) /* 64 sandboxes with the longest paths, encoded, fit */

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
	r = hf_state_subdir(state, "plans", 1, &plans->dirfd, err);
	if (r < 0)
		return r;
	r = hf_locks_open(state, journal, &plans->locks, err);
	if (r < 0) {
		hf_auto_close(&plans->dirfd);
		return r;
	}
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
			    "open the plans anew in this process");
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

int hf_plan_dir(struct hf_plans *plans, const char *plan, int create, int *ret_fd,
		struct hf_err *err)
{
	char key[HF_NAME_KEY_MAX];
	int r = hf_name_key(plan, strlen(plan), key, err);

	if (r >= 0)
		r = hf_private_subdir(plans->dirfd, key, key, create, ret_fd, err);
	if (r == -ENOENT)
		return FAIL(err, HF_E_NO_PLAN, "plan", plan, "'holdfast plan new' makes one");
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

/* -- the record ----------------------------------------------------------------- */

/* Puts the record away, whatever it is, and says so once (L8, L12). */
static int quarantine(struct hf_plans *plans, int dirfd, const char *plan, const char *why,
		      struct hf_err *err)
{
	char key[HF_NAME_KEY_MAX], moved[HF_QUARANTINE_NAME_MAX], label[HF_NAME_KEY_MAX + 16],
		file[HF_NAME_KEY_MAX + 48];
	struct hf_field fields[] = { HF_FIELD_TEXT("file", file), HF_FIELD_TEXT("moved_to", moved),
				     HF_FIELD_TEXT("reason", why) };
	int r = hf_name_key(plan, strlen(plan), key, err);

	if (r < 0)
		return r;
	(void)snprintf(label, sizeof(label), "plans.%s", key);
	(void)snprintf(file, sizeof(file), "plans/%s/" HF_PLAN_RECORD, key);
	r = hf_state_quarantine_from(plans->state, dirfd, label, HF_PLAN_RECORD, moved, err);
	if (r < 0)
		return r;
	hf_plan_event(plans, HF_EV_RECORD_QUARANTINED, plan, fields, 3);
	return FAIL(err, HF_E_FORMAT, "plan", plan,
		    "its record was put away: %s; its sandboxes are still there", why);
}

static int read_record(int dirfd, const char *plan, struct hf_plan_record *ret,
		       const char **ret_why, struct hf_err *err)
{
	AUTO_FREE char *text = NULL;
	AUTO_FD fd = -1;
	struct stat st;
	ssize_t n;
	int r;

	*ret_why = "not a file of ours";
	r = hf_open_private(dirfd, HF_PLAN_RECORD, O_RDONLY, plan, &fd, &st, err);
	if (r < 0)
		return r;
	*ret_why = "it is too large";
	if ((uint64_t)st.st_size > RECORD_MAX)
		return HF_E_FORMAT;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return hf_fail_sys(err, ENOMEM, "memory", plan);
	n = hf_pread_all(fd, text, (size_t)st.st_size, 0);
	if (n < 0)
		return hf_fail_sys(err, (int)-n, "pread", plan);
	r = hf_plan_decode(text, (size_t)n, ret, ret_why);
	if (r == 0 && strcmp(ret->name, plan) != 0) {
		hf_plan_record_done(ret);
		*ret_why = "it is the record of another plan";
		r = HF_E_FORMAT;
	}
	return r == -ENOMEM ? hf_fail_sys(err, ENOMEM, "memory", plan) : r;
}

int hf_plan_load(struct hf_plans *plans, const char *plan, struct hf_plan_record *ret,
		 struct hf_err *err)
{
	AUTO_FD dirfd = -1;
	const char *why;
	int r = hf_plan_dir(plans, plan, 0, &dirfd, err);

	if (r < 0)
		return r;
	r = read_record(dirfd, plan, ret, &why, err);
	if (r == HF_E_FORMAT || r == HF_E_UNTRUSTED)
		return quarantine(plans, dirfd, plan, why, err);
	if (r == -ENOENT)
		return FAIL(err, HF_E_NO_PLAN, "plan", plan,
			    "its directory has no record; 'holdfast plan gc' removes what is left");
	return r;
}

struct save {
	struct hf_plans *plans;
	struct hf_plan_record *record;
	unsigned flags;
	struct hf_err *err;
};

int hf_plan_save_guarded(struct hf_plans *plans, struct hf_plan_record *record, unsigned flags,
			 struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;
	AUTO_FD dirfd = -1;
	AUTO_FD fd = -1;
	int r = hf_plan_dir(plans, record->name, 1, &dirfd, err);

	if (r < 0)
		return r;
	record->changed = hf_wall_now();
	hf_plan_encode(record, &text);
	if (text.err || text.len > RECORD_MAX)
		return hf_fail_sys(err, text.err ? -text.err : E2BIG, "record", record->name);
	(void)hf_sys.unlinkat(dirfd, RECORD_NEW, 0);
	fd = hf_create_at(dirfd, RECORD_NEW, O_WRONLY, 0600);
	if (fd < 0)
		return hf_fail_sys(err, -fd, "openat", record->name);
	r = hf_write_all(fd, text.s, text.len);
	if (r == 0 && flags & HF_PLAN_SAVE_DURABLE && hf_sys.fdatasync(fd) < 0)
		r = -errno;
	if (r == 0 && hf_sys.renameat2(dirfd, RECORD_NEW, dirfd, HF_PLAN_RECORD, 0) < 0)
		r = -errno;
	if (r < 0)
		(void)hf_sys.unlinkat(dirfd, RECORD_NEW, 0);
	else if (flags & HF_PLAN_SAVE_DURABLE)
		r = hf_sync_dir(dirfd);
	return r < 0 ? hf_fail_sys(err, -r, "write", record->name) : 0;
}

static int save_action(void *arg)
{
	const struct save *save = arg;

	return hf_plan_save_guarded(save->plans, save->record, save->flags, save->err);
}

int hf_plan_save(struct hf_plans *plans, struct hf_plan_record *record, uint64_t token,
		 unsigned flags, struct hf_err *err)
{
	struct save save = { plans, record, flags, err };

	record->token = token;
	/* Under the guard: a process that lost the lock writes nothing (L5). */
	return hf_lock_guarded(hf_locks_kind(plans->locks, HF_LOCK_KIND_PLAN), record->name, token,
			       save_action, &save, err);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

struct names {
	char **list;
	size_t n;
};

static void names_done(struct names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->list[i]);
	free(names->list);
}

static int read_names(struct hf_plans *plans, struct names *names)
{
	int fd = hf_open_at(plans->dirfd, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int r = 0;

	if (!dir) {
		r = fd < 0 ? fd : -errno;
		hf_auto_close(&fd);
		return r;
	}
	while (r == 0 && (entry = readdir(dir))) {
		char name[HF_NAME_MAX + 1];
		char **grown;

		if (hf_name_unkey(entry->d_name, strlen(entry->d_name), name, NULL) != (int)strlen(name))
			continue;
		grown = reallocarray(names->list, names->n + 1, sizeof(*grown));
		if (grown) {
			names->list = grown;
			names->list[names->n] = strdup(name);
		}
		if (!grown || !names->list[names->n])
			r = -ENOMEM;
		else
			names->n++;
	}
	(void)closedir(dir);
	return r;
}

int hf_plan_each(struct hf_plans *plans, int (*fn)(void *arg, const char *plan), void *arg,
		 struct hf_err *err)
{
	AUTO(names_done) struct names names = { 0 };
	int r = read_names(plans, &names);

	if (r < 0)
		return hf_fail_sys(err, -r, "readdir", "plans");
	if (names.n > 0)
		qsort(names.list, names.n, sizeof(*names.list), by_name);
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
