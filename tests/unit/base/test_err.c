/* unit/base/test_err.c - codes, messages and their exit statuses. */
#include <errno.h>
#include <string.h>

#include "hf/base/fail.h"
#include "helper/test.h"
#include "holdfast/version.h"

static void every_listed_code_has_its_entry(void **state)
{
	static const struct hf_err_info listed[] = {
#define ROW(name, number, status, text) { number, status, #name, text },
		HF_ERR_LIST(ROW)
#undef ROW
	};

	(void)state;
	for (size_t i = 0; i < COUNT(listed); i++) {
		const struct hf_err_info *info = hf_err_info(listed[i].code);

		assert_non_null(info);
		assert_ptr_equal(info, hf_err_at(i));
		assert_int_equal(info->code, listed[i].code);
		assert_int_equal(info->exit_status, listed[i].exit_status);
		assert_string_equal(info->name, listed[i].name);
		assert_string_equal(info->text, listed[i].text);
	}
	assert_null(hf_err_at(COUNT(listed)));
	assert_null(hf_err_at(SIZE_MAX));
}

static void codes_are_distinct_and_no_errno(void **state)
{
	(void)state;
	for (size_t i = 0; hf_err_at(i); i++) {
		/* MAX_ERRNO of the kernel is 4095. */
		assert_true(hf_err_at(i)->code < -4095);
		for (size_t k = 0; k < i; k++) {
			assert_int_not_equal(hf_err_at(i)->code, hf_err_at(k)->code);
			assert_string_not_equal(hf_err_at(i)->name, hf_err_at(k)->name);
		}
	}
	assert_null(hf_err_info(0));
	assert_null(hf_err_info(-EINVAL));
	assert_null(hf_err_info(8001));
}

static void exit_status_follows_the_contract(void **state)
{
	(void)state;
	assert_int_equal(hf_err_exit_status(0), 0);
	assert_int_equal(hf_err_exit_status(7), 0);
	assert_int_equal(hf_err_exit_status(-EINVAL), 2);
	assert_int_equal(hf_err_exit_status(-EIO), 4);
	assert_int_equal(hf_err_exit_status(-ENOSPC), 4);
	assert_int_equal(hf_err_exit_status(-7999), 4);
	assert_int_equal(hf_err_exit_status(HF_E_GONE), 1);
	assert_int_equal(hf_err_exit_status(HF_E_NAME), 2);
	assert_int_equal(hf_err_exit_status(HF_E_UNTRUSTED), 3);
	for (size_t i = 0; hf_err_at(i); i++) {
		int status = hf_err_at(i)->exit_status;

		assert_int_equal(hf_err_exit_status(hf_err_at(i)->code), status);
		assert_in_range(status, 1, 4);
	}
}

static void assert_line(const struct hf_err *err, const char *expected)
{
	char text[HF_ERR_TEXT_MAX];

	assert_int_equal(hf_err_format(err, text, sizeof(text)), strlen(expected));
	assert_string_equal(text, expected);
}

static void message_leaves_out_what_is_empty(void **state)
{
	(void)state;
	assert_line(&(struct hf_err){ .code = HF_E_GONE }, "the process has ended");
	assert_line(&(struct hf_err){ .code = HF_E_GONE, .subject = "pid 7" },
		    "pid 7: the process has ended");
	assert_line(&(struct hf_err){ .code = HF_E_GONE, .detail = "yesterday" },
		    "the process has ended: yesterday");
	assert_line(&(struct hf_err){ .code = -EACCES, .sys = EACCES, .op = "openat",
				      .subject = "d/f" },
		    "d/f: Permission denied (openat)");
	assert_line(&(struct hf_err){ .code = -EACCES, .op = "openat", .subject = "d/f",
				      .detail = "chmod it" },
		    "d/f: Permission denied (openat): chmod it");
	assert_line(&(struct hf_err){ .code = -4000, .op = "x" }, "unknown error (x)");
}

static void control_bytes_in_messages_become_question_marks(void **state)
{
	struct hf_err err = { .code = HF_E_NAME, .subject = "a\x1b[2Jb\r\nc\td\x7f\x01" };

	(void)state;
	hf_copy_text(err.detail, sizeof(err.detail), "\x1b]0;title\x07");
	assert_line(&err, "a?[2Jb??c?d??: not usable as a name: ?]0;title?");
}

/* U+009B is CSI to a terminal, as ESC [ is. */
static void c1_controls_in_messages_do_not_reach_the_terminal(void **state)
{
	struct hf_err err = { .code = HF_E_NAME, .subject = "a\xc2\x9b" "2J\xc2\x85z" };
	char text[HF_ERR_TEXT_MAX];

	(void)state;
	hf_err_format(&err, text, sizeof(text));
	assert_null(strstr(text, "\xc2\x9b"));
	assert_null(strstr(text, "\xc2\x85"));
	assert_non_null(strstr(text, "2J"));
	/* What only looks like one, in the middle of a longer character, stays. */
	hf_copy_text(err.subject, sizeof(err.subject), "\xc3\xa9\xe2\x82\xac");
	assert_line(&err, "\xc3\xa9\xe2\x82\xac: not usable as a name");
}

static void message_is_cut_as_snprintf_does(void **state)
{
	const struct hf_err err = { .code = HF_E_GONE, .subject = "pid 7", .detail = "x" };
	static const char whole[] = "pid 7: the process has ended: x";
	char text[64];

	(void)state;
	assert_int_equal(hf_err_format(&err, NULL, 0), strlen(whole));
	for (size_t cap = 0; cap < sizeof(text); cap++) {
		size_t fits = cap > strlen(whole) ? strlen(whole) : cap ? cap - 1 : 0;

		memset(text, '#', sizeof(text));
		assert_int_equal(hf_err_format(&err, text, cap), strlen(whole));
		assert_memory_equal(text, whole, fits);
		if (cap > 0)
			assert_int_equal(text[fits], '\0');
		for (size_t i = cap ? fits + 1 : 0; i < sizeof(text); i++)
			assert_int_equal(text[i], '#');
	}
}

static void longest_message_fits_its_buffer(void **state)
{
	struct hf_err err = { 0 };

	(void)state;
	memset(err.op, 'o', sizeof(err.op) - 1);
	memset(err.subject, 's', sizeof(err.subject) - 1);
	memset(err.detail, 'd', sizeof(err.detail) - 1);
	for (size_t i = 0; hf_err_at(i); i++) {
		err.code = hf_err_at(i)->code;
		assert_true(hf_err_format(&err, NULL, 0) < HF_ERR_TEXT_MAX);
	}
	for (int e = 1; e < 140; e++) {
		err.code = -e;
		assert_true(hf_err_format(&err, NULL, 0) < HF_ERR_TEXT_MAX);
	}
}

static void failing_fills_and_cuts_every_field(void **state)
{
	struct hf_err err = HF_ERR_INIT;
	char text[1000];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(hf_fail(&err, HF_E_NAME, text, text, "%s", text), HF_E_NAME);
	assert_int_equal(err.code, HF_E_NAME);
	assert_int_equal(strlen(err.op), sizeof(err.op) - 1);
	assert_int_equal(strlen(err.subject), sizeof(err.subject) - 1);
	assert_int_equal(strlen(err.detail), sizeof(err.detail) - 1);
	assert_int_equal(hf_fail_sys(&err, ENOSPC, "write", "f"), -ENOSPC);
	assert_int_equal(err.code, -ENOSPC);
	assert_int_equal(err.sys, ENOSPC);
	assert_string_equal(err.op, "write");
	assert_string_equal(err.subject, "f");
	assert_string_equal(err.detail, "");
}

static void a_failure_names_what_it_is_part_of(void **state)
{
	struct hf_err err = HF_ERR_INIT;
	char line[HF_ERR_TEXT_MAX], name[300];

	(void)state;
	assert_int_equal(hf_err_wrap(NULL, HF_E_GONE, "session", "x"), HF_E_GONE);
	assert_int_equal(hf_err_wrap(&err, 7, "session", "x"), 7);
	assert_string_equal(err.subject, "");
	(void)hf_fail(&err, HF_E_GONE, "open", "pid 4711", "no such process");
	/* Twice, as on a way up through two functions. */
	assert_int_equal(hf_err_wrap(&err, HF_E_GONE, "session", "fix-160"), HF_E_GONE);
	assert_int_equal(hf_err_wrap(&err, HF_E_GONE, "session", "fix-160"), HF_E_GONE);
	(void)hf_err_format(&err, line, sizeof(line));
	assert_string_equal(line, "session 'fix-160': pid 4711: the process has ended: no such process");
	(void)hf_fail(&err, HF_E_BUSY, "lock", "fix-160", "%s", "");
	(void)hf_err_wrap(&err, HF_E_BUSY, "session", "fix-160");
	assert_string_equal(err.subject, "session 'fix-160'");
	/* The session's own lock says no more than its name; another one does. */
	(void)hf_fail(&err, HF_E_BUSY, "lock", "lock 'fix-160'", "%s", "");
	(void)hf_err_wrap(&err, HF_E_BUSY, "session", "fix-160");
	assert_string_equal(err.subject, "session 'fix-160'");
	(void)hf_fail(&err, HF_E_BUSY, "lock", "lock 'other'", "%s", "");
	(void)hf_err_wrap(&err, HF_E_BUSY, "session", "fix-160");
	assert_string_equal(err.subject, "session 'fix-160': lock 'other'");
	/* What is wrong with an argument is not part of anything; an older failure is not this one. */
	(void)hf_fail(&err, HF_E_NAME, "name", "..", "%s", "");
	(void)hf_err_wrap(&err, HF_E_NAME, "session", "..");
	(void)hf_err_wrap(&err, HF_E_GONE, "session", "..");
	assert_string_equal(err.subject, "..");
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	(void)hf_fail(&err, HF_E_GONE, "open", "pid 4711", "%s", "");
	(void)hf_err_wrap(&err, HF_E_GONE, "session", name);
	assert_int_equal(strlen(err.subject), sizeof(err.subject) - 1);
}

static void failure_is_never_reported_as_success(void **state)
{
	(void)state;
	assert_int_equal(hf_fail_sys(NULL, 0, "op", "subject"), -EIO);
	assert_int_equal(hf_fail_sys(NULL, ENOENT, NULL, NULL), -ENOENT);
	assert_int_equal(hf_fail(NULL, HF_E_NAME, "op", "subject", "detail"), HF_E_NAME);
}

static void running_version_is_that_of_the_headers(void **state)
{
	(void)state;
	assert_string_equal(hf_version(), HF_VERSION);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HF_TEST(every_listed_code_has_its_entry),
		HF_TEST(codes_are_distinct_and_no_errno),
		HF_TEST(exit_status_follows_the_contract),
		HF_TEST(a_failure_names_what_it_is_part_of),
		HF_TEST(message_leaves_out_what_is_empty),
		HF_TEST(control_bytes_in_messages_become_question_marks),
		HF_TEST(c1_controls_in_messages_do_not_reach_the_terminal),
		HF_TEST(message_is_cut_as_snprintf_does),
		HF_TEST(longest_message_fits_its_buffer),
		HF_TEST(failing_fills_and_cuts_every_field),
		HF_TEST(failure_is_never_reported_as_success),
		HF_TEST(running_version_is_that_of_the_headers),
	};

	return hf_run_tests("err", tests);
}
