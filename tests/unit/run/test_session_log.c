/* The log of a run: its parts, its limit, and readers that come and go. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper/faults.h"
#include "helper/test.h"
#include "hf/run/session/log/log.h"

#define LIMIT (2 * 4 * HF_LOG_CHUNK)

static struct hf_sessions *open_sessions(void)
{
	struct hf_sessions *sessions = NULL;

	ASSERT_OK(hf_sessions_open(hf_test_state(), NULL, &sessions, ERR));
	return sessions;
}

static void begin(struct hf_log_writer *log, struct hf_sessions *sessions, uint64_t token, int keep)
{
	*log = (struct hf_log_writer)HF_LOG_WRITER_INIT;
	ASSERT_OK(hf_log_begin(log, sessions, "x", token, keep, LIMIT, ERR));
}

/* Lines "000123 …" of a length that meets no chunk evenly. */
#define LINE 37
static void line_of(unsigned number, char out[LINE + 1])
{
	(void)snprintf(out, LINE + 1, "%06u %-29s\n", number, "of the output of a run");
}

/* Lines `from` to `to` (excluded), some at a time. */
static void write_lines(struct hf_log_writer *log, unsigned from, unsigned to)
{
	char chunk[HF_LOG_CHUNK], line[LINE + 1];
	size_t n = 0;

	for (unsigned i = from; i < to; i++) {
		line_of(i, line);
		memcpy(chunk + n, line, LINE);
		n += LINE;
		if (n + LINE > 1000 + i % 5000 || i + 1 == to) {
			hf_log_write(log, HF_LOG_BOTH, chunk, n);
			n = 0;
		}
	}
}

/* Reads to the end: lines that follow each other without a gap. Returns the last, + 1. */
static unsigned read_lines(struct hf_log *log, unsigned next, int any)
{
	char held[LINE], line[LINE + 1], chunk[1000];
	size_t have = 0;
	int n;

	while ((n = hf_log_read(log, chunk, sizeof(chunk), ERR)) > 0)
		for (int i = 0; i < n; i++) {
			held[have++] = chunk[i];
			if (have < LINE)
				continue;
			if (any)
				next = (unsigned)strtoul(held, NULL, 10);
			any = 0;
			line_of(next++, line);
			assert_memory_equal(held, line, LINE);
			have = 0;
		}
	ASSERT_OK(n);
	assert_int_equal(have, 0);
	return next;
}

static struct hf_log *open_log(struct hf_sessions *sessions, unsigned number)
{
	struct hf_log *log = NULL;

	ASSERT_OK(hf_session_log(sessions, "x", number, &log, ERR));
	return log;
}

static void log_keeps_its_limit_and_the_newest_from_the_beginning_of_a_line(void **state)
{
	struct hf_sessions *sessions = open_sessions();
	struct hf_log_figures figures;
	struct hf_log_writer writer;
	struct hf_log *log;
	unsigned last = 0;

	(void)state;
	begin(&writer, sessions, 1000, 0);
	for (unsigned step = 1; step < 200; step++) {
		write_lines(&writer, last, last + step);
		last += step;
		ASSERT_OK(hf_log_measure(sessions, "x", 0, &figures));
		assert_true(figures.bytes <= LIMIT);
		assert_int_equal(figures.bytes + figures.dropped, (int64_t)last * LINE);
		if (figures.dropped > 0)
			assert_true(figures.bytes >= LIMIT / 2 - HF_LOG_CHUNK);
		log = open_log(sessions, 0);
		assert_int_equal(read_lines(log, 0, 1), last);
		assert_int_equal(hf_log_dropped(log), figures.dropped);
		hf_log_free(log);
	}
	assert_true(figures.dropped > LIMIT);
	hf_log_writer_done(&writer);
	hf_sessions_free(sessions);
}

static void reader_that_keeps_up_misses_and_repeats_nothing(void **state)
{
	struct hf_sessions *sessions = open_sessions();
	struct hf_log_writer writer;
	struct hf_log *log;
	unsigned last = 0, seen = 0;
	char chunk[1000];
	uint64_t late = 0;
	int n;

	(void)state;
	begin(&writer, sessions, 1000, 0);
	log = open_log(sessions, 0);
	for (unsigned step = 1; step < 300; step++) {
		write_lines(&writer, last, last + step);
		last += step;
		seen = read_lines(log, seen, 0);
		assert_int_equal(seen, last);
	}
	assert_int_equal(hf_log_dropped(log), 0);
	assert_true(writer.part.at > LIMIT);
	/* One that does not is told how much it missed. */
	write_lines(&writer, last, last + 4 * LIMIT / LINE);
	while ((n = hf_log_read(log, chunk, sizeof(chunk), ERR)) > 0)
		late += (uint64_t)n;
	ASSERT_OK(n);
	assert_true(hf_log_dropped(log) > LIMIT);
	assert_int_equal(late + hf_log_dropped(log), 4 * LIMIT / LINE * LINE);
	hf_log_free(log);
	hf_log_writer_done(&writer);
	hf_sessions_free(sessions);
}

static void last_lines_are_found_over_the_parts(void **state)
{
	struct hf_sessions *sessions = open_sessions();
	struct hf_log_writer writer;
	unsigned last = LIMIT / LINE + 700;
	struct hf_log *log;

	(void)state;
	begin(&writer, sessions, 1000, 0);
	write_lines(&writer, 0, last);
	assert_true(writer.part.at > 0);
	log = open_log(sessions, 0);
	for (unsigned wanted = 0; wanted < last; wanted += wanted < 3 ? 1 : 97) {
		ASSERT_OK(hf_log_tail(log, wanted, ERR));
		if (hf_log_dropped(log) > 0)
			break;
		assert_int_equal(read_lines(log, last - wanted, 0), last);
	}
	/* More lines than there are: all, and that some are missing. */
	assert_true(hf_log_dropped(log) > 0);
	assert_int_equal(read_lines(log, (unsigned)(hf_log_dropped(log) / LINE), 0), last);
	hf_log_write(&writer, HF_LOG_BOTH, "open", 4);
	ASSERT_OK(hf_log_tail(log, 1, ERR));
	{
		char text[8] = "";

		assert_int_equal(hf_log_read(log, text, sizeof(text), ERR), 4);
		assert_string_equal(text, "open");
	}
	hf_log_free(log);
	hf_log_writer_done(&writer);
	hf_sessions_free(sessions);
}

static void line_that_does_not_end_is_cut_and_the_limit_holds(void **state)
{
	struct hf_sessions *sessions = open_sessions();
	char chunk[HF_LOG_CHUNK], back[HF_LOG_CHUNK];
	struct hf_log_figures figures;
	struct hf_log_writer writer;
	uint64_t total = 0, read = 0;
	struct hf_log *log;
	int n;

	(void)state;
	memset(chunk, 'x', sizeof(chunk));
	begin(&writer, sessions, 1000, 0);
	log = open_log(sessions, 0);
	for (size_t i = 0; i < 100; i++) {
		hf_log_write(&writer, HF_LOG_BOTH, chunk, 1 + i * 7919 % sizeof(chunk));
		total += 1 + i * 7919 % sizeof(chunk);
		ASSERT_OK(hf_log_measure(sessions, "x", 0, &figures));
		assert_true(figures.bytes <= LIMIT);
		while ((n = hf_log_read(log, back, sizeof(back), ERR)) > 0)
			read += (uint64_t)n;
		assert_int_equal(read, total);
	}
	assert_true(figures.dropped > 0);
	hf_log_free(log);
	hf_log_writer_done(&writer);
	hf_sessions_free(sessions);
}

static void run_before_is_kept_and_no_other_and_a_resumed_log_goes_on(void **state)
{
	struct hf_sessions *sessions = open_sessions();
	struct hf_log_writer writer;
	struct hf_log_list list;
	struct hf_log *log;

	(void)state;
	for (unsigned run = 1; run <= 4; run++) {
		begin(&writer, sessions, 1000 * run, 0);
		write_lines(&writer, 100000 * run, 100000 * run + LIMIT / LINE + 700);
		hf_log_writer_done(&writer);
	}
	begin(&writer, sessions, 5000, 1);
	assert_int_equal(writer.part.run, 4000);
	write_lines(&writer, 400000 + LIMIT / LINE + 700, 400000 + 3 * LIMIT / LINE);
	ASSERT_OK(hf_log_list(writer.dirfd, &list));
	assert_int_equal(list.n, 4);
	hf_log_writer_done(&writer);
	log = open_log(sessions, 0);
	assert_int_equal(read_lines(log, 0, 1), 400000 + 3 * LIMIT / LINE);
	hf_log_free(log);
	log = open_log(sessions, 1);
	assert_int_equal(read_lines(log, 0, 1), 300000 + LIMIT / LINE + 700);
	hf_log_free(log);
	hf_sessions_free(sessions);
}

/* In a child that dies at its `at`th call: a log that is begun and rotated. 1 when it lived. */
static int die_at(struct hf_sessions *sessions, uint64_t token, int at)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct hf_log_writer writer;

		sessions->process = getpid();
		hf_fault_arm(&(struct hf_fault){ .at = at, .kill = 1 });
		begin(&writer, sessions, token, 0);
		write_lines(&writer, 0, 3 * LIMIT / LINE);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) || WTERMSIG(status) == SIGKILL);
	return WIFEXITED(status);
}

static void death_at_any_call_leaves_a_log_that_reads_without_a_gap_and_goes_on(void **state)
{
	struct hf_sessions *sessions = open_sessions();
	int lived = 0, at;

	(void)state;
	for (at = 1; !lived; at += at < 40 ? 1 : 3) {
		struct hf_log_writer writer;
		struct hf_log_figures figures;
		struct hf_log *log = NULL;
		unsigned last = 0;
		int r;

		lived = die_at(sessions, 1000 * (uint64_t)at, at);
		r = hf_session_log(sessions, "x", 0, &log, ERR);
		if (r == HF_E_NO_SESSION || r == -ENOENT)
			continue; /* before there was one */
		ASSERT_OK(r);
		last = read_lines(log, 0, 1);
		hf_log_free(log);
		begin(&writer, sessions, 1000 * (uint64_t)at + 1, 1);
		write_lines(&writer, last, last + LIMIT / LINE);
		hf_log_writer_done(&writer);
		log = open_log(sessions, 0);
		assert_int_equal(read_lines(log, 0, 1), last + LIMIT / LINE);
		hf_log_free(log);
		ASSERT_OK(hf_log_measure(sessions, "x", 0, &figures));
		assert_true(figures.bytes <= LIMIT);
	}
	assert_true(at > 60);
	hf_sessions_free(sessions);
}

static void full_disk_loses_output_and_says_so_when_there_is_room(void **state)
{
	struct hf_sessions *sessions = open_sessions();
	struct hf_log_writer writer;
	char text[200] = "";
	struct hf_log *log;

	(void)state;
	begin(&writer, sessions, 1000, 0);
	hf_log_write(&writer, HF_LOG_BOTH, "one\n", 4);
	hf_fault_arm(&(struct hf_fault){ .call = "write", .at = 1, .error = ENOSPC, .persist = 1 });
	hf_log_write(&writer, HF_LOG_BOTH, "two\n", 4);
	hf_log_write(&writer, HF_LOG_BOTH, "three\n", 6);
	hf_fault_disarm();
	hf_log_write(&writer, HF_LOG_BOTH, "four\n", 5);
	log = open_log(sessions, 0);
	ASSERT_OK(hf_log_read(log, text, sizeof(text) - 1, ERR));
	assert_string_equal(text, "one\n\n[holdfast: 10 bytes of output could not be written]\nfour\n");
	hf_log_free(log);
	hf_log_writer_done(&writer);
	hf_sessions_free(sessions);
}

/* The next span: its text, stream and attempt. */
static void assert_span(struct hf_log *log, const char *text, enum hf_log_stream stream, uint32_t attempt)
{
	struct hf_log_span span;
	char back[100];

	assert_int_equal(hf_log_read_span(log, back, sizeof(back), &span, ERR), strlen(text));
	assert_memory_equal(back, text, strlen(text));
	assert_int_equal(span.stream, stream);
	assert_int_equal(span.attempt, attempt);
	if (stream != HF_LOG_UNKNOWN)
		assert_true(span.at.ns > 0 && span.at.ns <= hf_wall_now().ns);
}

static void spans_tell_stream_and_attempt_also_of_a_log_that_is_gone_on_with(void **state)
{
	struct hf_sessions *sessions = open_sessions();
	struct hf_log_writer writer;
	struct hf_log *log;
	int fd;

	(void)state;
	begin(&writer, sessions, 1000, 0);
	writer.attempt = 1;
	hf_log_write(&writer, HF_LOG_OUT, "out\n", 4);
	hf_log_write(&writer, HF_LOG_ERR, "err\n", 4);
	hf_log_writer_done(&writer);
	/* Torn by a power cut. */
	begin(&writer, sessions, 2000, 1);
	fd = writer.index.fd;
	assert_int_equal(write(fd, "torn", 4), 4);
	hf_log_writer_done(&writer);
	begin(&writer, sessions, 3000, 1);
	writer.attempt = 2;
	hf_log_write(&writer, HF_LOG_ERR, "again\n", 6);
	log = open_log(sessions, 0);
	assert_span(log, "out\n", HF_LOG_OUT, 1);
	assert_span(log, "err\n", HF_LOG_ERR, 1);
	assert_span(log, "again\n", HF_LOG_ERR, 2);
	hf_log_write(&writer, HF_LOG_OUT, "more\n", 5);
	assert_span(log, "more\n", HF_LOG_OUT, 2);
	ASSERT_OK(hf_log_tail(log, 2, ERR));
	assert_span(log, "again\n", HF_LOG_ERR, 2);
	hf_log_free(log);
	/* An older log has no index. */
	ASSERT_OK(unlinkat(writer.dirfd, "idx.1000.0", 0));
	log = open_log(sessions, 0);
	assert_span(log, "out\nerr\nagain\nmore\n", HF_LOG_UNKNOWN, 0);
	hf_log_free(log);
	hf_log_writer_done(&writer);
	hf_sessions_free(sessions);
}

static void log_that_is_begun_later_has_no_file_before_the_first_output(void **state)
{
	struct hf_sessions *sessions = open_sessions();
	struct hf_log_plan plan = { .sessions = sessions, .name = "x", .token = 2000, .max = LIMIT };
	struct hf_log_writer writer;
	struct hf_log_list list;

	(void)state;
	begin(&writer, sessions, 1000, 0);
	hf_log_writer_done(&writer);
	writer = (struct hf_log_writer)HF_LOG_WRITER_INIT;
	hf_log_begin_later(&writer, &plan);
	assert_true(hf_log_is_on(&writer));
	assert_int_equal(writer.fd, -1);
	hf_log_write(&writer, HF_LOG_OUT, "one\n", 4);
	ASSERT_OK(hf_log_list(writer.dirfd, &list));
	assert_int_equal(list.n, 2);
	assert_int_equal(list.parts[1].run, 2000);
	hf_log_writer_done(&writer);
	hf_sessions_free(sessions);
}

static void next_part_that_cannot_be_made_is_tried_again(void **state)
{
	struct hf_sessions *sessions = open_sessions();
	struct hf_log_writer writer;
	struct hf_log *log;
	unsigned last = LIMIT / LINE;

	(void)state;
	begin(&writer, sessions, 1000, 0);
	hf_fault_arm(&(struct hf_fault){ .call = "openat", .at = 1, .error = ENOSPC, .persist = 1 });
	write_lines(&writer, 0, last);
	assert_int_equal(writer.part.at, 0);
	hf_fault_disarm();
	write_lines(&writer, last, last + 500);
	assert_true(writer.part.at > 0);
	log = open_log(sessions, 0);
	assert_int_equal(read_lines(log, 0, 0), last + 500);
	hf_log_free(log);
	hf_log_writer_done(&writer);
	hf_sessions_free(sessions);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HF_TEST(log_keeps_its_limit_and_the_newest_from_the_beginning_of_a_line),
		HF_TEST(reader_that_keeps_up_misses_and_repeats_nothing),
		HF_TEST(last_lines_are_found_over_the_parts),
		HF_TEST(line_that_does_not_end_is_cut_and_the_limit_holds),
		HF_TEST(run_before_is_kept_and_no_other_and_a_resumed_log_goes_on),
		HF_TEST(death_at_any_call_leaves_a_log_that_reads_without_a_gap_and_goes_on),
		HF_TEST(full_disk_loses_output_and_says_so_when_there_is_room),
		HF_TEST(next_part_that_cannot_be_made_is_tried_again),
		HF_TEST(spans_tell_stream_and_attempt_also_of_a_log_that_is_gone_on_with),
		HF_TEST(log_that_is_begun_later_has_no_file_before_the_first_output),
	};

	return hf_run_tests("session_log", tests);
}
