/* run/supervisor/remains/hunt_marks.h - a hunt for what is left of a run, and the limit marks (exec/marks.h) that it goes by. */
#ifndef RUN_SUPERVISOR_REMAINS_HUNT_MARKS_H
#define RUN_SUPERVISOR_REMAINS_HUNT_MARKS_H

#include "hf/exec/cgroup/cgroup.h"
#include "hf/exec/marks.h"
#include "hf/exec/ptable.h"
#include "hf/proc/here.h"
#include "hf/run/session/record/store.h"

/* The limit marks of one session on record. */
struct hf_hunt_marks {
	uint64_t own, around;
	int hunted;  /* it is inside the one that is hunted */
	int is_self; /* it is the one that is hunted */
};

struct hf_hunt {
	struct hf_sessions *sessions;
	const char *session; /* its name */
	struct hf_cgroup group;
	struct hf_here here;
	char mark[HF_MARK_MAX];
	uint64_t only;    /* the token of the run that is known to be unfinished; 0: not known */
	uint64_t token;   /* our own */
	uint64_t limit;   /* the limit mark of that run; 0: it has none, or is not known */
	uint64_t name;    /* what all limit marks of the name have in common; for when it is not known */
	struct hf_hunt_marks *others; /* of all sessions on record */
	size_t n_others, room;
	int others_read;           /* in this round */
	struct hf_victims victims; /* were sent SIGKILL */
	unsigned killed;           /* how many of them */
	unsigned living;  /* found in this round */
	unsigned refused; /* how many of those this user may not signal */
	int is_shared;    /* one of those has a mark that another session has as well */
	int32_t survivor; /* one of them, for the message */
};

/* Is it the limit mark of the run, or of a session inside it? 1, 0 or -errno. */
int hf_hunt_is_hunted_mark(struct hf_hunt *hunt, uint64_t mark);

/*
 * Does another session on record, not inside this one, have the same limit mark? Marks are hashes. Then a
 * process with it may be that session's, and the mark proves nothing. 1, 0 or -errno.
 */
int hf_hunt_is_shared_mark(struct hf_hunt *hunt, uint64_t mark);

#endif
