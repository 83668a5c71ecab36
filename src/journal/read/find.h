/* journal/read/find.h - looking for one event, from the oldest on. */
#ifndef JOURNAL_READ_FIND_H
#define JOURNAL_READ_FIND_H

#include "holdfast/journal.h"

/* 1 when it is the one. The record lives for this call. */
typedef int hf_find_fn(void *arg, const struct hf_record *record);

/*
 * The first event that `fn` accepts. Only lines with the text `needle` in them are parsed and shown to it: a
 * journal may be long. 1, 0 when there is none, -errno.
 */
int hf_journal_find(const struct hf_state *state, const char *needle, hf_find_fn *fn, void *arg, struct hf_err *err);

#endif
