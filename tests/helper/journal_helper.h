/* tests/helper/journal_helper.h - what every test of the journal does: append a note, fork a writer, count. */
#ifndef TESTS_JOURNAL_HELPER_H
#define TESTS_JOURNAL_HELPER_H

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper/test.h"
#include "holdfast/journal.h"

#define JOURNAL "state/journal"
#define EVENTS  JOURNAL "/events.jsonl"

static inline int note(struct hf_journal *journal, const char *text)
{
	struct hf_field fields[] = { HF_FIELD_TEXT("text", text) };

	return hf_journal_append(journal, HF_EV_NOTE, "t", fields, 1, 0, ERR);
}

/* Waits for the child's end; returns its exit status, or 128 + its signal. */
static inline int reap(pid_t pid)
{
	siginfo_t info;
	int r;

	do {
		r = waitid(P_PID, (id_t)pid, &info, WEXITED);
	} while (r < 0 && errno == EINTR);
	assert_int_equal(r, 0);
	return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

static inline pid_t spawn(void (*body)(void))
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		body();
		_exit(0);
	}
	return pid;
}

static inline struct hf_journal_totals totals(void)
{
	struct hf_journal_totals t;

	ASSERT_OK(hf_journal_totals(hf_test_state(), &t, ERR));
	return t;
}

#endif
