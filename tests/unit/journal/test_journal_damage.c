/* unit/journal/test_journal_damage.c - torn tails, garbage, lost counters; and what verify says of a damaged journal. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helper/journal_content.h"
#include "hf/base/buf.h"
#include "hf/base/cleanup.h"
#include "hf/journal/line.h"

/* Raw bytes at the end of a file, behind the library's back. */
static void add_bytes(const char *leaf, const void *bytes, size_t len)
{
	AUTO_FD fd = open(hf_test_path(leaf), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), len);
}

static void read_file(const char *leaf, struct hf_buf *out)
{
	AUTO_FD fd = open(hf_test_path(leaf), O_RDONLY | O_CLOEXEC);
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	hf_buf_reset(out);
	assert_int_equal(hf_buf_reserve(out, (size_t)st.st_size), 0);
	out->len = (size_t)st.st_size;
	assert_int_equal(pread(fd, out->s, out->len, 0), out->len);
}

static void write_file(const char *leaf, const void *bytes, size_t len)
{
	assert_int_equal(truncate(hf_test_path(leaf), 0), 0);
	add_bytes(leaf, bytes, len);
}

/* A record's line of that number, as some writer would have written it. */
static void make_line(struct hf_buf *line, uint64_t seq, const char *text)
{
	AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT;
	struct hf_field fields[] = { HF_FIELD_TEXT("text", text) };

	ASSERT_OK(hf_line_body(&body, HF_EV_NOTE, "t", fields, 1, ERR));
	hf_buf_reset(line);
	hf_line_finish(line, seq, hf_wall_now(), 4711, &body);
	assert_int_equal(line->err, 0);
}

/* -- damage ----------------------------------------------------------------- */

/* A writer died after `cut` bytes of its record; another one comes next. */
static void crash_after(struct hf_journal *journal, uint64_t next, size_t cut)
{
	AUTO(hf_buf_done) struct hf_buf line = HF_BUF_INIT;

	make_line(&line, next, "torn");
	add_bytes(EVENTS, line.s, cut < line.len ? cut : line.len - 1);
	ASSERT_OK(note(journal, "behind it"));
}

static void torn_tail_of_any_length_never_harms_the_next_record(void **state)
{
	struct hf_journal *journal = open_journal();
	AUTO(hf_buf_done) struct hf_buf line = HF_BUF_INIT;
	struct content c;

	(void)state;
	ASSERT_OK(note(journal, "first"));
	make_line(&line, 1000, "torn");
	for (size_t cut = 1; cut < line.len; cut++) {
		uint64_t last = hf_journal_last_seq(journal);

		crash_after(journal, last + 1, cut);
		c = read_all("behind it");
		assert_true(c.hits == cut);
		assert_true(c.steps == 0);
		assert_true(c.last == hf_journal_last_seq(journal));
	}
	hf_journal_free(journal);
	assert_true(totals().lost == 0);
	assert_clean();
}

static void torn_tail_without_its_newline_alone_does_not_repeat_a_number(void **state)
{
	struct hf_journal *journal = open_journal();
	struct content c;

	(void)state;
	ASSERT_OK(note(journal, "first"));
	crash_after(journal, 2, SIZE_MAX); /* the whole record but for the newline */
	hf_journal_free(journal);
	c = read_all("behind it");
	assert_true(c.hits == 1);
	assert_true(c.steps == 0);
	assert_clean();
}

static void torn_tail_is_told_and_is_no_problem(void **state)
{
	AUTO(hf_buf_done) struct hf_buf line = HF_BUF_INIT;
	struct hf_verify_result result;
	struct found found;

	(void)state;
	append_notes(2);
	make_line(&line, 3, "torn");
	add_bytes(EVENTS, line.s, line.len / 2);
	result = verify(&found); /* while it stands at the end */
	assert_true(result.torn == 1 && result.problems == 0 && result.records == 2);
	append_notes(1);
	result = verify(&found); /* and in the middle */
	assert_true(result.torn == 1 && result.problems == 0 && result.records == 3);
	assert_int_equal(found.kinds[HF_PROBLEM_TORN], 1);
}

static void add_garbage(size_t len, int kind)
{
	char *bytes = malloc(len);

	assert_non_null(bytes);
	for (size_t i = 0; i < len; i++)
		bytes[i] = (char)(kind == 0 ? 0 : kind == 1 ? 'x' : 128 + i % 127);
	add_bytes(EVENTS, bytes, len);
	free(bytes);
}

static void garbage_is_passed_over_and_counted_and_harms_no_record(void **state)
{
	static const size_t lengths[] = { 1, 100, 4096, 65536, 131072, 200 << 10, 1 << 20 };
	struct hf_journal *journal = open_journal();
	uint64_t expected = 1, damaged = 0;
	struct content c;

	(void)state;
	ASSERT_OK(note(journal, "good"));
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (int kind = 0; kind < 3; kind++) {
			add_garbage(lengths[i], kind);
			ASSERT_OK(note(journal, "good"));
			c = read_all("good");
			assert_true(c.hits == ++expected);
			assert_true(c.steps == 0);
			assert_true(c.damaged > damaged);
			damaged = c.damaged;
		}
	hf_journal_free(journal);
	append_notes(1); /* a handle that never saw the garbage come */
	assert_true(read_all(NULL).steps == 0);
}

static void garbage_is_a_problem_for_verify_wherever_it_begins(void **state)
{
	static const size_t lengths[] = { 1, 100, 65536, 131072, 1 << 20 };

	(void)state;
	append_notes(1);
	for (size_t i = 0; i < 2 * sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct hf_verify_result result;
		struct found found;
		int lead = i % 2; /* records before it */

		assert_int_equal(unlink(hf_test_path(EVENTS)), 0);
		assert_int_equal(unlink(hf_test_path(COUNTERS)), 0);
		append_notes(lead);
		add_garbage(lengths[i / 2], 2);
		append_notes(1);
		result = verify(&found);
		assert_int_equal(found.kinds[HF_PROBLEM_DAMAGED] > 0, 1);
		assert_true(result.problems == (uint64_t)found.kinds[HF_PROBLEM_DAMAGED]);
		assert_true(result.records == 1 + (uint64_t)lead);
	}
}

static void reader_does_not_mix_a_write_taken_back_with_the_next_record(void **state)
{
	struct hf_journal *journal = open_journal();
	AUTO(hf_buf_done) struct hf_buf line = HF_BUF_INIT;
	struct hf_journal_reader *reader;
	struct hf_record record;
	off_t end;

	(void)state;
	ASSERT_OK(note(journal, "first"));
	ASSERT_OK(hf_journal_read(hf_test_state(), &reader, ERR));
	assert_int_equal(hf_journal_next(reader, &record, ERR), 1);
	/* A writer gets half of its record in, the reader looks, the writer takes it back. */
	end = size_of(EVENTS);
	make_line(&line, 2, "taken back");
	add_bytes(EVENTS, line.s, line.len / 2);
	assert_int_equal(hf_journal_next(reader, &record, ERR), 0);
	assert_int_equal(truncate(hf_test_path(EVENTS), end), 0);
	ASSERT_OK(note(journal, "second"));
	assert_int_equal(hf_journal_next(reader, &record, ERR), 1);
	assert_string_equal(hf_record_text(&record, "text"), "second");
	assert_true(hf_journal_reader_damaged(reader) == 0);
	hf_journal_reader_free(reader);
	hf_journal_free(journal);
}

static void file_deleted_while_open_is_made_anew_and_the_loss_stays_visible(void **state)
{
	struct hf_journal *journal = open_journal();
	struct hf_verify_result result;
	struct found found;

	(void)state;
	for (int i = 0; i < 3; i++)
		ASSERT_OK(note(journal, "gone"));
	assert_int_equal(unlink(hf_test_path(EVENTS)), 0);
	result = verify(&found);
	assert_int_equal(found.kinds[HF_PROBLEM_TAIL], 1);
	ASSERT_OK(note(journal, "here"));
	assert_true(hf_journal_last_seq(journal) == 4);
	hf_journal_free(journal);
	assert_true(read_all("here").hits == 1);
	result = verify(&found);
	assert_true(result.records == 1 && result.first == 4 && result.last == 4);
	assert_int_equal(found.kinds[HF_PROBLEM_GAP], 1);
	assert_true(result.problems == 1);
}

static void deleted_counters_do_not_break_the_sequence(void **state)
{
	struct hf_journal *journal = open_journal();

	(void)state;
	ASSERT_OK(note(journal, "one"));
	assert_int_equal(unlink(hf_test_path(COUNTERS)), 0);
	ASSERT_OK(note(journal, "two"));
	append_notes(1);
	ASSERT_OK(note(journal, "four"));
	hf_journal_free(journal);
	assert_true(read_all(NULL).last == 4);
	assert_true(read_all(NULL).steps == 0);
	assert_clean();
}

static void damaged_counters_do_not_break_the_sequence(void **state)
{
	static const char *const damage[] = {
		"",
		"s",
		"seq 0000000000000000",
		"seq 0000000000000000000x\nlost 0000000000000000000x\n",
		"seq 99999999999999999999\nlost 99999999999999999999\n",
		"seq -0000000000000000001\nlost -0000000000000000001\n",
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
	};
	struct hf_journal *journal = open_journal();
	uint64_t n = 1;

	(void)state;
	ASSERT_OK(note(journal, "one"));
	for (size_t i = 0; i < sizeof(damage) / sizeof(damage[0]); i++) {
		write_file(COUNTERS, damage[i], strlen(damage[i]));
		append_notes(1);
		write_file(COUNTERS, damage[i], strlen(damage[i]));
		ASSERT_OK(note(journal, "on"));
		n += 2;
		assert_true(hf_journal_last_seq(journal) == n);
		assert_true(totals().seq == n && totals().lost == 0);
		assert_clean();
	}
	hf_journal_free(journal);
}

static void last_number_in_the_counters_never_acknowledges_an_unreadable_record(void **state)
{
	static const char edge[] = "seq 00009007199254740991\nlost 00000000000000000000\n";
	struct hf_journal *journal;
	uint64_t acknowledged = 0;

	(void)state;
	append_notes(1);
	write_file(COUNTERS, edge, sizeof(edge) - 1);
	journal = open_journal();
	for (int i = 0; i < 3; i++)
		acknowledged += note(journal, "edge") == 0;
	hf_journal_free(journal);
	assert_true(read_all("edge").hits == acknowledged);
}

/* -- verify ----------------------------------------------------------------- */

/* Where line `n` (from 0) begins in `text`. */
static char *line_at(struct hf_buf *text, int n)
{
	char *at = text->s;

	while (n-- > 0)
		at = strchr(at, '\n') + 1;
	return at;
}

static void clean_journal_has_no_problem(void **state)
{
	struct hf_verify_result result;
	struct found found;

	(void)state;
	append_notes(5);
	result = verify(&found);
	assert_true(result.records == 5 && result.first == 1 && result.last == 5);
	assert_true(result.problems == 0 && result.torn == 0 && result.lost == 0);
}

static void flipped_byte_is_found_and_its_record_missed(void **state)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;
	struct hf_verify_result result;
	struct found found;

	(void)state;
	append_notes(5);
	read_file(EVENTS, &text);
	line_at(&text, 2)[30] ^= 1;
	write_file(EVENTS, text.s, text.len);
	result = verify(&found);
	assert_true(result.records == 4 && result.problems == 2 && result.torn == 0);
	assert_int_equal(found.kinds[HF_PROBLEM_DAMAGED], 1);
	assert_int_equal(found.kinds[HF_PROBLEM_GAP], 1);
}

static void line_deleted_in_the_middle_is_a_gap(void **state)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;
	struct hf_verify_result result;
	struct found found;
	char *from, *to;

	(void)state;
	append_notes(5);
	read_file(EVENTS, &text);
	from = line_at(&text, 2);
	to = line_at(&text, 3);
	memmove(from, to, text.len - (size_t)(to - text.s));
	write_file(EVENTS, text.s, text.len - (size_t)(to - from));
	result = verify(&found);
	assert_true(result.records == 4 && result.problems == 1);
	assert_int_equal(found.kinds[HF_PROBLEM_GAP], 1);
	assert_non_null(strstr(found.text, "3 to 3"));
}

static void line_deleted_at_the_end_is_missed_and_not_given_again(void **state)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;
	struct hf_verify_result result;
	struct found found;

	(void)state;
	append_notes(5);
	read_file(EVENTS, &text);
	write_file(EVENTS, text.s, (size_t)(line_at(&text, 4) - text.s));
	result = verify(&found);
	assert_true(result.records == 4 && result.problems == 1);
	assert_int_equal(found.kinds[HF_PROBLEM_TAIL], 1);
	append_notes(1);
	assert_true(read_all(NULL).last == 6);
	result = verify(&found);
	assert_int_equal(found.kinds[HF_PROBLEM_GAP], 1);
}

/* What `seq` of the counters is after a hand wrote there. */
static void set_counted(uint64_t seq)
{
	char text[64];
	int n = snprintf(text, sizeof(text), "seq %020llu\nlost %020d\n", (unsigned long long)seq, 0);

	write_file(COUNTERS, text, (size_t)n);
}

static void missing_or_lowered_counters_beside_records_are_found(void **state)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;
	struct hf_verify_result result;
	struct found found;

	(void)state;
	append_notes(5);
	read_file(EVENTS, &text);
	write_file(EVENTS, text.s, (size_t)(line_at(&text, 4) - text.s));
	set_counted(2);
	result = verify(&found);
	assert_true(result.records == 4 && result.problems == 1);
	assert_int_equal(found.kinds[HF_PROBLEM_COUNTERS], 1);
	assert_int_equal(unlink(hf_test_path(COUNTERS)), 0);
	result = verify(&found);
	assert_true(result.records == 4 && result.problems == 1);
	assert_int_equal(found.kinds[HF_PROBLEM_COUNTERS], 1);
	/* A single record is enough. */
	write_file(EVENTS, text.s, (size_t)(line_at(&text, 1) - text.s));
	result = verify(&found);
	assert_true(result.records == 1 && result.problems == 1);
	append_notes(1);
	assert_clean();
}

static void writers_that_died_before_they_counted_are_no_problem(void **state)
{
	AUTO(hf_buf_done) struct hf_buf line = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT;
	struct hf_field rotated[] = { HF_FIELD_TEXT("segment", "events.00000000000000000001.jsonl"), HF_FIELD_INT("last", 3) };

	(void)state;
	append_notes(1);
	make_line(&line, 2, "not counted");
	add_bytes(EVENTS, line.s, line.len);
	assert_clean();
	/* The next one counts it before it writes its own. */
	append_notes(1);
	set_counted(2);
	assert_clean();
	/* The records that the journal itself puts before one are written with it. */
	ASSERT_OK(hf_line_body(&body, HF_EV_JOURNAL_ROTATED, NULL, rotated, 2, ERR));
	hf_buf_reset(&line);
	hf_line_finish(&line, 4, hf_wall_now(), 1, &body);
	add_bytes(EVENTS, line.s, line.len);
	make_line(&line, 5, "with it");
	add_bytes(EVENTS, line.s, line.len);
	set_counted(3);
	assert_clean();
}

static void repeated_line_is_found(void **state)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;
	struct hf_verify_result result;
	struct found found;
	char *from, *to;

	(void)state;
	append_notes(5);
	read_file(EVENTS, &text);
	from = line_at(&text, 2);
	to = line_at(&text, 3);
	write_file(EVENTS, text.s, (size_t)(to - text.s));
	add_bytes(EVENTS, from, text.len - (size_t)(from - text.s));
	result = verify(&found);
	assert_true(result.records == 6 && result.problems == 1);
	assert_int_equal(found.kinds[HF_PROBLEM_REPEAT], 1);
}

static void unknown_event_is_found_and_readable(void **state)
{
	AUTO(hf_buf_done) struct hf_buf line = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT;
	struct hf_verify_result result;
	struct found found;

	(void)state;
	append_notes(1);
	hf_buf_add_text(&body, ",\"event\":\"from_the_future\"");
	hf_line_finish(&line, 2, hf_wall_now(), 1, &body);
	add_bytes(EVENTS, line.s, line.len);
	append_notes(1);
	result = verify(&found);
	assert_true(result.records == 3 && result.problems == 1);
	assert_int_equal(found.kinds[HF_PROBLEM_EVENT], 1);
	assert_true(read_all(NULL).records == 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HF_TEST(torn_tail_of_any_length_never_harms_the_next_record),
		HF_TEST(torn_tail_without_its_newline_alone_does_not_repeat_a_number),
		HF_TEST(torn_tail_is_told_and_is_no_problem),
		HF_TEST(garbage_is_passed_over_and_counted_and_harms_no_record),
		HF_TEST(garbage_is_a_problem_for_verify_wherever_it_begins),
		HF_TEST(reader_does_not_mix_a_write_taken_back_with_the_next_record),
		HF_TEST(file_deleted_while_open_is_made_anew_and_the_loss_stays_visible),
		HF_TEST(deleted_counters_do_not_break_the_sequence),
		HF_TEST(damaged_counters_do_not_break_the_sequence),
		HF_TEST(last_number_in_the_counters_never_acknowledges_an_unreadable_record),
		HF_TEST(clean_journal_has_no_problem),
		HF_TEST(flipped_byte_is_found_and_its_record_missed),
		HF_TEST(line_deleted_in_the_middle_is_a_gap),
		HF_TEST(line_deleted_at_the_end_is_missed_and_not_given_again),
		HF_TEST(missing_or_lowered_counters_beside_records_are_found),
		HF_TEST(writers_that_died_before_they_counted_are_no_problem),
		HF_TEST(repeated_line_is_found),
		HF_TEST(unknown_event_is_found_and_readable),
	};

	return hf_run_tests("journal_damage", tests);
}
