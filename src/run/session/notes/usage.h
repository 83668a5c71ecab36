/*
 * run/session/notes/usage.h - what the processes of a run use now, and what they used when its keeper looked last.
 *
 *     sessions/KEY/usage, one line of fixed length: TOKEN PEAK AT CPU AT CPU\n, of 20 digits each
 *
 * The keeper writes it whenever it renews the lease: the most memory it saw, and two moments (boot time, processor
 * time used), the newer one first. From them and from what is used now a reader has the share of a processor in the last
 * seconds. Not synced, and only for show: nothing is decided by it.
 */
#ifndef RUN_SESSION_NOTES_USAGE_H
#define RUN_SESSION_NOTES_USAGE_H

#include "hf/run/session/record/store.h"

struct hf_usage_moment {
	int64_t at_ns;  /* boot time; 0: none */
	int64_t cpu_ns; /* used until then by the run */
};

struct hf_usage {
	int64_t peak_bytes;
	struct hf_usage_moment moments[2]; /* the newer one first */
};

struct hf_usage_now {
	int64_t processes;    /* that live */
	int64_t memory_bytes; /* resident, of all of them */
	int64_t cpu_ns;       /* used by the run, those that were waited for counted */
};

/* Of the run on record. By number, for show: a pid that changed hands meanwhile spoils a figure, no more. 0 or -errno. */
int hf_usage_measure(const struct hf_session_record *record, struct hf_usage_now *ret);

/* Adds what is used now to what was seen before, at most two moments. */
void hf_usage_add(struct hf_usage *usage, const struct hf_usage_now *now);

/* Writes what was seen of the run `token`; one that cannot be written is missing, no more. */
void hf_usage_write(struct hf_sessions *sessions, const char *name, uint64_t token, const struct hf_usage *usage);

/* What was seen of the run `token`; all zero when that is nothing. */
void hf_usage_read(struct hf_sessions *sessions, const char *name, uint64_t token, struct hf_usage *ret);

/*
 * The share of one processor in thousandths, since the newer moment that is some seconds ago, else since `began_ns` (boot
 * time of the start). -1: not known.
 */
int32_t hf_usage_permille(const struct hf_usage *usage, const struct hf_usage_now *now, int64_t began_ns);

#endif
