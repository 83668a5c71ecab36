/* tests/helper/journal_content.h - what one journal of one segment holds, read and verified. */
#ifndef TESTS_JOURNAL_CONTENT_H
#define TESTS_JOURNAL_CONTENT_H

#include <string.h>
#include <sys/stat.h>

#include "helper/journal_helper.h"

#define COUNTERS JOURNAL "/counters"
#define NEVER    1000000 /* a fault that only counts */

static inline struct hf_journal *open_journal(void)
{
	struct hf_journal *journal;

	ASSERT_OK(hf_journal_open(hf_test_state(), NULL, &journal, ERR));
	return journal;
}

static inline void append_notes(int n)
{
	struct hf_journal *journal = open_journal();

	for (int i = 0; i < n; i++)
		ASSERT_OK(note(journal, "filler"));
	hf_journal_free(journal);
}

static inline int64_t now_ms(void)
{
	return hf_mono_now().ns / HF_MSEC;
}

/* Everything that is readable now. */
struct content {
	uint64_t records, damaged, last;
	uint64_t steps;	    /* sequence numbers that are not the one before plus one */
	uint64_t lost;	    /* journal_lost records, and the sum of their counts */
	uint64_t lost_sum;
	uint64_t hits;	    /* notes with the text asked for */
	char cause[64];
};

static inline void count_record(const struct hf_record *record, const char *text, struct content *c)
{
	const char *got = hf_record_text(record, "text");
	int64_t n = 0;

	c->records++;
	c->steps += record->seq != c->last + 1;
	c->last = record->seq;
	c->hits += text && got && strcmp(text, got) == 0;
	if (record->info && record->info->event == HF_EV_JOURNAL_LOST) {
		c->lost++;
		if (hf_record_int(record, "count", &n))
			c->lost_sum += (uint64_t)n;
		snprintf(c->cause, sizeof(c->cause), "%s", hf_record_text(record, "cause"));
	}
}

/* Without assertions, so that children may use it. Returns 0 or the error. */
static inline int read_content(const struct hf_state *from, const char *text, struct content *c)
{
	struct hf_journal_reader *reader;
	struct hf_record record;
	int r;

	memset(c, 0, sizeof(*c));
	r = hf_journal_read(from, &reader, ERR);
	if (r < 0)
		return r;
	while ((r = hf_journal_next(reader, &record, ERR)) > 0)
		count_record(&record, text, c);
	c->damaged = hf_journal_reader_damaged(reader);
	hf_journal_reader_free(reader);
	return r;
}

static inline struct content read_all(const char *text)
{
	struct content c;

	ASSERT_OK(read_content(hf_test_state(), text, &c));
	return c;
}

struct found {
	int kinds[HF_PROBLEM_COUNTERS + 1];
	char text[512];
};

static inline void note_problem(void *arg, const struct hf_problem_info *problem)
{
	struct found *found = arg;

	found->kinds[problem->problem]++;
	snprintf(found->text, sizeof(found->text), "%s:%llu %s", problem->file,
		 (unsigned long long)problem->line, problem->text);
}

static inline struct hf_verify_result verify(struct found *found)
{
	struct hf_verify_result result;

	memset(found, 0, sizeof(*found));
	ASSERT_OK(hf_journal_verify(hf_test_state(), note_problem, found, &result, ERR));
	return result;
}

static inline void assert_clean(void)
{
	struct found found;
	struct hf_verify_result result = verify(&found);

	if (result.problems)
		print_error("%s\n", found.text);
	assert_int_equal(result.problems, 0);
}

static inline off_t size_of(const char *leaf)
{
	struct stat st;

	assert_int_equal(lstat(hf_test_path(leaf), &st), 0);
	return st.st_size;
}

#endif
