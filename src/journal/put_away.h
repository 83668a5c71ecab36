/* journal/put_away.h - moves a damaged file to quarantine, with one event (L8), and limits the quarantine. */
#ifndef JOURNAL_PUT_AWAY_H
#define JOURNAL_PUT_AWAY_H

#include "holdfast/journal.h"

#define HF_QUARANTINE_ENTRIES 1000
#define HF_QUARANTINE_BYTES   ((uint64_t)64 << 20)

/*
 * If the quarantine exceeds a limit, removes its oldest entries down to nine tenths of both limits and
 * writes one event. The entry `newest` stays. Does nothing without a journal.
 */
void hf_quarantine_trim(const struct hf_state *state, struct hf_journal *journal, const char *newest);

struct hf_put_away {
	const struct hf_state *state;
	struct hf_journal *journal; /* NULL: no event */
	const char *subject;        /* of the event; NULL: none */
	const char *shown;          /* the file, as the event names it: its path in the state directory */
	const char *label;          /* its name in quarantine begins with this */
	const char *reason;
};

/*
 * Moves `file` of `dirfd` to quarantine. -ENOENT: another process was faster and writes the event.
 * Returns 0 or -errno.
 */
int hf_put_away(const struct hf_put_away *what, int dirfd, const char *file, struct hf_err *err);

#endif
