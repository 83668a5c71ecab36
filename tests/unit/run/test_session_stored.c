/* unit/run/test_session_stored.c - what is stored for a resume: read back as it was, and nothing else is believed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "helper/test.h"
#include "hf/base/cleanup.h"
#include "hf/run/options.h"
#include "hf/run/session/record/stored.h"

#define PATH "state/sessions/x/command.json"

static struct hf_sessions *open_sessions(void)
{
	struct hf_sessions *sessions = NULL;

	ASSERT_OK(hf_sessions_open(hf_test_state(), NULL, &sessions, ERR));
	return sessions;
}

/* As a run does that comes to its record. */
static int store(struct hf_sessions *sessions, const struct hf_run_opts *o, uint64_t *ret_sum)
{
	int r = hf_stored_stage(sessions, "x", o, 0, ret_sum, ERR);

	if (r > 0)
		hf_stored_settle(sessions, "x", 1);
	return r < 0 ? r : 0;
}

static char *const words[] = { (char[]){ "claude" }, (char[]){ "a b\n\"\\" }, (char[]){ "\xff\xfe" }, (char[]){ "" }, NULL };
static char *const variables[] = { (char[]){ "A=1" }, (char[]){ "B=" }, (char[]){ "C=\xff=x" }, NULL };

/* Flags that exclude each other, so that it takes two rounds to have had each of them. */
static const unsigned left_out[] = { HF_RUN_LOG | HF_RUN_TERMINAL, HF_RUN_NO_LOG | HF_RUN_LEAVE_RUNNING };

/* Every option there is but the flags left_out[round], each with a value of its own. */
static struct hf_run_opts full_options(size_t round)
{
	struct hf_run_opts o = { .size = sizeof(o), .argv = words, .env = variables, .cwd = "/src/\xff app" };
	int64_t n = 1000;

	for (const struct hf_option *option = hf_options; option->key; option++) {
		n++;
		switch (option->kind) {
		case HF_OPTION_TEXT:
			*hf_option_text(option, &o) = option->label;
			break;
		case HF_OPTION_TREE:
			o.tree = HF_TREE_WALK;
			break;
		case HF_OPTION_TERM:
			o.term = HF_TERM_TREE;
			break;
		case HF_OPTION_GRACE:
			hf_option_set_number(option, &o, -1);
			break;
		case HF_OPTION_FLAG:
			hf_option_set_number(option, &o, 1);
			break;
		case HF_OPTION_COUNT:
			hf_option_set_number(option, &o, n % 60);
			break;
		case HF_OPTION_DURATION:
		case HF_OPTION_SIZE:
		default:
			hf_option_set_number(option, &o, n * HF_SEC);
			break;
		}
	}
	o.notify_on = "always";
	o.input = "0123456789abcdef.17";
	o.flags &= ~left_out[round];
	return o;
}

static void assert_words(char *const *a, char *const *b)
{
	size_t i = 0;

	for (; a[i] && b[i]; i++)
		assert_string_equal(a[i], b[i]);
	assert_true(!a[i] && !b[i]);
}

static void assert_same(struct hf_run_opts *a, struct hf_run_opts *b)
{
	for (const struct hf_option *option = hf_options; option->key; option++) {
		if (option->kind == HF_OPTION_TEXT)
			assert_string_equal(*hf_option_text(option, a), *hf_option_text(option, b));
		else
			assert_true(hf_option_number(option, a) == hf_option_number(option, b));
	}
	assert_words(a->argv, b->argv);
	assert_words(a->env, b->env);
	assert_string_equal(a->cwd, b->cwd);
}

static void every_option_is_read_back_as_it_was(void **state)
{
	struct hf_sessions *sessions = open_sessions();
	struct hf_run_opts o;
	struct hf_stored stored;
	uint64_t sum = 0, again = 0;

	(void)state;
	for (size_t round = 0; round < COUNT(left_out); round++) {
		o = full_options(round);
		ASSERT_OK(hf_options_check("x", &o, ERR));
		ASSERT_OK(store(sessions, &o, &sum));
		ASSERT_OK(hf_stored_load(sessions, "x", 0, 1, &stored, ERR));
		assert_true(sum != 0 && sum <= INT64_MAX && stored.sum == sum && stored.has_options);
		assert_same(&stored.o, &o);
		hf_stored_done(&stored);
	}
	/* One option less is another sum. */
	o.verify = NULL;
	ASSERT_OK(store(sessions, &o, &again));
	assert_true(again != sum);
	o = (struct hf_run_opts){ .size = sizeof(o), .argv = words, .cwd = "/" };
	o.log_max = HF_RUN_LOG_UNLIMITED;
	ASSERT_OK(store(sessions, &o, &sum));
	ASSERT_OK(hf_stored_load(sessions, "x", 0, 1, &stored, ERR));
	assert_true(stored.o.log_max == HF_RUN_LOG_UNLIMITED && !stored.o.verify && stored.o.deadline_ns == 0);
	hf_stored_done(&stored);
	hf_sessions_free(sessions);
}

/* Are those with that sum there, and are they the ones with that verifier? */
static void assert_stored(struct hf_sessions *sessions, uint64_t sum, const char *verify)
{
	struct hf_stored stored;

	ASSERT_OK(hf_stored_load(sessions, "x", sum, 1, &stored, ERR));
	assert_string_equal(stored.o.verify, verify);
	hf_stored_done(&stored);
}

static int stage(struct hf_sessions *sessions, const char *verify, uint64_t before, uint64_t *ret_sum)
{
	struct hf_run_opts o = { .size = sizeof(o), .argv = words, .cwd = "/", .verify = verify };

	return hf_stored_stage(sessions, "x", &o, before, ret_sum, ERR);
}

static void what_the_record_names_is_found_whenever_its_writer_was_killed_L14(void **state)
{
	struct hf_sessions *sessions = open_sessions();
	struct hf_stored stored;
	uint64_t a, b, c;

	(void)state;
	assert_int_equal(stage(sessions, "a", 0, &a), 1);
	assert_stored(sessions, a, "a"); /* killed before it was in place */
	hf_stored_settle(sessions, "x", 1);
	assert_stored(sessions, a, "a");
	/* A run that does not come to its record changes nothing of that. */
	assert_int_equal(stage(sessions, "b", a, &b), 1);
	assert_stored(sessions, a, "a");
	hf_stored_settle(sessions, "x", 0);
	assert_stored(sessions, a, "a");
	ASSERT_ERR(hf_stored_load(sessions, "x", b, 1, &stored, ERR), HF_E_FORMAT);
	/* One that does, and is killed then; and the next one, which does not. */
	assert_int_equal(stage(sessions, "b", a, &b), 1);
	assert_int_equal(stage(sessions, "c", b, &c), 1);
	assert_stored(sessions, b, "b");
	assert_stored(sessions, c, "c");
	hf_stored_settle(sessions, "x", 0);
	assert_stored(sessions, b, "b");
	/* The same options once more: nothing is written. */
	assert_int_equal(stage(sessions, "b", b, &c), 0);
	assert_true(c == b);
	hf_sessions_free(sessions);
}

static void what_is_given_counts_and_the_rest_is_as_it_was(void **state)
{
	struct hf_run_opts all = full_options(0);

	(void)state;
	/* Each option alone, on top of all of them. */
	for (const struct hf_option *option = hf_options; option->key; option++) {
		struct hf_run_opts given = { .size = sizeof(given), .flags = HF_RUN_RESUME }, wanted = all;

		if (option->kind == HF_OPTION_TEXT) {
			*hf_option_text(option, &given) = "another";
			*hf_option_text(option, &wanted) = "another";
		} else if (option->kind != HF_OPTION_FLAG) {
			int64_t number = option->kind == HF_OPTION_TREE || option->kind == HF_OPTION_TERM ? 1 : 7;

			hf_option_set_number(option, &given, number);
			hf_option_set_number(option, &wanted, number);
		}
		hf_options_merge(&given, &all);
		given.env = variables;
		assert_same(&given, &wanted);
	}
	/* And each of them taken back. */
	for (const struct hf_option *option = hf_options; option->key; option++) {
		struct hf_run_opts given = { .size = sizeof(given), .flags = HF_RUN_RESUME };

		if (option->kind == HF_OPTION_TEXT)
			*hf_option_text(option, &given) = "";
		else if (option->kind == HF_OPTION_DURATION)
			hf_option_set_number(option, &given, HF_RUN_NONE);
		else
			continue;
		ASSERT_OK(hf_options_check("x", &given, ERR));
		hf_options_merge(&given, &all);
		assert_true(hf_option_number(option, &given) == 0);
		assert_true(option->kind != HF_OPTION_TEXT || !*hf_option_text(option, &given));
	}
}

static size_t read_all(char *out, size_t cap)
{
	int fd = open(hf_test_path(PATH), O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, out, cap);

	(void)close(fd);
	assert_true(n > 0);
	return (size_t)n;
}

static void write_all(const char *text, size_t len)
{
	int fd = open(hf_test_path(PATH), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	(void)close(fd);
}

/* Read, or refused; whatever is read passes the checks and has another sum, unless it is what it was. */
static void is_harmless(struct hf_sessions *sessions, uint64_t sum)
{
	struct hf_stored stored;
	int r = hf_stored_load(sessions, "x", 0, 0, &stored, NULL);

	if (r < 0) {
		assert_int_equal(r, HF_E_FORMAT);
		return;
	}
	assert_true(stored.sum != sum);
	stored.o.flags |= HF_RUN_RESUME;
	ASSERT_OK(hf_options_check("x", &stored.o, ERR));
	hf_stored_done(&stored);
}

static void no_changed_byte_and_no_torn_file_is_taken_for_what_it_ran_with_L14(void **state)
{
	struct hf_sessions *sessions = open_sessions();
	struct hf_run_opts o = full_options(0);
	static const char changes[] = "\x00\x01 \"0-9{}[],:\\\xff";
	char text[4096], changed[4096];
	uint64_t sum;
	size_t len;

	(void)state;
	ASSERT_OK(store(sessions, &o, &sum));
	len = read_all(text, sizeof(text));
	for (size_t i = 0; i < len; i++) {
		if (i > 0) {
			write_all(text, i);
			is_harmless(sessions, sum);
		}
		for (size_t c = 0; c < sizeof(changes) - 1; c++) {
			memcpy(changed, text, len);
			if (changed[i] == changes[c])
				continue;
			changed[i] = changes[c];
			write_all(changed, len);
			is_harmless(sessions, sum);
		}
	}
	hf_sessions_free(sessions);
}

static void the_words_of_an_older_version_are_read_without_options(void **state)
{
	static const char old[] = "{\"v\":1,\"argv\":[\"touch\",{\"hex\":\"ff\"}]}\n";
	struct hf_sessions *sessions = open_sessions();
	struct hf_run_opts o = full_options(0);
	struct hf_stored stored;
	uint64_t sum;

	(void)state;
	ASSERT_OK(store(sessions, &o, &sum));
	write_all(old, sizeof(old) - 1);
	ASSERT_OK(hf_stored_load(sessions, "x", 0, 1, &stored, ERR));
	assert_false(stored.has_options);
	assert_string_equal(stored.o.argv[0], "touch");
	assert_string_equal(stored.o.argv[1], "\xff");
	assert_null(stored.o.cwd);
	assert_null(stored.o.verify);
	hf_stored_done(&stored);
	hf_sessions_free(sessions);
}

/* A whole session of before: its record has no sum, its file no options. */
static void a_session_of_before_is_resumed_and_that_its_options_are_not_known_is_said(void **state)
{
	static const char old[] = "{\"v\":1,\"argv\":[\"sh\",\"-c\",\"exit 4\"]}\n";
	char *argv[] = { (char[]){ "false" }, NULL };
	struct hf_run_opts o = { .size = sizeof(o), .argv = argv };
	struct hf_sessions *sessions = open_sessions();
	AUTO(hf_buf_done) struct hf_buf line = HF_BUF_INIT;
	struct hf_session_record record;
	struct hf_run_report report = { 0 };
	int fd;

	(void)state;
	ASSERT_OK(hf_run_start(hf_test_state(), "x", &o, &report, ERR));
	while (hf_session_load(sessions, "x", &record, ERR) < 0 || record.phase != HF_PHASE_ENDED)
		usleep(10000);
	while (hf_lock_check_token(sessions->locks, "x", 0, NULL) == 0)
		usleep(10000);
	assert_true(record.options != 0);
	record.options = 0;
	hf_session_encode(&record, &line);
	fd = open(hf_test_path("state/sessions/x/session.jsonl"), O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_int_equal(write(fd, line.s, line.len), line.len);
	(void)close(fd);
	write_all(old, sizeof(old) - 1);
	o.argv = NULL;
	o.flags = HF_RUN_RESUME;
	ASSERT_OK(hf_run_start(hf_test_state(), "x", &o, &report, ERR));
	assert_non_null(strstr(report.resumed, "its options were not stored"));
	assert_int_equal(report.attempt, 2);
	while (hf_session_load(sessions, "x", &record, ERR) < 0 || record.phase != HF_PHASE_ENDED)
		usleep(10000);
	assert_int_equal(record.exit_status, 4);
	assert_true(record.options != 0);
	while (hf_lock_check_token(sessions->locks, "x", 0, NULL) == 0)
		usleep(10000);
	hf_sessions_free(sessions);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HF_TEST(every_option_is_read_back_as_it_was),
		HF_TEST(what_the_record_names_is_found_whenever_its_writer_was_killed_L14),
		HF_TEST(what_is_given_counts_and_the_rest_is_as_it_was),
		HF_TEST(no_changed_byte_and_no_torn_file_is_taken_for_what_it_ran_with_L14),
		HF_TEST(the_words_of_an_older_version_are_read_without_options),
		HF_TEST(a_session_of_before_is_resumed_and_that_its_options_are_not_known_is_said),
	};

	return hf_run_tests("session_stored", tests);
}
