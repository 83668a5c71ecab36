/* unit/run/test_session_input.c - what is kept of a session's standard input: given out as it was, and nothing else is believed. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "helper/test.h"
#include "hf/base/cleanup.h"
#include "hf/run/options.h"
#include "hf/run/session/record/input.h"
#include "hf/run/session/record/store.h"

static struct hf_sessions *open_sessions(void)
{
	struct hf_sessions *sessions = NULL;

	ASSERT_OK(hf_sessions_open(hf_test_state(), NULL, &sessions, ERR));
	return sessions;
}

static int make_input(const char *text, off_t size)
{
	int fd = open(hf_test_path("given"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	ASSERT_OK(ftruncate(fd, size));
	return fd;
}

static void an_input_is_kept_once_and_given_out_as_it_was(void **state)
{
	struct hf_sessions *sessions = open_sessions();
	char id[HF_INPUT_ID_MAX], again[HF_INPUT_ID_MAX], bytes[8] = "";
	AUTO_FD given = make_input("one\n", 4);
	AUTO_FD dirfd = -1;
	AUTO_FD fd = -1;

	(void)state;
	ASSERT_OK(hf_session_dir(sessions, "x", 1, &dirfd, ERR));
	assert_int_equal(hf_input_keep(dirfd, given, id, ERR), 1);
	assert_int_equal(hf_input_keep(dirfd, given, again, ERR), 0);
	assert_string_equal(id, again);
	ASSERT_OK(hf_input_open(dirfd, id, &fd, ERR));
	assert_int_equal(read(fd, bytes, sizeof(bytes)), 4);
	assert_memory_equal(bytes, "one\n", 4);
	assert_int_equal(write(fd, "two", 3), -1);
	assert_true(hf_input_measure(dirfd) == 4);
	hf_input_delete_others(dirfd, id);
	assert_true(hf_input_measure(dirfd) == 4);
	hf_input_delete_others(dirfd, NULL);
	assert_true(hf_input_measure(dirfd) == 0);
	hf_sessions_free(sessions);
}

static void an_input_that_is_too_large_is_not_kept_and_a_resume_is_refused(void **state)
{
	struct hf_sessions *sessions = open_sessions();
	AUTO_FD given = make_input("", HF_RUN_INPUT_MAX + 1);
	char id[HF_INPUT_ID_MAX], text[HF_ERR_TEXT_MAX];
	AUTO_FD dirfd = -1;
	int fd = -1;

	(void)state;
	ASSERT_OK(hf_session_dir(sessions, "x", 1, &dirfd, ERR));
	assert_int_equal(hf_input_keep(dirfd, given, id, ERR), 0);
	assert_true(hf_input_is_id(id, NULL));
	assert_int_equal(hf_input_open(dirfd, id, &fd, ERR), HF_E_FORMAT);
	(void)hf_err_format(ERR, text, sizeof(text));
	assert_non_null(strstr(text, "16777217 bytes were too many to keep; resume it with that input"));
	assert_true(hf_input_measure(dirfd) == 0);
	hf_sessions_free(sessions);
}

static void nothing_but_checksum_and_size_names_an_input_L12(void **state)
{
	static const char *const bad[] = { "",
					   ".",
					   "0123456789abcdef",
					   "0123456789abcdef.",
					   "0123456789abcde.1",
					   "0123456789abcdefa.1",
					   "0123456789ABCDEF.1",
					   "../../0123456789.1",
					   "0123456789abcdef.1/x",
					   "0123456789abcdef.-1",
					   "0123456789abcdef.99999999999999999999" };
	char *const words[] = { (char[]){ "true" }, NULL };
	struct hf_run_opts o = { .size = sizeof(o), .argv = words };
	uint64_t bytes = 0;

	(void)state;
	assert_true(hf_input_is_id("0123456789abcdef.17", &bytes));
	assert_true(bytes == 17);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(hf_input_is_id(bad[i], NULL));
		o.input = bad[i];
		assert_int_equal(hf_options_check("x", &o, ERR), bad[i][0] ? -EINVAL : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HF_TEST(an_input_is_kept_once_and_given_out_as_it_was),
		HF_TEST(an_input_that_is_too_large_is_not_kept_and_a_resume_is_refused),
		HF_TEST(nothing_but_checksum_and_size_names_an_input_L12),
	};

	return hf_run_tests("session_input", tests);
}
