/*
 * proc/blocked.h - does a process wait for its children, and for which?
 *
 * A process of one thread that sleeps in wait4(2) or waitid(2) does nothing until one of the
 * children that it waits for changes, or a signal handler runs. What /proc shows of it is read
 * piece by piece; it is believed when the process has not run from the first piece to the last: it sleeps
 * after, and its count of context switches is what it was before. So all of it was so at one
 * moment. When a later reading gives the same count, it was so for all the time between.
 */
#ifndef PROC_BLOCKED_H
#define PROC_BLOCKED_H

#include <stddef.h>
#include <stdint.h>

#define HF_BLOCKED_CHILDREN_MAX 64 /* a process with more is not looked into */
#define HF_COMM_MAX             16

/*
 * Processes of ours that do nothing but wait until their children have ended. They sleep in poll,
 * which says nothing, so they go by these names: the keeper of a session, which ends what is left before it
 * lets go of the name; the keeper of one that is to be left running; what renews a lease for its command;
 * what has a file's lock while its command makes the new version.
 */
#define HF_COMM_KEEPER "holdfast-keeper"
#define HF_COMM_LEAVER "holdfast-leaver"
#define HF_COMM_LEASE  "holdfast-lease"
#define HF_COMM_EDIT   "holdfast-edit"
#define HF_COMM_REAPER "holdfast-reaper" /* between a supervisor and its keeper; sleeps in waitid */

struct hf_blocked {
	uint64_t switches;                         /* context switches so far */
	int32_t children[HF_BLOCKED_CHILDREN_MAX]; /* it goes on when one of them ends */
	size_t n;
};

/*
 * 1 when `pid`, which has one thread, is asleep until one of ret->children ends. 0 when it is not, or when that cannot
 * be proven: /proc hides it, the kernel does not say.
 */
int hf_blocked_on_children(int32_t pid, struct hf_blocked *ret);

/* The children of a process of one thread. 1; 0 there are too many, or the kernel does not say. */
int hf_blocked_children(int32_t pid, struct hf_blocked *ret);

/* 1 for the name of a keeper, of either kind. */
int hf_comm_is_keeper(const char *comm);

/* Its command name, "" when that cannot be read. */
void hf_comm_read(int32_t pid, char out[HF_COMM_MAX]);

/* 1 when both run the same program. */
int hf_same_program(int32_t a, int32_t b);

/* 1 when `ancestor` is found on the way from `pid` upwards. */
int hf_descends_from(int32_t pid, int32_t ancestor);

#endif
