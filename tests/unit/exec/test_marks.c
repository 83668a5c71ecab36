/* unit/exec/test_marks.c - marks in limits: made, inherited, read, and never mistaken for anything else. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper/test.h"
#include "hf/exec/marks.h"

#define NONE UINT64_MAX

static void inner_mark_is_lower_than_the_one_around_at_every_depth(void **state)
{
	uint64_t name = hf_limit_mark_name(1, 2, "x"), above = NONE;
	int depth = 0;

	(void)state;
	/* With tokens that fall: the clock was set back. */
	for (;; depth++) {
		uint64_t mark = hf_limit_mark_make(above, name, 1700000000000000 - (uint64_t)depth);

		if (!mark)
			break;
		assert_true(mark < above);
		assert_true(hf_limit_mark_in(mark) == mark);
		assert_true(hf_limit_mark_name_of(mark) == name);
		above = mark;
	}
	assert_int_equal(depth, 256);
}

static void no_mark_is_made_below_a_limit_of_the_users_own(void **state)
{
	(void)state;
	assert_true(hf_limit_mark_make(0, 1, 1) == 0);
	assert_true(hf_limit_mark_make(1000, 1, 1) == 0);
	assert_true(hf_limit_mark_make((UINT64_C(1) << 62) - 1, 1, 1) == 0);
	assert_true(hf_limit_mark_make(UINT64_C(1) << 63, 1, 1) != 0);
	assert_true(hf_limit_mark_in(1000) == 0);
	assert_true(hf_limit_mark_in(NONE) == 0);
	assert_true(hf_limit_mark_in(UINT64_C(1) << 63) == 0);
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void marks_of_different_runs_names_and_directories_differ(void **state)
{
	enum { N = 60000 };
	uint64_t *marks = malloc(N * sizeof(*marks));
	size_t n = 0;

	(void)state;
	assert_non_null(marks);
	/* 20 directories, 30 names, 100 tokens that follow each other: what collides must be hashes. */
	for (uint64_t dir = 0; dir < 20; dir++)
		for (int i = 0; i < 30; i++)
			for (uint64_t token = 0; token < 100; token++) {
				char name[24];

				snprintf(name, sizeof(name), "fix-%d", i);
				marks[n++] = hf_limit_mark_make(NONE, hf_limit_mark_name(dir % 4, dir / 4, name),
								1794785023619492 + token);
			}
	assert_int_equal(n, N);
	qsort(marks, n, sizeof(*marks), by_value);
	for (size_t i = 1; i < n; i++)
		assert_true(marks[i] != marks[i - 1]);
	free(marks);
}

static void limits_are_read_as_the_kernel_writes_them(void **state)
{
	static const char before[] = "Limit                     Soft Limit           Hard Limit           Units     \n";
	static const struct {
		const char *line;
		int result;
		uint64_t hard;
	} cases[] = {
		{ "Max file locks            unlimited            unlimited            locks     \n", 0, NONE },
		{ "Max file locks            5                    9217180911591564347  locks     \n", 0,
		  UINT64_C(9217180911591564347) },
		{ "Max file locks            unlimited            0                    locks     \n", 0, 0 },
		{ "Max file locks            5                    18446744073709551616 locks     \n", HF_E_FORMAT, 0 },
		{ "Max file locks            5                    -1                   locks     \n", HF_E_FORMAT, 0 },
		{ "Max file locks            5", HF_E_FORMAT, 0 },
		{ "Max file locks            5                    7", HF_E_FORMAT, 0 },
		{ "Max file locks ", HF_E_FORMAT, 0 },
		{ "Not Max file locks        5                    7                    locks     \n", HF_E_FORMAT, 0 },
		{ "", HF_E_FORMAT, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[512];
		uint64_t hard = 0;
		int len = snprintf(text, sizeof(text), "%s%s", before, cases[i].line);
		char *copy = malloc((size_t)len);

		assert_non_null(copy);
		memcpy(copy, text, (size_t)len);
		assert_int_equal(hf_limits_parse(copy, (size_t)len, &hard), cases[i].result);
		assert_true(hard == cases[i].hard);
		free(copy);
	}
}

static void mark_is_inherited_seen_from_outside_and_cannot_be_raised(void **state)
{
	uint64_t mark = hf_limit_mark_make(hf_limit_own(), 4711, 1794785023619492);
	int to_child[2], from_child[2], status;
	char byte = 0;
	pid_t pid;

	(void)state;
	if (!mark) {
		print_message("no room below this process's own limit\n");
		skip();
	}
	assert_int_equal(pipe(to_child), 0);
	assert_int_equal(pipe(from_child), 0);
	pid = fork();
	if (pid == 0) {
		struct rlimit higher = { .rlim_cur = (rlim_t)mark + 1, .rlim_max = (rlim_t)mark + 1 };

		if (hf_limit_mark_set(mark) < 0)
			_exit(1);
		if (fork() == 0) {
			if (getuid() == 0 && setuid(65534) < 0)
				_exit(2);
			if (setrlimit(RLIMIT_LOCKS, &higher) == 0 || hf_limit_own() != mark)
				_exit(3);
			setsid();
			byte = 'y';
			(void)!write(from_child[1], &byte, 1);
			(void)!read(to_child[0], &byte, 1);
			_exit(0);
		}
		_exit(wait(&status) > 0 && status == 0 ? 0 : 4);
	}
	assert_int_equal(read(from_child[0], &byte, 1), 1);
	assert_true(hf_limit_mark_of((int32_t)pid) == mark);
	assert_true(hf_limit_mark_of((int32_t)getpid()) != mark);
	assert_int_equal(write(to_child[1], &byte, 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(hf_limit_mark_of((int32_t)pid) == 0);
	for (int i = 0; i < 2; i++) {
		close(to_child[i]);
		close(from_child[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HF_TEST(inner_mark_is_lower_than_the_one_around_at_every_depth),
		HF_TEST(no_mark_is_made_below_a_limit_of_the_users_own),
		HF_TEST(marks_of_different_runs_names_and_directories_differ),
		HF_TEST(limits_are_read_as_the_kernel_writes_them),
		HF_TEST(mark_is_inherited_seen_from_outside_and_cannot_be_raised),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
