/* tests/helper/journal_rotate.h - journals of small segments, written by several numbered writers. */
#ifndef TESTS_JOURNAL_ROTATE_H
#define TESTS_JOURNAL_ROTATE_H

#include "helper/journal_helper.h"

#define SEGMENT 4096
#define RETAIN  16384
#define PLENTY  (UINT64_C(1) << 30)

static inline struct hf_journal *open_with(struct hf_state *from, uint64_t segment, uint64_t retain)
{
	struct hf_journal_opts opts = { .size = sizeof(opts),
					.segment_bytes = segment,
					.retain_bytes = retain };
	struct hf_journal *journal = NULL;

	return hf_journal_open(from, &opts, &journal, ERR) == 0 ? journal : NULL;
}

static inline struct hf_journal *open_journal(uint64_t segment, uint64_t retain)
{
	struct hf_journal *journal = open_with(hf_test_state(), segment, retain);

	assert_non_null(journal);
	return journal;
}

static inline int numbered(struct hf_journal *journal, int writer, int n)
{
	char text[64];

	snprintf(text, sizeof(text), "%d %d", writer, n);
	return note(journal, text);
}

struct content {
	uint64_t records, notes, rotated, lost, first, last;
	uint64_t steps; /* sequence numbers that are not the one before plus one */
	uint64_t disorder; /* notes of a writer that are not its one before plus one */
	int next[8]; /* what each writer's next note is */
};

static inline void count_record(const struct hf_record *record, struct content *c)
{
	const char *text = hf_record_text(record, "text");
	int64_t lost;
	int writer, n;

	if (c->records++ == 0)
		c->first = record->seq;
	else
		c->steps += record->seq != c->last + 1;
	c->last = record->seq;
	c->rotated += record->info && record->info->event == HF_EV_JOURNAL_ROTATED;
	if (record->info && record->info->event == HF_EV_JOURNAL_LOST &&
	    hf_record_int(record, "count", &lost))
		c->lost += (uint64_t)lost;
	if (!text || sscanf(text, "%d %d", &writer, &n) != 2 || writer < 0 || writer > 7)
		return;
	/* Where the oldest were pruned, a writer's first readable note is its beginning. */
	c->disorder += c->next[writer] != 0 && n != c->next[writer];
	c->next[writer] = n + 1;
	c->notes++;
}

static inline int read_into(struct hf_journal_reader *reader, struct content *c)
{
	struct hf_record record;
	int r;

	while ((r = hf_journal_next(reader, &record, ERR)) > 0)
		count_record(&record, c);
	return r;
}

static inline struct content read_all(void)
{
	struct hf_journal_reader *reader;
	struct content c = { 0 };

	ASSERT_OK(hf_journal_read(hf_test_state(), &reader, ERR));
	ASSERT_OK(read_into(reader, &c));
	assert_true(hf_journal_reader_damaged(reader) == 0);
	hf_journal_reader_free(reader);
	return c;
}

static inline void show_problem(void *arg, const struct hf_problem_info *problem)
{
	(void)arg;
	print_error("%s:%llu problem %d, %s\n", problem->file, (unsigned long long)problem->line,
		    (int)problem->problem, problem->text);
}

static inline struct hf_verify_result assert_clean(void)
{
	struct hf_verify_result result;

	ASSERT_OK(hf_journal_verify(hf_test_state(), show_problem, NULL, &result, ERR));
	assert_true(result.problems == 0 && result.torn == 0);
	return result;
}

#endif
