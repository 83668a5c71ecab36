/* unit/journal/test_put_away.c - the quarantine keeps its limits: the oldest entries go, with one event (L8). */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper/journal_events.h"
#include "helper/test.h"
#include "hf/journal/put_away.h"
#include "hf/sys/state/state.h"

#define KEPT (HF_QUARANTINE_ENTRIES / 10 * 9)

static struct hf_journal *journal;

static int setup(void **state)
{
	if (hf_test_setup(state) < 0)
		return -1;
	ASSERT_OK(hf_journal_open(hf_test_state(), NULL, &journal, ERR));
	return 0;
}

static int teardown(void **state)
{
	hf_journal_free(journal);
	return hf_test_teardown(state);
}

#define AWAY_TEST(fn) { #fn, fn, setup, teardown, NULL }

static const char *in_state(const char *leaf)
{
	char below[300];

	snprintf(below, sizeof(below), "state/%s", leaf);
	return hf_test_path(below);
}

/* A damaged file of `bytes` bytes is put away under a name that begins with `label`. */
static void put_away(const char *label, off_t bytes)
{
	struct hf_put_away what = { .state = hf_test_state(), .journal = journal, .shown = "locks/f",
				    .label = label, .reason = "damaged" };
	int dir, fd;

	ASSERT_OK(hf_state_subdir(hf_test_state(), "locks", 1, &dir, ERR));
	fd = openat(dir, "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, bytes), 0);
	close(fd);
	ASSERT_OK(hf_put_away(&what, dir, "f", ERR));
	close(dir);
}

static size_t count(const char *prefix)
{
	char command[700], text[32] = "";
	FILE *pipe;

	snprintf(command, sizeof(command), "find '%s' -mindepth 1 -maxdepth 1 -name '%s*' | wc -l", in_state("quarantine"), prefix);
	pipe = popen(command, "re");
	assert_non_null(pipe);
	assert_non_null(fgets(text, sizeof(text), pipe));
	pclose(pipe);
	return strtoul(text, NULL, 10);
}

static void number_of_entries_is_limited_and_the_oldest_go_L8(void **state)
{
	(void)state;
	put_away("first", 1);
	for (int i = 1; i < HF_QUARANTINE_ENTRIES; i++)
		put_away("more", 1);
	assert_int_equal(count(""), HF_QUARANTINE_ENTRIES);
	assert_int_equal(count("first"), 1);
	assert_int_equal(events(HF_EV_QUARANTINE_TRIMMED), 0);
	put_away("newest", 1);
	assert_int_equal(count(""), KEPT);
	assert_int_equal(count("first"), 0);
	assert_int_equal(count("newest"), 1);
	assert_int_equal(events(HF_EV_QUARANTINE_TRIMMED), 1);
	/* The next ones cause no event until the limit is reached again. */
	put_away("newest", 1);
	assert_int_equal(count(""), KEPT + 1);
	assert_int_equal(events(HF_EV_QUARANTINE_TRIMMED), 1);
}

static void size_is_limited_and_the_newest_entry_stays_L8(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		put_away("big", (off_t)HF_QUARANTINE_BYTES / 4);
	assert_int_equal(count("big"), 3);
	put_away("small", 1);
	put_away("bigger", (off_t)HF_QUARANTINE_BYTES / 2);
	/* 5/4 of the limit: two quarters go, and 3/4 stay. */
	assert_int_equal(count("big."), 1);
	assert_int_equal(count("small"), 1);
	assert_int_equal(count("bigger"), 1);
	put_away("huge", 4 * (off_t)HF_QUARANTINE_BYTES);
	assert_int_equal(count(""), 1);
	assert_int_equal(count("huge"), 1);
	assert_int_equal(events(HF_EV_QUARANTINE_TRIMMED), 2);
}

static void directories_go_whole_and_links_are_not_followed_L12(void **state)
{
	char command[1400];

	(void)state;
	put_away("first", 1);
	snprintf(command, sizeof(command), "cd '%s' && mkdir -p ../../outside old/sub && echo keep >../../outside/f && "
		 "ln -s ../../../outside old/link && ln -s ../../outside direct && mkfifo old/fifo && truncate -s %llu old/sub/large",
		 in_state("quarantine"), (unsigned long long)HF_QUARANTINE_BYTES);
	assert_int_equal(system(command), 0);
	put_away("newest", 1);
	assert_int_equal(count("old"), 0);
	assert_int_equal(count("newest"), 1);
	assert_int_equal(access(hf_test_path("outside/f"), F_OK), 0);
	assert_int_equal(events(HF_EV_QUARANTINE_TRIMMED), 1);
}

static void without_a_journal_nothing_is_removed(void **state)
{
	struct hf_journal *before = journal;

	(void)state;
	journal = NULL;
	for (int i = 0; i < 3; i++)
		put_away("big", (off_t)HF_QUARANTINE_BYTES);
	journal = before;
	assert_int_equal(count("big"), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		AWAY_TEST(number_of_entries_is_limited_and_the_oldest_go_L8),
		AWAY_TEST(size_is_limited_and_the_newest_entry_stays_L8),
		AWAY_TEST(directories_go_whole_and_links_are_not_followed_L12),
		AWAY_TEST(without_a_journal_nothing_is_removed),
	};

	return hf_run_tests("put_away", tests);
}
