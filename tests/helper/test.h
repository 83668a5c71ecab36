/*
 * tests/helper/test.h - what every unit test needs on top of cmocka.
 *
 *     static void second_try_is_refused(void **state)      title: the law
 *     {
 *             ASSERT_OK(hf_x(...));
 *             ASSERT_ERR(hf_x(...), HF_E_BUSY);
 *     }
 *     int main(void)
 *     {
 *             const struct CMUnitTest tests[] = { HF_TEST(second_try_is_refused) };
 *             return hf_run_tests("lock", tests);
 *     }
 *
 * HF_TEST gives each test a fresh temporary directory (hf_test_dir) that is
 * removed afterwards, and fails it when it leaves a descriptor open.
 */
#ifndef TESTS_TEST_H
#define TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "holdfast/err.h"
#include "holdfast/state.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Each evaluates its argument once and shows the whole error when it fails. */
#define ASSERT_OK(call) hf_test_ok((call), #call, __FILE__, __LINE__)
#define ASSERT_ERR(call, expected) hf_test_err((call), (expected), #call, __FILE__, __LINE__)

/* The struct hf_err that calls under test may fill in; shown by a failing ASSERT_OK. */
extern struct hf_err hf_test_error;
#define ERR (&hf_test_error)

/* How long a test waits for its turn at the journal: for ever, nearly. */
#define HF_TEST_PATIENCE    "60s"
#define HF_TEST_PATIENCE_NS (60 * HF_SEC)

void hf_test_ok(long long result, const char *call, const char *file, int line);
void hf_test_err(long long result, long long expected, const char *call, const char *file,
		 int line);

#define HF_TEST(fn) { #fn, fn, hf_test_setup, hf_test_teardown, NULL }

int hf_test_setup(void **state);
int hf_test_teardown(void **state);

#define hf_run_tests(name, tests) _cmocka_run_group_tests(name, tests, sizeof(tests) / sizeof((tests)[0]), NULL, NULL)

/* Absolute path of this test's own directory; changes from test to test. */
const char *hf_test_dir(void);

/* A state directory in it, opened (the same on a second call). Freed by the teardown. */
struct hf_state *hf_test_state(void);

/* hf_test_dir()/leaf in a static buffer (a few are kept in turn). */
const char *hf_test_path(const char *leaf);

/* Number of open descriptors of this process. */
int hf_test_fd_count(void);

/* In a forked child: there an assertion of cmocka would return into the parent's test. */
#define CHILD_CHECK(condition)                                                           \
	do {                                                                             \
		if (!(condition)) {                                                      \
			fprintf(stderr, "# child, line %d: %s %s %s\n", __LINE__,        \
				#condition, hf_test_error.op, hf_test_error.detail);      \
			_exit(1);                                                        \
		}                                                                        \
	} while (0)

/*
 * Skips with a reason that the runner prints and counts. Never a silent pass.
 */
#define HF_SKIP(...)                      \
	do {                              \
		print_message("# SKIP " __VA_ARGS__); \
		print_message("\n");      \
		skip();                   \
	} while (0)

#endif
