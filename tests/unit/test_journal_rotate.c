/* unit/test_journal_rotate.c - full segments are sealed, the oldest go, no record is lost on the way. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "helper/faults.h"
#include "helper/test.h"
#include "holdfast/journal.h"
#include "hf/sys/calls.h"

#define JOURNAL "state/journal"
#define EVENTS  JOURNAL "/events.jsonl"
#define SEGMENT 4096
#define RETAIN  16384
#define PLENTY  (UINT64_C(1) << 30)

#define CHILD_CHECK(condition)                                                          \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "# child, line %d: %s %s %s\n", __LINE__,      \
				#condition, hf_test_error.op, hf_test_error.detail);     \
			_exit(1);                                                       \
		}                                                                       \
	} while (0)

static struct hf_journal *open_with(struct hf_state *from, uint64_t segment, uint64_t retain)
{
	struct hf_journal_opts opts = { .size = sizeof(opts),
					.segment_bytes = segment,
					.retain_bytes = retain };
	struct hf_journal *journal = NULL;

	return hf_journal_open(from, &opts, &journal, ERR) == 0 ? journal : NULL;
}

static struct hf_journal *open_journal(uint64_t segment, uint64_t retain)
{
	struct hf_journal *journal = open_with(hf_test_state(), segment, retain);

	assert_non_null(journal);
	return journal;
}

static int note(struct hf_journal *journal, const char *text)
{
	struct hf_field fields[] = { HF_FIELD_TEXT("text", text) };

	return hf_journal_append(journal, HF_EV_NOTE, "t", fields, 1, 0, ERR);
}

static int numbered(struct hf_journal *journal, int who, int n)
{
	char text[64];

	snprintf(text, sizeof(text), "%d %d", who, n);
	return note(journal, text);
}

/*
 * With several writers a stalled disk or a loaded machine may make one wait for more
 * than 100 ms, and its record is lost as promised. Then again: the number of losses
 * is not what these tests are about.
 */
static int numbered_in_time(struct hf_journal *journal, int who, int n)
{
	struct hf_mono until = hf_mono_in(10 * HF_SEC);
	int r;

	do {
		r = numbered(journal, who, n);
	} while (r == HF_E_LOST && hf_mono_left(until) > 0);
	return r;
}

static int reap(pid_t pid)
{
	siginfo_t info;
	int r;

	do {
		r = waitid(P_PID, (id_t)pid, &info, WEXITED);
	} while (r < 0 && errno == EINTR);
	assert_int_equal(r, 0);
	return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

struct content {
	uint64_t records, notes, rotated, lost, first, last;
	uint64_t steps; /* sequence numbers that are not the one before plus one */
	uint64_t disorder; /* notes of a writer that are not its one before plus one */
	int next[8]; /* what each writer's next note is */
};

static void count_record(const struct hf_record *record, struct content *c)
{
	const char *text = hf_record_text(record, "text");
	int64_t lost;
	int who, n;

	if (c->records++ == 0)
		c->first = record->seq;
	else
		c->steps += record->seq != c->last + 1;
	c->last = record->seq;
	c->rotated += record->info && record->info->event == HF_EV_JOURNAL_ROTATED;
	if (record->info && record->info->event == HF_EV_JOURNAL_LOST &&
	    hf_record_int(record, "count", &lost))
		c->lost += (uint64_t)lost;
	if (!text || sscanf(text, "%d %d", &who, &n) != 2 || who < 0 || who > 7)
		return;
	/* Where the oldest were pruned, a writer's first readable note is its beginning. */
	c->disorder += c->next[who] != 0 && n != c->next[who];
	c->next[who] = n + 1;
	c->notes++;
}

static int read_into(struct hf_journal_reader *reader, struct content *c)
{
	struct hf_record record;
	int r;

	while ((r = hf_journal_next(reader, &record, ERR)) > 0)
		count_record(&record, c);
	return r;
}

static struct content read_all(void)
{
	struct hf_journal_reader *reader;
	struct content c = { 0 };

	ASSERT_OK(hf_journal_read(hf_test_state(), &reader, ERR));
	ASSERT_OK(read_into(reader, &c));
	assert_true(hf_journal_reader_damaged(reader) == 0);
	hf_journal_reader_free(reader);
	return c;
}

static void show_problem(void *arg, const struct hf_problem_info *problem)
{
	(void)arg;
	print_error("%s:%llu problem %d, %s\n", problem->file, (unsigned long long)problem->line,
		    (int)problem->problem, problem->text);
}

static struct hf_verify_result assert_clean(void)
{
	struct hf_verify_result result;

	ASSERT_OK(hf_journal_verify(hf_test_state(), show_problem, NULL, &result, ERR));
	assert_true(result.problems == 0 && result.torn == 0);
	return result;
}

static struct hf_journal_totals totals(void)
{
	struct hf_journal_totals t;

	ASSERT_OK(hf_journal_totals(hf_test_state(), &t, ERR));
	return t;
}

/* Calls `fn` for each sealed segment's name; returns their number. */
static int each_sealed(void (*fn)(const char *path))
{
	DIR *dir = opendir(hf_test_path(JOURNAL));
	struct dirent *entry;
	int n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		char leaf[300];

		if (strncmp(entry->d_name, "events.0", 8) != 0)
			continue;
		snprintf(leaf, sizeof(leaf), JOURNAL "/%s", entry->d_name);
		fn(hf_test_path(leaf));
		n++;
	}
	closedir(dir);
	return n;
}

static void assert_mode_0400(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0400);
	assert_true(st.st_size > 0 && st.st_size <= SEGMENT);
}

static void remove_it(const char *path)
{
	assert_int_equal(unlink(path), 0);
}

/* -- one writer ------------------------------------------------------------- */

static void retained_records_are_readable_in_order_and_the_size_is_bounded(void **state)
{
	struct hf_journal *journal = open_journal(SEGMENT, RETAIN);
	struct hf_verify_result result;
	struct content c;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		ASSERT_OK(numbered(journal, 0, i));
		assert_true(totals().bytes <= RETAIN);
		assert_true(totals().seq == hf_journal_last_seq(journal));
	}
	c = read_all();
	assert_true(c.steps == 0 && c.disorder == 0 && c.next[0] == 1000);
	assert_true(c.first > 1 && c.last == hf_journal_last_seq(journal));
	assert_true(c.notes > 60);
	result = assert_clean();
	assert_true(result.first == c.first && result.records == c.records);
	assert_int_equal(each_sealed(assert_mode_0400), 3);
	hf_journal_free(journal);
	assert_true(totals().lost == 0);
}

static void everything_is_kept_while_it_fits(void **state)
{
	struct hf_journal *journal = open_journal(SEGMENT, PLENTY);
	struct content c;

	(void)state;
	for (int i = 0; i < 500; i++)
		ASSERT_OK(numbered(journal, 0, i));
	hf_journal_free(journal);
	c = read_all();
	assert_true(c.first == 1 && c.notes == 500 && c.steps == 0 && c.disorder == 0);
	/* Each rotation left one record of itself. */
	assert_true(c.rotated == (uint64_t)each_sealed(assert_mode_0400));
	assert_true(c.rotated + 1 == totals().segments);
	assert_clean();
}

static void limit_smaller_than_a_segment_keeps_the_active_one(void **state)
{
	struct hf_journal *journal = open_journal(SEGMENT, 1);
	struct content c;

	(void)state;
	for (int i = 0; i < 300; i++)
		ASSERT_OK(numbered(journal, 0, i));
	hf_journal_free(journal);
	c = read_all();
	assert_true(c.steps == 0 && c.next[0] == 300);
	assert_int_equal(each_sealed(assert_mode_0400), 0);
	assert_clean();
}

static void record_larger_than_a_segment_is_written_all_the_same(void **state)
{
	struct hf_journal *journal = open_journal(1, PLENTY);
	char text[HF_JOURNAL_TEXT_MAX + 1];

	(void)state;
	memset(text, 1, sizeof(text) - 1); /* six bytes each when escaped */
	text[sizeof(text) - 1] = '\0';
	for (int i = 0; i < 5; i++)
		ASSERT_OK(note(journal, text));
	hf_journal_free(journal);
	assert_true(totals().segments == 5);
	assert_true(read_all().steps == 0);
	assert_clean();
}

static void pruning_that_nothing_explains_is_a_gap(void **state)
{
	struct hf_journal *journal = open_journal(SEGMENT, PLENTY);
	struct hf_verify_result result;

	(void)state;
	for (int i = 0; i < 200; i++)
		ASSERT_OK(numbered(journal, 0, i));
	hf_journal_free(journal);
	assert_true(each_sealed(remove_it) > 2);
	ASSERT_OK(hf_journal_verify(hf_test_state(), NULL, NULL, &result, ERR));
	assert_true(result.problems == 1);
}

static void make_readable(const char *path)
{
	assert_int_equal(chmod(path, 0644), 0);
}

static void sealed_segment_that_is_not_trusted_is_told_and_passed_over_L12(void **state)
{
	struct hf_journal *journal = open_journal(SEGMENT, PLENTY);
	struct hf_verify_result result;
	struct hf_journal_reader *reader;
	struct content c = { 0 };

	(void)state;
	for (int i = 0; i < 40; i++)
		ASSERT_OK(numbered(journal, 0, i));
	assert_int_equal(each_sealed(make_readable), 1);
	ASSERT_OK(hf_journal_verify(hf_test_state(), NULL, NULL, &result, ERR));
	assert_true(result.problems == 2); /* the file, and what is missing with it */
	ASSERT_OK(hf_journal_read(hf_test_state(), &reader, ERR));
	ASSERT_OK(read_into(reader, &c));
	assert_true(c.records > 0 && c.first > 1 && c.last == hf_journal_last_seq(journal));
	assert_true(hf_journal_reader_damaged(reader) == 1);
	hf_journal_reader_free(reader);
	ASSERT_OK(numbered(journal, 0, 40));
	hf_journal_free(journal);
}

static void limits_come_from_the_environment_where_none_is_given(void **state)
{
	static const struct {
		const char *segment, *retain;
		int rotates;
	} cases[] = { { "4K", "16K", 1 },     { "4096", "16384", 1 }, { "1M", "1G", 0 },
		      { "nonsense", "-5", 0 }, { "", "", 0 },	      { "1", "16K", 1 } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hf_journal *journal;
		struct hf_state *own;
		struct hf_journal_totals t;
		char leaf[16];

		snprintf(leaf, sizeof(leaf), "env-%zu", i);
		ASSERT_OK(hf_state_open(hf_test_path(leaf), 0, &own, ERR));
		setenv("HOLDFAST_JOURNAL_SEGMENT", cases[i].segment, 1);
		setenv("HOLDFAST_JOURNAL_RETAIN", cases[i].retain, 1);
		journal = open_with(own, 0, 0);
		unsetenv("HOLDFAST_JOURNAL_SEGMENT");
		unsetenv("HOLDFAST_JOURNAL_RETAIN");
		assert_non_null(journal);
		for (int k = 0; k < 300; k++)
			ASSERT_OK(numbered(journal, 0, k));
		ASSERT_OK(hf_journal_totals(own, &t, ERR));
		assert_int_equal(t.segments > 1, cases[i].rotates);
		if (cases[i].rotates)
			assert_in_range(t.bytes, 8192, RETAIN);
		hf_journal_free(journal);
		hf_state_free(own);
	}
}

static void given_limits_are_stronger_than_the_environment(void **state)
{
	struct hf_journal *journal;

	(void)state;
	setenv("HOLDFAST_JOURNAL_SEGMENT", "1G", 1);
	journal = open_journal(SEGMENT, PLENTY);
	unsetenv("HOLDFAST_JOURNAL_SEGMENT");
	for (int i = 0; i < 100; i++)
		ASSERT_OK(numbered(journal, 0, i));
	hf_journal_free(journal);
	assert_true(totals().segments > 1);
}

/* -- crashes ---------------------------------------------------------------- */

static void seal_without_rename_is_finished_by_the_next_append(void **state)
{
	struct hf_journal *before = open_journal(0, 0), *after;
	struct content c;

	(void)state;
	ASSERT_OK(numbered(before, 0, 0));
	ASSERT_OK(numbered(before, 0, 1));
	assert_int_equal(chmod(hf_test_path(EVENTS), 0400), 0);
	after = open_journal(0, 0);
	ASSERT_OK(numbered(after, 0, 2));
	assert_int_equal(each_sealed(assert_mode_0400), 1);
	ASSERT_OK(numbered(before, 0, 3)); /* its descriptor is of the sealed one */
	assert_int_equal(chmod(hf_test_path(EVENTS), 0400), 0);
	ASSERT_OK(numbered(before, 0, 4));
	assert_int_equal(each_sealed(assert_mode_0400), 2);
	hf_journal_free(before);
	hf_journal_free(after);
	c = read_all();
	assert_true(c.notes == 5 && c.steps == 0 && c.disorder == 0 && c.first == 1);
	assert_clean();
}

static void rename_without_a_new_file_is_finished_by_the_next_append(void **state)
{
	struct hf_journal *journal = open_journal(0, 0);
	struct content c;

	(void)state;
	for (int i = 0; i < 3; i++)
		ASSERT_OK(numbered(journal, 0, i));
	assert_int_equal(chmod(hf_test_path(EVENTS), 0400), 0);
	assert_int_equal(rename(hf_test_path(EVENTS),
				hf_test_path(JOURNAL "/events.00000000000000000001.jsonl")),
			 0);
	/* Also without the counters: the number comes from the sealed segment. */
	assert_int_equal(unlink(hf_test_path(JOURNAL "/counters")), 0);
	ASSERT_OK(numbered(journal, 0, 3));
	hf_journal_free(journal);
	c = read_all();
	assert_true(c.notes == 4 && c.steps == 0 && c.first == 1);
	assert_clean();
}

static void sealed_segment_without_a_record_gets_a_place(void **state)
{
	struct hf_journal *journal = open_journal(SEGMENT, PLENTY);

	(void)state;
	for (int i = 0; i < 3; i++) {
		/* An empty active segment, sealed. */
		assert_int_equal(chmod(hf_test_path(EVENTS), 0400), 0);
		ASSERT_OK(numbered(journal, 0, i));
		assert_int_equal(unlink(hf_test_path(EVENTS)), 0);
		hf_journal_free(journal);
		journal = open_journal(SEGMENT, PLENTY);
	}
	hf_journal_free(journal);
}

static void taken_names_do_not_stop_the_journal(void **state)
{
	char text[HF_JOURNAL_TEXT_MAX + 1];
	struct hf_journal *journal = open_journal(1, PLENTY);
	AUTO_FD fd = open(hf_test_path(JOURNAL "/events.00000000000000000001.jsonl"),
			  O_CREAT | O_WRONLY | O_CLOEXEC, 0400);

	(void)state;
	assert_true(fd >= 0);
	memset(text, 1, sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	ASSERT_OK(note(journal, text)); /* alone in its segment: first and last are 1 */
	ASSERT_OK(note(journal, text));
	hf_journal_free(journal);
	assert_true(read_all().steps == 0);
}

/* -- many writers ----------------------------------------------------------- */

#define WRITERS 4

static void write_numbered(int who, int n, uint64_t retain)
{
	struct hf_state *own;
	struct hf_journal *journal;

	CHILD_CHECK(hf_state_open(hf_test_path("state"), 0, &own, NULL) == 0);
	journal = open_with(own, SEGMENT, retain);
	CHILD_CHECK(journal);
	for (int i = 0; i < n; i++)
		CHILD_CHECK(numbered_in_time(journal, who, i) == 0);
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

/* Somebody else rotates as soon as we have the active segment open. */
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
		HF_TEST(retained_records_are_readable_in_order_and_the_size_is_bounded),
		HF_TEST(everything_is_kept_while_it_fits),
		HF_TEST(limit_smaller_than_a_segment_keeps_the_active_one),
		HF_TEST(record_larger_than_a_segment_is_written_all_the_same),
		HF_TEST(pruning_that_nothing_explains_is_a_gap),
		HF_TEST(sealed_segment_that_is_not_trusted_is_told_and_passed_over_L12),
		HF_TEST(limits_come_from_the_environment_where_none_is_given),
		HF_TEST(given_limits_are_stronger_than_the_environment),
		HF_TEST(seal_without_rename_is_finished_by_the_next_append),
		HF_TEST(rename_without_a_new_file_is_finished_by_the_next_append),
		HF_TEST(sealed_segment_without_a_record_gets_a_place),
		HF_TEST(taken_names_do_not_stop_the_journal),
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

	return hf_run_tests("journal_rotate", tests);
}
