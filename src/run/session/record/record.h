/*
 * run/session/record/record.h - what is on disk of a session: one JSON line for each change.
 *
 *     {"v":1,"key":"fix-160","token":…,"phase":"running",…,"x":"0123456789abcdef"}
 *
 * The last whole line is the session. It is written behind the others and synced; what
 * stands is never changed, so a crash leaves the line before it. The checksum (XXH3-64 of all bytes before
 * `,"x":"`) always stands last. docs/FORMATS.md has every field.
 */
#ifndef RUN_SESSION_RECORD_RECORD_H
#define RUN_SESSION_RECORD_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "hf/base/buf.h"
#include "hf/exec/cgroup/cgroup.h"
#include "holdfast/name.h"
#include "holdfast/run.h"

#define HF_SESSION_LINE_MAX 8192 /* newline included */

enum hf_phase {
	HF_PHASE_STARTING = 1, /* the intent: nothing is let go before it is on disk */
	HF_PHASE_RUNNING = 2,
	HF_PHASE_VERIFYING = 3,
	HF_PHASE_WAITING = 4, /* a loop between two attempts */
	HF_PHASE_STOPPING = 5,
	HF_PHASE_ENDED = 6,
	HF_PHASE_LANDING = 7, /* what it made is being put in its place (stage.h) */
};

struct hf_session_record {
	char name[HF_NAME_MAX + 1];
	uint64_t token;
	enum hf_phase phase;
	uint32_t attempt;
	uint32_t failures; /* consecutive */
	uint32_t same;     /* consecutive outcomes like the last; counts for notices */
	uint32_t kills;    /* 1: SIGKILL was needed in the last attempt */
	int loop;
	int logged;        /* output goes to the log */
	uint64_t log;      /* the token of the run that began that log; 0: of before this was recorded */
	struct hf_proc_id supervisor, keeper, leader; /* pid 0: none */
	char cgroup[HF_CGROUP_PATH_MAX]; /* "": none */
	uint64_t cgroup_inode;
	uint64_t mark;   /* limit mark of its processes (exec/marks.h); 0: they have none of their own */
	uint64_t around; /* limit mark of the session around it; 0: none */
	char command[HF_RUN_COMMAND_MAX + 1];
	struct hf_wall started; /* of this run; of this attempt is `began_ns` */
	int64_t began_ns;       /* boot time of the attempt's start; 0: none yet */
	int64_t deadline_ns;    /* boot time; 0: none */
	int64_t hang_ns;
	int64_t grace_ns;       /* 0: KILL at once */
	enum hf_outcome outcome; /* of the last attempt that ended */
	int exit_status;
	char cause[HF_RUN_CAUSE_MAX];
	struct hf_wall ended;
	int64_t ran_ns;
	uint32_t outlived; /* processes that outlived the command of that attempt and were ended */
	char outlived_names[HF_RUN_OUTLIVED_MAX];
	int kept;          /* 1: that attempt left work that did not land (stage.h) */
	int64_t next_ns;   /* a loop between two attempts: boot time of the next; 0: none */
	int measured;      /* the figures of this run that follow are known: */
	int64_t cpu_ns;
	int64_t peak_bytes;
	int64_t output_bytes; /* -1: it was not logged */
	unsigned limited;  /* which of its limits its cgroup bounds: enum hf_limited_by */
	uint64_t options;  /* checksum of what is stored for --resume (stored.h); 0: of before there was one */
	/* No part of the line: where its writer may put the next one (store.c). */
	struct hf_session_tail {
		uint64_t inode; /* of the file; 0: not known */
		int64_t end;
	} tail;
};

/* Appends the line with newline to `out`; errors stick to the buffer. */
void hf_session_encode(const struct hf_session_record *record, struct hf_buf *out);

/*
 * Reads one line, without newline. Believes nothing: types, ranges, identities and times
 * are checked, and the checksum first. Returns 0, or HF_E_FORMAT with *ret_why.
 */
int hf_session_decode(const char *line, size_t len, struct hf_session_record *ret,
		      const char **ret_why);

/* The outcome of that word; HF_OUTCOME_NONE also when there is no such one. */
enum hf_outcome hf_outcome_of(const char *word);

/* The word of a phase, as it is stored. */
const char *hf_phase_word(enum hf_phase phase);

#endif
