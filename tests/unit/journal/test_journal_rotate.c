/* unit/journal/test_journal_rotate.c - full segments are sealed, the oldest go, no record is lost on the way. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helper/journal_rotate.h"
#include "hf/base/cleanup.h"
#include "hf/sys/calls.h"

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
	journal = open_journal(0, 0); /* makes new counters, right with the next record */
	ASSERT_OK(numbered(journal, 0, 4));
	hf_journal_free(journal);
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
	};

	return hf_run_tests("journal_rotate", tests);
}
