/* unit/journal/test_journal_rotate_races.c - rotation and pruning beside other writers and readers. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper/journal_rotate.h"
#include "hf/sys/calls.h"

/*
 * With several writers a stalled disk or a loaded machine may make one wait for more
 * than 100 ms, and its record is lost as promised. Then again: the number of losses
 * is not what these tests are about.
 */
static int numbered_in_time(struct hf_journal *journal, int writer, int n)
{
	struct hf_mono until = hf_mono_in(10 * HF_SEC);
	int r;

	do {
		r = numbered(journal, writer, n);
	} while (r == HF_E_LOST && hf_mono_left(until) > 0);
	return r;
}

/* -- many writers ----------------------------------------------------------- */

#define WRITERS 4

static void write_numbered(int writer, int n, uint64_t retain)
{
	struct hf_state *own;
	struct hf_journal *journal;

	CHILD_CHECK(hf_state_open(hf_test_path("state"), 0, &own, NULL) == 0);
	journal = open_with(own, SEGMENT, retain);
	CHILD_CHECK(journal);
	for (int i = 0; i < n; i++)
		CHILD_CHECK(numbered_in_time(journal, writer, i) == 0);
	hf_journal_free(journal);
	hf_state_free(own);
}

static void start_writers(pid_t pids[WRITERS], int n, uint64_t retain)
{
	(void)hf_test_state();
	for (int i = 0; i < WRITERS; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0) {
			write_numbered(i, n, retain);
			_exit(0);
		}
	}
}

static void end_writers(const pid_t pids[WRITERS])
{
	for (int i = 0; i < WRITERS; i++)
		assert_int_equal(reap(pids[i]), 0);
}

static void several_processes_rotate_without_loss(void **state)
{
	pid_t pids[WRITERS];
	struct content c;

	(void)state;
	start_writers(pids, 300, PLENTY);
	end_writers(pids);
	c = read_all();
	assert_true(c.first == 1 && c.steps == 0 && c.disorder == 0);
	assert_true(c.notes == WRITERS * 300);
	assert_int_equal(totals().lost, c.lost);
	/* One that rotates again before it gets to write tells of the last time only. */
	assert_in_range(c.rotated + 1, 2, totals().segments);
	assert_clean();
}

static void several_processes_prune_and_explain_it(void **state)
{
	static const uint64_t retains[] = { RETAIN, 1 };

	(void)state;
	for (int i = 0; i < 2; i++) {
		pid_t pids[WRITERS];
		struct content c;

		start_writers(pids, 300, retains[i]);
		end_writers(pids);
		c = read_all();
		assert_true(c.steps == 0 && c.disorder == 0);
		assert_true(totals().bytes <= (retains[i] > SEGMENT ? retains[i] : SEGMENT));
		assert_clean();
	}
}

/* Follows until it has `notes` notes, sleeping between. */
static void follow(struct hf_journal_reader *reader, struct content *c, uint64_t notes)
{
	struct hf_mono until = hf_mono_in(15 * HF_SEC);

	for (;;) {
		ASSERT_OK(read_into(reader, c));
		if (c->notes >= notes)
			return;
		if (hf_mono_left(until) == 0) {
			print_error("%llu notes of %llu\n", (unsigned long long)c->notes,
				    (unsigned long long)notes);
			fail();
		}
		ASSERT_OK(hf_journal_wait(reader, HF_SEC, ERR));
	}
}

static void reader_of_a_rotating_journal_sees_each_record_once(void **state)
{
	struct hf_journal_reader *reader;
	struct content c = { 0 };
	pid_t pids[WRITERS];

	(void)state;
	ASSERT_OK(hf_journal_read(hf_test_state(), &reader, ERR));
	start_writers(pids, 1000, PLENTY);
	follow(reader, &c, WRITERS * 1000);
	end_writers(pids);
	ASSERT_OK(read_into(reader, &c));
	assert_true(c.notes == WRITERS * 1000 && c.first == 1);
	assert_true(c.steps == 0 && c.disorder == 0);
	assert_true(hf_journal_reader_damaged(reader) == 0);
	hf_journal_reader_free(reader);
	assert_true(read_all().notes == WRITERS * 1000);
}

/* -- races with a rotation, made to happen ------------------------------------ */

static int (*real_openat)(int dirfd, const char *path, int flags, mode_t mode);
static void (*between)(void); /* done once, just before the reader opens the active one */

static int openat_and_then_some(int dirfd, const char *path, int flags, mode_t mode)
{
	if (between && strcmp(path, "events.jsonl") == 0) {
		void (*now)(void) = between;

		between = NULL;
		now();
	}
	return real_openat(dirfd, path, flags, mode);
}

static void interpose(void (*what)(void))
{
	real_openat = hf_sys.openat;
	hf_sys.openat = openat_and_then_some;
	between = what;
}

static void take_back_interpose(void)
{
	hf_sys.openat = real_openat;
}

static int rotations;

/* Another process rotates as soon as we have the active segment open. */
static int openat_and_rotate(int dirfd, const char *path, int flags, mode_t mode)
{
	int fd = real_openat(dirfd, path, flags, mode);

	if (strcmp(path, "events.jsonl") == 0 && rotations > 0) {
		char name[64];

		snprintf(name, sizeof(name), "events.%020d.jsonl", 1000 - rotations--);
		if (fchmod(fd, 0400) < 0 || renameat(dirfd, path, dirfd, name) < 0)
			abort();
	}
	return fd;
}

static void append_follows_as_many_rotations_as_there_are_in_its_time(void **state)
{
	struct hf_journal *journal = open_journal(0, 0);
	int r;

	(void)state;
	ASSERT_OK(numbered(journal, 0, 0));
	assert_int_equal(unlink(hf_test_path(EVENTS)), 0);
	real_openat = hf_sys.openat;
	hf_sys.openat = openat_and_rotate;
	rotations = 20;
	r = numbered(journal, 0, 1);
	hf_sys.openat = real_openat;
	ASSERT_OK(r);
	assert_int_equal(rotations, 0);
	hf_journal_free(journal);
	assert_true(totals().lost == 0);
}

static struct hf_journal *writer;

static void finish_the_rotation(void)
{
	(void)numbered(writer, 0, 2);
}

static void reader_does_not_read_the_segment_it_left_again(void **state)
{
	struct hf_journal_reader *reader;
	struct content c = { 0 };
	int r;

	(void)state;
	writer = open_journal(0, 0);
	ASSERT_OK(numbered(writer, 0, 0));
	ASSERT_OK(numbered(writer, 0, 1));
	ASSERT_OK(hf_journal_read(hf_test_state(), &reader, ERR));
	ASSERT_OK(read_into(reader, &c));
	/* Sealed: the reader leaves it. Renamed, and a new one made, only when it has looked. */
	assert_int_equal(chmod(hf_test_path(EVENTS), 0400), 0);
	interpose(finish_the_rotation);
	r = read_into(reader, &c);
	take_back_interpose();
	ASSERT_OK(r);
	assert_null(between);
	ASSERT_OK(read_into(reader, &c));
	assert_true(c.notes == 3 && c.steps == 0 && c.disorder == 0);
	hf_journal_reader_free(reader);
	hf_journal_free(writer);
}

static void rotate_and_prune_much(void)
{
	for (int i = 0; i < 400; i++)
		(void)numbered(writer, 0, i);
}

static void reader_survives_the_removal_of_what_it_reads(void **state)
{
	struct hf_journal_reader *reader;
	struct hf_record record;
	uint64_t last;
	int r;

	(void)state;
	writer = open_journal(SEGMENT, RETAIN);
	rotate_and_prune_much();
	ASSERT_OK(hf_journal_read(hf_test_state(), &reader, ERR));
	assert_int_equal(hf_journal_next(reader, &record, ERR), 1);
	last = record.seq;
	rotate_and_prune_much(); /* all that was there is gone but what it has open */
	while ((r = hf_journal_next(reader, &record, ERR)) > 0) {
		assert_true(record.seq > last);
		last = record.seq;
	}
	ASSERT_OK(r);
	assert_true(last == hf_journal_last_seq(writer));
	hf_journal_reader_free(reader);
	hf_journal_free(writer);
}

static void verify_does_not_take_pruning_meanwhile_for_a_gap(void **state)
{
	struct hf_verify_result result;
	int r;

	(void)state;
	writer = open_journal(SEGMENT, RETAIN);
	for (int i = 0; i < 100; i++)
		ASSERT_OK(numbered(writer, 0, i));
	/* Verify has read all sealed segments and goes on to the active one. */
	interpose(rotate_and_prune_much);
	r = hf_journal_verify(hf_test_state(), show_problem, NULL, &result, ERR);
	take_back_interpose();
	hf_journal_free(writer);
	ASSERT_OK(r);
	assert_true(result.problems == 0);
	assert_true(result.last > 400);
}

static void seal_and_rename(void)
{
	(void)chmod(hf_test_path(EVENTS), 0400);
	(void)rename(hf_test_path(EVENTS), hf_test_path(JOURNAL "/events.00000000000000000001.jsonl"));
}

static void verify_does_not_miss_what_is_renamed_before_it_opens_it(void **state)
{
	struct hf_verify_result result;
	int r;

	(void)state;
	writer = open_journal(0, 0);
	for (int i = 0; i < 3; i++)
		ASSERT_OK(numbered(writer, 0, i));
	hf_journal_free(writer);
	/* Half a rotation: the old segment has its new name, the new one is not made yet. */
	interpose(seal_and_rename);
	r = hf_journal_verify(hf_test_state(), show_problem, NULL, &result, ERR);
	take_back_interpose();
	ASSERT_OK(r);
	assert_null(between);
	assert_true(result.problems == 0 && result.records == 3);
}

static void verify_finds_nothing_wrong_while_others_write_and_rotate(void **state)
{
	pid_t pids[WRITERS];
	int running = WRITERS;
	uint64_t problems = 0, rounds = 0, bad_ends = 0;

	(void)state;
	start_writers(pids, 1000, RETAIN);
	while (running > 0) {
		struct hf_verify_result result = { 0 };
		siginfo_t info = { 0 };

		/* Judged when the writers are gone: they use the test's directory. */
		if (hf_journal_verify(hf_test_state(), show_problem, NULL, &result, ERR) < 0)
			problems++;
		problems += result.problems;
		rounds++;
		while (running > 0 && waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == 0 &&
		       info.si_pid != 0) {
			bad_ends += info.si_status != 0;
			info.si_pid = 0;
			running--;
		}
	}
	assert_true(problems == 0 && bad_ends == 0);
	assert_true(rounds > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HF_TEST(several_processes_rotate_without_loss),
		HF_TEST(several_processes_prune_and_explain_it),
		HF_TEST(reader_of_a_rotating_journal_sees_each_record_once),
		HF_TEST(append_follows_as_many_rotations_as_there_are_in_its_time),
		HF_TEST(reader_does_not_read_the_segment_it_left_again),
		HF_TEST(reader_survives_the_removal_of_what_it_reads),
		HF_TEST(verify_does_not_take_pruning_meanwhile_for_a_gap),
		HF_TEST(verify_does_not_miss_what_is_renamed_before_it_opens_it),
		HF_TEST(verify_finds_nothing_wrong_while_others_write_and_rotate),
	};

	return hf_run_tests("journal_rotate_races", tests);
}
