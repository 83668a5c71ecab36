/* tests/unit/proc/test_stat.c - /proc/PID/stat, status and a pidfd's fdinfo. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "helper/test.h"
#include "holdfast/clock.h"
#include "hf/proc/stat.h"
#include "hf/sys/io.h"

/* What stands between ppid and threads, and between threads and start, on a real line. */
#define FIELDS_5_TO_19 "4710 4710 34816 4710 4194304 152 0 0 0 1 2 3 4 20 0"
#define FIELDS_23_ON   "7340032 512 18446744073709551615 1 1 0 0 0 0 0 4096 0 0 17 1 0 0 0 0 0\n"

static size_t make_stat(char *to, size_t cap, const char *pid, const char *comm, const char *ppid,
			const char *threads, const char *start)
{
	int n = snprintf(to, cap, "%s (%s) S %s " FIELDS_5_TO_19 " %s 0 %s " FIELDS_23_ON, pid,
			 comm, ppid, threads, start);

	assert_true(n > 0 && (size_t)n < cap);
	return (size_t)n;
}

static void assert_stat(const struct hf_stat *st, int32_t pid, int32_t ppid, uint64_t threads,
			uint64_t start)
{
	assert_int_equal(st->pid, pid);
	assert_int_equal(st->state, 'S');
	assert_int_equal(st->ppid, ppid);
	assert_int_equal(st->threads, threads);
	assert_true(st->start_ticks == start);
}

static void refuse_stat(const char *text, size_t len)
{
	struct hf_stat st;

	memset(&st, '#', sizeof(st));
	ASSERT_ERR(hf_stat_parse(text, len, &st), HF_E_FORMAT);
	for (size_t i = 0; i < sizeof(st); i++)
		assert_int_equal(((char *)&st)[i], '#');
}

static void fields_are_those_of_the_line(void **state)
{
	char text[1024];
	struct hf_stat st;
	size_t len = make_stat(text, sizeof(text), "4711", "bash", "4000", "3", "123456");

	(void)state;
	ASSERT_OK(hf_stat_parse(text, len, &st));
	assert_stat(&st, 4711, 4000, 3, 123456);
	/* Without the newline it is the same line. */
	ASSERT_OK(hf_stat_parse(text, len - 1, &st));
	assert_stat(&st, 4711, 4000, 3, 123456);
}

static const char *const nasty_names[] = {
	"x) R 1 1 (y", ")", "(", "()", ")(", "", " ", "a b c", "a\nb", ") S 1", "))))))", "((((((",
	"x) Z 1 2 3 4 5 6 7", "\n) R 1 1 1 1 1 1 1", "1 (a) S 7", "\x1b[2J", "\xff\xfe",
	"tab\there", ") R 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9",
};

static void command_name_never_shifts_the_fields(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(nasty_names); i++) {
		char text[1024];
		struct hf_stat st;
		size_t len = make_stat(text, sizeof(text), "4711", nasty_names[i], "4000", "3",
				       "123456");

		ASSERT_OK(hf_stat_parse(text, len, &st));
		assert_stat(&st, 4711, 4000, 3, 123456);
	}
}

/* Bounds of text are bounds of memory: a copy of exact size lets the sanitizer see. */
static int parse_exact(const char *text, size_t len, struct hf_stat *st)
{
	char *copy = malloc(len ? len : 1);
	int r;

	assert_non_null(copy);
	memcpy(copy, text, len);
	r = hf_stat_parse(copy, len, st);
	free(copy);
	return r;
}

static void cut_line_is_refused_or_right(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(nasty_names); i++) {
		char text[1024];
		size_t len = make_stat(text, sizeof(text), "4711", nasty_names[i], "4000", "3",
				       "123456");
		int refused = 0;

		for (size_t cut = 0; cut < len; cut++) {
			struct hf_stat st;
			int r = parse_exact(text, cut, &st);

			assert_true(r == 0 || r == HF_E_FORMAT);
			refused += r < 0;
			if (r == 0 && (st.start_ticks != 123456 || st.pid != 4711))
				fail_msg("cut at %zu of '%s': start %llu", cut, nasty_names[i],
					 (unsigned long long)st.start_ticks);
		}
		assert_true(refused > 70);
	}
}

static void numbers_out_of_range_are_refused(void **state)
{
	static const struct {
		const char *pid, *ppid, *threads, *start;
		int good;
	} table[] = {
		{ "1", "0", "1", "0", 1 },
		{ "2147483647", "2147483647", "2147483647", "18446744073709551615", 1 },
		{ "2147483648", "1", "1", "1", 0 },
		{ "1", "2147483648", "1", "1", 0 },
		{ "1", "1", "2147483648", "1", 0 },
		{ "1", "1", "1", "18446744073709551616", 0 },
		{ "1", "1", "1", "99999999999999999999999999", 0 },
		{ "99999999999999999999999999", "1", "1", "1", 0 },
		{ "-1", "1", "1", "1", 0 },
		{ "1", "-1", "1", "1", 0 },
		{ "1", "1", "-1", "1", 0 },
		{ "1", "1", "1", "-1", 0 },
		{ "", "1", "1", "1", 0 },
		{ "1", "", "1", "1", 0 },
		{ "1", "1", "", "1", 0 },
		{ "1", "1", "1", "", 0 },
		{ "0x1", "1", "1", "1", 0 },
		{ "1", "1", "1", "1x", 0 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		char text[1024];
		struct hf_stat st;
		size_t len = make_stat(text, sizeof(text), table[i].pid, "x", table[i].ppid,
				       table[i].threads, table[i].start);

		if (table[i].good)
			ASSERT_OK(hf_stat_parse(text, len, &st));
		else
			refuse_stat(text, len);
	}
}

static void what_is_no_stat_line_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"(",
		")",
		"()",
		" (x) S 1",
		"1(x) S 1 " FIELDS_5_TO_19 " 1 0 1 " FIELDS_23_ON,
		"(x) S 1 " FIELDS_5_TO_19 " 1 0 1 " FIELDS_23_ON,
		"1 )x( S 1 " FIELDS_5_TO_19 " 1 0 1 " FIELDS_23_ON,
		"1 (x S 1 " FIELDS_5_TO_19 " 1 0 1 " FIELDS_23_ON,
		"1 x) S 1 " FIELDS_5_TO_19 " 1 0 1 " FIELDS_23_ON,
		"1 (x)  S 1 " FIELDS_5_TO_19 " 1 0 1 " FIELDS_23_ON,
		"1 (x) SS 1 " FIELDS_5_TO_19 " 1 0 1 " FIELDS_23_ON,
		"1 (x) 5 1 " FIELDS_5_TO_19 " 1 0 1 " FIELDS_23_ON,
		"1 (x)\nS 1 " FIELDS_5_TO_19 " 1 0 1 " FIELDS_23_ON,
		"1 (x) S\n1 " FIELDS_5_TO_19 " 1 0 1 " FIELDS_23_ON,
		"1 (x) S 1 " FIELDS_5_TO_19 "  1 0 1 " FIELDS_23_ON,
		"1 (x) S 1\n",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		refuse_stat(bad[i], strlen(bad[i]));
}

static int task_count(void)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *entry;
	int n = 0;

	assert_non_null(d);
	while ((entry = readdir(d)))
		n += entry->d_name[0] != '.';
	closedir(d);
	return n;
}

static void own_line_tells_about_ourselves(void **state)
{
	struct hf_stat st;
	uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK);

	(void)state;
	ASSERT_OK(hf_stat_read(0, &st));
	assert_int_equal(st.pid, getpid());
	assert_int_equal(st.ppid, getppid());
	assert_int_equal(st.state, 'R');
	assert_int_equal(st.threads, task_count());
	assert_true(st.start_ticks > 0);
	assert_true(st.start_ticks <= (uint64_t)(hf_boot_now().ns / HF_SEC + 1) * hz);
}

static void own_name_cannot_change_what_is_read(void **state)
{
	struct hf_stat plain, st;
	char kept[17] = "";

	(void)state;
	assert_int_equal(prctl(PR_GET_NAME, kept), 0);
	ASSERT_OK(hf_stat_read(getpid(), &plain));
	for (size_t i = 0; i < COUNT(nasty_names); i++) {
		assert_int_equal(prctl(PR_SET_NAME, nasty_names[i]), 0);
		ASSERT_OK(hf_stat_read(getpid(), &st));
		/* These two may grow between the two readings. */
		assert_true(st.cpu_ticks >= plain.cpu_ticks && st.rss_pages > 0);
		st.cpu_ticks = plain.cpu_ticks;
		st.rss_pages = plain.rss_pages;
		assert_memory_equal(&st, &plain, sizeof(st));
	}
	assert_int_equal(prctl(PR_SET_NAME, kept), 0);
}

static void line_of_no_process_is_an_error(void **state)
{
	struct hf_stat st;
	uint32_t uid;

	(void)state;
	/* No kernel gives pids this high. */
	assert_true(hf_stat_read(INT32_MAX, &st) < 0);
	assert_true(hf_status_read_uid(INT32_MAX, &uid) < 0);
}

/* -- status --------------------------------------------------------------- */

static void uid_is_the_real_one(void **state)
{
	static const char text[] = "Name:\tx\nUmask:\t0022\nPid:\t7\nUid:\t1000\t2000\t3000\t4000\n"
				   "Gid:\t5\t5\t5\t5\n";
	uint32_t uid = 77;

	(void)state;
	ASSERT_OK(hf_status_parse_uid(text, sizeof(text) - 1, &uid));
	assert_int_equal(uid, 1000);
	ASSERT_OK(hf_status_read_uid(0, &uid));
	assert_int_equal(uid, getuid());
	ASSERT_OK(hf_status_read_uid(getpid(), &uid));
	assert_int_equal(uid, getuid());
}

static void uid_is_taken_only_from_the_start_of_a_line(void **state)
{
	static const char text[] = "Name:\tUid:\t0\nX Uid:\t0\n Uid:\t0\nUid:\t65534\t0\t0\t0\n";
	uint32_t uid = 77;

	(void)state;
	ASSERT_OK(hf_status_parse_uid(text, sizeof(text) - 1, &uid));
	assert_int_equal(uid, 65534);
}

static void status_without_a_sound_uid_is_refused(void **state)
{
	static const char *const bad[] = {
		"", "Uid:", "Uid:\t", "Uid:\t\n", "Uid: 0\t0\n", "Uid:\t-1\t0\n",
		"Uid:\t4294967296\t0\n", "Uid:\t0x0\t0\n", "Uid:\t\t0\n", "uid:\t0\t0\n",
		"Name:\tUid:\t0\n", "Gid:\t0\t0\n", "Uid:\t99999999999999999999999\t0\n",
	};
	uint32_t uid = 77;

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		ASSERT_ERR(hf_status_parse_uid(bad[i], strlen(bad[i]), &uid), HF_E_FORMAT);
	assert_int_equal(uid, 77);
	ASSERT_OK(hf_status_parse_uid("Uid:\t4294967295\t0\n", 17, &uid));
	assert_int_equal(uid, UINT32_MAX);
}

static void cut_status_is_refused_or_right(void **state)
{
	static const char text[] = "Name:\tx\nUid:\t65534\t65534\t65534\t65534\n";
	uint32_t uid;

	(void)state;
	for (size_t cut = 0; cut < sizeof(text); cut++)
		if (hf_status_parse_uid(text, cut, &uid) == 0 && uid != 65534)
			fail_msg("cut at %zu: uid %u", cut, uid);
}

static void inner_pids_are_those_below_the_namespace_of_proc(void **state)
{
	static const struct {
		const char *text;
		int32_t pid;
		int found;
	} cases[] = {
		{ "NSpid:\t7\n", 7, 0 }, { "NSpid:\t7\t8\n", 7, 0 },
		{ "NSpid:\t7\t8\n", 8, 1 }, { "NSpid:\t7\t8\t9\nX:\t1\n", 8, 1 },
		{ "NSpid:\t7\t8\t9\n", 9, 1 }, { "Name:\tNSpid:\t1\t8\nNSpid:\t7\t80\n", 8, 0 },
	};
	static const char *const bad[] = {
		"", "NSpid:", "NSpid:\t", "NSpid:\t7", "NSpid:\t7\t", "NSpid:\t7\t8", "NSpid:\t7\t\n",
		"NSpid:\t7\t8x\n", "NSpid:\t7\t-8\n", "NSpid:\t7 8\n", "Pid:\t8\n", "NSpid:\t7\t99999999999\n",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		int found = -1;

		ASSERT_OK(hf_status_parse_inner(cases[i].text, strlen(cases[i].text), cases[i].pid, &found));
		assert_int_equal(found, cases[i].found);
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		int found = -1;

		ASSERT_ERR(hf_status_parse_inner(bad[i], strlen(bad[i]), 8, &found), HF_E_FORMAT);
		assert_int_equal(found, -1);
	}
}

/* -- fdinfo --------------------------------------------------------------- */

static void fdinfo_tells_pid_exited_and_invisible(void **state)
{
	static const struct {
		const char *text;
		int32_t pid;
	} table[] = {
		{ "pos:\t0\nflags:\t02000002\nino:\t4\nPid:\t4711\nNSpid:\t4711\n", 4711 },
		{ "Pid:\t-1\nNSpid:\t-1\n", -1 },
		{ "Pid:\t0\nNSpid:\t0\n", 0 },
		{ "NSpid:\t9\nPid:\t2147483647\n", INT32_MAX },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		int32_t pid = 77;

		ASSERT_OK(hf_fdinfo_parse_pid(table[i].text, strlen(table[i].text), &pid));
		assert_int_equal(pid, table[i].pid);
	}
}

static void fdinfo_without_a_sound_pid_is_refused(void **state)
{
	static const char *const bad[] = {
		"", "Pid:", "Pid:\t", "Pid:\t\n", "Pid:\t-2\n", "Pid:\tx\n", "Pid:\t2147483648\n",
		"NSpid:\t1\n", "pos:\t0\n", "Pid:\t-\n", "Pid:\t+1\n", "Pid: 1\n", "pid:\t1\n",
		"Pid:\t-9223372036854775809\n",
	};
	int32_t pid = 77;

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		ASSERT_ERR(hf_fdinfo_parse_pid(bad[i], strlen(bad[i]), &pid), HF_E_FORMAT);
	assert_int_equal(pid, 77);
}

static void cut_fdinfo_is_refused_or_right(void **state)
{
	static const char text[] = "pos:\t0\nPid:\t4711\nNSpid:\t4711\n";
	int32_t pid;

	(void)state;
	for (size_t cut = 0; cut < sizeof(text); cut++)
		if (hf_fdinfo_parse_pid(text, cut, &pid) == 0 && pid != 4711)
			fail_msg("cut at %zu: pid %d", cut, pid);
}

static void fdinfo_of_a_real_pidfd_holds_its_pid(void **state)
{
	int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	char path[64], text[1024];
	int32_t pid = 77, number = 77;
	ssize_t n;

	(void)state;
	if (pidfd < 0)
		HF_SKIP("pidfd_open does not work here");
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	n = hf_read_file(-1, path, text, sizeof(text));
	ASSERT_OK(n);
	ASSERT_OK(hf_fdinfo_parse_pid(text, (size_t)n, &pid));
	assert_int_equal(pid, getpid());
	ASSERT_OK(hf_proc_number(pidfd, getpid(), &number));
	assert_int_equal(number, getpid());
	close(pidfd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HF_TEST(fields_are_those_of_the_line),
		HF_TEST(command_name_never_shifts_the_fields),
		HF_TEST(cut_line_is_refused_or_right),
		HF_TEST(numbers_out_of_range_are_refused),
		HF_TEST(what_is_no_stat_line_is_refused),
		HF_TEST(own_line_tells_about_ourselves),
		HF_TEST(own_name_cannot_change_what_is_read),
		HF_TEST(line_of_no_process_is_an_error),
		HF_TEST(uid_is_the_real_one),
		HF_TEST(uid_is_taken_only_from_the_start_of_a_line),
		HF_TEST(status_without_a_sound_uid_is_refused),
		HF_TEST(cut_status_is_refused_or_right),
		HF_TEST(inner_pids_are_those_below_the_namespace_of_proc),
		HF_TEST(fdinfo_tells_pid_exited_and_invisible),
		HF_TEST(fdinfo_without_a_sound_pid_is_refused),
		HF_TEST(cut_fdinfo_is_refused_or_right),
		HF_TEST(fdinfo_of_a_real_pidfd_holds_its_pid),
	};

	return hf_run_tests("stat", tests);
}
