/* plan/sandbox/settle.c - bringing a plan to rest when no process is inside. */
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/sandbox/use.h"
#include "hf/plan/sandbox/used.h"

static int become_torn(struct hf_plans *plans, struct hf_plan_record *record, uint64_t token,
		       struct hf_err *err)
{
	static const char reason[] = "it was in use when power failed, so it may be torn; check 'plan "
				     "diff', then commit with --force or roll back";
	struct hf_field fields[] = { HF_FIELD_TEXT("reason", reason) };
	int r;

	record->torn = 1;
	/* One that failed otherwise before keeps that reason as well as this mark. */
	if (hf_plan_may_become(record->state, HF_PLAN_ERRORED))
		(void)hf_plan_become(record, HF_PLAN_ERRORED, reason, NULL);
	r = hf_plan_save(plans, record, token, HF_PLAN_SAVE_DURABLE, err);
	if (r == 0)
		hf_plan_event(plans, HF_EV_PLAN_ERRORED, record->name, fields, 1);
	return r;
}

/* One pass over the sandboxes that were entered since they were last settled. */
static int each_entered(struct hf_plan_record *record, int plan_fd, const char *boot_id,
			int (*fn)(struct hf_sandbox_record *s, int fd, const char *boot_id),
			struct hf_err *err)
{
	int found = 0;

	for (size_t i = 0; i < record->n_sandboxes; i++) {
		struct hf_sandbox_record *s = &record->sandboxes[i];
		AUTO_FD fd = -1;
		int r;

		if (s->strategy == HF_STRATEGY_OVERLAY && !s->entered_boot[0])
			continue;
		r = hf_sandbox_dir(plan_fd, s->name, 0, &fd, err);
		if (r < 0)
			return r;
		r = fn(s, fd, boot_id);
		if (r < 0)
			return hf_fail_sys(err, -r, "syncfs", s->name);
		found |= r;
	}
	return found;
}

/* In use when another boot ended: nothing says how much of it reached the disk. */
static int is_torn(struct hf_sandbox_record *s, int fd, const char *boot_id)
{
	char boot[HF_BOOT_ID_LEN + 1];

	if (s->strategy != HF_STRATEGY_OVERLAY)
		return hf_used_look(fd, boot) == 1 && strcmp(boot, boot_id) != 0;
	return strcmp(s->entered_boot, boot_id) != 0 && hf_sandbox_is_unsettled(fd);
}

enum settled { SETTLED = 1, SYNCED = 2 };

static int settle_one(struct hf_sandbox_record *s, int fd, const char *boot_id)
{
	int r;

	(void)boot_id;
	/* The record does not know of a copy's mark. */
	if (s->strategy != HF_STRATEGY_OVERLAY) {
		r = hf_used_settle(fd);
		return r < 0 ? r : 0;
	}
	r = hf_sandbox_settle(fd);
	if (r < 0)
		return r;
	s->entered_boot[0] = '\0';
	return r ? SETTLED | SYNCED : SETTLED;
}

int hf_plan_settle(struct hf_plans *plans, struct hf_plan_record *record, uint64_t token,
		   struct hf_err *err)
{
	AUTO_FD plan_fd = -1;
	char boot_id[HF_BOOT_ID_LEN + 1];
	int r = hf_plan_dir(plans, record->name, 0, &plan_fd, err);

	if (r == 0)
		r = hf_here_boot(boot_id, err);
	if (r == 0)
		r = hf_plan_check_unused(plans, record, err);
	if (r == 0)
		r = each_entered(record, plan_fd, boot_id, is_torn, err);
	/* First the verdict, then the marker: a crash in between does not lose it. */
	if (r == 1 && !record->torn)
		r = become_torn(plans, record, token, err);
	if (r >= 0)
		r = each_entered(record, plan_fd, boot_id, settle_one, err);
	if (r <= 0)
		return r;
	/* The record that says "entered" was there when the sandbox was synced. */
	return hf_plan_save(plans, record, token, r & SYNCED ? HF_PLAN_SAVE_OVER_SYNCED : 0, err);
}

int hf_plan_rest(struct hf_plans *plans, const char *plan, struct hf_err *err)
{
	AUTO(hf_plan_record_done) struct hf_plan_record record = HF_PLAN_RECORD_INIT;
	AUTO(hf_plan_unlock) struct hf_lock *lock = NULL;
	int copies = 0, r = hf_plan_load(plans, plan, &record, err);

	for (size_t i = 0; r == 0 && i < record.n_sandboxes; i++)
		copies |= record.sandboxes[i].strategy != HF_STRATEGY_OVERLAY;
	if (r < 0 || !copies)
		return r;
	hf_plan_record_done(&record);
	r = hf_plan_lock(plans, plan, HF_SEC, &lock, err);
	if (r == 0)
		r = hf_plan_load(plans, plan, &record, err);
	return r < 0 ? r : hf_plan_settle(plans, &record, hf_lock_token(lock), err);
}
