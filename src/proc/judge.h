/* proc/judge.h - the decision that liveness, open and signal share. */
#ifndef PROC_JUDGE_H
#define PROC_JUDGE_H

#include "holdfast/proc.h"

#include "hf/proc/here.h"

/*
 * 0 alive and proven, HF_E_GONE, HF_E_RECYCLED or HF_E_UNKNOWN, with the evidence
 * in words. With `ret_pidfd` not NULL, 0 also hands out the pidfd through which
 * it was proven.
 */
int hf_proc_judge(const struct hf_proc_id *id, unsigned flags, int *ret_pidfd,
		  char evidence[HF_EVIDENCE_MAX]);

/* The same for a caller that has read `here` before; it is constant for a process. */
int hf_proc_judge_at(const struct hf_proc_id *id, const struct hf_here *here, unsigned flags,
		     int *ret_pidfd, char evidence[HF_EVIDENCE_MAX]);

/* Do they name the same process? The pidfs inode decides where both have one. */
int hf_proc_equal(const struct hf_proc_id *a, const struct hf_proc_id *b);

#endif
