/*
 * unit/journal/test_journal_faults.c - every system call of an append fails, or is the last.
 *
 * Whatever fails: a record that was acknowledged is there once, one that was
 * refused is not, and the next writer finds a journal in order.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "helper/faults.h"
#include "helper/test.h"
#include "holdfast/journal.h"

#define CALLS_MOST 400 /* no append makes more calls than this */

static const int errors[] = { EIO, ENOSPC, EINTR, EACCES, EMFILE };
#define ERRORS (sizeof(errors) / sizeof(errors[0]))

/* What happens in the append under test. */
struct scene {
	uint64_t segment, retain;
	int fillers; /* records before it, each a quarter of a small segment */
	unsigned flags;
};

static const struct scene plain = { 0, 0, 1, 0 };
static const struct scene durable = { 0, 0, 1, HF_JOURNAL_DURABLE };
/* The append under test rotates; in the other one it also prunes. */
static const struct scene rotating = { 4096, UINT64_C(1) << 30, 3, 0 };
static const struct scene pruning = { 4096, 12000, 9, 0 };

/* Appends `text`, drawn out so that four records fill a small segment. */
static int note(struct hf_journal *journal, const char *text, unsigned flags)
{
	char drawn_out[900];
	struct hf_field fields[] = { HF_FIELD_TEXT("text", drawn_out) };

	memset(drawn_out, '.', sizeof(drawn_out));
	memcpy(drawn_out, text, strlen(text));
	drawn_out[sizeof(drawn_out) - 1] = '\0';
	return hf_journal_append(journal, HF_EV_NOTE, "t", fields, 1, flags, ERR);
}

/* The test's state directory, its journal empty again: cheaper than a new one. */
static struct hf_state *new_state(void)
{
	DIR *dir = opendir(hf_test_path("state/journal"));
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			assert_int_equal(unlinkat(dirfd(dir), entry->d_name, 0), 0);
	if (dir)
		closedir(dir);
	(void)rmdir(hf_test_path("state/journal"));
	return hf_test_state();
}

static struct hf_journal *open_scene(struct hf_state *in, const struct scene *scene)
{
	struct hf_journal_opts opts = { .size = sizeof(opts),
					.segment_bytes = scene->segment,
					.retain_bytes = scene->retain,
					.wait_ns = HF_TEST_PATIENCE_NS };
	struct hf_journal *journal;

	ASSERT_OK(hf_journal_open(in, &opts, &journal, ERR));
	return journal;
}

static struct hf_journal *start_scene(struct hf_state *in, const struct scene *scene)
{
	struct hf_journal *journal = open_scene(in, scene);

	for (int i = 0; i < scene->fillers; i++)
		ASSERT_OK(note(journal, "filler", 0));
	return journal;
}

struct content {
	int victims, same, fresh, acked[4];
	uint64_t lost_sum, steps, last, records, torn;
};

static void count_record(const struct hf_record *record, struct content *c)
{
	const char *text = hf_record_text(record, "text");
	int64_t n;

	c->steps += c->records++ > 0 && record->seq != c->last + 1;
	c->last = record->seq;
	if (record->info && record->info->event == HF_EV_JOURNAL_LOST &&
	    hf_record_int(record, "count", &n))
		c->lost_sum += (uint64_t)n;
	if (!text)
		return;
	c->victims += strncmp(text, "victim.", 7) == 0;
	c->same += strncmp(text, "same.", 5) == 0;
	c->fresh += strncmp(text, "fresh.", 6) == 0;
	if (strncmp(text, "ack ", 4) == 0 && text[4] >= '0' && text[4] <= '3')
		c->acked[text[4] - '0']++;
}

static void show_problem(void *arg, const struct hf_problem_info *problem)
{
	(void)arg;
	if (problem->problem != HF_PROBLEM_TORN)
		print_error("%s:%llu problem %d, %s\n", problem->file,
			    (unsigned long long)problem->line, (int)problem->problem,
			    problem->text);
}

static struct content read_all(const struct hf_state *from)
{
	struct hf_journal_reader *reader;
	struct hf_verify_result result;
	struct content c = { 0 };
	struct hf_record record;
	int r;

	ASSERT_OK(hf_journal_read(from, &reader, ERR));
	while ((r = hf_journal_next(reader, &record, ERR)) > 0)
		count_record(&record, &c);
	ASSERT_OK(r);
	hf_journal_reader_free(reader);
	ASSERT_OK(hf_journal_verify(from, show_problem, NULL, &result, ERR));
	assert_true(result.problems == 0);
	assert_true(result.records == c.records);
	c.torn = result.torn;
	return c;
}

static void append_fresh(struct hf_state *in, const struct scene *scene)
{
	struct hf_journal *journal = open_scene(in, scene);

	ASSERT_OK(note(journal, "fresh", 0));
	hf_journal_free(journal);
}

static uint64_t lost_in(const struct hf_state *in)
{
	struct hf_journal_totals t;

	ASSERT_OK(hf_journal_totals(in, &t, ERR));
	return t.lost;
}

/* Sequence number of the first record that is left, and the number of segments. */
static void look_at(struct hf_state *in, uint64_t *first, uint64_t *segments)
{
	struct hf_verify_result result;
	struct hf_journal_totals t;

	ASSERT_OK(hf_journal_verify(in, NULL, NULL, &result, ERR));
	ASSERT_OK(hf_journal_totals(in, &t, ERR));
	*first = result.first;
	*segments = t.segments;
}

static void scenes_are_what_they_are_called(void **state)
{
	static const struct {
		const struct scene *scene;
		int rotates, prunes;
	} cases[] = { { &plain, 0, 0 }, { &durable, 0, 0 }, { &rotating, 1, 0 }, { &pruning, 0, 1 } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hf_state *in = new_state();
		struct hf_journal *journal = start_scene(in, cases[i].scene);
		uint64_t first, segments, first_after, segments_after;

		look_at(in, &first, &segments);
		ASSERT_OK(note(journal, "victim", cases[i].scene->flags));
		look_at(in, &first_after, &segments_after);
		assert_int_equal(segments_after - segments, cases[i].rotates);
		assert_int_equal(first_after > first, cases[i].prunes);
		hf_journal_free(journal);
		}
}

/* -- failing ---------------------------------------------------------------- */

/* An append that could not be made durable is written all the same. */
static int is_there(int result, const struct scene *scene)
{
	return result == 0 || (scene->flags && result != HF_E_LOST);
}

static void check_after(struct hf_state *in, const struct scene *scene, int result)
{
	struct content c = read_all(in);
	uint64_t lost = result == HF_E_LOST;

	assert_int_equal(c.victims, is_there(result, scene));
	assert_int_equal(c.same, 1);
	assert_int_equal(c.fresh, 1);
	assert_true(c.steps == 0);
	assert_true(c.lost_sum == lost);
	assert_true(lost_in(in) == lost);
}

/* One append with the fault. Returns 0 when it made too few calls to be struck. */
static int strike_once(const struct scene *scene, const struct hf_fault *fault)
{
	struct hf_state *in = new_state();
	int fds = hf_test_fd_count(), hit, r;
	struct hf_journal *journal = start_scene(in, scene);
	char struck[32];

	hf_fault_arm(fault);
	r = note(journal, "victim", scene->flags);
	hit = hf_fault_hit();
	snprintf(struck, sizeof(struck), "%s", hf_fault_call());
	hf_fault_disarm();
	if (r != 0 && r != HF_E_LOST && !(scene->flags && r == -fault->error)) {
		print_error("%s, call %d, %s: returned %d\n", struck, fault->at,
			    strerror(fault->error), r);
		fail();
	}
	/* The handle itself is good again, and so is everybody else's. */
	ASSERT_OK(note(journal, "same", 0));
	hf_journal_free(journal);
	append_fresh(in, scene);
	assert_int_equal(hf_test_fd_count(), fds);
	check_after(in, scene, r);
	return hit;
}

static void strike_all(const struct scene *scene, struct hf_fault fault)
{
	int struck = 0;

	for (size_t e = 0; e < ERRORS; e++) {
		/* A call that for ever says "again" is no fault that ends. */
		if (fault.persist && errors[e] == EINTR)
			continue;
		fault.error = errors[e];
		for (fault.at = 1; strike_once(scene, &fault); fault.at++) {
			assert_in_range(fault.at, 1, CALLS_MOST);
			struck++;
		}
	}
	assert_true(struck >= 4);
}

#define STRIKES(scene)                                                                  \
	static void scene##_append_with_one_failing_call_keeps_the_journal_whole(        \
		void **state)                                                           \
	{                                                                               \
		(void)state;                                                            \
		strike_all(&scene, (struct hf_fault){ 0 });                             \
	}                                                                               \
	static void scene##_append_with_all_later_calls_failing_keeps_the_journal_whole( \
		void **state)                                                           \
	{                                                                               \
		(void)state;                                                            \
		strike_all(&scene, (struct hf_fault){ .persist = 1 });                  \
	}                                                                               \
	static void scene##_append_with_writes_cut_short_keeps_the_journal_whole(        \
		void **state)                                                           \
	{                                                                               \
		(void)state;                                                            \
		/* Once: pwrite fails after half. Then also taking it back fails. */    \
		for (int once = 0; once < 2; once++)                                    \
			for (int at = 1; at <= 3; at++)                                 \
				(void)strike_once(&scene, &(struct hf_fault){           \
								  .call = once ? "pwrite" : NULL, \
								  .at = first_pwrite(&scene, once, at), \
								  .error = ENOSPC,      \
								  .persist = !once,     \
								  .short_write = 1 });  \
	}

/*
 * Number of the `nth` pwrite of the scene's append: among the pwrites (`own`),
 * or among all calls.
 */
static int first_pwrite(const struct scene *scene, int own, int nth)
{
	for (int at = 1; at < CALLS_MOST && !own; at++) {
		struct hf_state *in = new_state();
		struct hf_journal *journal = start_scene(in, scene);
		int is_pwrite;

		hf_fault_arm(&(struct hf_fault){ .at = at, .error = EINTR });
		(void)note(journal, "victim", scene->flags);
		is_pwrite = hf_fault_hit() && strcmp(hf_fault_call(), "pwrite") == 0;
		hf_fault_disarm();
		hf_journal_free(journal);
			if (is_pwrite && --nth == 0)
			return at;
	}
	return own ? nth : CALLS_MOST;
}

STRIKES(plain)
STRIKES(durable)
STRIKES(rotating)
STRIKES(pruning)

static void full_disk_that_stays_full_after_pruning_leaves_the_pruning_explained(void **state)
{
	struct hf_state *in = new_state();
	struct hf_journal *journal = start_scene(in, &pruning);

	(void)state;
	for (int i = 0; i < 3; i++) {
		hf_fault_arm(&(struct hf_fault){
			.call = "pwrite", .at = 1, .error = ENOSPC, .persist = 1 });
		ASSERT_ERR(note(journal, "victim", 0), HF_E_LOST);
		hf_fault_disarm();
	}
	ASSERT_OK(note(journal, "same", 0));
	hf_journal_free(journal);
	assert_true(read_all(in).lost_sum == 3);
	assert_true(lost_in(in) == 3);
}

static void opening_with_one_failing_call_leaks_nothing_and_harms_nothing(void **state)
{
	int hit = 1;

	(void)state;
	for (size_t e = 0; e < ERRORS; e++)
		for (int at = 1; at < CALLS_MOST; at++) {
			struct hf_state *in = new_state();
			struct hf_journal *journal = NULL;
			int fds = hf_test_fd_count(), r;

			hf_fault_arm(&(struct hf_fault){ .at = at, .error = errors[e] });
			r = hf_journal_open(in, NULL, &journal, ERR);
			hit = hf_fault_hit();
			hf_fault_disarm();
			assert_int_equal(r == 0, journal != NULL);
			assert_true(r == 0 || r == -errors[e]);
			if (r == 0)
				ASSERT_OK(note(journal, "same", 0));
			hf_journal_free(journal);
			append_fresh(in, &plain);
			assert_int_equal(hf_test_fd_count(), fds);
			assert_int_equal(read_all(in).same, r == 0);
					if (!hit)
				break;
		}
	assert_int_equal(hit, 0);
}

/* Reads (and waits a moment), or verifies. Returns the first error. */
static int look(const struct hf_state *in, int verifying)
{
	struct hf_verify_result result;
	struct hf_journal_reader *reader;
	struct hf_record record;
	int r;

	if (verifying)
		return hf_journal_verify(in, NULL, NULL, &result, ERR);
	r = hf_journal_read(in, &reader, ERR);
	if (r < 0)
		return r;
	while ((r = hf_journal_next(reader, &record, ERR)) > 0)
		continue;
	for (int i = 0; i < 2 && r >= 0; i++)
		r = hf_journal_wait(reader, 0, ERR);
	hf_journal_reader_free(reader);
	return r;
}

static void reading_with_one_failing_call_says_so_and_leaks_nothing(void **state)
{
	struct hf_state *in = new_state();
	int hit = 1;

	(void)state;
	hf_journal_free(start_scene(in, &pruning));
	for (int verifying = 0; verifying < 2; verifying++)
		for (size_t e = 0; e < ERRORS; e++)
			for (int at = 1; at < CALLS_MOST; at++) {
				int fds = hf_test_fd_count(), r;

				hf_fault_arm(&(struct hf_fault){ .at = at, .error = errors[e] });
				r = look(in, verifying);
				hit = hf_fault_hit();
				hf_fault_disarm();
				/* Passed over, told, or not noticed because it was tried again. */
				assert_true(r >= 0 || r == -errors[e]);
				assert_int_equal(hf_test_fd_count(), fds);
				if (!hit)
					break;
			}
	assert_int_equal(hit, 0);
	(void)read_all(in);
}

/* -- dying ------------------------------------------------------------------ */

static void die_at(struct hf_state *in, const struct scene *scene, int at, int with_open, int report)
{
	struct hf_journal_opts opts = { .size = sizeof(opts),
					.segment_bytes = scene->segment,
					.retain_bytes = scene->retain,
					.wait_ns = HF_TEST_PATIENCE_NS };
	struct hf_journal *journal;

	if (with_open)
		hf_fault_arm(&(struct hf_fault){ .at = at, .kill = 1 });
	if (hf_journal_open(in, &opts, &journal, NULL) < 0)
		_exit(1);
	if (!with_open)
		hf_fault_arm(&(struct hf_fault){ .at = at, .kill = 1 });
	for (char i = 0; i < 3; i++) {
		char text[] = { 'a', 'c', 'k', ' ', (char)('0' + i), '\0' };

		if (note(journal, text, scene->flags) == 0 && write(report, &i, 1) != 1)
			_exit(1);
	}
	_exit(0);
}

/* Returns 1 when the child died at the call, 0 when it came through. */
static int kill_once(const struct scene *scene, int at, int with_open)
{
	struct hf_state *in = new_state();
	int report[2], acknowledged = 0;
	struct content c;
	siginfo_t info;
	char which;
	pid_t pid;

	hf_journal_free(start_scene(in, scene));
	assert_int_equal(pipe2(report, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		die_at(in, scene, at, with_open, report[1]);
	close(report[1]);
	while (read(report[0], &which, 1) == 1)
		assert_int_equal(which, acknowledged++);
	close(report[0]);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED), 0);
	append_fresh(in, scene);
	c = read_all(in);
	for (int i = 0; i < acknowledged; i++)
		assert_int_equal(c.acked[i], 1);
	/* The one it died in may be there, but not twice; the rest cannot be. */
	if (acknowledged < 3)
		assert_in_range(c.acked[acknowledged], 0, 1);
	for (int i = acknowledged + 1; i < 3; i++)
		assert_int_equal(c.acked[i], 0);
	assert_int_equal(c.fresh, 1);
	assert_true(c.steps == 0 && c.torn == 0);
	assert_true(lost_in(in) == 0);
	assert_true(info.si_code == CLD_KILLED || info.si_status == 0);
	assert_true(info.si_code == CLD_KILLED || acknowledged == 3);
	return info.si_code == CLD_KILLED;
}

static void kill_everywhere(const struct scene *scene, int with_open)
{
	int at = 1;

	while (kill_once(scene, at, with_open))
		assert_in_range(++at, 1, CALLS_MOST);
	assert_true(at > 12);
}

static void killed_at_any_call_of_an_append_loses_nothing_acknowledged(void **state)
{
	(void)state;
	kill_everywhere(&plain, 0);
}

static void killed_at_any_call_of_opening_loses_nothing_acknowledged(void **state)
{
	(void)state;
	kill_everywhere(&plain, 1);
}

static void killed_at_any_call_of_a_durable_append_loses_nothing_acknowledged(void **state)
{
	(void)state;
	kill_everywhere(&durable, 0);
}

static void killed_at_any_call_of_a_rotation_loses_nothing_acknowledged(void **state)
{
	(void)state;
	kill_everywhere(&rotating, 0);
}

static void killed_at_any_call_of_pruning_loses_nothing_acknowledged(void **state)
{
	(void)state;
	kill_everywhere(&pruning, 0);
}

#define STRIKE_TESTS(scene)                                                        \
	HF_TEST(scene##_append_with_one_failing_call_keeps_the_journal_whole),      \
	HF_TEST(scene##_append_with_all_later_calls_failing_keeps_the_journal_whole), \
	HF_TEST(scene##_append_with_writes_cut_short_keeps_the_journal_whole)

int main(void)
{
	const struct CMUnitTest tests[] = {
		HF_TEST(scenes_are_what_they_are_called),
		STRIKE_TESTS(plain),
		STRIKE_TESTS(durable),
		STRIKE_TESTS(rotating),
		STRIKE_TESTS(pruning),
		HF_TEST(full_disk_that_stays_full_after_pruning_leaves_the_pruning_explained),
		HF_TEST(opening_with_one_failing_call_leaks_nothing_and_harms_nothing),
		HF_TEST(reading_with_one_failing_call_says_so_and_leaks_nothing),
		HF_TEST(killed_at_any_call_of_an_append_loses_nothing_acknowledged),
		HF_TEST(killed_at_any_call_of_opening_loses_nothing_acknowledged),
		HF_TEST(killed_at_any_call_of_a_durable_append_loses_nothing_acknowledged),
		HF_TEST(killed_at_any_call_of_a_rotation_loses_nothing_acknowledged),
		HF_TEST(killed_at_any_call_of_pruning_loses_nothing_acknowledged),
	};

	return hf_run_tests("journal_faults", tests);
}
