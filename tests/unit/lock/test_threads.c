/*
 * unit/lock/test_threads.c - one handle in many threads, many handles, readers beside them.
 *
 * Threads count what went wrong and the test judges it: an assertion of cmocka
 * belongs to the thread of the test.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "helper/test.h"
#include "holdfast/journal.h"
#include "holdfast/lock.h"
#include "hf/sys/calls.h"

#define THREADS 8
#define APPENDS 500

struct writer {
	pthread_t thread;
	struct hf_journal *journal; /* NULL: opens its own */
	struct hf_state *in;
	int number;
	int failed;
	uint64_t last; /* number of its last record at least */
};

static int numbered(struct hf_journal *journal, int writer, int n)
{
	char text[64];
	struct hf_field fields[] = { HF_FIELD_TEXT("text", text) };

	snprintf(text, sizeof(text), "%d %d", writer, n);
	return hf_journal_append(journal, HF_EV_NOTE, "t", fields, 1, 0, NULL);
}

/* On a stalled or loaded machine a record may be lost, as promised: then again. */
static int numbered_in_time(struct hf_journal *journal, int writer, int n)
{
	struct hf_mono until = hf_mono_in(10 * HF_SEC);
	int r;

	do {
		r = numbered(journal, writer, n);
	} while (r == HF_E_LOST && hf_mono_left(until) > 0);
	return r;
}

static void *write_all(void *arg)
{
	struct writer *w = arg;
	struct hf_journal *journal = w->journal;

	if (!journal && hf_journal_open(w->in, NULL, &journal, NULL) < 0) {
		w->failed = APPENDS;
		return NULL;
	}
	for (int i = 0; i < APPENDS; i++) {
		uint64_t last;

		w->failed += numbered_in_time(journal, w->number, i) != 0;
		last = hf_journal_last_seq(journal);
		w->failed += last <= w->last; /* ours was written since */
		w->last = last;
	}
	if (!w->journal)
		hf_journal_free(journal);
	return NULL;
}

static void start(struct writer writers[THREADS], struct hf_journal *shared)
{
	struct hf_state *in = hf_test_state();

	memset(writers, 0, THREADS * sizeof(writers[0]));
	for (int i = 0; i < THREADS; i++) {
		writers[i].journal = shared;
		writers[i].in = in;
		writers[i].number = i;
		assert_int_equal(pthread_create(&writers[i].thread, NULL, write_all, &writers[i]),
				 0);
	}
}

static int join(struct writer writers[THREADS])
{
	int failed = 0;

	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(writers[i].thread, NULL), 0);
		failed += writers[i].failed;
	}
	return failed;
}

struct content {
	uint64_t records, lost, last, wrong;
	int next[THREADS];
};

/* Reads what there is now; every thread's notes must come in its own order. */
static int read_into(struct hf_journal_reader *reader, struct content *c)
{
	struct hf_record record;
	int writer, n, r;

	while ((r = hf_journal_next(reader, &record, NULL)) > 0) {
		const char *text = hf_record_text(&record, "text");
		int64_t lost;

		c->wrong += record.seq != ++c->last;
		if (record.info && record.info->event == HF_EV_JOURNAL_LOST &&
		    hf_record_int(&record, "count", &lost)) {
			c->lost += (uint64_t)lost;
			continue;
		}
		c->records++;
		if (!text || sscanf(text, "%d %d", &writer, &n) != 2 || writer < 0 || writer >= THREADS ||
		    n != c->next[writer]++)
			c->wrong++;
	}
	return r;
}

static void assert_all_there(void)
{
	struct hf_verify_result result;
	struct hf_journal_totals totals;
	struct hf_journal_reader *reader;
	struct content c = { 0 };

	ASSERT_OK(hf_journal_read(hf_test_state(), &reader, ERR));
	ASSERT_OK(read_into(reader, &c));
	hf_journal_reader_free(reader);
	assert_true(c.records == THREADS * APPENDS && c.wrong == 0);
	ASSERT_OK(hf_journal_totals(hf_test_state(), &totals, ERR));
	assert_true(totals.seq == c.last && totals.lost == c.lost);
	ASSERT_OK(hf_journal_verify(hf_test_state(), NULL, NULL, &result, ERR));
	assert_true(result.problems == 0 && result.torn == 0);
}

static void threads_share_one_handle(void **state)
{
	struct writer writers[THREADS];
	struct hf_journal *journal;

	(void)state;
	ASSERT_OK(hf_journal_open(hf_test_state(), NULL, &journal, ERR));
	start(writers, journal);
	assert_int_equal(join(writers), 0);
	/* One handle does not stand in its own way. */
	assert_true(hf_journal_last_seq(journal) == THREADS * APPENDS);
	hf_journal_free(journal);
	assert_all_there();
}

static void threads_have_handles_of_their_own(void **state)
{
	struct writer writers[THREADS];

	(void)state;
	start(writers, NULL);
	assert_int_equal(join(writers), 0);
	assert_all_there();
}

struct follower {
	pthread_t thread;
	struct hf_state *in;
	struct content seen;
	int failed;
};

static void *follow(void *arg)
{
	struct follower *f = arg;
	struct hf_mono until = hf_mono_in(30 * HF_SEC);
	struct hf_journal_reader *reader;
	struct hf_verify_result result;

	if (hf_journal_read(f->in, &reader, NULL) < 0) {
		f->failed = 1;
		return NULL;
	}
	while (f->seen.records < THREADS * APPENDS && hf_mono_left(until) > 0) {
		f->failed += read_into(reader, &f->seen) < 0;
		f->failed += hf_journal_wait(reader, HF_SEC / 10, NULL) < 0;
	}
	f->failed += hf_journal_reader_damaged(reader) != 0;
	hf_journal_reader_free(reader);
	f->failed += hf_journal_verify(f->in, NULL, NULL, &result, NULL) < 0;
	f->failed += result.problems != 0;
	return NULL;
}

static void readers_beside_writers_see_every_record_once(void **state)
{
	struct follower followers[2] = { 0 };
	struct writer writers[THREADS];
	struct hf_journal *journal;

	(void)state;
	ASSERT_OK(hf_journal_open(hf_test_state(), NULL, &journal, ERR));
	for (int i = 0; i < 2; i++) {
		followers[i].in = hf_test_state();
		assert_int_equal(pthread_create(&followers[i].thread, NULL, follow, &followers[i]),
				 0);
	}
	start(writers, journal);
	assert_int_equal(join(writers), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(followers[i].thread, NULL), 0);
		assert_int_equal(followers[i].failed, 0);
		assert_true(followers[i].seen.records == THREADS * APPENDS);
		assert_true(followers[i].seen.wrong == 0);
	}
	hf_journal_free(journal);
	assert_all_there();
}

/* -- a slow disk ------------------------------------------------------------ */

static int at_disk[2], disk_done[2];

/* A disk that takes as long as the test likes. */
static int slow_fdatasync(int fd)
{
	struct pollfd p = { .fd = disk_done[0], .events = POLLIN };

	(void)fd;
	return write(at_disk[1], "x", 1) == 1 && poll(&p, 1, 5000) >= 0 ? 0 : -1;
}

static void *append_durably(void *arg)
{
	struct hf_field fields[] = { HF_FIELD_TEXT("text", "durable") };

	if (hf_journal_append(arg, HF_EV_NOTE, NULL, fields, 1, HF_JOURNAL_DURABLE, NULL) < 0)
		return arg;
	return NULL;
}

static void durable_record_of_one_thread_does_not_hold_up_another(void **state)
{
	int (*real)(int fd) = hf_sys.fdatasync;
	struct hf_journal *journal;
	struct hf_mono until;
	void *failed = NULL;
	pthread_t slow;
	char byte;
	int r;

	(void)state;
	assert_int_equal(pipe2(at_disk, O_CLOEXEC) | pipe2(disk_done, O_CLOEXEC), 0);
	ASSERT_OK(hf_journal_open(hf_test_state(), NULL, &journal, ERR));
	hf_sys.fdatasync = slow_fdatasync;
	assert_int_equal(pthread_create(&slow, NULL, append_durably, journal), 0);
	assert_int_equal(read(at_disk[0], &byte, 1), 1);
	/* It sits in the disk now and stays there until we have had our turn, or 5 s. */
	until = hf_mono_in(250 * HF_MSEC);
	r = numbered(journal, 0, 0);
	byte = (char)(hf_mono_left(until) > 0);
	assert_int_equal(write(disk_done[1], "x", 1), 1);
	assert_int_equal(pthread_join(slow, &failed), 0);
	hf_sys.fdatasync = real;
	hf_journal_free(journal);
	close(at_disk[0]);
	close(at_disk[1]);
	close(disk_done[0]);
	close(disk_done[1]);
	assert_int_equal(r, 0);
	assert_int_equal(byte, 1);
	assert_null(failed);
}

/* What a cancelled thread did before it got to the point where it may end. */
struct cancelled {
	struct hf_locks *locks;
	struct hf_journal *journal;
	volatile int done;
};

static void *work_while_cancelled(void *arg)
{
	struct cancelled *c = arg;
	struct hf_lock_opts wait = { .size = sizeof(wait), .wait_ns = 50 * HF_MSEC };
	struct hf_field text[] = { HF_FIELD_TEXT("text", "durable") };
	struct hf_lock *held, *lock;

	if (pthread_cancel(pthread_self()) != 0 ||
	    hf_lock_acquire(c->locks, "held", NULL, &held, NULL, NULL) != HF_E_BUSY ||
	    hf_lock_acquire(c->locks, "held", &wait, &held, NULL, NULL) != HF_E_TIMEOUT ||
	    hf_lock_acquire(c->locks, "free", &wait, &lock, NULL, NULL) != 0 ||
	    hf_lock_release(lock, NULL) != 0)
		return NULL;
	hf_lock_free(lock);
	if (numbered_in_time(c->journal, 0, 0) == 0 &&
	    hf_journal_append(c->journal, HF_EV_NOTE, "t", text, 1, HF_JOURNAL_DURABLE, NULL) == 0)
		c->done = 1;
	pthread_testcancel();
	return NULL;
}

/* It would leave a guard locked, and a place in the queue that nobody wants. */
static void thread_is_not_cancelled_inside_the_library_L13(void **test)
{
	struct hf_state *in = hf_test_state();
	struct cancelled c = { .done = 0 };
	struct hf_lock *held;
	pthread_t thread;
	void *result;

	(void)test;
#ifdef HF_LIBC_CALLS
	HF_SKIP("for the sanitizer the calls are the C library's, which can be cancelled");
#endif
	assert_int_equal(hf_journal_open(in, NULL, &c.journal, NULL), 0);
	assert_int_equal(hf_locks_open(in, c.journal, &c.locks, NULL), 0);
	assert_int_equal(hf_lock_acquire(c.locks, "held", NULL, &held, NULL, NULL), 0);
	assert_int_equal(pthread_create(&thread, NULL, work_while_cancelled, &c), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_int_equal(c.done, 1);
	assert_int_equal(hf_lock_release(held, NULL), 0);
	hf_lock_free(held);
	hf_locks_free(c.locks);
	hf_journal_free(c.journal);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HF_TEST(threads_share_one_handle),
		HF_TEST(threads_have_handles_of_their_own),
		HF_TEST(readers_beside_writers_see_every_record_once),
		HF_TEST(durable_record_of_one_thread_does_not_hold_up_another),
		HF_TEST(thread_is_not_cancelled_inside_the_library_L13),
	};

	return hf_run_tests("threads", tests);
}
