/* unit/plan/test_plan_lost.c - a record whose content a power cut has taken, and the one before it. */
#include <sys/wait.h>

#include "helper/plan_helper.h"

static const char *record_of(const char *name)
{
	return at("%s/plans/p/%s", hf_state_path(hf_test_state()), name);
}

static int is_there(const char *name)
{
	return access(record_of(name), F_OK) == 0;
}

/* What file systems leave of a file that was renamed and not synced. */
enum loss { EMPTY, HALF, ZEROES, LOSSES };

static void lose(const char *name, enum loss loss)
{
	const char *path = record_of(name);
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size > 10);
	assert_int_equal(truncate(path, loss == HALF ? st.st_size / 2 : 0), 0);
	if (loss == ZEROES)
		assert_int_equal(truncate(path, st.st_size), 0);
}

static void lay_out(void)
{
	struct hf_t0 t0;
	char target[512];

	snprintf(target, sizeof(target), "%s", hf_test_path("t"));
	make_dir(target);
	put(at("%s/a", target), "old a");
	ASSERT_OK(hf_plan_new(plans, "p", NULL, ERR));
	take_t0(&t0);
	add_by_hand("p", "s", target, &t0);
	put(at("%s/a", upper_of("p", "s")), "new a");
}

static void clear(void)
{
	remove_tree(at("%s/plans/p", hf_state_path(hf_test_state())));
	remove_tree(hf_test_path("t"));
}

static int has(const char *text)
{
	char found[64] = "";
	int fd = open(hf_test_path("t/a"), O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, found, sizeof(found) - 1);

	if (fd >= 0)
		close(fd);
	return n >= 0 && strcmp(found, text) == 0;
}

static void a_lost_record_of_a_commit_is_found_again_L10(void **state)
{
	(void)state;
	for (int loss = 0; loss < LOSSES; loss++) {
		int before = events(HF_EV_RECORD_QUARANTINED);

		lay_out();
		ASSERT_OK(hf_plan_commit(plans, "p", NULL, NULL, ERR));
		lose("plan.json", (enum loss)loss);
		assert_int_equal(state_of("p"), HF_PLAN_PREPARED);
		assert_int_equal(events(HF_EV_RECORD_QUARANTINED), before + 1);
		assert_int_equal(hf_plan_recover(plans, "p", 0, ERR), 1);
		assert_int_equal(state_of("p"), HF_PLAN_COMMITTED);
		assert_true(has("new a"));
		/* And the commit can be taken back as if nothing had been. */
		ASSERT_OK(hf_plan_undo(plans, "p", NULL, NULL, ERR));
		assert_true(has("old a"));
		lose("plan.json", (enum loss)loss);
		assert_int_equal(hf_plan_recover(plans, "p", 0, ERR), 1);
		assert_int_equal(state_of("p"), HF_PLAN_ROLLED_BACK);
		assert_true(has("old a"));
		clear();
	}
}

/* Killed at sync `n`: the intent is written. With the first, the record PREPARED is not on disk. */
static void die_in_commit(int n)
{
	pid_t pid = fork();

	if (pid == 0) {
		struct hf_state *own;

		if (hf_state_open(hf_test_path("state"), 0, &own, NULL) < 0 ||
		    hf_plans_open(own, NULL, &plans, NULL) < 0)
			_exit(9);
		hf_fault_arm(&(struct hf_fault){ .call = "syncfs", .at = n, .kill = 1 });
		_exit(hf_plan_commit(plans, "p", NULL, NULL, NULL) < 0);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void a_lost_record_of_a_commit_that_died_is_found_again_L10(void **state)
{
	(void)state;
	for (int loss = 0; loss < LOSSES; loss++)
		for (int n = 1; n <= 2; n++) {
			lay_out();
			die_in_commit(n);
			lose("plan.json", (enum loss)loss);
			assert_int_equal(hf_plan_recover(plans, "p", 0, ERR), 1);
			assert_int_equal(state_of("p"), HF_PLAN_COMMITTED);
			assert_true(has("new a"));
			clear();
		}
}

static void a_sandbox_in_use_when_its_record_was_lost_may_be_torn(void **state)
{
	(void)state;
	lay_out();
	/* As an enter that never came back leaves it, with the kernel's marker. */
	for (size_t i = 0; i < 4; i++) {
		static const char *const dirs[] = { "w", "w/work", "w/work/incompat", "w/work/incompat/volatile" };

		make_dir(at("%s/../%s", upper_of("p", "s"), dirs[i]));
	}
	/* The record that said "entered" is lost, the one of adding the sandbox is not. */
	assert_int_equal(rename(record_of("plan.json"), record_of("plan.before")), 0);
	put(record_of("plan.json"), "");
	assert_int_equal(chmod(record_of("plan.json"), 0600), 0);
	assert_int_equal(hf_plan_commit(plans, "p", NULL, NULL, ERR), HF_E_TORN);
	assert_int_equal(state_of("p"), HF_PLAN_ERRORED);
	assert_true(has("old a"));
}

static void a_record_is_never_missing_for_a_reader(void **state)
{
	(void)state;
	lay_out();
	/* As a writer that was killed between its two renames leaves it. */
	remove_tree(record_of("plan.before"));
	assert_int_equal(rename(record_of("plan.json"), record_of("plan.before")), 0);
	assert_int_equal(state_of("p"), HF_PLAN_ACTIVE);
	ASSERT_OK(hf_plan_commit(plans, "p", NULL, NULL, ERR));
	assert_int_equal(state_of("p"), HF_PLAN_COMMITTED);
	assert_true(has("new a"));
}

/* Entered, settled and prepared within seconds: no sync has carried the last two records. */
static void two_lost_records_are_replaced_by_the_one_that_a_sync_carried_L10(void **state)
{
	(void)state;
	for (int loss = 0; loss < LOSSES; loss++) {
		AUTO(hf_plan_record_done) struct hf_plan_record record = HF_PLAN_RECORD_INIT;

		lay_out();
		ASSERT_OK(hf_plan_load(plans, "p", &record, ERR));
		ASSERT_OK(hf_plan_save_guarded(plans, &record, HF_PLAN_SAVE_OVER_SYNCED, ERR));
		die_in_commit(1);
		lose("plan.json", (enum loss)loss);
		remove_tree(record_of("plan.before"));
		put(record_of("plan.before"), "");
		assert_int_equal(chmod(record_of("plan.before"), 0600), 0);
		/* The intent is there, which that record does not know of. */
		assert_int_equal(state_of("p"), HF_PLAN_PREPARED);
		assert_int_equal(hf_plan_recover(plans, "p", 0, ERR), 1);
		assert_int_equal(state_of("p"), HF_PLAN_COMMITTED);
		assert_true(has("new a"));
		clear();
	}
}

static void a_record_that_no_sync_carried_does_not_replace_one_that_is_on_disk(void **state)
{
	AUTO(hf_plan_record_done) struct hf_plan_record record = HF_PLAN_RECORD_INIT;

	(void)state;
	lay_out();
	ASSERT_OK(hf_plan_commit(plans, "p", NULL, NULL, ERR));
	/* COMMITTED came after a sync: PREPARED is the one that is surely on disk. */
	assert_true(is_there("plan.synced"));
	assert_false(is_there("plan.before"));
	ASSERT_OK(hf_plan_load(plans, "p", &record, ERR));
	for (int i = 0; i < 2; i++)
		ASSERT_OK(hf_plan_save_guarded(plans, &record, 0, ERR));
	assert_true(is_there("plan.synced") && is_there("plan.before"));
	ASSERT_OK(hf_plan_save_guarded(plans, &record, HF_PLAN_SAVE_OVER_SYNCED, ERR));
	assert_true(is_there("plan.synced"));
	assert_false(is_there("plan.before"));
	ASSERT_OK(hf_plan_save_guarded(plans, &record, HF_PLAN_SAVE_DURABLE, ERR));
	assert_false(is_there("plan.synced"));
}

static void all_records_lost_are_an_error_and_touch_nothing_L12(void **state)
{
	(void)state;
	lay_out();
	ASSERT_OK(hf_plan_commit(plans, "p", NULL, NULL, ERR));
	lose("plan.json", EMPTY);
	lose("plan.synced", ZEROES);
	assert_int_equal(hf_plan_commit(plans, "p", NULL, NULL, ERR), HF_E_FORMAT);
	assert_true(has("new a"));
}

static void a_removal_leaves_no_record_of_before(void **state)
{
	(void)state;
	for (int n = 1; n < 200; n++) {
		pid_t pid;
		int status;

		lay_out();
		ASSERT_OK(hf_plan_commit(plans, "p", NULL, NULL, ERR));
		pid = fork();
		if (pid == 0) {
			struct hf_state *own;

			if (hf_state_open(hf_test_path("state"), 0, &own, NULL) < 0 ||
			    hf_plans_open(own, NULL, &plans, NULL) < 0)
				_exit(9);
			hf_fault_arm(&(struct hf_fault){ .at = n, .kill = 1, .mutating = 1 });
			_exit(hf_plan_rm(plans, "p", 0, NULL) < 0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		/* Where sandboxes are gone the plan is CLEANED or has no record at all. */
		if (!is_there("s/s/u") && (is_there("plan.json") || is_there("plan.before") || is_there("plan.synced")))
			assert_int_equal(state_of("p"), HF_PLAN_CLEANED);
		clear();
		if (WIFEXITED(status))
			return;
	}
	fail();
}

/* -- a copy whose files had not all reached the disk ------------------------------------------------------ */

static int (*real_fstatat)(int dirfd, const char *path, struct stat *st, int flags);
static ino_t emptied;

/* The inode as a file system has it that wrote its times and not its content. */
static int fstatat_of_emptied(int dirfd, const char *path, struct stat *st, int flags)
{
	int r = real_fstatat(dirfd, path, st, flags);

	if (r == 0 && st->st_ino == emptied)
		st->st_size = 0;
	return r;
}

/* How many entries of the plan land, and of what boot it is. */
static uint64_t land_copy(const char *boot_id)
{
	AUTO(hf_plan_record_done) struct hf_plan_record record = HF_PLAN_RECORD_INIT;
	struct hf_plan_add_opts opts = { .size = sizeof(opts), .strategy = HF_STRATEGY_COPY };
	struct hf_plan_report report;
	struct stat st;
	uint64_t landed;

	make_dir(hf_test_path("t"));
	put(hf_test_path("t/a"), "old a");
	put(hf_test_path("t/b"), "old b");
	ASSERT_OK(hf_plan_new(plans, "p", NULL, ERR));
	ASSERT_OK(hf_plan_add(plans, "p", "s", hf_test_path("t"), &opts, NULL, ERR));
	put(record_of("s/s/c/b"), "new b");
	assert_int_equal(stat(record_of("s/s/c/a"), &st), 0);
	emptied = st.st_ino;
	ASSERT_OK(hf_plan_load(plans, "p", &record, ERR));
	if (boot_id)
		snprintf(record.sandboxes[0].t0.boot_id, sizeof(record.sandboxes[0].t0.boot_id), "%s", boot_id);
	ASSERT_OK(hf_plan_save_guarded(plans, &record, HF_PLAN_SAVE_DURABLE, ERR));
	real_fstatat = hf_sys.fstatat;
	hf_sys.fstatat = fstatat_of_emptied;
	ASSERT_OK(hf_plan_commit(plans, "p", NULL, &report, ERR));
	hf_sys.fstatat = real_fstatat;
	landed = report.changed;
	hf_plan_report_done(&report);
	clear();
	return landed;
}

static void a_copy_that_lost_content_in_a_power_cut_does_not_land_it_L10(void **state)
{
	(void)state;
	/* In this boot it is a change like any other. */
	assert_int_equal(land_copy(NULL), 2);
	assert_int_equal(land_copy("01234567-89ab-4cde-8f01-23456789abcd"), 1);
}

/* -- a stage in a target on another disk, which keeps no common order with that of its mark ------------ */

static int (*real_syncfs)(int fd);
static int marks_at_sync;

static int note_mark(int fd)
{
	marks_at_sync += is_there("staged");
	return real_syncfs(fd);
}

static void lay_stage(void)
{
	make_dir(hf_test_path("t/.holdfast-p"));
	put(hf_test_path("t/.holdfast-p/0"), "old");
}

static int has_stage(void)
{
	return access(hf_test_path("t/.holdfast-p"), F_OK) == 0;
}

static void the_mark_of_a_stage_outlives_it_until_that_is_on_disk_L10(void **state)
{
	(void)state;
	lay_out();
	put(record_of("staged"), "");
	real_syncfs = hf_sys.syncfs;
	hf_sys.syncfs = note_mark;
	marks_at_sync = 0;
	/* The removal of the stage is lost with the power as often as it likes. */
	for (int i = 0; i < 3; i++) {
		lay_stage();
		ASSERT_OK(hf_plan_recover(plans, "p", 0, ERR));
		assert_false(has_stage());
		assert_true(is_there("staged"));
	}
	assert_int_equal(marks_at_sync, 0);
	ASSERT_OK(hf_plan_recover(plans, "p", 0, ERR));
	assert_false(is_there("staged"));
	assert_int_equal(marks_at_sync, 1);
}

/* Not mounted, or no descriptor left for it: the stage is removed when the target can be opened again. */
static void a_stage_in_a_target_that_was_away_is_removed_later_L10(void **state)
{
	(void)state;
	lay_out();
	lay_stage();
	put(record_of("staged"), "");
	assert_int_equal(rename(hf_test_path("t"), hf_test_path("away")), 0);
	ASSERT_OK(hf_plan_recover(plans, "p", 0, ERR));
	assert_int_equal(rename(hf_test_path("away"), hf_test_path("t")), 0);
	hf_fault_arm(&(struct hf_fault){ .call = "openat2", .at = 1, .error = EMFILE, .persist = 1 });
	(void)!hf_plan_recover(plans, "p", 0, ERR);
	hf_fault_disarm();
	assert_true(has_stage());
	ASSERT_OK(hf_plan_recover(plans, "p", 0, ERR));
	assert_false(has_stage());
}

static void a_removed_plan_leaves_no_stage_marked_or_not(void **state)
{
	(void)state;
	for (int marked = 0; marked < 2; marked++) {
		lay_out();
		lay_stage();
		if (marked)
			put(record_of("staged"), "");
		ASSERT_OK(hf_plan_rm(plans, "p", HF_PLAN_RM_DISCARD, ERR));
		assert_false(has_stage());
		assert_true(has("old a"));
		clear();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLAN_TEST(a_lost_record_of_a_commit_is_found_again_L10),
		PLAN_TEST(a_lost_record_of_a_commit_that_died_is_found_again_L10),
		PLAN_TEST(a_sandbox_in_use_when_its_record_was_lost_may_be_torn),
		PLAN_TEST(a_record_is_never_missing_for_a_reader),
		PLAN_TEST(two_lost_records_are_replaced_by_the_one_that_a_sync_carried_L10),
		PLAN_TEST(a_record_that_no_sync_carried_does_not_replace_one_that_is_on_disk),
		PLAN_TEST(all_records_lost_are_an_error_and_touch_nothing_L12),
		PLAN_TEST(a_removal_leaves_no_record_of_before),
		PLAN_TEST(a_copy_that_lost_content_in_a_power_cut_does_not_land_it_L10),
		PLAN_TEST(the_mark_of_a_stage_outlives_it_until_that_is_on_disk_L10),
		PLAN_TEST(a_stage_in_a_target_that_was_away_is_removed_later_L10),
		PLAN_TEST(a_removed_plan_leaves_no_stage_marked_or_not),
	};

	return hf_run_tests("plan_lost", tests);
}
