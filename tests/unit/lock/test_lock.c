/*
 * unit/lock/test_lock.c - the files of the local store: lost, older, damaged, forged, not files at all.
 *
 * What every store must do is tested in tests/store.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hf/base/cleanup.h"
#include "hf/lock/local/record/record.h"
#include "helper/lock_cases.h"
#include "helper/test.h"
#include "holdfast/journal.h"
#include "holdfast/lock.h"

#define RECORD "state/locks/name/x"

/* -- dead and unknown ------------------------------------------------------- */

/* Changes the record behind the library's back. */
static void alter_record(void (*change)(struct hf_lock_record *record))
{
	AUTO_FD fd = open(hf_test_path(RECORD), O_RDWR | O_CLOEXEC);
	uint8_t bytes[HF_LOCK_RECORD_MAX];
	struct hf_lock_record record;
	const char *why;
	int n;

	assert_int_equal(pread(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	ASSERT_OK(hf_lock_record_decode(bytes, sizeof(bytes), &record, &why));
	change(&record);
	n = hf_lock_record_encode(&record, bytes);
	assert_true(n > 0);
	assert_int_equal(pwrite(fd, bytes, (size_t)n, 0), n);
}

static void to_other_boot(struct hf_lock_record *record)
{
	char *digit = &record->holders[0].id.boot_id[0];

	*digit = *digit == '0' ? '1' : '0';
}

static void to_recycled(struct hf_lock_record *record)
{
	if (record->holders[0].id.pidfs_inode)
		record->holders[0].id.pidfs_inode--;
	record->holders[0].id.start_ticks -= 100;
}

static void owner_of_another_boot_or_another_process_is_dead_L4(void **state)
{
	struct child *c = child_start(child_holds, NULL);

	(void)state;
	ASSERT_ERR(try_now("x"), HF_E_BUSY);
	alter_record(to_other_boot);
	holder_is_replaced_at_once("boot", 1);
	c = child_start(child_holds, NULL);
	ASSERT_ERR(try_now("x"), HF_E_BUSY);
	alter_record(to_recycled);
	holder_is_replaced_at_once(NULL, 1);
	assert_int_equal(child_ask(c), '0');
}

/* -- leases ----------------------------------------------------------------- */

/* Renews until the other one gives up. Returns 0 when the machine was too slow to tell. */
static int renews_in_time(struct hf_lock *lock, int64_t ttl, int from)
{
	static const struct timeval long_ago[2];
	struct pollfd p = { .fd = from, .events = POLLIN };
	struct hf_mono last = hf_mono_now();

	do {
		int r = hf_lock_renew(lock, 0, ERR);

		if (hf_mono_now().ns - last.ns > ttl / 2)
			return 0;
		ASSERT_OK(r);
		last = hf_mono_now();
		(void)utimes(hf_test_path(RECORD), long_ago);
	} while (poll(&p, 1, 20) == 0);
	return 1;
}

static void holder_that_renews_never_loses_the_lock_whatever_the_file_says_L4(void **state)
{
	struct hf_lock_opts opts = opts_of(HF_LOCK_EXCLUSIVE, 0);
	int64_t wait = 900 * HF_MSEC;
	int conclusive = 0;

	(void)state;
	opts.ttl_ns = 300 * HF_MSEC;
	for (int i = 0; i < 5 && !conclusive; i++) {
		struct hf_lock *lock = take("x", &opts);
		struct child *c = child_start(wait_for_it, &wait);

		conclusive = renews_in_time(lock, opts.ttl_ns, c->from);
		child_reap(c);
		if (conclusive) {
			ASSERT_ERR(told->r, HF_E_TIMEOUT);
			ASSERT_OK(hf_lock_check(lock, ERR));
		}
		(void)hf_lock_release(lock, ERR);
		hf_lock_free(lock);
	}
	if (!conclusive)
		HF_SKIP("this machine is too busy to renew in time");
}

static void to_absurd_lease(struct hf_lock_record *record)
{
	record->holders[0].lease_end_ns = INT64_MAX;
}

static void lease_that_ends_absurdly_late_is_clamped_to_its_length(void **state)
{
	struct hf_lock_opts opts = opts_of(HF_LOCK_EXCLUSIVE, 0);
	struct hf_mono until;
	struct hf_lock *lock;
	int r;

	(void)state;
	opts.ttl_ns = 100 * HF_MSEC;
	for (int waiting = 0; waiting < 2; waiting++) {
		ASSERT_OK(try_for(1, "x", opts, NULL));
		alter_record(to_absurd_lease);
		assert_true(look("x").first.lease_left_ns <= opts.ttl_ns);
		/* A process that asks again and again must see it end, and so must a waiter. */
		until = hf_mono_in(10 * HF_SEC);
		while ((r = try_for(2, "x",
				    (struct hf_lock_opts){ .size = sizeof(struct hf_lock_opts),
							   .wait_ns = waiting ? 5 * HF_SEC : 0 },
				    NULL)) == HF_E_BUSY &&
		       hf_mono_left(until) > 0)
			(void)poll(NULL, 0, 10);
		ASSERT_OK(r);
		ASSERT_OK(hf_lock_break(locks, "x", "test", ERR));
	}
	lock = take("x", NULL);
	give_back(lock);
}

/* -- tokens ----------------------------------------------------------------- */

static void deleted_file_never_makes_an_old_token_current_L5(void **state)
{
	struct hf_lock *lock = take("x", NULL), *next;

	(void)state;
	assert_int_equal(unlink(hf_test_path(RECORD)), 0);
	ASSERT_ERR(hf_lock_check(lock, ERR), HF_E_STALE);
	ASSERT_ERR(hf_lock_renew(lock, HF_SEC, ERR), HF_E_STALE);
	ASSERT_ERR(hf_lock_release(lock, ERR), HF_E_STALE);
	next = take("x", NULL);
	assert_true(hf_lock_token(next) > hf_lock_token(lock));
	ASSERT_ERR(hf_lock_release(lock, ERR), HF_E_STALE);
	ASSERT_OK(hf_lock_check(next, ERR));
	give_back(next);
	hf_lock_free(lock);
}

/* -- what may stand in place of a record ------------------------------------- */

/* The lock works afterwards, what was there is out of the way, and one event says so. */
static void is_quarantined_and_the_lock_works(const char *what)
{
	int before = events(HF_EV_RECORD_QUARANTINED, NULL), after;
	struct hf_lock *lock = NULL;
	int r = hf_lock_acquire(locks, "x", NULL, &lock, NULL, ERR);

	after = events(HF_EV_RECORD_QUARANTINED, "file");
	if (r < 0 || after != before + 1)
		print_error("%s: %d (%s), %d events\n", what, r, ERR->detail, after - before);
	ASSERT_OK(r);
	assert_int_equal(after, before + 1);
	assert_string_equal(last_field, "locks/name/x");
	assert_int_equal(look("x").n_holders, 1);
	assert_int_equal(look("x").first.id.pid, getpid());
	give_back(lock);
}

static void put_record(const void *bytes, size_t len, mode_t mode)
{
	AUTO_FD fd = -1;

	(void)unlink(hf_test_path(RECORD));
	fd = open(hf_test_path(RECORD), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && fchmod(fd, mode) == 0);
	assert_int_equal(write(fd, bytes, len), len);
}

/* A record that a living process holds: were it believed, the lock would stay busy. */
static size_t held_record(uint8_t bytes[HF_LOCK_RECORD_MAX])
{
	AUTO_FD fd = -1;
	uint64_t token;
	size_t len;

	ASSERT_OK(try_for(1, "x", opts_of(HF_LOCK_EXCLUSIVE, 0), &token));
	fd = open(hf_test_path(RECORD), O_RDONLY | O_CLOEXEC);
	assert_int_equal(pread(fd, bytes, HF_LOCK_RECORD_MAX, 0), HF_LOCK_RECORD_MAX);
	len = (size_t)bytes[16] | (size_t)bytes[17] << 8;
	assert_in_range(len, 128, HF_LOCK_RECORD_MAX);
	return len;
}

static void things_that_are_no_files_are_put_away_untouched_L12(void **state)
{
	struct stat before, after;

	(void)state;
	give_back(take("x", NULL));
	put_record("victim", 6, 0600);
	assert_int_equal(rename(hf_test_path(RECORD), hf_test_path("victim")), 0);
	assert_int_equal(stat(hf_test_path("victim"), &before), 0);

	assert_int_equal(symlink(hf_test_path("victim"), hf_test_path(RECORD)), 0);
	is_quarantined_and_the_lock_works("a symlink");
	assert_int_equal(unlink(hf_test_path(RECORD)), 0);
	assert_int_equal(symlink(hf_test_path("not there"), hf_test_path(RECORD)), 0);
	is_quarantined_and_the_lock_works("a dangling symlink");
	assert_int_equal(access(hf_test_path("not there"), F_OK), -1);
	assert_int_equal(unlink(hf_test_path(RECORD)), 0);
	assert_int_equal(mkfifo(hf_test_path(RECORD), 0600), 0);
	is_quarantined_and_the_lock_works("a FIFO");
	assert_int_equal(unlink(hf_test_path(RECORD)), 0);
	assert_int_equal(mkdir(hf_test_path(RECORD), 0700), 0);
	is_quarantined_and_the_lock_works("a directory");
	assert_int_equal(unlink(hf_test_path(RECORD)), 0);
	assert_int_equal(link(hf_test_path("victim"), hf_test_path(RECORD)), 0);
	is_quarantined_and_the_lock_works("a second name of a file elsewhere");

	assert_int_equal(stat(hf_test_path("victim"), &after), 0);
	assert_int_equal(after.st_size, before.st_size);
	assert_int_equal(after.st_mode, before.st_mode);
	assert_int_equal(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
	assert_int_equal(after.st_mtim.tv_sec, before.st_mtim.tv_sec);
}

static void files_that_are_no_records_are_put_away_L12(void **state)
{
	static char zeroes[HF_LOCK_RECORD_MAX];
	uint8_t good[HF_LOCK_RECORD_MAX];

	(void)state;
	(void)held_record(good);
	put_record(good, sizeof(good), 0644);
	is_quarantined_and_the_lock_works("open to others");
	put_record(good, sizeof(good), 0600);
	assert_int_equal(truncate(hf_test_path(RECORD), HF_LOCK_FILE_MAX + 1), 0);
	is_quarantined_and_the_lock_works("larger than any");
	put_record("4711\n", 5, 0600);
	is_quarantined_and_the_lock_works("a pid as text");
	put_record(zeroes, sizeof(zeroes), 0600);
	is_quarantined_and_the_lock_works("zeroes");
}

static void record_cut_at_any_length_is_put_away_L12(void **state)
{
	uint8_t good[HF_LOCK_RECORD_MAX];
	size_t len;

	(void)state;
	len = held_record(good);
	for (size_t cut = 1; cut < len; cut++) {
		put_record(good, cut, 0600);
		is_quarantined_and_the_lock_works("cut");
	}
	/* What stands behind a record is none of its business. */
	put_record(good, len, 0600);
	ASSERT_ERR(try_now("x"), HF_E_BUSY);
	/* An empty file is what a crash right after its creation leaves. */
	put_record(good, 0, 0600);
	ASSERT_OK(try_now("x"));
}

static void record_with_any_byte_changed_is_put_away_L12(void **state)
{
	uint8_t good[HF_LOCK_RECORD_MAX];
	size_t len;

	(void)state;
	len = held_record(good);
	for (size_t at = 0; at < len; at++) {
		good[at] ^= (uint8_t)(1 << at % 8);
		put_record(good, sizeof(good), 0600);
		is_quarantined_and_the_lock_works("one byte changed");
		good[at] ^= (uint8_t)(1 << at % 8);
	}
}

static void sum(uint8_t *bytes, size_t len)
{
	uint64_t h = XXH3_64bits(bytes + 16, len - 16);

	for (int i = 0; i < 8; i++)
		bytes[8 + i] = (uint8_t)(h >> (8 * i));
}

static void put32(uint8_t *at, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

/* Well-formed bytes with a right checksum, whose content makes no sense. */
static void senseless_record_with_a_right_checksum_is_put_away_L12(void **state)
{
	static const struct {
		const char *what;
		size_t at; /* of a 32-bit number in a record of one place and one holder */
		uint32_t value;
	} cases[] = {
		{ "pid 0", 160, 0 },
		{ "pid -1", 160, UINT32_MAX },
		{ "pid huge", 160, 0x80000000U },
		{ "thread -1", 164, UINT32_MAX },
		{ "a place that is not there", 168, 0x00010001U },
		{ "unknown flags", 168, 0x00010800U },
		{ "count 0", 168, 0 },
		{ "token 0", 160 + 42, 0 },
		{ "token past the last", 160 + 46, 0x00ffffffU },
		{ "lease end past all", 160 + 32, 0x80000000U },
		{ "last token past all", 28, 0x7fffffffU },
		{ "first behind next", 32, 5 },
		{ "slots huge", 48, 65 },
		{ "places huge", 52, UINT32_MAX },
		{ "no places", 52, 0 },
		{ "holders huge", 56, UINT32_MAX },
		{ "holders 65", 56, 65 },
		{ "no holders", 56, 0 },
	};
	uint8_t good[HF_LOCK_RECORD_MAX], bytes[HF_LOCK_RECORD_MAX];
	size_t len;

	(void)state;
	len = held_record(good);
	assert_int_equal(len, 128 + 32 + 58);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memcpy(bytes, good, sizeof(bytes));
		put32(bytes + cases[i].at, cases[i].value);
		if (strcmp(cases[i].what, "token 0") == 0)
			put32(bytes + cases[i].at + 4, 0);
		sum(bytes, len);
		put_record(bytes, sizeof(bytes), 0600);
		is_quarantined_and_the_lock_works(cases[i].what);
	}
}

static void add_twin(struct hf_lock_record *record)
{
	record->holders[record->n_holders++] = record->holders[0];
}

static void add_exclusive(struct hf_lock_record *record)
{
	add_twin(record);
	record->holders[0].flags = 0;
	record->holders[1].token = ++record->token;
}

static void add_beyond_slots(struct hf_lock_record *record)
{
	record->slots = 1;
	add_twin(record);
	record->holders[1].token = ++record->token;
}

static void impossible_holders_are_put_away_L12(void **state)
{
	(void)state;
	ASSERT_OK(try_for(1, "x", opts_of(HF_LOCK_SHARED, 0), NULL));
	alter_record(add_twin);
	is_quarantined_and_the_lock_works("two holders with one token");
	ASSERT_OK(try_for(1, "x", opts_of(HF_LOCK_SHARED, 0), NULL));
	alter_record(add_exclusive);
	is_quarantined_and_the_lock_works("an exclusive holder beside another");
	ASSERT_OK(try_for(1, "x", opts_of(HF_LOCK_SHARED, 0), NULL));
	alter_record(add_beyond_slots);
	is_quarantined_and_the_lock_works("more holders than slots");
}

static int32_t forged_pid;

static void to_forged_pid(struct hf_lock_record *record)
{
	record->holders[0].id.pid = forged_pid;
}

/* pid 1 and the largest pid are possible owners; with a wrong identity they are dead ones. */
static void forged_pid_is_judged_and_never_signalled_L4(void **state)
{
	static const int32_t pids[] = { 1, INT32_MAX };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct hf_lock *lock = take("x", NULL);

		hf_lock_free(lock);
		forged_pid = pids[i];
		alter_record(to_forged_pid);
		holder_is_replaced_at_once(NULL, 1);
	}
	assert_int_equal(events(HF_EV_RECORD_QUARANTINED, NULL), 0);
}

static void to_last_token(struct hf_lock_record *record)
{
	record->token = UINT64_C(9007199254740991);
}

/* Were the next one given, nobody could read the record that says so. */
static void tokens_that_have_run_out_never_let_two_in_L1(void **state)
{
	struct hf_lock *lock = NULL, *second = NULL;

	(void)state;
	give_back(take("x", NULL));
	alter_record(to_last_token);
	(void)!hf_lock_acquire(locks, "x", NULL, &lock, NULL, ERR);
	(void)!try_for(1, "x", opts_of(HF_LOCK_EXCLUSIVE, 0), NULL);
	if (lock)
		ASSERT_OK(hf_lock_check(lock, ERR));
	hf_lock_free(lock);
	hf_lock_free(second);
}

static void try_once(int in, int out, void *arg)
{
	struct hf_locks *own = own_locks(1);
	struct hf_lock *lock;

	(void)in;
	(void)arg;
	tell(out, 'r');
	told->r = hf_lock_acquire(own, "x", NULL, &lock, NULL, NULL);
	tell(out, 'd');
}

/* How often that process has the file open. */
static int times_open(pid_t pid, const char *path)
{
	char at[64], target[512];
	int times = 0;

	for (int fd = 3; fd < 64; fd++) {
		ssize_t n;

		snprintf(at, sizeof(at), "/proc/%d/fd/%d", (int)pid, fd);
		n = readlink(at, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = '\0';
		times += strcmp(target, path) == 0;
	}
	return times;
}

/* What was distrusted and replaced while one waited for it says nothing about its successor. */
static void good_record_is_never_put_away_for_a_bad_one_L1_L12(void **state)
{
	struct hf_mono until = hf_mono_in(10 * HF_SEC);
	struct hf_lock *lock;
	struct child *c;
	int fd;

	(void)state;
	put_record("", 0, 0644);
	fd = open(hf_test_path(RECORD), O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	c = child_start(try_once, NULL);
	/* Once by inheritance, and once because it waits for it. */
	while (times_open(c->pid, hf_test_path(RECORD)) < 2)
		assert_true(hf_mono_left(until) > 0);
	assert_int_equal(rename(hf_test_path(RECORD), hf_test_path("put away")), 0);
	lock = take("x", NULL);
	assert_int_equal(flock(fd, LOCK_UN), 0); /* now the old file is the child's */
	assert_int_equal(hear(c->from), 'd');
	ASSERT_ERR(told->r, HF_E_BUSY);
	assert_int_equal(events(HF_EV_RECORD_QUARANTINED, NULL), 0);
	ASSERT_OK(hf_lock_check(lock, ERR));
	give_back(lock);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LOCK_TEST(owner_of_another_boot_or_another_process_is_dead_L4),
		LOCK_TEST(holder_that_renews_never_loses_the_lock_whatever_the_file_says_L4),
		LOCK_TEST(lease_that_ends_absurdly_late_is_clamped_to_its_length),
		LOCK_TEST(deleted_file_never_makes_an_old_token_current_L5),
		LOCK_TEST(things_that_are_no_files_are_put_away_untouched_L12),
		LOCK_TEST(files_that_are_no_records_are_put_away_L12),
		LOCK_TEST(record_cut_at_any_length_is_put_away_L12),
		LOCK_TEST(record_with_any_byte_changed_is_put_away_L12),
		LOCK_TEST(senseless_record_with_a_right_checksum_is_put_away_L12),
		LOCK_TEST(impossible_holders_are_put_away_L12),
		LOCK_TEST(forged_pid_is_judged_and_never_signalled_L4),
		LOCK_TEST(tokens_that_have_run_out_never_let_two_in_L1),
		LOCK_TEST(good_record_is_never_put_away_for_a_bad_one_L1_L12),
	};

	proc_test_begin();
	told = shared_new(sizeof(*told));
	return hf_run_tests("lock", tests);
}
