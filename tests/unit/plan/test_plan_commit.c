/* unit/plan/test_plan_commit.c - clocks, intents from hostile hands, fences and strangers after a crash. */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "helper/plan_helper.h"
#include "hf/plan/target/base.h"

/* -- T0 ---------------------------------------------------------------------------------------- */

static void a_clock_that_was_set_back_lowers_the_threshold(void **state)
{
	struct hf_t0 t0 = { .real_ns = 5000 * HF_SEC, .boot_ns = 100 * HF_SEC, .boot_id = "a" };
	struct hf_t0 now = { .real_ns = 5060 * HF_SEC, .boot_ns = 160 * HF_SEC, .boot_id = "a" };

	(void)state;
	assert_int_equal(hf_base_threshold(&t0, &now), t0.real_ns);
	/* Forwards does not matter: stamps only get later. */
	now.real_ns = 9000 * HF_SEC;
	assert_int_equal(hf_base_threshold(&t0, &now), t0.real_ns);
	/* Ten seconds back, and past T0 again: a change right after T0 may have been stamped ten before. */
	now.real_ns = 5050 * HF_SEC;
	assert_true(hf_base_threshold(&t0, &now) < t0.real_ns - 10 * HF_SEC);
	assert_true(hf_base_threshold(&t0, &now) > t0.real_ns - 11 * HF_SEC);
	/* An hour back: before T0, everything counts as changed. */
	now.real_ns = 1460 * HF_SEC;
	assert_true(hf_base_threshold(&t0, &now) == INT64_MIN);
	/* Another boot: only the wall clock is left. */
	now.boot_id[0] = 'b';
	assert_true(hf_base_threshold(&t0, &now) == INT64_MIN);
	now.real_ns = 6000 * HF_SEC;
	assert_int_equal(hf_base_threshold(&t0, &now), t0.real_ns);
}

static void no_change_after_T0_is_stamped_before_it(void **state)
{
	struct stat st;
	struct hf_t0 t0;

	(void)state;
	for (int i = 0; i < 5000; i++) {
		put(hf_test_path("f"), "before");
		ASSERT_OK(hf_t0_take(&t0, ERR));
		put(hf_test_path(i % 2 ? "f" : "g"), "after");
		assert_int_equal(stat(hf_test_path(i % 2 ? "f" : "g"), &st), 0);
		assert_true((int64_t)st.st_ctim.tv_sec * HF_SEC + st.st_ctim.tv_nsec >= t0.real_ns);
	}
}

/* -- a plan with one target of three files ---------------------------------------------------------- */

static void lay_out(void)
{
	struct hf_t0 t0;
	char target[512];

	snprintf(target, sizeof(target), "%s", hf_test_path("t"));
	make_dir(target);
	put(at("%s/a", target), "old a");
	put(at("%s/b", target), "old b");
	put(at("%s/c", target), "old c");
	ASSERT_OK(hf_plan_new(plans, "p", NULL, ERR));
	take_t0(&t0);
	add_by_hand("p", "s", target, &t0);
	put(at("%s/a", upper_of("p", "s")), "new a");
	put(at("%s/b", upper_of("p", "s")), "new b");
	put(at("%s/c", upper_of("p", "s")), "new c");
}

static const char *content(const char *path)
{
	static char text[4][64];
	static unsigned turn;
	char *to = text[turn++ % 4];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, to, 63);

	if (fd >= 0)
		close(fd);
	to[n < 0 ? 0 : n] = '\0';
	return to;
}

/* A commit that is killed at the nth call of that name. Returns 1 when it was. */
static int killed_commit(const char *call, int n, const struct hf_plan_commit_opts *opts)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct hf_state *own;

		if (hf_state_open(hf_test_path("state"), 0, &own, NULL) < 0 ||
		    hf_plans_open(own, NULL, &plans, NULL) < 0)
			_exit(9);
		hf_fault_arm(&(struct hf_fault){ .call = call, .at = n, .kill = 1 });
		_exit(hf_plan_commit(plans, "p", opts, NULL, NULL) < 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status);
}

/* Renames of a commit: the record before, the record, the intent, then one for each entry. */
#define RENAMES_BEFORE 3

static void a_stranger_after_a_crash_undoes_the_commit_and_is_kept_L10(void **state)
{
	(void)state;
	lay_out();
	/* a is exchanged, b and c are not. */
	assert_int_equal(killed_commit("renameat2", RENAMES_BEFORE + 2, NULL), 1);
	assert_string_equal(content(hf_test_path("t/a")), "new a");
	put(hf_test_path("t/x"), "mine");
	assert_int_equal(rename(hf_test_path("t/x"), hf_test_path("t/b")), 0);
	assert_int_equal(hf_plan_recover(plans, "p", 0, ERR), 1);
	assert_string_equal(content(hf_test_path("t/a")), "old a");
	assert_string_equal(content(hf_test_path("t/b")), "mine");
	assert_string_equal(content(hf_test_path("t/c")), "old c");
	assert_string_equal(content(at("%s/b", upper_of("p", "s"))), "new b");
	assert_int_equal(state_of("p"), HF_PLAN_ERRORED);
	assert_int_equal(events(HF_EV_PLAN_ERRORED), 1);
	assert_int_equal(hf_plan_recover(plans, "p", 0, ERR), 0);
}

/* What had landed and was changed by its owner afterwards is newer than the commit: it stays. */
static void a_change_on_top_of_a_crashed_commit_stays_and_the_rest_lands_L10(void **state)
{
	(void)state;
	lay_out();
	assert_int_equal(killed_commit("renameat2", RENAMES_BEFORE + 2, NULL), 1);
	put(hf_test_path("t/x"), "on top");
	assert_int_equal(rename(hf_test_path("t/x"), hf_test_path("t/a")), 0);
	assert_int_equal(hf_plan_recover(plans, "p", 0, ERR), 1);
	assert_string_equal(content(hf_test_path("t/a")), "on top");
	assert_string_equal(content(hf_test_path("t/b")), "new b");
	assert_string_equal(content(hf_test_path("t/c")), "new c");
	assert_int_equal(state_of("p"), HF_PLAN_COMMITTED);
}

static void a_promise_without_its_token_is_not_kept_L5(void **state)
{
	struct hf_lock_opts lock_opts = { .size = sizeof(lock_opts) };

	(void)state;
	for (int stale = 0; stale < 2; stale++) {
		struct hf_plan_fence fence = { .name = "build" };
		struct hf_plan_commit_opts opts = { .size = sizeof(opts), .fences = &fence, .n_fences = 1 };
		struct hf_lock *lock;

		lay_out();
		ASSERT_OK(hf_lock_acquire(plans->locks, "build", &lock_opts, &lock, NULL, ERR));
		fence.token = hf_lock_token(lock);
		/* Killed after the first sync, before the fence is proven under its guard. */
		assert_int_equal(killed_commit("syncfs", 1, &opts), 1);
		if (stale)
			ASSERT_OK(hf_lock_release(lock, ERR));
		assert_int_equal(hf_plan_recover(plans, "p", 0, ERR), 1);
		assert_string_equal(content(hf_test_path("t/a")), stale ? "old a" : "new a");
		assert_int_equal(state_of("p"), stale ? HF_PLAN_ACTIVE : HF_PLAN_COMMITTED);
		if (!stale)
			ASSERT_OK(hf_lock_release(lock, ERR));
		hf_lock_free(lock);
		remove_tree(at("%s/plans/p", hf_state_path(hf_test_state())));
		remove_tree(hf_test_path("t"));
	}
}

/* -- what recovery may rely on -------------------------------------------------------------------------- */

static struct hf_sys real;
static int synced;

static int note_sync(int fd)
{
	synced++;
	return real.syncfs(fd);
}

/* Entries of a target are exchanged; records are replaced. */
static int move_after_sync(int from, const char *from_name, int to, const char *to_name, unsigned flags)
{
	if (flags & RENAME_EXCHANGE)
		assert_true(synced > 0);
	return real.renameat2(from, from_name, to, to_name, flags);
}

static void recovery_syncs_what_was_not_before_it_moves_anything_L10(void **state)
{
	(void)state;
	lay_out();
	/* The intent is written, and what it is to bring is on no disk yet. */
	assert_int_equal(killed_commit("syncfs", 1, NULL), 1);
	real = hf_sys;
	synced = 0;
	hf_sys.syncfs = note_sync;
	hf_sys.renameat2 = move_after_sync;
	assert_int_equal(hf_plan_recover(plans, "p", 0, ERR), 1);
	hf_sys = real;
	assert_string_equal(content(hf_test_path("t/a")), "new a");
	assert_int_equal(state_of("p"), HF_PLAN_COMMITTED);
}

/* The intent of a killed commit as a power cut may leave it. */
static void rewrite_intent(enum hf_intent_phase phase, int stage_in_target)
{
	struct hf_intent intent = HF_INTENT_INIT;
	AUTO_FD plan_fd = -1;
	const char *why;

	ASSERT_OK(hf_plan_dir(plans, "p", 0, &plan_fd, ERR));
	ASSERT_OK(hf_intent_load(plan_fd, HF_INTENT, &intent, &why, ERR));
	snprintf(intent.boot_id, sizeof(intent.boot_id), "01234567-89ab-cdef-0123-456789abcdef");
	intent.phase = phase;
	intent.targets[0].in_target = stage_in_target;
	ASSERT_OK(hf_intent_write(plan_fd, &intent));
	hf_intent_done(&intent);
}

static void clear_up(void)
{
	remove_tree(at("%s/plans/p", hf_state_path(hf_test_state())));
	remove_tree(hf_test_path("t"));
}

static void an_intent_of_another_boot_whose_sync_had_not_ended_is_dropped_L10(void **state)
{
	(void)state;
	/* The second time the stage, on another file system, has not reached its disk at all. */
	for (int stage_is_missing = 0; stage_is_missing < 2; stage_is_missing++) {
		lay_out();
		assert_int_equal(killed_commit("syncfs", 1, NULL), 1);
		rewrite_intent(HF_INTENT_PREPARED, stage_is_missing);
		assert_int_equal(hf_plan_recover(plans, "p", 0, ERR), 1);
		assert_string_equal(content(hf_test_path("t/a")), "old a");
		assert_int_equal(state_of("p"), HF_PLAN_ACTIVE);
		assert_int_equal(hf_plan_recover(plans, "p", 0, ERR), 0);
		ASSERT_OK(hf_plan_commit(plans, "p", NULL, NULL, ERR));
		assert_string_equal(content(hf_test_path("t/a")), "new a");
		clear_up();
	}
}

static void an_intent_of_another_boot_that_had_begun_is_kept_L10(void **state)
{
	(void)state;
	lay_out();
	/* a has landed, and the phase was lost with the power. */
	assert_int_equal(killed_commit("renameat2", RENAMES_BEFORE + 2, NULL), 1);
	rewrite_intent(HF_INTENT_PREPARED, 0);
	assert_int_equal(hf_plan_recover(plans, "p", 0, ERR), 1);
	assert_string_equal(content(hf_test_path("t/c")), "new c");
	assert_int_equal(state_of("p"), HF_PLAN_COMMITTED);
}

static void recovery_says_that_all_is_done_before_it_ends_the_intent_L10(void **state)
{
	struct hf_intent intent = HF_INTENT_INIT;
	AUTO_FD plan_fd = -1;
	const char *why;

	(void)state;
	lay_out();
	assert_int_equal(killed_commit("renameat2", RENAMES_BEFORE + 2, NULL), 1);
	assert_int_equal(hf_plan_recover(plans, "p", 0, ERR), 1);
	ASSERT_OK(hf_plan_dir(plans, "p", 0, &plan_fd, ERR));
	ASSERT_OK(hf_intent_load(plan_fd, HF_INTENT_UNDO, &intent, &why, ERR));
	assert_int_equal(intent.phase, HF_INTENT_APPLIED);
	hf_intent_done(&intent);
}

/* The last sync of a commit fails, and the plan's lock is another's by then. */
static int lose_lock_at_second_sync(int fd)
{
	(void)fd;
	if (++synced < 2)
		return 0;
	if (synced == 2)
		assert_int_equal(hf_lock_break(hf_locks_kind(plans->locks, HF_LOCK_KIND_PLAN), "p", "test", NULL), 1);
	errno = EIO;
	return -1;
}

static void a_committer_that_lost_the_plans_lock_undoes_nothing_L5(void **state)
{
	(void)state;
	lay_out();
	real = hf_sys;
	synced = 0;
	hf_sys.syncfs = lose_lock_at_second_sync;
	assert_true(hf_plan_commit(plans, "p", NULL, NULL, NULL) < 0);
	hf_sys = real;
	assert_string_equal(content(hf_test_path("t/a")), "new a");
	assert_int_equal(hf_plan_recover(plans, "p", 0, ERR), 1);
	assert_string_equal(content(hf_test_path("t/c")), "new c");
	assert_int_equal(state_of("p"), HF_PLAN_COMMITTED);
}

/* -- records from hostile hands (trap 37) ------------------------------------------------------------ */

static void bytes_that_are_no_intent_are_put_away_and_touch_nothing_L12(void **state)
{
	int fd;

	(void)state;
	lay_out();
	fd = open(at("%s/plans/p/intent", hf_state_path(hf_test_state())), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "hfintent, or not", 16), 16);
	close(fd);
	ASSERT_OK(hf_plan_recover(plans, "p", 0, ERR));
	assert_string_equal(content(hf_test_path("t/a")), "old a");
	assert_int_equal(events(HF_EV_RECORD_QUARANTINED), 1);
	ASSERT_OK(hf_plan_commit(plans, "p", NULL, NULL, ERR));
}

static void an_intent_whose_paths_lead_out_is_refused_L12(void **state)
{
	static const char *const paths[] = { "../x", "a/../../x", "/etc/x", "a//b", "a/", ".", "a/.", "" };

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct hf_intent_target target = { .sandbox = "s", .path = "/t", .ino = 1, .stage_ino = 2 };
		struct hf_op op = { .kind = HF_OP_NEW, .new_mode = S_IFREG | 0644, .new_ino = 7,
				    .path = paths[i], .slot = "u/x", .attrs = "" };
		struct hf_intent intent = { .purpose = HF_INTENT_COMMIT, .token = 1, .targets = &target,
					    .n_targets = 1, .ops = &op, .n_ops = 1 };
		struct hf_intent found = HF_INTENT_INIT;
		struct hf_buf bytes = HF_BUF_INIT;
		const char *why;

		hf_intent_encode(&intent, &bytes);
		assert_int_equal(hf_intent_decode(bytes.s, bytes.len, &found, &why), HF_E_FORMAT);
		op.path = "fine";
		op.slot = paths[i];
		hf_buf_reset(&bytes);
		hf_intent_encode(&intent, &bytes);
		assert_int_equal(hf_intent_decode(bytes.s, bytes.len, &found, &why), HF_E_FORMAT);
		hf_buf_done(&bytes);
	}
}

static void an_intent_whose_target_makes_detours_is_refused_L12(void **state)
{
	static const char *const paths[] = { "/t/../etc", "/..", "/t/.", "//t", "/t//u", "/t/", "t", "../t", "" };

	(void)state;
	for (size_t i = 0; i <= sizeof(paths) / sizeof(paths[0]); i++) {
		int fine = i == sizeof(paths) / sizeof(paths[0]);
		struct hf_intent_target target = { .sandbox = "s", .path = fine ? "/t/u" : paths[i], .ino = 1, .stage_ino = 2 };
		struct hf_op op = { .kind = HF_OP_NEW, .new_mode = S_IFREG | 0644, .new_ino = 7,
				    .path = "x", .slot = "u/x", .attrs = "" };
		struct hf_intent intent = { .purpose = HF_INTENT_COMMIT, .token = 1, .targets = &target,
					    .n_targets = 1, .ops = &op, .n_ops = 1 };
		AUTO(hf_intent_done) struct hf_intent found = HF_INTENT_INIT;
		AUTO(hf_buf_done) struct hf_buf bytes = HF_BUF_INIT;
		const char *why;

		hf_intent_encode(&intent, &bytes);
		assert_int_equal(hf_intent_decode(bytes.s, bytes.len, &found, &why), fine ? 0 : HF_E_FORMAT);
	}
}

/* -- leases ----------------------------------------------------------------------------------------- */

static void a_lease_that_breaks_does_not_end_the_caller_L13(void **state)
{
	const char *path = hf_test_path("leased");
	struct timespec soon = { .tv_sec = 20 };
	sigset_t urgent, old;
	int fd;

	(void)state;
	put(path, "x");
	sigemptyset(&urgent);
	sigaddset(&urgent, SIGURG);
	assert_int_equal(pthread_sigmask(SIG_BLOCK, &urgent, &old), 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(hf_sys.set_lease(fd, F_RDLCK), 0);
	/* The kernel's default is SIGIO, whose default ends the process (trap 26). */
	assert_int_equal(open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC), -1);
	assert_int_equal(errno, EWOULDBLOCK);
	assert_int_equal(sigtimedwait(&urgent, NULL, &soon), SIGURG);
	assert_int_equal(hf_sys.set_lease(fd, F_UNLCK), 0);
	(void)close(fd);
	assert_int_equal(pthread_sigmask(SIG_SETMASK, &old, NULL), 0);
}

/* -- threads ------------------------------------------------------------------------------------------- */

static void *commit_thread(void *arg)
{
	struct hf_plan_commit_opts opts = { .size = sizeof(opts), .wait_ns = 60 * HF_SEC };
	struct hf_plan_report report;
	int r = hf_plan_commit(plans, "p", &opts, &report, NULL);

	hf_plan_report_done(&report);
	*(int *)arg = r < 0 ? -1 : !report.by_other;
	return NULL;
}

static void of_eight_threads_exactly_one_commits_L11(void **state)
{
	pthread_t threads[8];
	int won[8], sum = 0;

	(void)state;
	lay_out();
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, commit_thread, &won[i]), 0);
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	for (int i = 0; i < 8; i++) {
		assert_true(won[i] >= 0);
		sum += won[i];
	}
	assert_int_equal(sum, 1);
	assert_string_equal(content(hf_test_path("t/c")), "new c");
	assert_int_equal(events(HF_EV_PLAN_COMMITTED), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLAN_TEST(a_clock_that_was_set_back_lowers_the_threshold),
		PLAN_TEST(no_change_after_T0_is_stamped_before_it),
		PLAN_TEST(a_stranger_after_a_crash_undoes_the_commit_and_is_kept_L10),
		PLAN_TEST(a_change_on_top_of_a_crashed_commit_stays_and_the_rest_lands_L10),
		PLAN_TEST(a_promise_without_its_token_is_not_kept_L5),
		PLAN_TEST(recovery_syncs_what_was_not_before_it_moves_anything_L10),
		PLAN_TEST(an_intent_of_another_boot_whose_sync_had_not_ended_is_dropped_L10),
		PLAN_TEST(an_intent_of_another_boot_that_had_begun_is_kept_L10),
		PLAN_TEST(recovery_says_that_all_is_done_before_it_ends_the_intent_L10),
		PLAN_TEST(a_committer_that_lost_the_plans_lock_undoes_nothing_L5),
		PLAN_TEST(bytes_that_are_no_intent_are_put_away_and_touch_nothing_L12),
		PLAN_TEST(an_intent_whose_paths_lead_out_is_refused_L12),
		PLAN_TEST(an_intent_whose_target_makes_detours_is_refused_L12),
		PLAN_TEST(a_lease_that_breaks_does_not_end_the_caller_L13),
		PLAN_TEST(of_eight_threads_exactly_one_commits_L11),
	};

	return hf_run_tests("plan_commit", tests);
}
