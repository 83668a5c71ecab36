/* unit/journal/test_journal_follow.c - waiting for the next record, and finding one. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "helper/faults.h"
#include "helper/journal_content.h"
#include "hf/journal/read/find.h"

static int go[2]; /* the parent's word to the child that it may append */

static void append_when_told(void)
{
	struct hf_state *own;
	struct hf_journal *journal;
	char count;

	CHILD_CHECK(hf_state_open(hf_test_path("state"), 0, &own, NULL) == 0);
	while (read(go[0], &count, 1) == 1 && count > 0) {
		struct hf_journal_opts opts = { .size = sizeof(opts),
						.segment_bytes = HF_JOURNAL_SEGMENT_MIN };

		CHILD_CHECK(hf_journal_open(own, &opts, &journal, NULL) == 0);
		while (count-- > 0)
			CHILD_CHECK(note(journal, "told") == 0);
		hf_journal_free(journal);
	}
	hf_state_free(own);
}

static void tell(char count)
{
	assert_int_equal(write(go[1], &count, 1), 1);
}

static pid_t start_teller(void)
{
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	return spawn(append_when_told);
}

static void end_teller(pid_t pid)
{
	tell(0);
	close(go[0]);
	close(go[1]);
	assert_int_equal(reap(pid), 0);
}

/* Reads until `notes` more have come, sleeping between. Records in all are counted too. */
static void follow(struct hf_journal_reader *reader, int notes, uint64_t *last)
{
	int64_t until = now_ms() + 20000;

	while (notes > 0) {
		struct hf_record record;
		int r = hf_journal_next(reader, &record, ERR);

		ASSERT_OK(r);
		if (r == 1) {
			assert_true(record.seq == ++*last);
			notes -= record.info->event == HF_EV_NOTE;
			continue;
		}
		assert_true(now_ms() < until);
		ASSERT_OK(hf_journal_wait(reader, 10 * HF_SEC, ERR));
	}
}

/* Reads what there is and sleeps until there is nothing to look at any more. */
static void settle(struct hf_journal_reader *reader)
{
	struct hf_record record;
	int r;

	do {
		do {
			r = hf_journal_next(reader, &record, ERR);
			ASSERT_OK(r);
			assert_int_equal(r, 0);
		} while (r > 0);
		r = hf_journal_wait(reader, 50 * HF_MSEC, ERR);
		ASSERT_OK(r);
	} while (r > 0);
}

static void follower_wakes_for_a_record_of_another_process(void **state)
{
	struct hf_journal_reader *reader;
	uint64_t last = 0;
	pid_t pid;

	(void)state;
	append_notes(1);
	pid = start_teller();
	ASSERT_OK(hf_journal_read(hf_test_state(), &reader, ERR));
	follow(reader, 1, &last);
	settle(reader);
	for (int i = 0; i < 5; i++) {
		tell(1);
		assert_int_equal(hf_journal_wait(reader, 10 * HF_SEC, ERR), 1);
		follow(reader, 1, &last);
	}
	end_teller(pid);
	hf_journal_reader_free(reader);
}

static void follower_goes_on_across_rotation(void **state)
{
	struct hf_journal_reader *reader;
	uint64_t last = 0;
	pid_t pid;

	(void)state;
	append_notes(1);
	pid = start_teller();
	ASSERT_OK(hf_journal_read(hf_test_state(), &reader, ERR));
	follow(reader, 1, &last);
	for (int i = 0; i < 5; i++) {
		tell(100);
		follow(reader, 100, &last);
	}
	assert_true(totals().segments > 5);
	end_teller(pid);
	assert_true(hf_journal_reader_damaged(reader) == 0);
	hf_journal_reader_free(reader);
}

static void follower_may_start_before_the_journal_exists(void **state)
{
	struct hf_journal_reader *reader;
	uint64_t last = 0;
	pid_t pid;

	(void)state;
	(void)hf_test_state();
	pid = start_teller();
	ASSERT_OK(hf_journal_read(hf_test_state(), &reader, ERR));
	settle(reader);
	tell(1);
	assert_int_equal(hf_journal_wait(reader, 10 * HF_SEC, ERR), 1);
	follow(reader, 1, &last);
	tell(3);
	follow(reader, 3, &last);
	end_teller(pid);
	hf_journal_reader_free(reader);
}

static void waiting_ends_at_its_time_and_does_not_poll(void **state)
{
	struct hf_journal_reader *reader;
	int64_t start;

	(void)state;
	append_notes(1);
	ASSERT_OK(hf_journal_read(hf_test_state(), &reader, ERR));
	while (hf_journal_wait(reader, 0, ERR) > 0)
		continue;
	hf_fault_arm(&(struct hf_fault){ .at = NEVER });
	start = now_ms();
	assert_int_equal(hf_journal_wait(reader, 300 * HF_MSEC, ERR), 0);
	assert_in_range(now_ms() - start, 299, 2000);
	/* One sleep; a second one where the clock was a hair short. */
	assert_in_range(hf_fault_count(), 1, 2);
	hf_fault_disarm();
	hf_journal_reader_free(reader);
}

static void ignore(int sig)
{
	(void)sig;
}

static void waiting_ends_when_a_signal_comes(void **state)
{
	struct sigaction old, sa = { .sa_handler = ignore };
	struct hf_journal_reader *reader;
	pid_t pid;

	(void)state;
	append_notes(1);
	ASSERT_OK(hf_journal_read(hf_test_state(), &reader, ERR));
	while (hf_journal_wait(reader, 0, ERR) > 0)
		continue;
	assert_int_equal(sigaction(SIGUSR1, &sa, &old), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		/* Until it is gone: one that comes before the sleep does not count. */
		while (getppid() != 1 && kill(getppid(), SIGUSR1) == 0)
			poll(NULL, 0, 5);
		_exit(0);
	}
	ASSERT_ERR(hf_journal_wait(reader, 20 * HF_SEC, ERR), -EINTR);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(reap(pid), 128 + SIGKILL);
	assert_int_equal(sigaction(SIGUSR1, &old, NULL), 0);
	hf_journal_reader_free(reader);
}

struct wanted {
	const char *name;
	int shown;
	uint64_t seq;
};

static int is_wanted(void *arg, const struct hf_record *record)
{
	struct wanted *wanted = arg;

	wanted->shown++;
	if (!record->name || strcmp(record->name, wanted->name) != 0)
		return 0;
	wanted->seq = record->seq;
	return 1;
}

static void the_first_event_that_is_meant_is_found(void **state)
{
	struct hf_journal *journal = NULL;
	struct hf_field field[] = { HF_FIELD_TEXT("text", "here") };
	struct wanted wanted = { .name = "b" };

	(void)state;
	/* There is no journal yet. */
	assert_int_equal(hf_journal_find(hf_test_state(), "here", is_wanted, &wanted, ERR), 0);
	ASSERT_OK(hf_journal_open(hf_test_state(), NULL, &journal, ERR));
	ASSERT_OK(hf_journal_append(journal, HF_EV_NOTE, "a", field, 1, 0, ERR));
	ASSERT_OK(hf_journal_append(journal, HF_EV_NOTE, "b", field, 1, 0, ERR));
	ASSERT_OK(hf_journal_append(journal, HF_EV_NOTE, "b", field, 1, 0, ERR));
	assert_int_equal(hf_journal_find(hf_test_state(), "here", is_wanted, &wanted, ERR), 1);
	assert_int_equal(wanted.shown, 2);
	assert_int_equal(wanted.seq, hf_journal_last_seq(journal) - 1);
	/* What lacks the needle is not even shown; what is not accepted is not found. */
	wanted = (struct wanted){ .name = "b" };
	assert_int_equal(hf_journal_find(hf_test_state(), "there", is_wanted, &wanted, ERR), 0);
	assert_int_equal(wanted.shown, 0);
	wanted.name = "c";
	assert_int_equal(hf_journal_find(hf_test_state(), "here", is_wanted, &wanted, ERR), 0);
	assert_int_equal(wanted.shown, 3);
	hf_journal_free(journal);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HF_TEST(follower_wakes_for_a_record_of_another_process),
		HF_TEST(follower_goes_on_across_rotation),
		HF_TEST(follower_may_start_before_the_journal_exists),
		HF_TEST(waiting_ends_at_its_time_and_does_not_poll),
		HF_TEST(waiting_ends_when_a_signal_comes),
		HF_TEST(the_first_event_that_is_meant_is_found),
	};

	return hf_run_tests("journal_follow", tests);
}
