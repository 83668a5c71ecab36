/* journal/put_away.h - a file that failed its checks goes to quarantine, and one event says so (L8). */
#ifndef JOURNAL_PUT_AWAY_H
#define JOURNAL_PUT_AWAY_H

#include "holdfast/journal.h"

struct hf_put_away {
	const struct hf_state *state;
	struct hf_journal *journal; /* NULL: no event */
	const char *subject;        /* of the event; NULL: none */
	const char *shown;          /* the file, as the event names it: its path in the state directory */
	const char *label;          /* its name in quarantine begins with this */
	const char *reason;
};

/*
 * Moves `file` of `dirfd` to quarantine. -ENOENT: another process was faster, and the event is its
 * own. Returns 0 or -errno.
 */
int hf_put_away(const struct hf_put_away *what, int dirfd, const char *file, struct hf_err *err);

#endif
