/* unit/journal/test_journal.c - appending and reading: what is acknowledged is there, once. */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helper/faults.h"
#include "helper/journal_content.h"

/*
 * With several writers a stalled disk or a loaded machine may make one wait for more
 * than 100 ms, and its record is lost as promised. Then again: the number of losses
 * is not what these tests are about.
 */
static int note_in_time(struct hf_journal *journal, const char *text)
{
	struct hf_mono until = hf_mono_in(10 * HF_SEC);
	int r;

	do {
		r = note(journal, text);
	} while (r == HF_E_LOST && hf_mono_left(until) > 0);
	return r;
}

/* -- append and read -------------------------------------------------------- */

static void record_is_read_back_as_it_was_appended(void **state)
{
	struct hf_field fields[] = { HF_FIELD_INT("waited_ms", 31), HF_FIELD_TEXT("cause", "busy") };
	struct hf_wall before = hf_wall_now(), after;
	struct hf_journal *journal = open_journal();
	struct hf_journal_reader *reader;
	struct hf_record record;
	int64_t waited;

	(void)state;
	assert_true(hf_journal_last_seq(journal) == 0);
	ASSERT_OK(hf_journal_append(journal, HF_EV_LOCK_FAIL_OPEN, "fix-160", fields, 2, 0, ERR));
	after = hf_wall_now();
	assert_true(hf_journal_last_seq(journal) == 1);
	ASSERT_OK(hf_journal_read(hf_test_state(), &reader, ERR));
	assert_int_equal(hf_journal_next(reader, &record, ERR), 1);
	assert_true(record.seq == 1);
	assert_int_equal(record.pid, getpid());
	assert_true(record.time.ns >= before.ns / HF_USEC * HF_USEC && record.time.ns <= after.ns);
	assert_string_equal(record.event, "lock_fail_open");
	assert_string_equal(record.name, "fix-160");
	assert_string_equal(hf_record_text(&record, "cause"), "busy");
	assert_int_equal(hf_record_int(&record, "waited_ms", &waited), 1);
	assert_int_equal(waited, 31);
	assert_int_equal(hf_journal_next(reader, &record, ERR), 0);
	ASSERT_OK(note(journal, "more"));
	assert_int_equal(hf_journal_next(reader, &record, ERR), 1);
	assert_string_equal(hf_record_text(&record, "text"), "more");
	hf_journal_reader_free(reader);
	hf_journal_free(journal);
	assert_clean();
}

static void journal_that_was_never_written_is_empty(void **state)
{
	struct hf_journal_totals t = totals();

	(void)state;
	assert_true(t.seq == 0 && t.lost == 0 && t.bytes == 0 && t.segments == 0);
	assert_true(read_all(NULL).records == 0);
	assert_clean();
	/* Reading makes nothing. */
	assert_int_equal(access(hf_test_path("state/journal"), F_OK), -1);
}

static void files_of_the_journal_are_closed_to_others_L12(void **state)
{
	struct stat st;

	(void)state;
	append_notes(1);
	assert_int_equal(stat(hf_test_path(EVENTS), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(stat(hf_test_path(COUNTERS), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(stat(hf_test_path("state/journal"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
}

static void totals_tell_number_size_and_files(void **state)
{
	struct hf_journal_totals t;

	(void)state;
	append_notes(3);
	t = totals();
	assert_true(t.seq == 3 && t.lost == 0 && t.segments == 1);
	assert_true(t.bytes == (uint64_t)size_of(EVENTS));
}

static void append_some_in_a_child(void)
{
	struct hf_state *own;
	struct hf_journal *journal;

	CHILD_CHECK(hf_state_open(hf_test_path("state"), 0, &own, NULL) == 0);
	CHILD_CHECK(hf_journal_open(own, NULL, &journal, NULL) == 0);
	for (int i = 0; i < 50; i++)
		CHILD_CHECK(note_in_time(journal, "from a child") == 0);
	hf_journal_free(journal);
	hf_state_free(own);
}

static void sequence_rises_by_one_over_handles_and_processes(void **state)
{
	struct hf_journal *journals[3];
	struct content c;
	pid_t children[3];

	(void)state;
	for (int i = 0; i < 3; i++)
		journals[i] = open_journal();
	for (int i = 0; i < 9; i++) {
		ASSERT_OK(note(journals[i % 3], "in turn"));
		assert_true(hf_journal_last_seq(journals[i % 3]) == (uint64_t)i + 1);
	}
	for (int i = 0; i < 3; i++)
		children[i] = spawn(append_some_in_a_child);
	for (int i = 0; i < 50; i++)
		ASSERT_OK(note_in_time(journals[i % 3], "meanwhile"));
	for (int i = 0; i < 3; i++)
		assert_int_equal(reap(children[i]), 0);
	for (int i = 0; i < 3; i++)
		hf_journal_free(journals[i]);
	c = read_all("from a child");
	assert_true(c.records - c.lost == 9 + 50 + 150 && c.hits == 150);
	assert_true(c.steps == 0 && c.damaged == 0);
	assert_true(totals().seq == c.last && totals().lost == c.lost_sum);
	assert_clean();
}

static void record_outside_the_table_is_neither_written_nor_counted(void **state)
{
	struct hf_field fields[] = { HF_FIELD_TEXT("txet", "x") };
	struct hf_journal *journal = open_journal();
	off_t before;

	(void)state;
	ASSERT_OK(note(journal, "one"));
	before = size_of(EVENTS);
	ASSERT_ERR(hf_journal_append(journal, HF_EV_NOTE, NULL, fields, 1, 0, ERR), HF_E_EVENT);
	ASSERT_ERR(hf_journal_append(journal, HF_EVENT_COUNT, NULL, NULL, 0, 0, ERR), HF_E_EVENT);
	assert_int_equal(size_of(EVENTS), before);
	assert_true(totals().lost == 0);
	ASSERT_OK(note(journal, "two"));
	hf_journal_free(journal);
	assert_true(read_all(NULL).lost == 0);
	assert_true(read_all(NULL).records == 2);
}

static void wrong_arguments_are_refused(void **state)
{
	struct hf_journal *journal = open_journal();
	struct hf_journal_opts small = { .size = 1 };
	struct hf_journal *none = NULL;

	(void)state;
	ASSERT_ERR(hf_journal_append(NULL, HF_EV_NOTE, NULL, NULL, 0, 0, ERR), -EINVAL);
	ASSERT_ERR(hf_journal_append(journal, HF_EV_NOTE, NULL, NULL, 1, 0, ERR), -EINVAL);
	ASSERT_ERR(hf_journal_append(journal, HF_EV_NOTE, NULL, NULL, 0, 2, ERR), -EINVAL);
	ASSERT_ERR(hf_journal_open(hf_test_state(), &small, &none, ERR), -EINVAL);
	ASSERT_ERR(hf_journal_open(NULL, NULL, &none, ERR), -EINVAL);
	assert_null(none);
	hf_journal_free(journal);
	hf_journal_free(NULL);
	hf_journal_reader_free(NULL);
}

/* -- limits, fork, durability ------------------------------------------------ */

static rlim_t child_limit;

static void file_size_limit_in_a_child(void)
{
	struct rlimit limit = { child_limit, child_limit };
	struct hf_journal_totals t;
	struct hf_journal *journal;
	struct hf_state *own;
	struct content c;
	uint64_t lost = 0, written = 0;

	CHILD_CHECK(hf_state_open(hf_test_path("state"), 0, &own, NULL) == 0);
	CHILD_CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	if (hf_journal_open(own, NULL, &journal, NULL) < 0)
		_exit(0); /* refusing is fine; dying is not */
	for (int i = 0; i < 200; i++) {
		int r = note(journal, "0123456789012345678901234567890123456789");

		CHILD_CHECK(r == 0 || r == HF_E_LOST);
		written += r == 0;
		lost += r == HF_E_LOST;
	}
	CHILD_CHECK(lost > 0);
	CHILD_CHECK(read_content(own, NULL, &c) == 0);
	CHILD_CHECK(c.records == written && c.damaged == 0);
	/* The counters need 50 bytes. */
	CHILD_CHECK(hf_journal_totals(own, &t, NULL) == 0);
	CHILD_CHECK(child_limit < 100 || t.lost == lost);
	hf_journal_free(journal);
	hf_state_free(own);
}

static void file_size_limit_loses_records_and_does_not_kill_L13(void **state)
{
	static const rlim_t limits[] = { 8192, 100, 30, 1, 0 };

	(void)state;
	(void)hf_test_state();
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		child_limit = limits[i];
		assert_int_equal(reap(spawn(file_size_limit_in_a_child)), 0);
		(void)unlink(hf_test_path(EVENTS));
		(void)unlink(hf_test_path(COUNTERS));
	}
}

static struct hf_journal *inherited;

static void use_the_inherited_handle(void)
{
	int before = hf_test_fd_count();

	CHILD_CHECK(note(inherited, "from the child") == HF_E_FORKED);
	hf_journal_free(inherited);
	CHILD_CHECK(hf_test_fd_count() < before);
}

static void forked_child_may_only_free_the_handle_L13(void **state)
{
	(void)state;
	inherited = open_journal();
	ASSERT_OK(note(inherited, "one"));
	assert_int_equal(reap(spawn(use_the_inherited_handle)), 0);
	ASSERT_OK(note(inherited, "two"));
	hf_journal_free(inherited);
	assert_true(read_all(NULL).records == 2);
	assert_true(totals().lost == 0);
}

static int durable_note(struct hf_journal *journal)
{
	struct hf_field fields[] = { HF_FIELD_TEXT("text", "durable") };

	return hf_journal_append(journal, HF_EV_NOTE, NULL, fields, 1, HF_JOURNAL_DURABLE, ERR);
}

static void durable_record_is_synced_and_its_directory_once(void **state)
{
	static const struct {
		const char *call;
		int durable[2], plain;
	} cases[] = { { "fdatasync", { 1, 1 }, 0 }, { "fsync", { 1, 0 }, 0 } };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct hf_journal *journal = open_journal();
		struct hf_fault count = { .call = cases[i].call, .at = NEVER };

		for (int k = 0; k < 2; k++) {
			hf_fault_arm(&count);
			ASSERT_OK(durable_note(journal));
			assert_int_equal(hf_fault_count(), cases[i].durable[k]);
		}
		hf_fault_arm(&count);
		ASSERT_OK(note(journal, "plain"));
		assert_int_equal(hf_fault_count(), cases[i].plain);
		hf_fault_disarm();
		hf_journal_free(journal);
	}
}

static void undisturbed_append_costs_five_calls(void **state)
{
	struct hf_journal *journal = open_journal();

	(void)state;
	ASSERT_OK(note(journal, "warm"));
	hf_fault_arm(&(struct hf_fault){ .at = NEVER });
	ASSERT_OK(note(journal, "counted"));
	assert_in_range(hf_fault_count(), 3, 5);
	hf_fault_disarm();
	hf_journal_free(journal);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HF_TEST(record_is_read_back_as_it_was_appended),
		HF_TEST(journal_that_was_never_written_is_empty),
		HF_TEST(files_of_the_journal_are_closed_to_others_L12),
		HF_TEST(totals_tell_number_size_and_files),
		HF_TEST(sequence_rises_by_one_over_handles_and_processes),
		HF_TEST(record_outside_the_table_is_neither_written_nor_counted),
		HF_TEST(wrong_arguments_are_refused),
		HF_TEST(file_size_limit_loses_records_and_does_not_kill_L13),
		HF_TEST(forked_child_may_only_free_the_handle_L13),
		HF_TEST(durable_record_is_synced_and_its_directory_once),
		HF_TEST(undisturbed_append_costs_five_calls),
	};

	return hf_run_tests("journal", tests);
}
