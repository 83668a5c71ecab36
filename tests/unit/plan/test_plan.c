/* unit/plan/test_plan.c - the registry of plans: records, states, power loss. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "helper/faults.h"
#include "helper/test.h"
#include "hf/base/cleanup.h"
#include "hf/plan/target/target.h"
#include "hf/plan/sandbox/use.h"

static struct hf_plans *open_plans(void)
{
	struct hf_plans *plans;

	ASSERT_OK(hf_plans_open(hf_test_state(), NULL, &plans, ERR));
	return plans;
}

static void plans_done(struct hf_plans **plans)
{
	hf_plans_free(*plans);
}

static const char *make_dir(const char *leaf)
{
	const char *path = hf_test_path(leaf);

	assert_int_equal(mkdir(path, 0755), 0);
	return path;
}

/* -- records ------------------------------------------------------------------------ */

static void fill(struct hf_plan_record *r)
{
	static const char *const paths[] = { "/", "/a/b c/\n\xff\"\\%41", "/x" };

	*r = (struct hf_plan_record){ .token = 1700000000000000, .state = HF_PLAN_ACTIVE,
				      .created = { 1700000000 * HF_SEC }, .changed = { 1700000001 * HF_SEC },
				      .torn = 1, .phase = 1 };
	strcpy(r->name, "odd/\x01name");
	strcpy(r->session, "fix 160");
	strcpy(r->reason, "because \"of\" it");
	r->sandboxes = calloc(3, sizeof(*r->sandboxes));
	r->n_sandboxes = 3;
	for (size_t i = 0; i < 3; i++) {
		struct hf_sandbox_record *s = &r->sandboxes[i];

		(void)snprintf(s->name, sizeof(s->name), "s/%zu", i);
		s->strategy = (enum hf_strategy)(i + 1);
		strcpy(s->why, "no overlay: x");
		s->target = (struct hf_target){ .path = strdup(paths[i]), .dev = UINT64_MAX, .ino = 7,
						.mnt_id = 1, .fs_type = 0xef53 };
		strcpy(s->target.boot_id, "9f1c2a3b-0123-4567-89ab-0123456789ab");
		s->t0 = (struct hf_t0){ .real_ns = 5, .boot_ns = 6 };
		strcpy(s->t0.boot_id, "9f1c2a3b-0123-4567-89ab-0123456789ab");
		s->entered = i == 0;
		if (i == 0)
			strcpy(s->entered_boot, "9f1c2a3b-0123-4567-89ab-0123456789ab");
	}
}

static void a_record_is_read_back_as_it_was_written(void **state)
{
	AUTO(hf_plan_record_done) struct hf_plan_record r, back = HF_PLAN_RECORD_INIT;
	AUTO(hf_buf_done) struct hf_buf first = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf second = HF_BUF_INIT;
	const char *why;

	(void)state;
	fill(&r);
	hf_plan_encode(&r, &first);
	assert_int_equal(first.err, 0);
	ASSERT_OK(hf_plan_decode(first.s, first.len, &back, &why));
	assert_string_equal(back.name, r.name);
	assert_string_equal(back.sandboxes[1].target.path, r.sandboxes[1].target.path);
	assert_true(back.sandboxes[0].target.dev == UINT64_MAX);
	hf_plan_encode(&back, &second);
	assert_string_equal(first.s, second.s);
}

static void no_damaged_record_is_believed_L12(void **state)
{
	AUTO(hf_plan_record_done) struct hf_plan_record r, back = HF_PLAN_RECORD_INIT;
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;
	const char *why;

	(void)state;
	fill(&r);
	hf_plan_encode(&r, &text);
	for (size_t i = 0; i < text.len; i++) {
		char kept = text.s[i];

		text.s[i] ^= 1;
		/* Only the newline at the end is not covered by the sum. */
		if (i + 1 < text.len)
			ASSERT_ERR(hf_plan_decode(text.s, text.len, &back, &why), HF_E_FORMAT);
		text.s[i] = kept;
		ASSERT_ERR(hf_plan_decode(text.s, i, &back, &why), i + 1 == text.len ? 0 : HF_E_FORMAT);
		hf_plan_record_done(&back);
	}
}

/* Encodes what hf_plan_encode writes of a record that must not be read back. */
static void refuse(struct hf_plan_record *r)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;
	AUTO(hf_plan_record_done) struct hf_plan_record back = HF_PLAN_RECORD_INIT;
	const char *why;

	hf_plan_encode(r, &text);
	ASSERT_ERR(hf_plan_decode(text.s, text.len, &back, &why), HF_E_FORMAT);
	assert_non_null(why);
}

static void a_record_with_a_right_sum_and_a_wrong_content_is_refused_L12(void **state)
{
	static const char *const paths[] = { "relative", "", "/a/../b", "/..", "/a/./b", "/a//b", "/a/" };
	AUTO(hf_plan_record_done) struct hf_plan_record r = HF_PLAN_RECORD_INIT;

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		hf_plan_record_done(&r);
		fill(&r);
		free(r.sandboxes[2].target.path);
		r.sandboxes[2].target.path = strdup(paths[i]);
		refuse(&r);
	}
	hf_plan_record_done(&r);
	fill(&r);
	r.state = (enum hf_plan_state)9;
	refuse(&r);
	r.state = HF_PLAN_ACTIVE;
	r.sandboxes[0].strategy = HF_STRATEGY_AUTO;
	refuse(&r);
	r.sandboxes[0].strategy = HF_STRATEGY_COPY;
	strcpy(r.sandboxes[1].name, r.sandboxes[0].name);
	refuse(&r);
	strcpy(r.sandboxes[1].name, "other");
	strcpy(r.sandboxes[1].entered_boot, "no boot id");
	refuse(&r);
}

static void states_follow_each_other_as_the_header_says(void **state)
{
	/* One row for each state, a column for each that may follow. */
	static const char *const table[] = {
		/*               C A P C R E C */
		[HF_PLAN_CREATED] = ".AP.REX", [HF_PLAN_ACTIVE] = "..P.REX",
		[HF_PLAN_PREPARED] = ".A.CRE.", [HF_PLAN_COMMITTED] = "..P..EX",
		[HF_PLAN_ROLLED_BACK] = "......X", [HF_PLAN_ERRORED] = ".AP.R.X",
		[HF_PLAN_CLEANED] = ".......",
	};

	(void)state;
	for (int from = HF_PLAN_CREATED; from <= HF_PLAN_CLEANED; from++) {
		for (int to = HF_PLAN_CREATED; to <= HF_PLAN_CLEANED; to++) {
			struct hf_plan_record r = { .state = (enum hf_plan_state)from };
			int may = table[from][to - 1] != '.';

			strcpy(r.name, "p");
			ASSERT_ERR(hf_plan_become(&r, (enum hf_plan_state)to, NULL, ERR),
				   may ? 0 : HF_E_PLAN_STATE);
			assert_int_equal(r.state, may ? to : from);
		}
	}
	assert_false(hf_plan_may_become(0, HF_PLAN_ACTIVE));
	assert_false(hf_plan_may_become(HF_PLAN_ACTIVE, (enum hf_plan_state)99));
}

/* -- saving -------------------------------------------------------------------------- */

static void a_stale_token_saves_nothing_L5(void **state)
{
	AUTO(plans_done) struct hf_plans *plans = open_plans();
	AUTO(hf_plan_record_done) struct hf_plan_record r = HF_PLAN_RECORD_INIT, now = HF_PLAN_RECORD_INIT;
	struct hf_lock *lock;
	uint64_t token;

	(void)state;
	ASSERT_OK(hf_plan_new(plans, "p", NULL, ERR));
	ASSERT_OK(hf_plan_load(plans, "p", &r, ERR));
	ASSERT_OK(hf_plan_lock(plans, "p", 0, &lock, ERR));
	token = hf_lock_token(lock);
	hf_plan_unlock(&lock);
	strcpy(r.reason, "revived");
	ASSERT_ERR(hf_plan_save(plans, &r, token, 0, ERR), HF_E_STALE);
	ASSERT_OK(hf_plan_load(plans, "p", &now, ERR));
	assert_string_equal(now.reason, "");
}

static void a_record_is_the_old_or_the_new_one_whatever_fails_L9(void **state)
{
	AUTO(plans_done) struct hf_plans *plans = open_plans();
	AUTO(hf_plan_record_done) struct hf_plan_record r = HF_PLAN_RECORD_INIT;
	AUTO(hf_plan_unlock) struct hf_lock *lock = NULL;
	int n = 1, hit = 1;

	(void)state;
	ASSERT_OK(hf_plan_new(plans, "p", NULL, ERR));
	ASSERT_OK(hf_plan_load(plans, "p", &r, ERR));
	ASSERT_OK(hf_plan_lock(plans, "p", 0, &lock, ERR));
	for (; hit; n++) {
		AUTO(hf_plan_record_done) struct hf_plan_record now = HF_PLAN_RECORD_INIT;
		char before[HF_PLAN_WHY_MAX];
		int saved;

		strcpy(before, r.reason);
		(void)snprintf(r.reason, sizeof(r.reason), "version %d", n);
		hf_fault_arm(&(struct hf_fault){ .at = n, .error = ENOSPC });
		saved = hf_plan_save(plans, &r, hf_lock_token(lock), HF_PLAN_SAVE_DURABLE, ERR);
		hit = hf_fault_hit();
		hf_fault_disarm();
		ASSERT_OK(hf_plan_load(plans, "p", &now, ERR));
		if (saved == 0)
			assert_string_equal(now.reason, r.reason);
		else
			assert_true(strcmp(now.reason, before) == 0 || strcmp(now.reason, r.reason) == 0);
		strcpy(r.reason, now.reason);
	}
	assert_in_range(n, 8, 60);
}

static void a_foreign_or_damaged_record_is_put_away_L12(void **state)
{
	AUTO(plans_done) struct hf_plans *plans = open_plans();
	AUTO(hf_plan_record_done) struct hf_plan_record r = HF_PLAN_RECORD_INIT;
	char path[4096], other[4096];

	(void)state;
	ASSERT_OK(hf_plan_new(plans, "a", NULL, ERR));
	ASSERT_OK(hf_plan_new(plans, "b", NULL, ERR));
	(void)snprintf(path, sizeof(path), "%s/plans/a/plan.json", hf_state_path(hf_test_state()));
	(void)snprintf(other, sizeof(other), "%s/plans/b/plan.json", hf_state_path(hf_test_state()));
	/* another plan's */
	assert_int_equal(rename(other, path), 0);
	ASSERT_ERR(hf_plan_load(plans, "a", &r, ERR), HF_E_FORMAT);
	ASSERT_ERR(hf_plan_load(plans, "a", &r, ERR), HF_E_NO_PLAN);
	/* a symlink, a FIFO */
	assert_int_equal(symlink("/etc/passwd", path), 0);
	ASSERT_ERR(hf_plan_load(plans, "a", &r, ERR), HF_E_FORMAT);
	assert_int_equal(mkfifo(path, 0600), 0);
	ASSERT_ERR(hf_plan_load(plans, "a", &r, ERR), HF_E_FORMAT);
	ASSERT_ERR(hf_plan_load(plans, "a", &r, ERR), HF_E_NO_PLAN);
}

static void *add_many(void *arg)
{
	struct hf_plans *plans = arg;
	struct hf_plan_add_opts opts = { .size = sizeof(opts), .strategy = HF_STRATEGY_COPY,
					 .wait_ns = 30 * HF_SEC };
	struct hf_err err = HF_ERR_INIT;
	int added = 0;

	for (int i = 0; i < 24; i++) {
		char name[16], dir[512];

		(void)snprintf(name, sizeof(name), "s%d", i);
		(void)snprintf(dir, sizeof(dir), "%s/d%d", hf_test_dir(), i);
		int r = hf_plan_add(plans, "p", name, dir, &opts, NULL, &err);
		if (r == 0)
			added++;
		else if (r != HF_E_PLAN_STATE)
			return (void *)-1L;
	}
	return (void *)(intptr_t)added;
}

static void threads_add_each_sandbox_once_L11(void **state)
{
	AUTO(plans_done) struct hf_plans *plans = open_plans();
	AUTO(hf_plan_record_done) struct hf_plan_record r = HF_PLAN_RECORD_INIT;
	pthread_t threads[8];
	intptr_t sum = 0;

	(void)state;
	for (int i = 0; i < 24; i++) {
		char leaf[16];

		(void)snprintf(leaf, sizeof(leaf), "d%d", i);
		(void)make_dir(leaf);
	}
	ASSERT_OK(hf_plan_new(plans, "p", NULL, ERR));
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, add_many, plans), 0);
	for (int i = 0; i < 8; i++) {
		void *added;

		assert_int_equal(pthread_join(threads[i], &added), 0);
		assert_true((intptr_t)added >= 0);
		sum += (intptr_t)added;
	}
	assert_int_equal(sum, 24);
	ASSERT_OK(hf_plan_load(plans, "p", &r, ERR));
	assert_int_equal(r.n_sandboxes, 24);
}

/* -- power loss ---------------------------------------------------------------------- */

/* A plan with one overlay as it looks while its command runs, without a mount. */
static void make_entered(struct hf_plans *plans, const char *boot_id, int with_marker)
{
	AUTO(hf_plan_unlock) struct hf_lock *lock = NULL;
	AUTO(hf_plan_record_done) struct hf_plan_record r = HF_PLAN_RECORD_INIT;
	AUTO_FD plan_fd = -1;
	AUTO_FD sandbox = -1;
	struct hf_here here;

	ASSERT_OK(hf_here_read(&here, ERR));
	ASSERT_OK(hf_plan_new(plans, "p", NULL, ERR));
	ASSERT_OK(hf_plan_lock(plans, "p", 0, &lock, ERR));
	ASSERT_OK(hf_plan_load(plans, "p", &r, ERR));
	r.sandboxes = realloc(r.sandboxes, sizeof(*r.sandboxes));
	r.n_sandboxes = 1;
	r.state = HF_PLAN_ACTIVE;
	memset(r.sandboxes, 0, sizeof(*r.sandboxes));
	strcpy(r.sandboxes[0].name, "s");
	r.sandboxes[0].strategy = HF_STRATEGY_OVERLAY;
	ASSERT_OK(hf_target_resolve(make_dir("target"), &r.sandboxes[0].target, ERR));
	ASSERT_OK(hf_t0_take(&r.sandboxes[0].t0, ERR));
	r.sandboxes[0].entered = 1;
	strcpy(r.sandboxes[0].entered_boot, boot_id ? boot_id : here.boot_id);
	ASSERT_OK(hf_plan_save(plans, &r, hf_lock_token(lock), 0, ERR));
	ASSERT_OK(hf_plan_dir(plans, "p", 0, &plan_fd, ERR));
	ASSERT_OK(hf_sandbox_dir(plan_fd, "s", 1, &sandbox, ERR));
	assert_int_equal(mkdirat(sandbox, "u", 0755), 0);
	assert_int_equal(mkdirat(sandbox, "u/work", 0755), 0);
	assert_int_equal(mkdirat(sandbox, "w", 0700), 0);
	if (!with_marker)
		return;
	assert_int_equal(mkdirat(sandbox, "w/work", 0700), 0);
	assert_int_equal(mkdirat(sandbox, "w/work/incompat", 0700), 0);
	assert_int_equal(mkdirat(sandbox, "w/work/incompat/volatile", 0700), 0);
	AUTO_FD dirty = openat(sandbox, "w/work/incompat/volatile/dirty", O_CREAT | O_WRONLY, 0);
	assert_true(dirty >= 0);
	assert_int_equal(fchmodat(sandbox, "w/work/incompat/volatile", 0, 0), 0);
	assert_int_equal(fchmodat(sandbox, "w/work/incompat", 0, 0), 0);
	assert_int_equal(fchmodat(sandbox, "w/work", 0, 0), 0);
}

#define OTHER_BOOT "9f1c2a3b-0123-4567-89ab-0123456789ab"

static int settle(struct hf_plans *plans, struct hf_plan_record *ret)
{
	AUTO(hf_plan_unlock) struct hf_lock *lock = NULL;

	ASSERT_OK(hf_plan_lock(plans, "p", 0, &lock, ERR));
	ASSERT_OK(hf_plan_load(plans, "p", ret, ERR));
	return hf_plan_settle(plans, ret, hf_lock_token(lock), ERR);
}

static void count_sandboxes(void *arg, const struct hf_plan_info *info)
{
	*(struct hf_plan_info *)arg = *info;
}

static void a_sandbox_in_use_when_power_failed_is_errored_and_torn(void **state)
{
	AUTO(plans_done) struct hf_plans *plans = open_plans();
	AUTO(hf_plan_record_done) struct hf_plan_record r = HF_PLAN_RECORD_INIT, again = HF_PLAN_RECORD_INIT;
	char word[] = "true", *argv[] = { word, NULL };
	struct hf_plan_enter_opts opts = { .size = sizeof(opts), .argv = argv };
	struct hf_plan_commit_opts forced = { .size = sizeof(forced), .flags = HF_PLAN_COMMIT_TORN };
	struct hf_plan_entered entered;
	struct hf_plan_info info;

	(void)state;
	make_entered(plans, OTHER_BOOT, 1);
	ASSERT_OK(hf_plan_look(plans, "p", count_sandboxes, &info, ERR));
	assert_int_equal(info.in_use, 0);
	ASSERT_OK(settle(plans, &r));
	assert_int_equal(r.state, HF_PLAN_ERRORED);
	assert_int_equal(r.torn, 1);
	assert_non_null(strstr(r.reason, "may be torn"));
	assert_non_null(strstr(r.reason, "commit with --force or"));
	/* The verdict stays, is not given twice, and is in the way. */
	ASSERT_OK(settle(plans, &again));
	assert_int_equal(again.torn, 1);
	assert_string_equal(again.sandboxes[0].entered_boot, "");
	ASSERT_ERR(hf_plan_enter(plans, "p", &opts, &entered, ERR), HF_E_TORN);
	ASSERT_ERR(hf_plan_rm(plans, "p", 0, ERR), HF_E_DIRTY);
	ASSERT_ERR(hf_plan_commit(plans, "p", NULL, NULL, ERR), HF_E_TORN);
	ASSERT_OK(hf_plan_commit(plans, "p", &forced, NULL, ERR));
	ASSERT_OK(hf_plan_rm(plans, "p", 0, ERR));
}

static void the_verdict_torn_survives_a_crash_before_the_marker_is_gone_L10(void **state)
{
	AUTO(plans_done) struct hf_plans *plans = open_plans();

	(void)state;
	make_entered(plans, OTHER_BOOT, 1);
	/* Every call of settling fails in turn; the marker must not go before the verdict is written. */
	for (int n = 1, hit = 1; hit; n++) {
		AUTO(hf_plan_record_done) struct hf_plan_record r = HF_PLAN_RECORD_INIT, now = HF_PLAN_RECORD_INIT;
		AUTO(hf_plan_unlock) struct hf_lock *lock = NULL;
		AUTO_FD plan_fd = -1;
		AUTO_FD sandbox = -1;

		ASSERT_OK(hf_plan_lock(plans, "p", 0, &lock, ERR));
		ASSERT_OK(hf_plan_load(plans, "p", &r, ERR));
		hf_fault_arm(&(struct hf_fault){ .at = n, .error = EIO, .persist = 1 });
		(void)hf_plan_settle(plans, &r, hf_lock_token(lock), ERR);
		hit = hf_fault_hit();
		hf_fault_disarm();
		ASSERT_OK(hf_plan_load(plans, "p", &now, ERR));
		ASSERT_OK(hf_plan_dir(plans, "p", 0, &plan_fd, ERR));
		ASSERT_OK(hf_sandbox_dir(plan_fd, "s", 0, &sandbox, ERR));
		assert_true(now.torn || hf_sandbox_is_unsettled(sandbox));
	}
}

static void a_sandbox_of_this_boot_is_settled(void **state)
{
	AUTO(plans_done) struct hf_plans *plans = open_plans();
	AUTO(hf_plan_record_done) struct hf_plan_record r = HF_PLAN_RECORD_INIT;
	char path[4096];

	(void)state;
	make_entered(plans, NULL, 1);
	ASSERT_OK(settle(plans, &r));
	assert_int_equal(r.state, HF_PLAN_ACTIVE);
	assert_int_equal(r.torn, 0);
	assert_string_equal(r.sandboxes[0].entered_boot, "");
	(void)snprintf(path, sizeof(path), "%s/plans/p/s/s/w/work/incompat/volatile",
		       hf_state_path(hf_test_state()));
	assert_int_equal(access(path, F_OK), -1);
}

static void settled_before_the_power_cut_is_not_torn(void **state)
{
	AUTO(plans_done) struct hf_plans *plans = open_plans();
	AUTO(hf_plan_record_done) struct hf_plan_record r = HF_PLAN_RECORD_INIT;

	(void)state;
	make_entered(plans, OTHER_BOOT, 0);
	ASSERT_OK(settle(plans, &r));
	assert_int_equal(r.torn, 0);
	assert_int_equal(r.state, HF_PLAN_ACTIVE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HF_TEST(a_record_is_read_back_as_it_was_written),
		HF_TEST(no_damaged_record_is_believed_L12),
		HF_TEST(a_record_with_a_right_sum_and_a_wrong_content_is_refused_L12),
		HF_TEST(states_follow_each_other_as_the_header_says),
		HF_TEST(a_stale_token_saves_nothing_L5),
		HF_TEST(a_record_is_the_old_or_the_new_one_whatever_fails_L9),
		HF_TEST(a_foreign_or_damaged_record_is_put_away_L12),
		HF_TEST(threads_add_each_sandbox_once_L11),
		HF_TEST(a_sandbox_in_use_when_power_failed_is_errored_and_torn),
		HF_TEST(the_verdict_torn_survives_a_crash_before_the_marker_is_gone_L10),
		HF_TEST(a_sandbox_of_this_boot_is_settled),
		HF_TEST(settled_before_the_power_cut_is_not_torn),
	};

	return hf_run_tests("plan", tests);
}
