/*
 * view/session/facts.h - what is known of a session beside its own record: what its processes wait for, and what became of its landing.
 *
 *     hf_facts_open(sessions, &facts);            once for a look at all sessions
 *     hf_facts_of(facts, info, &known);           for each of them
 *     hf_facts_free(facts);
 *
 * The queues of locks are read once, when it is opened; candidates only where an end could be theirs.
 */
#ifndef VIEW_SESSION_FACTS_H
#define VIEW_SESSION_FACTS_H

#include "hf/view/json.h"
#include "holdfast/land.h"
#include "holdfast/name.h"
#include "holdfast/run.h"

/* A process of the session waits for a lock, or its keeper for a place in the group. */
struct hf_view_wait {
	int is_known;
	enum hf_lock_kind kind;
	char name[HF_NAME_MAX + 1];
	size_t place, of;     /* in the queue, from 1; how many wait */
	int64_t waited_ns;
	char holder[HF_NAME_MAX + 1]; /* the session that has it; "": none of ours */
	int32_t holder_pid;   /* 0: nobody has it now */
	int64_t holder_held_ns; /* -1 */
	int holder_silent;    /* that session does nothing */
};

/* Work that a session left when it ended. */
enum hf_view_work_left {
	HF_WORK_NONE = 0, /* no work is known */
	HF_WORK_UNLANDED, /* it is in its sandbox or a candidate */
	HF_WORK_RESOLVED, /* it landed, was committed or dropped later */
};

struct hf_view_facts {
	struct hf_view_wait wait;
	int no_terminal; /* 1: it runs without a terminal to attach to */
	enum hf_land_state land; /* of its candidate, where that did not land; 0: none */
	enum hf_view_work_left work;
	int has_landed; /* 1: its candidate landed; its agent cannot continue it */
};

struct hf_facts;

/* `state` and `sessions` live longer. What cannot be read is not known: it never fails. NULL: no memory. */
struct hf_facts *hf_facts_open(struct hf_state *state, struct hf_sessions *sessions);
void hf_facts_free(struct hf_facts *facts);

/* `facts` may be NULL. */
void hf_facts_of(struct hf_facts *facts, const struct hf_session_info *info, struct hf_view_facts *ret);

/* The member `waits_for`. */
json_t *hf_view_wait(const struct hf_view_wait *wait);

#endif
