/* unit/journal/test_journal_loss.c - a full disk and a stuck writer: losses are quick, counted and told once. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper/journal_content.h"
#include "hf/base/cleanup.h"

#define CHILD_SKIPS 77
/* Long enough that what does not wait is told from what does, on any machine. */
#define BOUND_MS 1000

static struct hf_journal *open_bounded(void)
{
	struct hf_journal_opts opts = { .size = sizeof(opts), .wait_ns = BOUND_MS * HF_MSEC };
	struct hf_journal *journal;

	ASSERT_OK(hf_journal_open(hf_test_state(), &opts, &journal, ERR));
	return journal;
}

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		HF_TEST(full_disk_loses_records_quickly_countedly_and_without_damage),
		HF_TEST(stuck_writer_delays_once_by_the_bound_and_losses_are_told_once),
		HF_TEST(writer_waits_again_once_it_got_through),
		HF_TEST(loss_that_could_not_be_counted_at_once_is_counted_later),
	};

	return hf_run_tests("journal_loss", tests);
}
