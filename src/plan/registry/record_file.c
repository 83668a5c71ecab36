/*
 * plan/registry/record_file.c - the record as a file, and those before it.
 *
 * A commit has two syncs and no more, so its last record is renamed into its place without one. After a power
 * cut some file systems (xfs) have the name and not the content. Therefore the record that is replaced
 * stays: as "plan.synced" when the caller knows that a sync carried it, else as "plan.before", which may be
 * as empty as the one that replaced it. They are used when the newest is missing or fails its checks. The
 * record before COMMITTED is PREPARED, which the first sync of the commit carried, and a plan that looks
 * PREPARED is finished from its intent, or from the mark that the intent left. Before that first sync no entry
 * was moved, so that any older record is right.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/journal/put_away.h"
#include "hf/plan/recovery/intent.h"
#include "hf/plan/registry/registry.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/replace.h"
#include "hf/sys/state/state.h"

#define RECORD_NEW "." HF_PLAN_RECORD ".new"
#define RECORD_MAX ((size_t)2 << 20) /* 64 sandboxes with the longest paths, encoded, fit */
#define READ_TRIES 8
#define BOOT_LOST  "00000000-0000-0000-0000-000000000000" /* no boot ever has it */


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
	hf_quarantine_trim(plans->state, plans->journal, moved);
	return FAIL(err, HF_E_FORMAT, "plan", plan,
		    "its record was quarantined: %s; its sandboxes still exist", why);
}

static int read_record(int dirfd, const char *name, const char *plan, struct hf_plan_record *ret,
		       const char **ret_why, struct hf_err *err)
{
	AUTO_FREE char *text = NULL;
	AUTO_FD fd = -1;
	struct stat st;
	size_t n;
	int r;

	*ret_why = "not a Holdfast file";
	r = hf_open_private(dirfd, name, O_RDONLY, plan, &fd, &st, err);
	if (r < 0)
		return r;
	*ret_why = "it is too large";
	r = hf_pread_new(fd, (uint64_t)st.st_size, RECORD_MAX, &text, &n);
	if (r < 0)
		return r == -E2BIG ? HF_E_FORMAT : hf_fail_sys(err, -r, "pread", plan);
	r = hf_plan_decode(text, n, ret, ret_why);
	if (r == 0 && strcmp(ret->name, plan) != 0) {
		hf_plan_record_done(ret);
		*ret_why = "the record belongs to another plan";
		r = HF_E_FORMAT;
	}
	return r == -ENOMEM ? hf_fail_sys(err, ENOMEM, "memory", plan) : r;
}

/* 0 from the newest that can be read; -ENOENT when there is none; else why the last one cannot. */
static int read_older(int dirfd, const char *plan, struct hf_plan_record *ret)
{
	static const char *const names[] = { HF_PLAN_BEFORE, HF_PLAN_SYNCED };
	const char *why;
	int r = -ENOENT;

	for (size_t i = 0; r != 0 && i < sizeof(names) / sizeof(names[0]); i++) {
		int next = read_record(dirfd, names[i], plan, ret, &why, NULL);

		if (next != -ENOENT)
			r = next;
	}
	return r;
}

/*
 * A record before the newest one. It may not know that a sandbox was in use when power failed: then the kernel's
 * marker alone decides, for which the record must say that it was entered in another boot. Nor may it know of an
 * intent, which makes the plan PREPARED.
 */
static int read_before(int dirfd, const char *plan, struct hf_plan_record *ret)
{
	struct stat st;
	int r = read_older(dirfd, plan, ret);

	if (r == 0 && hf_sys.fstatat(dirfd, HF_INTENT, &st, AT_SYMLINK_NOFOLLOW) == 0)
		ret->state = HF_PLAN_PREPARED;
	for (size_t i = 0; r == 0 && i < ret->n_sandboxes; i++) {
		struct hf_sandbox_record *s = &ret->sandboxes[i];

		if (s->strategy == HF_STRATEGY_OVERLAY && !s->entered_boot[0])
			hf_copy_text(s->entered_boot, sizeof(s->entered_boot), BOOT_LOST);
	}
	return r;
}

int hf_plan_load(struct hf_plans *plans, const char *plan, struct hf_plan_record *ret,
		 struct hf_err *err)
{
	AUTO_FD dirfd = -1;
	const char *why;
	int r = hf_plan_dir(plans, plan, 0, &dirfd, err);

	if (r < 0)
		return r;
	/* A writer takes the old one away before it puts the new one there; then one of the two is found. */
	for (int i = 0; i < READ_TRIES; i++) {
		r = read_record(dirfd, HF_PLAN_RECORD, plan, ret, &why, err);
		if (r == HF_E_FORMAT || r == HF_E_UNTRUSTED) {
			r = quarantine(plans, dirfd, plan, why, err);
			if (r == HF_E_FORMAT && read_before(dirfd, plan, ret) == 0)
				return 0;
			return r;
		}
		if (r == -ENOENT)
			r = read_before(dirfd, plan, ret);
		if (r != -ENOENT)
			break;
	}
	if (r == -ENOENT)
		return FAIL(err, HF_E_NO_PLAN, "plan", plan,
			    "its record is lost; 'holdfast plan gc --dry-run' shows what is left");
	return r < 0 ? FAIL(err, r, "plan", plan, "its record is missing, and the previous record cannot be read") : r;
}

struct save {
	struct hf_plans *plans;
	struct hf_plan_record *record;
	unsigned flags;
	struct hf_err *err;
};

/* 0 when the file is gone. */
static int forget(int dirfd, const char *name)
{
	return hf_sys.unlinkat(dirfd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

/* Keeps the record that is about to be replaced, under *ret_name; NULL when there is none, or no need. */
static int set_aside(int dirfd, unsigned flags, const char **ret_name)
{
	const char *name = flags & HF_PLAN_SAVE_OVER_SYNCED ? HF_PLAN_SYNCED : HF_PLAN_BEFORE;
	int r;

	*ret_name = NULL;
	if (flags & HF_PLAN_SAVE_DURABLE)
		return 0;
	/* What is older than a record that is on disk must not be found before it. */
	r = flags & HF_PLAN_SAVE_OVER_SYNCED ? forget(dirfd, HF_PLAN_BEFORE) : 0;
	if (r < 0)
		return r;
	if (hf_sys.renameat2(dirfd, HF_PLAN_RECORD, dirfd, name, 0) < 0)
		return errno == ENOENT ? 0 : -errno;
	*ret_name = name;
	return 0;
}

int hf_plan_forget_older(int dirfd)
{
	int r = forget(dirfd, HF_PLAN_BEFORE);

	return r < 0 ? r : forget(dirfd, HF_PLAN_SYNCED);
}

int hf_plan_save_guarded(struct hf_plans *plans, struct hf_plan_record *record, unsigned flags,
			 struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;
	AUTO_FD dirfd = -1;
	const char *aside;
	int r = hf_plan_dir(plans, record->name, 1, &dirfd, err);

	if (r < 0)
		return r;
	record->changed = hf_wall_now();
	hf_plan_encode(record, &text);
	if (text.err || text.len > RECORD_MAX)
		return hf_fail_sys(err, text.err ? -text.err : E2BIG, "record", record->name);
	r = set_aside(dirfd, flags, &aside);
	if (r == 0)
		r = hf_replace_file(dirfd, HF_PLAN_RECORD, RECORD_NEW, text.s, text.len,
				    flags & HF_PLAN_SAVE_DURABLE ? HF_REPLACE_SYNC : 0);
	if (r < 0 && aside)
		(void)hf_rename_new(dirfd, aside, dirfd, HF_PLAN_RECORD);
	if (r == 0 && flags & HF_PLAN_SAVE_DURABLE)
		(void)hf_plan_forget_older(dirfd);
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
