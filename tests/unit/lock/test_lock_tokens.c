/*
 * unit/lock/test_lock_tokens.c - tokens rise (L2), whatever happens to the record, the note of the
 * token clock, and the wall clock, which the tests set.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
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
#define NOTE   "state/locks/name/.token"
#define COPY   "state/locks/name/.token.copy"

#define HOUR_MS (3600 * 1000)

static int64_t shift_ms; /* of the wall clock */

/* Instead of the C library's. */
int clock_gettime(clockid_t id, struct timespec *ret)
{
	long r = syscall(SYS_clock_gettime, id, ret);
	int64_t ns;

	if (r == 0 && id == CLOCK_REALTIME && shift_ms != 0) {
		ns = (int64_t)ret->tv_sec * HF_SEC + ret->tv_nsec + shift_ms * HF_MSEC;
		ret->tv_sec = (time_t)(ns / HF_SEC);
		ret->tv_nsec = (long)(ns % HF_SEC);
	}
	return (int)r;
}

static int tokens_setup(void **state)
{
	shift_ms = 0;
	return lock_setup(state);
}

#define TOKENS_TEST(fn) { #fn, fn, tokens_setup, lock_teardown, NULL }

/* What this process remembers is gone, as in the next one. */
static void begin_anew(void)
{
	hf_locks_free(locks);
	ASSERT_OK(hf_locks_open_store(lock_store_url, hf_test_state(), journal, &locks, ERR));
}

static uint64_t next_token(const char *name)
{
	struct hf_lock *lock = take(name, NULL);
	uint64_t token = hf_lock_token(lock);

	give_back(lock);
	return token;
}

static void lose(const char *file)
{
	assert_int_equal(unlink(hf_test_path(file)), 0);
}

static void copy_file(const char *from, const char *to)
{
	AUTO_FD in = open(hf_test_path(from), O_RDONLY | O_CLOEXEC);
	AUTO_FD out = open(hf_test_path(to), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	char bytes[HF_LOCK_RECORD_MAX];
	ssize_t n = pread(in, bytes, sizeof(bytes), 0);

	assert_true(n > 0 && out >= 0);
	assert_int_equal(pwrite(out, bytes, (size_t)n, 0), n);
}

static void tokens_rise_over_everything_that_happens_to_the_file_L2(void **state)
{
	uint64_t last = 0;

	(void)state;
	for (int i = 0; i < 3000; i++) {
		uint64_t token = next_token("x");

		assert_true(token > last);
		last = token;
		if (i % 10 == 3)
			copy_file(RECORD, "older");
		if (i % 10 == 7)
			copy_file("older", RECORD);
		if (i % 10 == 8)
			lose(RECORD);
		if (i % 10 == 9)
			assert_int_equal(rename(hf_test_path("older"), hf_test_path(RECORD)), 0);
	}
	assert_int_equal(events(HF_EV_RECORD_QUARANTINED, NULL), 0);
}

static void tokens_follow_the_wall_clock_and_rise_when_it_is_set_back_L2(void **state)
{
	uint64_t first = next_token("x"), ahead, last;

	(void)state;
	shift_ms = HOUR_MS;
	begin_anew();
	ahead = last = next_token("x");
	assert_true(ahead >= first + UINT64_C(3600) * 1000000);
	shift_ms = 0;
	for (int i = 0; i < 10; i++) {
		uint64_t token = next_token("x");

		assert_true(token > last);
		last = token;
		if (i == 5)
			begin_anew();
	}
	assert_true(last < ahead + UINT64_C(600) * 1000000);
}

/* Each step of the clock, by a second or a millisecond: none is too small to be noticed. */
static void tokens_rise_when_the_record_is_lost_and_the_clock_was_set_back_L2(void **state)
{
	static const int64_t steps_ms[] = { HOUR_MS, 3000, 1900, 1000, 500, 20, 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(steps_ms) / sizeof(steps_ms[0]); i++) {
		for (int how = 0; how < 4; how++) {
			uint64_t last, token;

			(void)next_token("x");
			copy_file(RECORD, "older");
			shift_ms = steps_ms[i];
			if (how & 1)
				begin_anew();
			(void)next_token("x");
			last = next_token("x");
			shift_ms = 0;
			if (how & 1)
				begin_anew();
			if (how & 2)
				copy_file("older", RECORD);
			else
				lose(RECORD);
			token = next_token("x");
			if (token <= last)
				fail_msg("step %lld ms, way %d: %llu after %llu", (long long)steps_ms[i], how,
					 (unsigned long long)token, (unsigned long long)last);
			/* That of another name is past it as well. */
			assert_true(next_token("never used before") > last);
			lose("state/locks/name/never%20used%20before");
		}
	}
}

/* What can stand in the place of a note. */
static void damage(const char *file, int how)
{
	static const char *const texts[] = { "", "short", "this is no number, but it is long enough" };
	AUTO_FD fd = -1;

	lose(file);
	if (how == 4)
		assert_int_equal(symlink("/dev/zero", hf_test_path(file)), 0);
	else if (how == 5)
		assert_int_equal(mkdir(hf_test_path(file), 0700), 0);
	if (how == 0 || how > 3)
		return;
	fd = open(hf_test_path(file), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, texts[how - 1], strlen(texts[how - 1])), strlen(texts[how - 1]));
}

/* One of the two copies is lost or damaged in every way; so is the record; and the clock was ahead. */
static void damaged_note_is_put_away_and_no_token_goes_back_L2(void **state)
{
	static const char *const files[] = { NOTE, COPY };

	(void)state;
	for (int i = 0; i < 12; i++) {
		int how = i / 2, before = events(HF_EV_RECORD_QUARANTINED, NULL);
		uint64_t last;

		shift_ms = (i + 1) * HOUR_MS;
		begin_anew();
		last = next_token("x");
		damage(files[i % 2], how);
		lose(RECORD);
		shift_ms = 0;
		begin_anew();
		assert_true(next_token("x") > last);
		/* Both copies are looked at when the next note is written. */
		shift_ms = (i + 1) * HOUR_MS + 2000;
		begin_anew();
		assert_true(next_token("x") > last);
		/* None was there, or an empty one, is no damage. */
		assert_int_equal(events(HF_EV_RECORD_QUARANTINED, "file") - before, how > 1);
		if (how > 1)
			assert_string_equal(last_field, files[i % 2] + strlen("state/"));
	}
}

/* Both are damaged: what the records and the clock say has to do. */
static void both_notes_damaged_keep_the_tokens_of_records_L2(void **state)
{
	uint64_t last;

	(void)state;
	shift_ms = HOUR_MS;
	last = next_token("x");
	for (int how = 0; how < 6; how++) {
		damage(NOTE, how);
		damage(COPY, how);
		shift_ms = 0;
		begin_anew();
		assert_true(next_token("x") > last);
		last = next_token("x");
	}
}

/* A note of an earlier boot: the new token clock begins past it. */
static void tokens_rise_over_a_reboot_with_the_clock_set_back_L2(void **state)
{
	static const char *const files[] = { NOTE, COPY };
	uint64_t note[4], last;

	(void)state;
	shift_ms = HOUR_MS;
	last = next_token("x");
	for (int i = 0; i < 2; i++) {
		AUTO_FD fd = open(hf_test_path(files[i]), O_RDWR | O_CLOEXEC);

		assert_int_equal(pread(fd, note, sizeof(note), 0), sizeof(note));
		note[1]++; /* the boot */
		note[0] = XXH3_64bits(note + 1, sizeof(note) - sizeof(note[0]));
		assert_int_equal(pwrite(fd, note, sizeof(note), 0), sizeof(note));
	}
	lose(RECORD);
	shift_ms = 0;
	begin_anew();
	assert_true(next_token("x") > last);
	assert_int_equal(events(HF_EV_RECORD_QUARANTINED, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TOKENS_TEST(tokens_rise_over_everything_that_happens_to_the_file_L2),
		TOKENS_TEST(tokens_follow_the_wall_clock_and_rise_when_it_is_set_back_L2),
		TOKENS_TEST(tokens_rise_when_the_record_is_lost_and_the_clock_was_set_back_L2),
		TOKENS_TEST(damaged_note_is_put_away_and_no_token_goes_back_L2),
		TOKENS_TEST(both_notes_damaged_keep_the_tokens_of_records_L2),
		TOKENS_TEST(tokens_rise_over_a_reboot_with_the_clock_set_back_L2),
	};

	proc_test_begin();
	told = shared_new(sizeof(*told));
	return hf_run_tests("lock_tokens", tests);
}
