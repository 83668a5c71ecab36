/* journal/write/handle.c - the writing handle: its limits, opening and freeing. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/journal/write/counters.h"
#include "hf/journal/write/journal.h"
#include "hf/sys/state/state.h"
#include "hf/sys/fd/noinherit.h"

#define DEFAULT_SEGMENT (UINT64_C(8) << 20)
#define DEFAULT_RETAIN  (UINT64_C(64) << 20)

static uint64_t limit_from(uint64_t given, const char *variable, uint64_t otherwise)
{
	const char *text = secure_getenv(variable);
	uint64_t value;

	if (given == 0 && text && hf_parse_size(text, strlen(text), &value) == 0)
		given = value;
	return given ? given : otherwise;
}

static int64_t wait_from(int64_t given)
{
	const char *text = secure_getenv("HOLDFAST_JOURNAL_WAIT");
	int64_t value;

	if (given == 0 && text && hf_parse_duration(text, strlen(text), &value) == 0)
		given = value;
	return given > 0 ? given : HF_JOURNAL_WAIT_NS;
}

static void auto_journal_free(struct hf_journal **journal)
{
	hf_journal_free(*journal);
}

int hf_journal_open(struct hf_state *state, const struct hf_journal_opts *opts,
		    struct hf_journal **ret_journal, struct hf_err *err)
{
	AUTO(auto_journal_free) struct hf_journal *journal = NULL;
	struct hf_journal_opts use = { .size = sizeof(use) };
	struct rlimit limit;
	int r;

	if (!state || !ret_journal || (opts && opts->size < sizeof(use)))
		return FAIL(err, -EINVAL, "arguments", "hf_journal_open", "NULL or wrong size");
	if (opts)
		use = *opts;
	journal = calloc(1, sizeof(*journal));
	if (!journal)
		return hf_fail_sys(err, ENOMEM, "memory", "journal");
	(void)pthread_mutex_init(&journal->mutex, NULL);
	journal->owner = getpid();
	journal->dirfd = journal->fd = journal->counters_fd = -1;
	journal->body = journal->out = (struct hf_buf)HF_BUF_INIT;
	journal->segment_bytes =
		limit_from(use.segment_bytes, "HOLDFAST_JOURNAL_SEGMENT", DEFAULT_SEGMENT);
	journal->retain_bytes =
		limit_from(use.retain_bytes, "HOLDFAST_JOURNAL_RETAIN", DEFAULT_RETAIN);
	if (journal->segment_bytes < HF_JOURNAL_SEGMENT_MIN)
		journal->segment_bytes = HF_JOURNAL_SEGMENT_MIN;
	journal->wait_ns = wait_from(use.wait_ns);
	journal->fsize_limit = UINT64_MAX;
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		journal->fsize_limit = limit.rlim_cur;

	r = hf_state_subdir(state, "journal", 1, &journal->dirfd, err);
	if (r < 0)
		return r;
	r = hf_journal_open_active(journal, err);
	if (r < 0)
		return r;
	/* A journal without counters is worth more than none; but never trust a trap. */
	if (journal->fsize_limit >= HF_COUNTERS_LEN) {
		r = hf_counters_open(journal->dirfd, 1, &journal->counters_fd, err);
		if (r == HF_E_UNTRUSTED)
			return r;
	}
	*ret_journal = ptr_take(&journal);
	return 0;
}

void hf_journal_free(struct hf_journal *journal)
{
	if (!journal)
		return;
	hf_noinherit_close(&journal->fd);
	hf_auto_close(&journal->counters_fd);
	hf_auto_close(&journal->dirfd);
	hf_buf_done(&journal->body);
	hf_buf_done(&journal->out);
	/* Not in a child: there the mutex may be held by a thread that does not exist. */
	if (journal->owner == getpid())
		(void)pthread_mutex_destroy(&journal->mutex);
	free(journal);
}

uint64_t hf_journal_last_seq(const struct hf_journal *journal)
{
	return __atomic_load_n(&journal->own_seq, __ATOMIC_RELAXED);
}
