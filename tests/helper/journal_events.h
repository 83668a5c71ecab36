/* tests/helper/journal_events.h - how many events of a kind a test has left. */
#ifndef TESTS_JOURNAL_EVENTS_H
#define TESTS_JOURNAL_EVENTS_H

#include "helper/test.h"
#include "holdfast/journal.h"

/* Records of that event so far. */
static inline int events(enum hf_event event)
{
	struct hf_journal_reader *reader;
	struct hf_record record;
	int n = 0;

	ASSERT_OK(hf_journal_read(hf_test_state(), &reader, ERR));
	while (hf_journal_next(reader, &record, ERR) > 0)
		n += record.info && record.info->event == event;
	hf_journal_reader_free(reader);
	return n;
}

#endif
