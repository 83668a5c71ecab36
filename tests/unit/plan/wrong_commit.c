/*
 * unit/plan/wrong_commit.c - plan commit as it must not be, for test_plan_race.c alone.
 *
 * The set is read under the plan's lock, and the lock is given back before the rest is done
 * (cleveragents #7060). The guards are left out as well: they would refuse a token that is not held, so
 * that nothing would be seen of the race but an error. All else is the library's own code.
 */
#define hf_plan_commit        wrong_plan_commit
#define hf_carry_out          wrong_carry_out
#define hf_work_sync          wrong_work_sync
#define hf_sites_open         wrong_sites_open
#define hf_work_begin_apply   wrong_work_begin_apply
#define hf_intent_count       wrong_intent_count
#define hf_intent_end         wrong_intent_end
#define hf_work_conclude      wrong_work_conclude
#define hf_work_note_restored wrong_work_note_restored
#define hf_work_withdraw      wrong_work_withdraw
#define hf_work_prove_fences  wrong_work_prove_fences

#include <stdio.h>

#include "hf/plan/commit/work.h"
#include "unit/plan/wrong_commit.h"

void (*wrong_commit_unlocked)(void);

static int begin(struct hf_work *work, struct hf_plans *plans, const char *plan, int64_t wait_ns,
		 struct hf_err *err)
{
	int r = hf_work_begin(work, plans, plan, wait_ns, err);

	if (r == 0) {
		hf_plan_unlock(&work->lock);
		wrong_commit_unlocked();
	}
	return r;
}

static int save(struct hf_plans *plans, struct hf_plan_record *record, uint64_t token, unsigned flags,
		struct hf_err *err)
{
	record->token = token;
	return hf_plan_save_guarded(plans, record, flags, err);
}

static int unguarded(int (*action)(void *arg), void *arg)
{
	return action(arg);
}

#define hf_work_begin                                         begin
#define hf_plan_save                                          save
#define hf_lock_guarded_many(locks, claims, n, fn, arg, err)  ((void)(claims), (void)(n), unguarded(fn, arg))
#define hf_lock_check(lock, err)                              ((void)(err), 0)

#include "../../../src/plan/commit/conclude.c"
#include "../../../src/plan/commit/carry_out.c"
#include "../../../src/plan/commit/commit.c"
