/* unit/test_journal.c - appending, reading, following and verifying one segment. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hf/base/buf.h"
#include "hf/base/cleanup.h"
#include "helper/faults.h"
#include "helper/test.h"
#include "holdfast/journal.h"
#include "hf/journal/find.h"
#include "hf/journal/line.h"

#define EVENTS   "state/journal/events.jsonl"
#define COUNTERS "state/journal/counters"
#define NEVER    1000000 /* a fault that only counts */

/* In a child: there an assertion of cmocka would return into the parent's test. */
#define CHILD_CHECK(condition)                                                          \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "# child, line %d: %s\n", __LINE__, #condition); \
			_exit(1);                                                       \
		}                                                                       \
	} while (0)

#define CHILD_SKIPS 77

static struct hf_journal *open_journal(void)
{
	struct hf_journal *journal;

	ASSERT_OK(hf_journal_open(hf_test_state(), NULL, &journal, ERR));
	return journal;
}

/* Long enough that what does not wait is told from what does, on any machine. */
#define BOUND_MS 1000

static struct hf_journal *open_bounded(void)
{
	struct hf_journal_opts opts = { .size = sizeof(opts), .wait_ns = BOUND_MS * HF_MSEC };
	struct hf_journal *journal;

	ASSERT_OK(hf_journal_open(hf_test_state(), &opts, &journal, ERR));
	return journal;
}

static int note(struct hf_journal *journal, const char *text)
{
	struct hf_field fields[] = { HF_FIELD_TEXT("text", text) };

	return hf_journal_append(journal, HF_EV_NOTE, "t", fields, 1, 0, ERR);
}

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

static void append_notes(int n)
{
	struct hf_journal *journal = open_journal();

	for (int i = 0; i < n; i++)
		ASSERT_OK(note(journal, "filler"));
	hf_journal_free(journal);
}

static int64_t now_ms(void)
{
	return hf_mono_now().ns / HF_MSEC;
}

/* Waits for the child's end; returns its exit status, or 128 + its signal. */
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

static pid_t spawn(void (*body)(void))
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		body();
		_exit(0);
	}
	return pid;
}

/* Everything that is readable now. */
struct content {
	uint64_t records, damaged, last;
	uint64_t steps;	    /* sequence numbers that are not the one before plus one */
	uint64_t lost;	    /* journal_lost records, and the sum of their counts */
	uint64_t lost_sum;
	uint64_t hits;	    /* notes with the text asked for */
	char cause[64];
};

static void count_record(const struct hf_record *record, const char *text, struct content *c)
{
	const char *got = hf_record_text(record, "text");
	int64_t n = 0;

	c->records++;
	c->steps += record->seq != c->last + 1;
	c->last = record->seq;
	c->hits += text && got && strcmp(text, got) == 0;
	if (record->info && record->info->event == HF_EV_JOURNAL_LOST) {
		c->lost++;
		if (hf_record_int(record, "count", &n))
			c->lost_sum += (uint64_t)n;
		snprintf(c->cause, sizeof(c->cause), "%s", hf_record_text(record, "cause"));
	}
}

/* Without assertions, so that children may use it. Returns 0 or the error. */
static int read_content(const struct hf_state *from, const char *text, struct content *c)
{
	struct hf_journal_reader *reader;
	struct hf_record record;
	int r;

	memset(c, 0, sizeof(*c));
	r = hf_journal_read(from, &reader, ERR);
	if (r < 0)
		return r;
	while ((r = hf_journal_next(reader, &record, ERR)) > 0)
		count_record(&record, text, c);
	c->damaged = hf_journal_reader_damaged(reader);
	hf_journal_reader_free(reader);
	return r;
}

static struct content read_all(const char *text)
{
	struct content c;

	ASSERT_OK(read_content(hf_test_state(), text, &c));
	return c;
}

struct found {
	int kinds[8];
	char text[512];
};

static void note_problem(void *arg, const struct hf_problem_info *problem)
{
	struct found *found = arg;

	found->kinds[problem->problem]++;
	snprintf(found->text, sizeof(found->text), "%s:%llu %s", problem->file,
		 (unsigned long long)problem->line, problem->text);
}

static struct hf_verify_result verify(struct found *found)
{
	struct hf_verify_result result;

	memset(found, 0, sizeof(*found));
	ASSERT_OK(hf_journal_verify(hf_test_state(), note_problem, found, &result, ERR));
	return result;
}

static void assert_clean(void)
{
	struct found found;
	struct hf_verify_result result = verify(&found);

	if (result.problems)
		print_error("%s\n", found.text);
	assert_int_equal(result.problems, 0);
}

static struct hf_journal_totals totals(void)
{
	struct hf_journal_totals t;

	ASSERT_OK(hf_journal_totals(hf_test_state(), &t, ERR));
	return t;
}

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

static off_t size_of(const char *leaf)
{
	struct stat st;

	assert_int_equal(lstat(hf_test_path(leaf), &st), 0);
	return st.st_size;
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

/* -- damage ----------------------------------------------------------------- */

/* A writer died after `cut` bytes of its record; somebody else comes next. */
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

/* -- trust ------------------------------------------------------------------ */

enum trap { SYMLINK, DANGLING, FIFO, DIRECTORY, PLAIN, READABLE, GROUP, LINKED, TRAPS };

static const char *trap_path(const char *base, const char *leaf)
{
	static char paths[2][512];
	static unsigned turn;
	char *path = paths[turn++ % 2];

	snprintf(path, sizeof(paths[0]), "%s/%s", base, leaf);
	return path;
}

static void make_file(const char *path, mode_t mode)
{
	AUTO_FD fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "victim", 6), 6);
	assert_int_equal(fchmod(fd, mode), 0);
}

/* Puts the trap at `path`. Returns 0 when it is none there (a directory for journal/). */
static int set_trap(enum trap trap, const char *path, const char *victim, int on_dir)
{
	switch (trap) {
	case SYMLINK:
		assert_int_equal(symlink(victim, path), 0);
		return 1;
	case DANGLING:
		assert_int_equal(symlink(trap_path(hf_test_dir(), "nowhere"), path), 0);
		return 1;
	case FIFO:
		assert_int_equal(mkfifo(path, 0600), 0);
		return 1;
	case DIRECTORY:
		return on_dir ? 0 : (assert_int_equal(mkdir(path, 0700), 0), 1);
	case PLAIN:
		return on_dir ? (make_file(path, 0600), 1) : 0;
	case READABLE:
	case GROUP:
		if (on_dir)
			assert_int_equal(mkdir(path, 0700) |
						 chmod(path, trap == GROUP ? 0750 : 0705),
					 0);
		else
			make_file(path, trap == GROUP ? 0640 : 0604);
		return 1;
	case LINKED:
		return on_dir ? 0 : (assert_int_equal(link(victim, path), 0), 1);
	case TRAPS:
	default:
		return 0;
	}
}

static void try_trap(enum trap trap, const char *leaf)
{
	int on_dir = strcmp(leaf, "journal") == 0;
	char base[300], victim[320];
	struct hf_journal *journal = NULL;
	struct hf_state *own;
	struct stat before, after;
	int64_t start;

	snprintf(base, sizeof(base), "%s/%d-%s", hf_test_dir(), (int)trap,
		 strrchr(leaf, '/') ? strrchr(leaf, '/') + 1 : leaf);
	snprintf(victim, sizeof(victim), "%s-victim", base);
	if (on_dir)
		assert_int_equal(mkdir(victim, 0700), 0);
	else
		make_file(victim, 0600);
	ASSERT_OK(hf_state_open(base, 0, &own, ERR));
	if (!on_dir)
		assert_int_equal(mkdir(trap_path(base, "journal"), 0700), 0);
	if (set_trap(trap, trap_path(base, leaf), victim, on_dir)) {
		assert_int_equal(stat(victim, &before), 0);
		start = now_ms();
		ASSERT_ERR(hf_journal_open(own, NULL, &journal, ERR), HF_E_UNTRUSTED);
		assert_true(now_ms() - start < 1000);
		assert_null(journal);
		assert_int_equal(stat(victim, &after), 0);
		assert_true(before.st_size == after.st_size && before.st_mode == after.st_mode);
		assert_true(before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
		assert_true(before.st_nlink == after.st_nlink);
	}
	assert_int_equal(access(hf_test_path("nowhere"), F_OK), -1);
	hf_state_free(own);
}

static void nothing_but_our_own_file_is_taken_for_the_journal_L12(void **state)
{
	(void)state;
	alarm(60); /* a FIFO that blocks would hang for ever */
	for (int trap = 0; trap < TRAPS; trap++)
		try_trap((enum trap)trap, "journal/events.jsonl");
	alarm(0);
}

static void nothing_but_our_own_file_is_taken_for_the_counters_L12(void **state)
{
	(void)state;
	alarm(60);
	for (int trap = 0; trap < TRAPS; trap++)
		try_trap((enum trap)trap, "journal/counters");
	alarm(0);
}

static void nothing_but_our_own_directory_is_taken_for_journal_L12(void **state)
{
	(void)state;
	alarm(60);
	for (int trap = 0; trap < TRAPS; trap++)
		try_trap((enum trap)trap, "journal");
	alarm(0);
}

static void file_of_another_user_is_refused_L12(void **state)
{
	static const char *const leaves[] = { EVENTS, COUNTERS, "state/journal" };
	struct hf_journal *journal = NULL;

	(void)state;
	if (geteuid() != 0)
		HF_SKIP("only root can give a file away");
	append_notes(1);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(chown(hf_test_path(leaves[i]), 65534, 65534), 0);
		ASSERT_ERR(hf_journal_open(hf_test_state(), NULL, &journal, ERR), HF_E_UNTRUSTED);
		assert_int_equal(chown(hf_test_path(leaves[i]), 0, 0), 0);
	}
	append_notes(1);
}

static void trap_set_while_open_is_not_written_through_L12(void **state)
{
	struct hf_journal *journal = open_journal();
	struct hf_journal_reader *reader;
	struct hf_record record;

	(void)state;
	ASSERT_OK(note(journal, "one"));
	make_file(hf_test_path("victim"), 0600);
	assert_int_equal(unlink(hf_test_path(EVENTS)), 0);
	assert_int_equal(symlink(hf_test_path("victim"), hf_test_path(EVENTS)), 0);
	ASSERT_ERR(note(journal, "two"), HF_E_LOST);
	assert_int_equal(size_of("victim"), 6);
	ASSERT_OK(hf_journal_read(hf_test_state(), &reader, ERR));
	ASSERT_ERR(hf_journal_next(reader, &record, ERR), HF_E_UNTRUSTED);
	hf_journal_reader_free(reader);
	assert_int_equal(unlink(hf_test_path(EVENTS)), 0);
	ASSERT_OK(note(journal, "three"));
	hf_journal_free(journal);
	assert_true(read_all(NULL).lost_sum == 1);
}

/* -- loss ------------------------------------------------------------------- */

static void write_text(const char *path, const char *text)
{
	AUTO_FD fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		_exit(CHILD_SKIPS);
}

/* Child only: a tmpfs of 64 KiB that nobody else sees. */
static void mount_small(const char *path)
{
	char map[64];
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (unshare(uid == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) < 0)
		_exit(CHILD_SKIPS);
	if (uid != 0) {
		snprintf(map, sizeof(map), "0 %u 1", (unsigned)uid);
		write_text("/proc/self/uid_map", map);
		/* Files made there need a group that the name space knows. */
		write_text("/proc/self/setgroups", "deny");
		snprintf(map, sizeof(map), "0 %u 1", (unsigned)gid);
		write_text("/proc/self/gid_map", map);
	}
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("small", path, "tmpfs", 0, "size=64k,mode=0700") < 0)
		_exit(CHILD_SKIPS);
}

/* Writes until it no longer goes, then ten more. Returns how many were lost. */
static uint64_t fill_up(struct hf_journal *journal)
{
	uint64_t lost = 0;

	for (int i = 0; i < 10000 && lost < 10; i++) {
		int64_t start = now_ms();
		int r = note(journal, "0123456789012345678901234567890123456789");

		CHILD_CHECK(now_ms() - start < 250);
		CHILD_CHECK(r == 0 || r == HF_E_LOST);
		lost += r == HF_E_LOST;
		CHILD_CHECK(r == HF_E_LOST || lost == 0);
	}
	return lost;
}

static void full_disk_in_a_child(void)
{
	struct hf_verify_result result;
	struct hf_journal_totals t;
	struct hf_journal *journal;
	struct hf_state *own;
	struct content c;
	int spare;

	mount_small(hf_test_path("small"));
	CHILD_CHECK(hf_state_open(hf_test_path("small/state"), 0, &own, NULL) == 0);
	CHILD_CHECK(hf_journal_open(own, NULL, &journal, NULL) == 0);
	spare = open(hf_test_path("small/spare"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	CHILD_CHECK(spare >= 0 && posix_fallocate(spare, 0, 16384) == 0);
	CHILD_CHECK(fill_up(journal) == 10);
	CHILD_CHECK(hf_journal_totals(own, &t, NULL) == 0 && t.lost == 10);
	CHILD_CHECK(read_content(own, NULL, &c) == 0);
	CHILD_CHECK(c.damaged == 0 && c.steps == 0 && c.records > 100);
	CHILD_CHECK(ftruncate(spare, 0) == 0);
	CHILD_CHECK(note(journal, "room again") == 0);
	CHILD_CHECK(note(journal, "and again") == 0);
	CHILD_CHECK(read_content(own, "room again", &c) == 0);
	CHILD_CHECK(c.hits == 1 && c.lost == 1 && c.lost_sum == 10);
	CHILD_CHECK(strcmp(c.cause, strerror(ENOSPC)) == 0);
	CHILD_CHECK(c.damaged == 0 && c.steps == 0);
	CHILD_CHECK(hf_journal_verify(own, NULL, NULL, &result, NULL) == 0);
	CHILD_CHECK(result.problems == 0 && result.torn == 0 && result.lost == 10);
	hf_journal_free(journal);
	hf_state_free(own);
}

static void full_disk_loses_records_quickly_countedly_and_without_damage(void **state)
{
	int status;

	(void)state;
	assert_int_equal(mkdir(hf_test_path("small"), 0700), 0);
	status = reap(spawn(full_disk_in_a_child));
	if (status == CHILD_SKIPS)
		HF_SKIP("no mount namespace to be had");
	assert_int_equal(status, 0);
}

static void hold_the_guard_and_stop(void)
{
	int fd = open(hf_test_path(EVENTS), O_RDWR | O_CLOEXEC);

	CHILD_CHECK(fd >= 0 && flock(fd, LOCK_EX) == 0);
	raise(SIGSTOP);
}

static pid_t stuck_writer(void)
{
	pid_t pid = spawn(hold_the_guard_and_stop);
	siginfo_t info;

	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WSTOPPED | WEXITED), 0);
	assert_int_equal(info.si_code, CLD_STOPPED);
	return pid;
}

static void stuck_writer_delays_once_by_the_bound_and_losses_are_told_once(void **state)
{
	struct hf_journal *journal = open_bounded();
	int64_t start, took;
	int slow = 0;
	struct content c;
	pid_t stuck;

	(void)state;
	ASSERT_OK(note(journal, "before"));
	stuck = stuck_writer();
	start = now_ms();
	ASSERT_ERR(note(journal, "lost"), HF_E_LOST);
	took = now_ms() - start;
	assert_true(took >= BOUND_MS * 9 / 10);
	assert_int_equal(hf_test_error.sys, ETIMEDOUT);
	for (int i = 0; i < 20; i++) {
		start = now_ms();
		ASSERT_ERR(note(journal, "lost"), HF_E_LOST);
		slow += now_ms() - start >= BOUND_MS * 9 / 10;
	}
	/* One may have met a busy machine; a second wait would be 20 of them. */
	assert_in_range(slow, 0, 1);
	assert_true(totals().lost == 21);
	assert_int_equal(kill(stuck, SIGCONT), 0);
	assert_int_equal(reap(stuck), 0);
	ASSERT_OK(note(journal, "after"));
	ASSERT_OK(note(journal, "after"));
	hf_journal_free(journal);
	c = read_all("after");
	assert_true(c.hits == 2 && c.lost == 1 && c.lost_sum == 21 && c.steps == 0);
	assert_string_equal(c.cause, "another writer is stuck");
	assert_true(totals().lost == 21);
	assert_clean();
}

static void writer_waits_again_once_it_got_through(void **state)
{
	struct hf_journal *journal = open_bounded();
	int64_t start;

	(void)state;
	for (int i = 0; i < 2; i++) {
		pid_t stuck = stuck_writer();

		start = now_ms();
		ASSERT_ERR(note(journal, "lost"), HF_E_LOST);
		assert_true(now_ms() - start >= BOUND_MS * 9 / 10);
		assert_int_equal(kill(stuck, SIGKILL), 0);
		assert_int_equal(reap(stuck), 128 + SIGKILL);
		ASSERT_OK(note(journal, "through"));
	}
	hf_journal_free(journal);
	assert_true(totals().lost == 2);
}

static void hold_the_loss_counter_and_stop(void)
{
	struct flock range = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int fd = open(hf_test_path(COUNTERS), O_RDWR | O_CLOEXEC);

	CHILD_CHECK(fd >= 0 && fcntl(fd, F_OFD_SETLK, &range) == 0);
	raise(SIGSTOP);
}

static void loss_that_could_not_be_counted_at_once_is_counted_later(void **state)
{
	struct hf_journal *journal = open_bounded();
	pid_t stuck = stuck_writer(), counting;
	siginfo_t info;

	(void)state;
	counting = spawn(hold_the_loss_counter_and_stop);
	assert_int_equal(waitid(P_PID, (id_t)counting, &info, WSTOPPED | WEXITED), 0);
	assert_int_equal(info.si_code, CLD_STOPPED);
	/* Both are stopped for good, so that it returns at all is the proof. */
	for (int i = 0; i < 3; i++)
		ASSERT_ERR(note(journal, "lost"), HF_E_LOST);
	assert_true(totals().lost == 0);
	assert_int_equal(kill(counting, SIGCONT), 0);
	assert_int_equal(reap(counting), 0);
	assert_int_equal(kill(stuck, SIGCONT), 0);
	assert_int_equal(reap(stuck), 0);
	ASSERT_OK(note(journal, "after"));
	hf_journal_free(journal);
	assert_true(totals().lost == 3);
	assert_true(read_all(NULL).lost_sum == 3);
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

/* -- follow ----------------------------------------------------------------- */

static int go[2]; /* the parent's word to the child that it may append */

static void append_when_told(void)
{
	struct hf_state *own;
	struct hf_journal *journal;
	char count;

	CHILD_CHECK(hf_state_open(hf_test_path("state"), 0, &own, NULL) == 0);
	while (read(go[0], &count, 1) == 1 && count > 0) {
		struct hf_journal_opts opts = { .size = sizeof(opts),
						.segment_bytes = HF_JOURNAL_SEGMENT_MIN };

		CHILD_CHECK(hf_journal_open(own, &opts, &journal, NULL) == 0);
		while (count-- > 0)
			CHILD_CHECK(note(journal, "told") == 0);
		hf_journal_free(journal);
	}
	hf_state_free(own);
}

static void tell(char count)
{
	assert_int_equal(write(go[1], &count, 1), 1);
}

static pid_t start_teller(void)
{
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	return spawn(append_when_told);
}

static void end_teller(pid_t pid)
{
	tell(0);
	close(go[0]);
	close(go[1]);
	assert_int_equal(reap(pid), 0);
}

/* Reads until `notes` more have come, sleeping between. Records in all are counted too. */
static void follow(struct hf_journal_reader *reader, int notes, uint64_t *last)
{
	int64_t until = now_ms() + 20000;

	while (notes > 0) {
		struct hf_record record;
		int r = hf_journal_next(reader, &record, ERR);

		ASSERT_OK(r);
		if (r == 1) {
			assert_true(record.seq == ++*last);
			notes -= record.info->event == HF_EV_NOTE;
			continue;
		}
		assert_true(now_ms() < until);
		ASSERT_OK(hf_journal_wait(reader, 10 * HF_SEC, ERR));
	}
}

/* Reads what there is and sleeps until there is nothing to look at any more. */
static void settle(struct hf_journal_reader *reader)
{
	struct hf_record record;
	int r;

	do {
		do {
			r = hf_journal_next(reader, &record, ERR);
			ASSERT_OK(r);
			assert_int_equal(r, 0);
		} while (r > 0);
		r = hf_journal_wait(reader, 50 * HF_MSEC, ERR);
		ASSERT_OK(r);
	} while (r > 0);
}

static void follower_wakes_for_a_record_of_another_process(void **state)
{
	struct hf_journal_reader *reader;
	uint64_t last = 0;
	pid_t pid;

	(void)state;
	append_notes(1);
	pid = start_teller();
	ASSERT_OK(hf_journal_read(hf_test_state(), &reader, ERR));
	follow(reader, 1, &last);
	settle(reader);
	for (int i = 0; i < 5; i++) {
		tell(1);
		assert_int_equal(hf_journal_wait(reader, 10 * HF_SEC, ERR), 1);
		follow(reader, 1, &last);
	}
	end_teller(pid);
	hf_journal_reader_free(reader);
}

static void follower_goes_on_across_rotation(void **state)
{
	struct hf_journal_reader *reader;
	uint64_t last = 0;
	pid_t pid;

	(void)state;
	append_notes(1);
	pid = start_teller();
	ASSERT_OK(hf_journal_read(hf_test_state(), &reader, ERR));
	follow(reader, 1, &last);
	for (int i = 0; i < 5; i++) {
		tell(100);
		follow(reader, 100, &last);
	}
	assert_true(totals().segments > 5);
	end_teller(pid);
	assert_true(hf_journal_reader_damaged(reader) == 0);
	hf_journal_reader_free(reader);
}

static void follower_may_start_before_the_journal_exists(void **state)
{
	struct hf_journal_reader *reader;
	uint64_t last = 0;
	pid_t pid;

	(void)state;
	(void)hf_test_state();
	pid = start_teller();
	ASSERT_OK(hf_journal_read(hf_test_state(), &reader, ERR));
	settle(reader);
	tell(1);
	assert_int_equal(hf_journal_wait(reader, 10 * HF_SEC, ERR), 1);
	follow(reader, 1, &last);
	tell(3);
	follow(reader, 3, &last);
	end_teller(pid);
	hf_journal_reader_free(reader);
}

static void waiting_ends_at_its_time_and_does_not_poll(void **state)
{
	struct hf_journal_reader *reader;
	int64_t start;

	(void)state;
	append_notes(1);
	ASSERT_OK(hf_journal_read(hf_test_state(), &reader, ERR));
	while (hf_journal_wait(reader, 0, ERR) > 0)
		continue;
	hf_fault_arm(&(struct hf_fault){ .at = NEVER });
	start = now_ms();
	assert_int_equal(hf_journal_wait(reader, 300 * HF_MSEC, ERR), 0);
	assert_in_range(now_ms() - start, 299, 2000);
	/* One sleep; a second one where the clock was a hair short. */
	assert_in_range(hf_fault_count(), 1, 2);
	hf_fault_disarm();
	hf_journal_reader_free(reader);
}

static void ignore(int sig)
{
	(void)sig;
}

static void waiting_ends_when_a_signal_comes(void **state)
{
	struct sigaction old, sa = { .sa_handler = ignore };
	struct hf_journal_reader *reader;
	pid_t pid;

	(void)state;
	append_notes(1);
	ASSERT_OK(hf_journal_read(hf_test_state(), &reader, ERR));
	while (hf_journal_wait(reader, 0, ERR) > 0)
		continue;
	assert_int_equal(sigaction(SIGUSR1, &sa, &old), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		/* Until it is gone: one that comes before the sleep does not count. */
		while (getppid() != 1 && kill(getppid(), SIGUSR1) == 0)
			poll(NULL, 0, 5);
		_exit(0);
	}
	ASSERT_ERR(hf_journal_wait(reader, 20 * HF_SEC, ERR), -EINTR);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(reap(pid), 128 + SIGKILL);
	assert_int_equal(sigaction(SIGUSR1, &old, NULL), 0);
	hf_journal_reader_free(reader);
}

struct wanted {
	const char *name;
	int shown;
	uint64_t seq;
};

static int is_wanted(void *arg, const struct hf_record *record)
{
	struct wanted *wanted = arg;

	wanted->shown++;
	if (!record->name || strcmp(record->name, wanted->name) != 0)
		return 0;
	wanted->seq = record->seq;
	return 1;
}

static void the_first_event_that_is_meant_is_found(void **state)
{
	struct hf_journal *journal = NULL;
	struct hf_field field[] = { HF_FIELD_TEXT("text", "here") };
	struct wanted wanted = { .name = "b" };

	(void)state;
	/* There is no journal yet. */
	assert_int_equal(hf_journal_find(hf_test_state(), "here", is_wanted, &wanted, ERR), 0);
	ASSERT_OK(hf_journal_open(hf_test_state(), NULL, &journal, ERR));
	ASSERT_OK(hf_journal_append(journal, HF_EV_NOTE, "a", field, 1, 0, ERR));
	ASSERT_OK(hf_journal_append(journal, HF_EV_NOTE, "b", field, 1, 0, ERR));
	ASSERT_OK(hf_journal_append(journal, HF_EV_NOTE, "b", field, 1, 0, ERR));
	assert_int_equal(hf_journal_find(hf_test_state(), "here", is_wanted, &wanted, ERR), 1);
	assert_int_equal(wanted.shown, 2);
	assert_int_equal(wanted.seq, hf_journal_last_seq(journal) - 1);
	/* What lacks the needle is not even shown; what is not accepted is not found. */
	wanted = (struct wanted){ .name = "b" };
	assert_int_equal(hf_journal_find(hf_test_state(), "there", is_wanted, &wanted, ERR), 0);
	assert_int_equal(wanted.shown, 0);
	wanted.name = "c";
	assert_int_equal(hf_journal_find(hf_test_state(), "here", is_wanted, &wanted, ERR), 0);
	assert_int_equal(wanted.shown, 3);
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
		HF_TEST(nothing_but_our_own_file_is_taken_for_the_journal_L12),
		HF_TEST(nothing_but_our_own_file_is_taken_for_the_counters_L12),
		HF_TEST(nothing_but_our_own_directory_is_taken_for_journal_L12),
		HF_TEST(file_of_another_user_is_refused_L12),
		HF_TEST(trap_set_while_open_is_not_written_through_L12),
		HF_TEST(full_disk_loses_records_quickly_countedly_and_without_damage),
		HF_TEST(stuck_writer_delays_once_by_the_bound_and_losses_are_told_once),
		HF_TEST(writer_waits_again_once_it_got_through),
		HF_TEST(loss_that_could_not_be_counted_at_once_is_counted_later),
		HF_TEST(file_size_limit_loses_records_and_does_not_kill_L13),
		HF_TEST(forked_child_may_only_free_the_handle_L13),
		HF_TEST(durable_record_is_synced_and_its_directory_once),
		HF_TEST(undisturbed_append_costs_five_calls),
		HF_TEST(clean_journal_has_no_problem),
		HF_TEST(flipped_byte_is_found_and_its_record_missed),
		HF_TEST(line_deleted_in_the_middle_is_a_gap),
		HF_TEST(line_deleted_at_the_end_is_missed_and_not_given_again),
		HF_TEST(repeated_line_is_found),
		HF_TEST(unknown_event_is_found_and_readable),
		HF_TEST(follower_wakes_for_a_record_of_another_process),
		HF_TEST(follower_goes_on_across_rotation),
		HF_TEST(follower_may_start_before_the_journal_exists),
		HF_TEST(waiting_ends_at_its_time_and_does_not_poll),
		HF_TEST(waiting_ends_when_a_signal_comes),
		HF_TEST(the_first_event_that_is_meant_is_found),
	};

	return hf_run_tests("journal", tests);
}
