/* unit/journal/test_journal_trust.c - files that are not ours are never taken for the journal (L12). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helper/journal_content.h"
#include "hf/base/cleanup.h"

enum trap { SYMLINK, DANGLING, FIFO, DIRECTORY, PLAIN, READABLE, GROUP, LINKED, TRAPS };

static const char *trap_path(const char *base, const char *leaf)
{
	static char paths[2][512];
	static unsigned turn;
	char *path = paths[turn++ % 2];

	snprintf(path, sizeof(paths[0]), "%s/%s", base, leaf);
	return path;
}

static void make_file(const char *path, mode_t mode)
{
	AUTO_FD fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "victim", 6), 6);
	assert_int_equal(fchmod(fd, mode), 0);
}

/* Puts the trap at `path`. Returns 0 when it is none there (a directory for journal/). */
static int set_trap(enum trap trap, const char *path, const char *victim, int on_dir)
{
	switch (trap) {
	case SYMLINK:
		assert_int_equal(symlink(victim, path), 0);
		return 1;
	case DANGLING:
		assert_int_equal(symlink(trap_path(hf_test_dir(), "nowhere"), path), 0);
		return 1;
	case FIFO:
		assert_int_equal(mkfifo(path, 0600), 0);
		return 1;
	case DIRECTORY:
		return on_dir ? 0 : (assert_int_equal(mkdir(path, 0700), 0), 1);
	case PLAIN:
		return on_dir ? (make_file(path, 0600), 1) : 0;
	case READABLE:
	case GROUP:
		if (on_dir)
			assert_int_equal(mkdir(path, 0700) |
						 chmod(path, trap == GROUP ? 0750 : 0705),
					 0);
		else
			make_file(path, trap == GROUP ? 0640 : 0604);
		return 1;
	case LINKED:
		return on_dir ? 0 : (assert_int_equal(link(victim, path), 0), 1);
	case TRAPS:
	default:
		return 0;
	}
}

static void try_trap(enum trap trap, const char *leaf)
{
	int on_dir = strcmp(leaf, "journal") == 0;
	char base[300], victim[320];
	struct hf_journal *journal = NULL;
	struct hf_state *own;
	struct stat before, after;
	int64_t start;

	snprintf(base, sizeof(base), "%s/%d-%s", hf_test_dir(), (int)trap,
		 strrchr(leaf, '/') ? strrchr(leaf, '/') + 1 : leaf);
	snprintf(victim, sizeof(victim), "%s-victim", base);
	if (on_dir)
		assert_int_equal(mkdir(victim, 0700), 0);
	else
		make_file(victim, 0600);
	ASSERT_OK(hf_state_open(base, 0, &own, ERR));
	if (!on_dir)
		assert_int_equal(mkdir(trap_path(base, "journal"), 0700), 0);
	if (set_trap(trap, trap_path(base, leaf), victim, on_dir)) {
		assert_int_equal(stat(victim, &before), 0);
		start = now_ms();
		ASSERT_ERR(hf_journal_open(own, NULL, &journal, ERR), HF_E_UNTRUSTED);
		assert_true(now_ms() - start < 1000);
		assert_null(journal);
		assert_int_equal(stat(victim, &after), 0);
		assert_true(before.st_size == after.st_size && before.st_mode == after.st_mode);
		assert_true(before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
		assert_true(before.st_nlink == after.st_nlink);
	}
	assert_int_equal(access(hf_test_path("nowhere"), F_OK), -1);
	hf_state_free(own);
}

static void nothing_but_our_own_file_is_taken_for_the_journal_L12(void **state)
{
	(void)state;
	alarm(60); /* a FIFO that blocks would hang for ever */
	for (int trap = 0; trap < TRAPS; trap++)
		try_trap((enum trap)trap, "journal/events.jsonl");
	alarm(0);
}

static void nothing_but_our_own_file_is_taken_for_the_counters_L12(void **state)
{
	(void)state;
	alarm(60);
	for (int trap = 0; trap < TRAPS; trap++)
		try_trap((enum trap)trap, "journal/counters");
	alarm(0);
}

static void nothing_but_our_own_directory_is_taken_for_journal_L12(void **state)
{
	(void)state;
	alarm(60);
	for (int trap = 0; trap < TRAPS; trap++)
		try_trap((enum trap)trap, "journal");
	alarm(0);
}

static void file_of_another_user_is_refused_L12(void **state)
{
	static const char *const leaves[] = { EVENTS, COUNTERS, "state/journal" };
	struct hf_journal *journal = NULL;

	(void)state;
	if (geteuid() != 0)
		HF_SKIP("only root can give a file away");
	append_notes(1);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(chown(hf_test_path(leaves[i]), 65534, 65534), 0);
		ASSERT_ERR(hf_journal_open(hf_test_state(), NULL, &journal, ERR), HF_E_UNTRUSTED);
		assert_int_equal(chown(hf_test_path(leaves[i]), 0, 0), 0);
	}
	append_notes(1);
}

static void trap_set_while_open_is_not_written_through_L12(void **state)
{
	struct hf_journal *journal = open_journal();
	struct hf_journal_reader *reader;
	struct hf_record record;

	(void)state;
	ASSERT_OK(note(journal, "one"));
	make_file(hf_test_path("victim"), 0600);
	assert_int_equal(unlink(hf_test_path(EVENTS)), 0);
	assert_int_equal(symlink(hf_test_path("victim"), hf_test_path(EVENTS)), 0);
	ASSERT_ERR(note(journal, "two"), HF_E_LOST);
	assert_int_equal(size_of("victim"), 6);
	ASSERT_OK(hf_journal_read(hf_test_state(), &reader, ERR));
	ASSERT_ERR(hf_journal_next(reader, &record, ERR), HF_E_UNTRUSTED);
	hf_journal_reader_free(reader);
	assert_int_equal(unlink(hf_test_path(EVENTS)), 0);
	ASSERT_OK(note(journal, "three"));
	hf_journal_free(journal);
	assert_true(read_all(NULL).lost_sum == 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HF_TEST(nothing_but_our_own_file_is_taken_for_the_journal_L12),
		HF_TEST(nothing_but_our_own_file_is_taken_for_the_counters_L12),
		HF_TEST(nothing_but_our_own_directory_is_taken_for_journal_L12),
		HF_TEST(file_of_another_user_is_refused_L12),
		HF_TEST(trap_set_while_open_is_not_written_through_L12),
	};

	return hf_run_tests("journal_trust", tests);
}
