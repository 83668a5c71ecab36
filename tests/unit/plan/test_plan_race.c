/*
 * unit/plan/test_plan_race.c - many commit one plan while others add sandboxes to it, and
 * make and remove plans beside it (L11).
 *
 * Eight processes or threads commit; one of them does it, and the set that lands is the set of the
 * record. The same rounds with a commit that gives the lock back once it has read the set
 * (wrong_commit.c) must show that race: else this test could not.
 */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "helper/plan_helper.h"
#include "hf/plan/target/target.h"
#include "unit/plan/wrong_commit.h"

#define COMMITTERS 8
#define ADDERS     3
#define REMOVERS   1
#define ACTORS     (COMMITTERS + ADDERS + REMOVERS)
#define ROUNDS     (getenv("HF_LONG") ? 100 : 6)

/* Shared with the processes of a round. */
static struct round {
	pthread_barrier_t start;
	pthread_barrier_t read, added; /* of the wrong commit: all have the set; one was added to it */
	int wrong;
	int result[ACTORS]; /* committers: 1 did it, 0 another did, < 0; adders: 0 or < 0 */
} *now;

static void lay_out(void)
{
	struct hf_t0 t0;
	char target[512];

	snprintf(target, sizeof(target), "%s", hf_test_path("t"));
	make_dir(target);
	put(at("%s/a", target), "old a");
	put(at("%s/b", target), "old b");
	make_dir(hf_test_path("more"));
	make_dir(hf_test_path("more/beside"));
	for (int i = 0; i < ADDERS; i++)
		make_dir(at("%s/%d", hf_test_path("more"), i));
	ASSERT_OK(hf_plan_new(plans, "p", NULL, ERR));
	take_t0(&t0);
	add_by_hand("p", "s", target, &t0);
	put(at("%s/a", upper_of("p", "s")), "new a");
	put(at("%s/b", upper_of("p", "s")), "new b");
}

static void clear_up(void)
{
	remove_tree(at("%s/plans/p", hf_state_path(hf_test_state())));
	remove_tree(hf_test_path("t"));
	remove_tree(hf_test_path("more"));
}

/* -- the actors ---------------------------------------------------------------------------------- */

static void all_have_read(void)
{
	(void)pthread_barrier_wait(&now->read);
	(void)pthread_barrier_wait(&now->added);
}

static int commit(struct hf_plans *own)
{
	struct hf_plan_commit_opts opts = { .size = sizeof(opts), .wait_ns = 300 * HF_SEC };
	struct hf_plan_report report;
	int r = now->wrong ? wrong_plan_commit(own, "p", &opts, &report, NULL)
			   : hf_plan_commit(own, "p", &opts, &report, NULL);

	hf_plan_report_done(&report);
	return r < 0 ? r : !report.by_other;
}

static int add(struct hf_plans *own, int number)
{
	struct hf_plan_add_opts opts = { .size = sizeof(opts), .strategy = HF_STRATEGY_COPY,
					 .wait_ns = 300 * HF_SEC };
	char sandbox[16], dir[600];
	int r;

	snprintf(sandbox, sizeof(sandbox), "more%d", number);
	snprintf(dir, sizeof(dir), "%s/%d", hf_test_path("more"), number);
	if (now->wrong)
		(void)pthread_barrier_wait(&now->read);
	r = hf_plan_add(own, "p", sandbox, dir, &opts, NULL, NULL);
	if (now->wrong)
		(void)pthread_barrier_wait(&now->added);
	return r;
}

/* Another plan, over another target, is in nobody's way. */
static int make_and_remove(struct hf_plans *own)
{
	struct hf_plan_add_opts opts = { .size = sizeof(opts), .strategy = HF_STRATEGY_COPY };
	char dir[600];
	int r = 0;

	snprintf(dir, sizeof(dir), "%s/beside", hf_test_path("more"));
	for (int i = 0; r == 0 && i < 3; i++) {
		r = hf_plan_new(own, "q", NULL, NULL);
		if (r == 0)
			r = hf_plan_add(own, "q", "s", dir, &opts, NULL, NULL);
		if (r == 0)
			r = hf_plan_rm(own, "q", HF_PLAN_RM_DISCARD, NULL);
	}
	return r;
}

static int act(struct hf_plans *own, int me)
{
	(void)pthread_barrier_wait(&now->start);
	if (me < COMMITTERS)
		return commit(own);
	if (me < COMMITTERS + ADDERS)
		return add(own, me - COMMITTERS);
	return make_and_remove(own);
}

static void *thread(void *arg)
{
	int me = (int)(intptr_t)arg;

	now->result[me] = act(plans, me);
	return NULL;
}

static void run_threads(void)
{
	pthread_t threads[ACTORS];

	for (int i = 0; i < ACTORS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, thread, (void *)(intptr_t)i), 0);
	for (int i = 0; i < ACTORS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static void run_processes(void)
{
	pid_t pids[ACTORS];
	int status;

	for (int i = 0; i < ACTORS; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			struct hf_journal *own_journal;
			struct hf_state *own_state;

			if (hf_state_open(hf_test_path("state"), 0, &own_state, NULL) < 0 ||
			    hf_journal_open(own_state, NULL, &own_journal, NULL) < 0 ||
			    hf_plans_open(own_state, own_journal, &plans, NULL) < 0)
				_exit(9);
			now->result[i] = act(plans, i);
			_exit(0);
		}
		assert_true(pids[i] > 0);
	}
	for (int i = 0; i < ACTORS; i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
}

/* -- what must hold --------------------------------------------------------------------------------- */

static int is(const char *path, const char *text)
{
	char found[64] = "";
	AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd >= 0 && read(fd, found, sizeof(found) - 1) >= 0 && strcmp(found, text) == 0;
}

/* What is wrong after a round, or NULL. */
static const char *find_wrong(int committed_before)
{
	AUTO(hf_plan_record_done) struct hf_plan_record record = HF_PLAN_RECORD_INIT;
	int did = 0, failed = 0;

	for (int i = 0; i < COMMITTERS; i++) {
		did += now->result[i] == 1;
		failed += now->result[i] < 0;
	}
	if (hf_plan_load(plans, "p", &record, NULL) < 0)
		return "there is no record";
	for (int i = 0; i < ADDERS; i++) {
		char name[16];

		snprintf(name, sizeof(name), "more%d", i);
		if ((now->result[COMMITTERS + i] == 0) != (hf_plan_sandbox(&record, name) != NULL))
			return "a sandbox that was added is not in the set, or one that was refused is";
	}
	if (did != 1 || failed)
		return "not exactly one has committed, or one was told that it failed";
	if (record.state != HF_PLAN_COMMITTED || !is(hf_test_path("t/a"), "new a") ||
	    !is(hf_test_path("t/b"), "new b"))
		return "the targets or the record are not those of a commit";
	if (events(HF_EV_PLAN_COMMITTED) - committed_before != 1)
		return "not exactly one event";
	return now->result[ACTORS - 1] ? "a plan beside it was not made or removed" : NULL;
}

/* How many of the rounds went wrong. */
static int rounds(void (*run)(void), int wrong, int n)
{
	pthread_barrierattr_t shared;
	int bad = 0;

	now = mmap(NULL, sizeof(*now), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(now != MAP_FAILED);
	wrong_commit_unlocked = all_have_read;
	assert_int_equal(pthread_barrierattr_init(&shared), 0);
	assert_int_equal(pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED), 0);
	for (int i = 0; i < n; i++) {
		int before = events(HF_EV_PLAN_COMMITTED);
		const char *why;

		memset(now, 0, sizeof(*now));
		now->wrong = wrong;
		assert_int_equal(pthread_barrier_init(&now->start, &shared, ACTORS), 0);
		assert_int_equal(pthread_barrier_init(&now->read, &shared, COMMITTERS + ADDERS), 0);
		assert_int_equal(pthread_barrier_init(&now->added, &shared, COMMITTERS + ADDERS), 0);
		lay_out();
		run();
		why = find_wrong(before);
		if (why)
			print_message("# round %d%s: %s\n", i, wrong ? ", as it must be" : "", why);
		bad += why != NULL;
		clear_up();
	}
	(void)munmap(now, sizeof(*now));
	return bad;
}

static void of_eight_processes_beside_adders_exactly_one_commits_L11(void **state)
{
	(void)state;
	assert_int_equal(rounds(run_processes, 0, ROUNDS), 0);
}

static void of_eight_threads_beside_adders_exactly_one_commits_L11(void **state)
{
	(void)state;
	assert_int_equal(rounds(run_threads, 0, ROUNDS), 0);
}

static void a_lock_given_back_after_the_set_is_read_is_found_among_processes_L11(void **state)
{
	(void)state;
	assert_int_equal(rounds(run_processes, 1, 3), 3);
}

static void a_lock_given_back_after_the_set_is_read_is_found_among_threads_L11(void **state)
{
	(void)state;
	assert_int_equal(rounds(run_threads, 1, 3), 3);
}

/* -- a command that joins another, which ends ------------------------------------------------------- */

static struct {
	int (*openat)(int dirfd, const char *path, int flags, mode_t mode);
	int hold[2]; /* the first command ends when the other end is closed */
	pid_t first; /* 0: it has ended */
} joining;

static void end_first(void)
{
	close(joining.hold[1]);
	assert_int_equal(waitpid(joining.first, NULL, 0), joining.first);
	joining.first = 0;
}

/* The namespaces of the first one have just been opened: it ends, and with it all that looks after the sandbox. */
static int open_and_end_first(int dirfd, const char *path, int flags, mode_t mode)
{
	int fd = joining.openat(dirfd, path, flags, mode);

	if (joining.first > 0 && strstr(path, "/ns/mnt"))
		end_first();
	return fd;
}

/* Returns when its command is inside. */
static pid_t enter_first(char *const *argv)
{
	struct hf_plan_enter_opts opts = { .size = sizeof(opts), .argv = argv };
	struct hf_plan_entered entered;
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		struct hf_state *own;

		close(joining.hold[1]);
		dup2(joining.hold[0], 0);
		dup2(ready[1], 1);
		if (hf_state_open(hf_test_path("state"), 0, &own, NULL) < 0 || hf_plans_open(own, NULL, &plans, NULL) < 0)
			_exit(9);
		_exit(hf_plan_enter(plans, "p", &opts, &entered, NULL) < 0);
	}
	assert_true(pid > 0);
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void a_command_that_joins_one_that_ends_keeps_the_sandbox_unsettled(void **state)
{
	char work[512], target[512], sh[] = "sh", c[] = "-c", waits[] = "echo; exec cat";
	char looks[] = "chmod 700 \"$0\" \"$0/incompat\" && test -d \"$0/incompat/volatile\"";
	char *first[] = { sh, c, waits, NULL }, *second[] = { sh, c, looks, work, NULL };
	struct hf_plan_enter_opts opts = { .size = sizeof(opts), .argv = second, .wait_ns = -1 };
	struct hf_plan_add_opts add_opts = { .size = sizeof(add_opts), .strategy = HF_STRATEGY_OVERLAY };
	struct hf_plan_entered entered = { 0 };

	(void)state;
	snprintf(target, sizeof(target), "%s", hf_test_path("t"));
	snprintf(work, sizeof(work), "%s/plans/p/s/s/w/work", hf_state_path(hf_test_state()));
	make_dir(target);
	ASSERT_OK(hf_plan_new(plans, "p", NULL, ERR));
	if (hf_plan_add(plans, "p", "s", target, &add_opts, NULL, NULL) < 0)
		HF_SKIP("there is no overlay here");
	assert_int_equal(pipe2(joining.hold, O_CLOEXEC), 0);
	joining.first = enter_first(first);
	joining.openat = hf_sys.openat;
	hf_sys.openat = open_and_end_first;
	ASSERT_OK(hf_plan_enter(plans, "p", &opts, &entered, ERR));
	hf_sys.openat = joining.openat;
	assert_int_equal(joining.first, 0);
	close(joining.hold[0]);
	assert_true(entered.flags & HF_ENTERED_JOINED);
	/* The marker was there while it ran, and is not any more. */
	assert_int_equal(entered.exit_status, 0);
	assert_int_equal(access(at("%s/incompat/volatile", work), F_OK), -1);
}

/* -- another plan commits to the target ------------------------------------------------------------- */

/* A process that has the target's lock until `hold` is closed. */
static pid_t hold_target(const char *target, int hold[2])
{
	struct hf_lock_opts opts = { .size = sizeof(opts) };
	struct hf_target found = { 0 };
	char name[HF_NAME_MAX + 1], byte;
	int ready[2];
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		struct hf_lock *lock;
		struct hf_state *own;

		close(hold[1]);
		if (hf_state_open(hf_test_path("state"), 0, &own, NULL) < 0 || hf_plans_open(own, NULL, &plans, NULL) < 0 ||
		    hf_target_resolve(target, &found, NULL) < 0)
			_exit(9);
		hf_target_lock_name(&found, name);
		if (hf_lock_acquire(hf_locks_kind(plans->locks, HF_LOCK_KIND_TARGET), name, &opts, &lock, NULL, NULL) < 0)
			_exit(8);
		(void)!write(ready[1], "", 1);
		(void)!read(hold[0], &byte, 1);
		_exit(0);
	}
	assert_true(pid > 0);
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void a_commit_waits_for_another_to_its_target_as_long_as_it_was_told(void **state)
{
	struct hf_plan_commit_opts opts = { .size = sizeof(opts), .wait_ns = 20 * HF_MSEC };
	struct hf_err err = HF_ERR_INIT;
	struct hf_t0 t0;
	char target[512];
	int hold[2];
	pid_t pid;

	(void)state;
	snprintf(target, sizeof(target), "%s", hf_test_path("t"));
	make_dir(target);
	put(at("%s/a", target), "old");
	ASSERT_OK(hf_plan_new(plans, "p", NULL, ERR));
	take_t0(&t0);
	add_by_hand("p", "s", target, &t0);
	put(at("%s/a", upper_of("p", "s")), "new");
	assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
	pid = hold_target(target, hold);
	assert_int_equal(hf_plan_commit(plans, "p", &opts, NULL, &err), HF_E_TIMEOUT);
	assert_non_null(strstr(err.subject, target));
	close(hold[1]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(hold[0]);
	ASSERT_OK(hf_plan_commit(plans, "p", &opts, NULL, ERR));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLAN_TEST(of_eight_processes_beside_adders_exactly_one_commits_L11),
		PLAN_TEST(of_eight_threads_beside_adders_exactly_one_commits_L11),
		PLAN_TEST(a_lock_given_back_after_the_set_is_read_is_found_among_processes_L11),
		PLAN_TEST(a_lock_given_back_after_the_set_is_read_is_found_among_threads_L11),
		PLAN_TEST(a_commit_waits_for_another_to_its_target_as_long_as_it_was_told),
		PLAN_TEST(a_command_that_joins_one_that_ends_keeps_the_sandbox_unsettled),
	};

	return hf_run_tests("plan_race", tests);
}
