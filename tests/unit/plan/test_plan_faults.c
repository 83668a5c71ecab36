/*
 * unit/plan/test_plan_faults.c - every system call of a commit, an undo, a rollback and a recovery fails, or
 * is the last one that its process makes.
 *
 * Three targets, one of them on another file system, with new, changed and deleted entries, a
 * type change, a replaced directory, modes, attributes, hard links and a git directory. After a failure all
 * of them are old; after a death and recovery all old or all new (L10), and the record says which.
 *
 * Each call fails with one of the errors in turn. HF_LONG: calls that change something fail with every error, those that
 * only read with one of them, and recovery is disturbed after more of the calls.
 */
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "helper/plan_helper.h"

#define CALLS_MOST 6000

static const int errors[] = { EIO, ENOSPC, EACCES, EDQUOT, ENOMEM, EROFS, EPERM, EMFILE, EINTR, ENFILE, EBUSY };
#define ERRORS (sizeof(errors) / sizeof(errors[0]))

static char other[64]; /* a directory on another file system, or "" */
static char *before, *after;

/* What a sync does is not seen by other processes: only that it is asked for. */
static int syncs;

static int count_sync(int fd)
{
	(void)fd;
	syncs++;
	return 0;
}

static int elsewhere; /* the third target is on the other file system: no undo for that */

static const char *target(int i)
{
	return i == 2 && elsewhere ? other : hf_test_path(i == 0 ? "t0" : i == 1 ? "t1" : "t2");
}

/* A tree with everything that a sandbox can change. */
static void lay_target(const char *t, int git)
{
	make_dir(t);
	make_dir(at("%s/d", t));
	make_dir(at("%s/gone", t));
	make_dir(at("%s/gone/deep", t));
	make_dir(at("%s/replaced", t));
	make_dir(at("%s/closed", t));
	put(at("%s/d/changed", t), "old");
	put(at("%s/d/kept", t), "kept");
	put(at("%s/deleted", t), "deleted");
	put(at("%s/gone/deep/f", t), "gone");
	put(at("%s/replaced/old", t), "old");
	put(at("%s/type", t), "a file");
	assert_int_equal(symlink("d/kept", at("%s/link", t)), 0);
	if (!git)
		return;
	make_dir(at("%s/.git", t));
	put(at("%s/.git/HEAD", t), "ref: old");
	put(at("%s/.git/index", t), "old index");
}

static void lay_upper(const char *u, int git)
{
	make_dir(at("%s/d", u));
	mark(at("%s/d", u), "user.overlay.origin", "");
	put(at("%s/d/changed", u), "new content");
	mark(at("%s/d/changed", u), "user.overlay.origin", "");
	mark(at("%s/d/changed", u), "user.overlay.overlay.mine", "1");
	put(at("%s/d/added", u), "added");
	assert_int_equal(link(at("%s/d/added", u), at("%s/d/added2", u)), 0);
	assert_int_equal(chmod(at("%s/d", u), 0700), 0);
	mark(at("%s/d", u), "user.note", "seen");
	whiteout(at("%s/deleted", u));
	whiteout(at("%s/gone", u));
	make_dir(at("%s/replaced", u));
	mark(at("%s/replaced", u), "user.overlay.opaque", "y");
	put(at("%s/replaced/new", u), "new");
	make_dir(at("%s/type", u));
	put(at("%s/type/f", u), "now a directory");
	make_dir(at("%s/whole", u));
	make_dir(at("%s/whole/sub", u));
	put(at("%s/whole/sub/f", u), "whole");
	mark(at("%s/whole/sub/f", u), "user.overlay.origin", "");
	assert_int_equal(mkfifo(at("%s/whole/fifo", u), 0600), 0);
	assert_int_equal(chmod(at("%s/whole/sub", u), 0555), 0);
	put(at("%s/link", u), "was a link");
	if (!git)
		return;
	make_dir(at("%s/.git", u));
	put(at("%s/.git/HEAD", u), "ref: new");
	mark(at("%s/.git/HEAD", u), "user.overlay.origin", "");
	put(at("%s/.git/index", u), "new index");
	mark(at("%s/.git/index", u), "user.overlay.origin", "");
}

static void lay_out(void)
{
	struct hf_t0 t0;

	ASSERT_OK(hf_plan_new(plans, "p", NULL, ERR));
	for (int i = 0; i < 3; i++) {
		char target_path[512];

		snprintf(target_path, sizeof(target_path), "%s", target(i));
		lay_target(target_path, i == 0);
	}
	take_t0(&t0);
	for (int i = 0; i < 3; i++) {
		char target_path[512], upper[1024];

		snprintf(target_path, sizeof(target_path), "%s", target(i));
		add_by_hand("p", at("s%d", i), target_path, &t0);
		snprintf(upper, sizeof(upper), "%s", upper_of("p", at("s%d", i)));
		lay_upper(upper, i == 0);
	}
}

static void clear_up(void)
{
	remove_tree(at("%s/plans/p", hf_state_path(hf_test_state())));
	for (int i = 0; i < 3; i++)
		remove_tree(target(i));
}

/* All targets as one text. Free it. */
static char *look(void)
{
	struct hf_buf text = HF_BUF_INIT;
	char *copy;

	for (int i = 0; i < 3; i++)
		tree_text(target(i), at("t%d", i), &text);
	assert_int_equal(text.err, 0);
	copy = strdup(text.s);
	hf_buf_done(&text);
	return copy;
}

static int setup(void **state)
{
	int r = plan_test_setup(state);
	struct stat a, b;

	hf_sys.syncfs = count_sync;
	snprintf(other, sizeof(other), "/tmp/hf-plan-%d", (int)getpid());
	elsewhere = 1;
	if (r < 0 || stat("/tmp", &a) < 0 || stat(hf_test_dir(), &b) < 0 || a.st_dev == b.st_dev ||
	    access("/tmp", W_OK) < 0)
		elsewhere = 0;
	if (!elsewhere)
		print_message("# only one file system here\n");
	lay_out();
	before = look();
	ASSERT_OK(hf_plan_commit(plans, "p", NULL, NULL, ERR));
	after = look();
	assert_string_not_equal(before, after);
	clear_up();
	return r;
}

static int teardown(void **state)
{
	clear_up();
	free(before);
	free(after);
	return plan_test_teardown(state);
}

/* -- what must hold afterwards -------------------------------------------------------------- */

enum verb { COMMIT, UNDO, ROLLBACK };

/* The plan in the state in which the verb finds it. */
static void lay_out_for(enum verb verb)
{
	clear_up();
	lay_out();
	if (verb == UNDO)
		ASSERT_OK(hf_plan_commit(plans, "p", NULL, NULL, ERR));
}

static int run(enum verb verb)
{
	switch (verb) {
	case COMMIT:
		return hf_plan_commit(plans, "p", NULL, NULL, ERR);
	case UNDO:
		return hf_plan_undo(plans, "p", NULL, NULL, ERR);
	case ROLLBACK:
	default:
		return hf_plan_rollback(plans, "p", 0, ERR);
	}
}

static int is_done(enum verb verb, enum hf_plan_state state)
{
	return verb == COMMIT ? state == HF_PLAN_COMMITTED : state == HF_PLAN_ROLLED_BACK;
}

/* Old or new as a whole, and the record agrees. Returns 1 when it is what the verb makes. */
static int all_or_nothing(enum verb verb, const char *when, int n)
{
	char *now = look();
	const char *done = verb == COMMIT ? after : before, *undone = verb == UNDO ? after : before;
	enum hf_plan_state state = state_of("p");
	/* A rollback changes its record alone. */
	int is_new = verb == ROLLBACK && strcmp(now, before) == 0 ? is_done(verb, state) : strcmp(now, done) == 0;

	if (!is_new && strcmp(now, undone) != 0) {
		print_error("%s, call %d (%s): neither old nor new:\n%s---- old:\n%s", when, n,
			    hf_fault_call(), now, undone);
		fail();
	}
	if (is_done(verb, state) != is_new)
		print_error("%s, call %d (%s): the record says %s, the targets are %s\n", when, n,
			    hf_fault_call(), hf_plan_state_word(state), is_new ? "new" : "old");
	assert_int_equal(is_done(verb, state), is_new);
	free(now);
	if (verb == ROLLBACK)
		assert_int_equal(access(at("%s/d/added", upper_of("p", "s0")), F_OK), 0);
	return is_new;
}

/* The locks of a process that was made to fail at releasing them. */
static void break_one(void *arg, const struct hf_lock_info *info)
{
	if (info->n_holders)
		snprintf(arg, HF_NAME_MAX + 1, "%s", info->name);
}

static void free_locks(void)
{
	char name[HF_NAME_MAX + 1];

	for (int kind = 0; kind < HF_LOCK_KINDS; kind++) {
		struct hf_locks *locks = hf_locks_kind(plans->locks, (enum hf_lock_kind)kind);

		do {
			name[0] = '\0';
			ASSERT_OK(hf_lock_list(locks, break_one, name, ERR));
			if (name[0])
				assert_true(hf_lock_break(locks, name, "test", ERR) > 0);
		} while (name[0]);
	}
}

/* -- failures --------------------------------------------------------------------------------- */

static int fail_at(enum verb verb, int error, int n, int mutating)
{
	int fds, r, is_new;
	char struck[32];

	lay_out_for(verb);
	fds = hf_test_fd_count();
	hf_fault_arm(&(struct hf_fault){ .at = n, .error = error, .mutating = mutating });
	r = run(verb);
	hf_fault_disarm();
	hf_sys.syncfs = count_sync;
	if (!hf_fault_hit())
		return 0;
	snprintf(struck, sizeof(struck), "%s", hf_fault_call());
	/* The journal gives up a file that it cannot look at, and opens it with the next event. */
	if (hf_test_fd_count() < fds)
		hf_plan_event(plans, HF_EV_PLAN_ERRORED, "p", &(struct hf_field)HF_FIELD_TEXT("reason", "test"), 1);
	if (hf_test_fd_count() != fds)
		print_error("call %d, %s fails with %d: %d descriptors, %d before\n", n, struck, error,
			    hf_test_fd_count(), fds);
	assert_int_equal(hf_test_fd_count(), fds);
	free_locks();
	/* A failure that also stopped the undoing, or cleaning up, is left to recovery. */
	ASSERT_OK(hf_plan_recover(plans, "p", 0, ERR));
	is_new = all_or_nothing(verb, "failure", n);
	if ((r >= 0) != is_new && verb != ROLLBACK)
		print_error("call %d, %s fails with %d: returned %d, but the targets are %s\n", n,
			    hf_fault_call(), error, r, is_new ? "new" : "old");
	/* A record that was renamed and not synced is an error, and there: the next rollback agrees. */
	assert_true((r >= 0) == is_new || (verb == ROLLBACK && is_new));
	/* Nothing stands in the way of the next attempt. */
	if (!is_new && run(verb) < 0) {
		print_error("call %d, %s fails with %d: the next attempt is refused\n", n, struck, error);
		ASSERT_OK(run(verb));
	}
	assert_int_equal(all_or_nothing(verb, "next attempt", n), 1);
	return 1;
}

/* Each call in its turn fails, with `n_errors` errors. */
static void fail_each(enum verb verb, int mutating, size_t n_errors)
{
	int n = 1;

	for (; n < CALLS_MOST; n++) {
		int hit = 0;

		for (size_t e = 0; e < n_errors; e++)
			hit |= fail_at(verb, errors[(n + (int)e) % (int)ERRORS], n, mutating);
		if (!hit)
			break;
	}
	print_message("# %d calls%s, each failing with %zu of %zu errors\n", n - 1,
		      mutating ? " that change something" : "", n_errors, ERRORS);
	assert_in_range(n, verb == ROLLBACK ? 5 : 50, CALLS_MOST - 1);
}

static void fail_everywhere(enum verb verb)
{
	fail_each(verb, 1, getenv("HF_LONG") ? ERRORS : 1);
	if (getenv("HF_LONG"))
		fail_each(verb, 0, 1);
}

static void a_commit_that_fails_anywhere_changes_nothing_L10(void **state)
{
	(void)state;
	fail_everywhere(COMMIT);
}

static void an_undo_that_fails_anywhere_changes_nothing_L10(void **state)
{
	(void)state;
	clear_up();
	elsewhere = 0;
	fail_everywhere(UNDO);
}

static void a_rollback_that_fails_anywhere_keeps_targets_and_work_L10(void **state)
{
	(void)state;
	fail_everywhere(ROLLBACK);
}

/* -- deaths --------------------------------------------------------------------------------------- */

/* In a child that dies at call `n`. Returns 1 when it came that far. */
static int die_at(int n, int (*work)(void *arg), void *arg)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct hf_journal *own_journal;
		struct hf_state *own_state;
		int r;

		if (hf_state_open(hf_test_path("state"), 0, &own_state, NULL) < 0 ||
		    hf_journal_open(own_state, NULL, &own_journal, NULL) < 0 ||
		    hf_plans_open(own_state, own_journal, &plans, NULL) < 0)
			_exit(9);
		hf_fault_arm(&(struct hf_fault){ .at = n, .kill = 1, .mutating = 1 });
		r = work(arg);
		_exit(r < 0 ? 1 : 0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		return 1;
	assert_int_equal(WEXITSTATUS(status), 0);
	return 0;
}

static int run_verb(void *arg)
{
	return run(*(enum verb *)arg);
}

static int run_recovery(void *arg)
{
	(void)arg;
	return hf_plan_recover(plans, "p", 0, ERR);
}

static void die_everywhere(enum verb verb)
{
	int seen[2] = { 0, 0 }, n = 1;

	for (; n < CALLS_MOST; n++) {
		lay_out_for(verb);
		if (!die_at(n, run_verb, &verb))
			break;
		ASSERT_OK(hf_plan_recover(plans, "p", 0, ERR));
		seen[all_or_nothing(verb, "death", n)]++;
		/* Once more does nothing: recovery is idempotent. */
		if (hf_plan_recover(plans, "p", 0, ERR) != 0)
			print_error("death at call %d: recovery was not over\n", n);
		assert_int_equal(hf_plan_recover(plans, "p", 0, ERR), 0);
		(void)all_or_nothing(verb, "second recovery", n);
	}
	print_message("# killed at %d calls: %d old, %d new\n", n - 1, seen[0], seen[1]);
	assert_true(seen[0] > 0 && seen[1] > 0);
}

static void a_commit_killed_anywhere_is_all_or_nothing_L10(void **state)
{
	(void)state;
	die_everywhere(COMMIT);
}

static void an_undo_killed_anywhere_is_all_or_nothing_L10(void **state)
{
	(void)state;
	clear_up();
	elsewhere = 0;
	die_everywhere(UNDO);
}

static void a_rollback_killed_anywhere_keeps_targets_and_work_L10(void **state)
{
	(void)state;
	die_everywhere(ROLLBACK);
}

/* -- recovery --------------------------------------------------------------------------------------- */

/* How many calls the verb makes that it can be killed at. */
static int calls_of(enum verb verb)
{
	int calls = 0;

	do
		lay_out_for(verb);
	while (die_at(++calls, run_verb, &verb));
	return calls;
}

/* One recovery that is killed at its call `n`, or where that call fails. 0: it makes fewer. */
static int disturb(int n, int error)
{
	int r;

	if (!error)
		return die_at(n, run_recovery, NULL);
	hf_fault_arm(&(struct hf_fault){ .at = n, .error = error, .mutating = 1 });
	r = hf_plan_recover(plans, "p", 0, ERR);
	hf_fault_disarm();
	if (!hf_fault_hit())
		ASSERT_OK(r);
	else
		free_locks();
	return hf_fault_hit();
}

/*
 * After a verb that was killed, recovery is killed or fails at each of its own calls, and the next one
 * finishes. The verb is killed at places that are spread over it by a step that differs from run to run.
 */
static int disturb_at(enum verb verb, int from, int n, int error)
{
	lay_out_for(verb);
	assert_int_equal(die_at(from, run_verb, &verb), 1);
	if (!disturb(n, error))
		return 0;
	ASSERT_OK(hf_plan_recover(plans, "p", 0, ERR));
	(void)all_or_nothing(verb, "disturbed recovery", n);
	assert_int_equal(hf_plan_recover(plans, "p", 0, ERR), 0);
	return 1;
}

static void disturb_everywhere(enum verb verb, int fail)
{
	int calls = calls_of(verb), step = calls / (getenv("HF_LONG") ? (fail ? 6 : 20) : 2) + 1, rounds = 0, pairs = 0;
	int n_errors = fail && getenv("HF_LONG") ? (int)ERRORS : 1;

	for (int from = 1 + calls / 4 * !getenv("HF_LONG") + (int)(getpid() % 7); from < calls; from += step, rounds++) {
		int hit = 1;

		for (int n = 1; hit && n < CALLS_MOST; n++) {
			hit = 0;
			for (int e = 0; e < n_errors; e++)
				hit |= disturb_at(verb, from, n, fail ? errors[(n + from + e) % (int)ERRORS] : 0);
			pairs += hit;
		}
	}
	print_message("# recovery %s at %d places after %d of %d calls, %d errors each\n", fail ? "fails" : "killed", pairs,
		      rounds, calls, fail ? n_errors : 0);
	assert_true(pairs > 20);
}

static void a_recovery_killed_anywhere_is_recovered_L10(void **state)
{
	(void)state;
	disturb_everywhere(COMMIT, 0);
}

static void a_recovery_of_an_undo_killed_anywhere_is_recovered_L10(void **state)
{
	(void)state;
	clear_up();
	elsewhere = 0;
	disturb_everywhere(UNDO, 0);
}

static void a_recovery_that_fails_anywhere_is_done_by_the_next_L10(void **state)
{
	(void)state;
	disturb_everywhere(COMMIT, 1);
}

static void a_recovery_of_an_undo_that_fails_anywhere_is_done_by_the_next_L10(void **state)
{
	(void)state;
	clear_up();
	elsewhere = 0;
	disturb_everywhere(UNDO, 1);
}

#define FAULT_TEST(fn) { #fn, fn, setup, teardown, NULL }

int main(void)
{
	const struct CMUnitTest tests[] = {
		FAULT_TEST(a_commit_that_fails_anywhere_changes_nothing_L10),
		FAULT_TEST(an_undo_that_fails_anywhere_changes_nothing_L10),
		FAULT_TEST(a_rollback_that_fails_anywhere_keeps_targets_and_work_L10),
		FAULT_TEST(a_commit_killed_anywhere_is_all_or_nothing_L10),
		FAULT_TEST(an_undo_killed_anywhere_is_all_or_nothing_L10),
		FAULT_TEST(a_rollback_killed_anywhere_keeps_targets_and_work_L10),
		FAULT_TEST(a_recovery_killed_anywhere_is_recovered_L10),
		FAULT_TEST(a_recovery_of_an_undo_killed_anywhere_is_recovered_L10),
		FAULT_TEST(a_recovery_that_fails_anywhere_is_done_by_the_next_L10),
		FAULT_TEST(a_recovery_of_an_undo_that_fails_anywhere_is_done_by_the_next_L10),
	};

	/* In memory: there are thousands of trees to be laid out. */
	if (access("/dev/shm", W_OK) == 0)
		setenv("TMPDIR", "/dev/shm", 1);
	return hf_run_tests("plan_faults", tests);
}
