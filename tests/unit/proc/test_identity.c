/* unit/proc/test_identity.c - identities of real processes, and their text form. */
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "helper/random.h"
#include "helper/proc_judge.h"
#include "hf/proc/judge.h"
#include "hf/proc/stat.h"

static ino_t inode_of(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st.st_ino : 0;
}

/* ---- identity ---- */

static void identity_of_self_is_what_the_kernel_says(void **state)
{
	struct hf_proc_id self = { 0 }, again;
	char boot_id[HF_BOOT_ID_LEN + 1] = "";
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	(void)state;
	assert_non_null(f);
	assert_int_equal(fread(boot_id, 1, HF_BOOT_ID_LEN, f), HF_BOOT_ID_LEN);
	fclose(f);
	ASSERT_OK(hf_proc_self(&self, ERR));
	assert_int_equal(self.pid, getpid());
	assert_int_equal(self.pid_ns, inode_of("/proc/self/ns/pid"));
	assert_int_equal(self.time_ns, inode_of("/proc/self/ns/time"));
	assert_string_equal(self.boot_id, boot_id);
	assert_true(self.start_ticks > 0 && self.start_ticks <= boottime_ticks());
	again = identity_of(getpid());
	assert_same_identity(&self, &again);
	assert_int_equal(judge(&self, 0), HF_ALIVE);
}

static void identity_of_a_child_has_its_own_start(void **state)
{
	uint64_t before = boottime_ticks(), after;
	struct hf_proc_id self = identity_of(getpid()), id;
	struct child *c = child_start(child_answers, NULL);

	(void)state;
	after = boottime_ticks();
	id = identity_of(c->pid);
	assert_int_equal(id.pid, c->pid);
	assert_in_range(id.start_ticks, before, after);
	assert_int_equal(id.pid_ns, self.pid_ns);
	if (id.pidfs_inode)
		assert_int_not_equal(id.pidfs_inode, self.pidfs_inode);
}

static void identify_refuses_what_is_no_process(void **state)
{
	static const int32_t bad[] = { 0, -1, INT32_MIN };
	struct hf_proc_id id = { .pid = 77 };
	struct child *zombie, *gone;
	pid_t pid;

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		ASSERT_ERR(hf_proc_identify(bad[i], &id, ERR), -EINVAL);
	ASSERT_ERR(hf_proc_identify(INT32_MAX, &id, ERR), HF_E_GONE);
	zombie = child_start(child_answers, NULL);
	child_kill_only(zombie);
	ASSERT_ERR(hf_proc_identify(zombie->pid, &id, ERR), HF_E_GONE);
	gone = child_start(child_answers, NULL);
	pid = gone->pid;
	child_kill(gone);
	ASSERT_ERR(hf_proc_identify(pid, &id, ERR), HF_E_GONE);
	assert_int_equal(id.pid, 77); /* written only on success */
}

static void child_with_forged_stat(int in, int out, void *arg)
{
	MUST(hf_proc_self(arg, NULL) == 0);
	MUST(prctl(PR_SET_NAME, "x) R 1 1 (y") == 0);
	child_answers(in, out, NULL);
}

static void command_name_cannot_forge_identity_L6(void **state)
{
	struct hf_proc_id *before = shared_new(sizeof(*before)), after;
	uint64_t earliest = boottime_ticks();
	struct child *c = child_start(child_with_forged_stat, before);
	struct hf_stat st;

	(void)state;
	after = identity_of(c->pid);
	assert_same_identity(before, &after);
	ASSERT_OK(hf_stat_read(c->pid, &st));
	assert_int_equal(st.pid, c->pid);
	assert_int_equal(st.ppid, getpid());
	assert_int_equal(st.start_ticks, after.start_ticks);
	assert_in_range(after.start_ticks, earliest, boottime_ticks());
	assert_int_equal(judge(before, 0), HF_ALIVE);
	munmap(before, sizeof(*before));
}

/* ---- text form ---- */

#define BOOT "01234567-89ab-cdef-0123-456789abcdef"

/* Of any number of digits. */
static uint64_t random_number(void)
{
	uint64_t x = random_u64();

	return x >> (x & 63);
}

static void assert_round_trip(const struct hf_proc_id *id)
{
	char text[HF_PROC_TEXT_MAX], again[HF_PROC_TEXT_MAX];
	struct hf_proc_id parsed;
	int len = hf_proc_format(id, text);

	assert_int_equal(len, strlen(text));
	ASSERT_OK(hf_proc_parse(text, (size_t)len, &parsed, ERR));
	assert_same_identity(id, &parsed);
	assert_int_equal(hf_proc_format(&parsed, again), len);
	assert_string_equal(text, again);
}

static void text_form_round_trips(void **state)
{
	struct hf_proc_id id = identity_of(getpid());

	(void)state;
	assert_round_trip(&id);
	for (int i = 0; i < 2000; i++) {
		id.pid = (int32_t)(random_number() & INT32_MAX) | 1;
		id.pidfs_inode = random_number();
		id.start_ticks = random_number();
		id.time_ns = random_number();
		id.pid_ns = random_number();
		for (int j = 0; j < HF_BOOT_ID_LEN; j++)
			if (id.boot_id[j] != '-')
				id.boot_id[j] = "0123456789abcdef"[random_number() & 15];
		assert_round_trip(&id);
	}
	id.pid = INT32_MAX;
	id.pidfs_inode = id.start_ticks = id.time_ns = id.pid_ns = UINT64_MAX;
	assert_round_trip(&id);
}

static void assert_not_parsed(const char *text, size_t len)
{
	struct hf_proc_id id = { .pid = 77 };

	/* An exact copy on the heap, so that the sanitizer sees a read behind it. */
	char *copy = malloc(len ? len : 1);

	memcpy(copy, text, len);
	if (hf_proc_parse(copy, len, &id, ERR) != HF_E_SYNTAX)
		fail_msg("accepted: \"%.*s\" (%zu bytes)", (int)len, text, len);
	assert_int_equal(id.pid, 77);
	free(copy);
}

static void every_truncation_is_refused(void **state)
{
	struct hf_proc_id id = identity_of(getpid());
	char text[HF_PROC_TEXT_MAX];
	size_t len = (size_t)hf_proc_format(&id, text);

	(void)state;
	for (size_t i = 0; i < len; i++)
		assert_not_parsed(text, i);
	for (size_t i = 1; i <= len; i++)
		assert_not_parsed(text + i, len - i);
	assert_not_parsed(text, len + 1); /* its NUL */
}

static void only_the_one_text_of_an_identity_is_read(void **state)
{
	static const char good[] = "p1:12:3:4:5:6:" BOOT;
	static const char *const bad[] = {
		"p1:0:3:4:5:6:" BOOT, "p1:-1:3:4:5:6:" BOOT, "p1:+1:3:4:5:6:" BOOT,
		"p1:012:3:4:5:6:" BOOT, "p1:12:03:4:5:6:" BOOT, "p1:12:3:04:5:6:" BOOT,
		"p1:12:3:4:05:6:" BOOT, "p1:12:3:4:5:06:" BOOT, "p1:12:00:4:5:6:" BOOT,
		"p1:2147483648:3:4:5:6:" BOOT, "p1:4294967308:3:4:5:6:" BOOT,
		"p1:18446744073709551628:3:4:5:6:" BOOT, "p1:12:18446744073709551616:4:5:6:" BOOT,
		"p1:12:3:18446744073709551616:5:6:" BOOT, "p1:12:3:4:99999999999999999999:6:" BOOT,
		"p1:12:3:4:5:18446744073709551616:" BOOT, "p1:12:-3:4:5:6:" BOOT,
		"p1:12:0x3:4:5:6:" BOOT, "p1: 12:3:4:5:6:" BOOT, "p1:12 :3:4:5:6:" BOOT,
		"p1::3:4:5:6:" BOOT, "p1:12::4:5:6:" BOOT, "p1:12:3:4:5::" BOOT,
		"p1:12:3:4:5:" BOOT, "p1:12:3:4:5:6:7:" BOOT, "p1:12:3:4:5:6" BOOT,
		"p2:12:3:4:5:6:" BOOT, "P1:12:3:4:5:6:" BOOT, "p:12:3:4:5:6:" BOOT,
		"p01:12:3:4:5:6:" BOOT, "p1;12:3:4:5:6:" BOOT, " p1:12:3:4:5:6:" BOOT,
		"p1:12:3:4:5:6:" BOOT "\n", "p1:12:3:4:5:6:" BOOT " ", "p1:12:3:4:5:6:" BOOT "0",
		"p1:12:3:4:5:6:" BOOT ":", "p1:12:3:4:5:6:",
		"p1:12:3:4:5:6:01234567-89AB-cdef-0123-456789abcdef",
		"p1:12:3:4:5:6:01234567-89ag-cdef-0123-456789abcdef",
		"p1:12:3:4:5:6:0123456789ab-cdef-0123-456789abcdef-",
		"p1:12:3:4:5:6:01234567089ab0cdef001230456789abcdef",
		"p1:12:3:4:5:6:------------------------------------",
		"p1:12:3:4:5:6:1234567-89ab-cdef-0123-456789abcdef",
	};
	struct hf_proc_id id;

	(void)state;
	ASSERT_OK(hf_proc_parse(good, strlen(good), &id, ERR));
	assert_int_equal(id.pid, 12);
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_not_parsed(bad[i], strlen(bad[i]));
	assert_not_parsed("p1:12:3:4:5\0:6:" BOOT, sizeof("p1:12:3:4:5\0:6:" BOOT) - 1);
}

static void too_long_a_text_is_refused(void **state)
{
	char text[400];

	(void)state;
	memset(text, '1', sizeof(text));
	memcpy(text, "p1:", 3);
	for (size_t len = HF_PROC_TEXT_MAX - 2; len <= sizeof(text); len++)
		assert_not_parsed(text, len);
}

/* ---- the caller's process ---- */

static void identities_are_equal_by_inode_or_by_start(void **state)
{
	struct hf_proc_id a, b;

	(void)state;
	ASSERT_OK(hf_proc_self(&a, ERR));
	b = a;
	assert_true(hf_proc_equal(&a, &b));
	b.pid++;
	assert_false(hf_proc_equal(&a, &b));
	b = a;
	b.boot_id[0] ^= 1;
	assert_false(hf_proc_equal(&a, &b));
	b = a;
	b.pid_ns++;
	assert_false(hf_proc_equal(&a, &b));
	/* The inode decides where both have one. */
	b = a;
	a.pidfs_inode = b.pidfs_inode = 7;
	b.start_ticks++;
	assert_true(hf_proc_equal(&a, &b));
	b.pidfs_inode = 8;
	assert_false(hf_proc_equal(&a, &b));
	b.pidfs_inode = 0;
	assert_false(hf_proc_equal(&a, &b));
	b.start_ticks--;
	assert_true(hf_proc_equal(&a, &b));
	b.time_ns++;
	assert_false(hf_proc_equal(&a, &b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PROC_TEST(identity_of_self_is_what_the_kernel_says),
		PROC_TEST(identity_of_a_child_has_its_own_start),
		PROC_TEST(identify_refuses_what_is_no_process),
		PROC_TEST(command_name_cannot_forge_identity_L6),
		PROC_TEST(text_form_round_trips),
		PROC_TEST(every_truncation_is_refused),
		PROC_TEST(only_the_one_text_of_an_identity_is_read),
		PROC_TEST(too_long_a_text_is_refused),
		PROC_TEST(identities_are_equal_by_inode_or_by_start),
	};

	proc_test_begin();
	return hf_run_tests("identity", tests);
}
