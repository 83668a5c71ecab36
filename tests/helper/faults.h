/*
 * tests/helper/faults.h - make the Nth system call of the library's table fail, or die at it.
 *
 *     for (int n = 1;; n++) {
 *             hf_fault_arm(&(struct hf_fault){ .at = n, .error = ENOSPC });
 *             r = operation();
 *             if (!hf_fault_hit())            the operation makes fewer than n calls
 *                     break;
 *             ... check that nothing leaked and all is old or all is new ...
 *     }
 *     hf_fault_disarm();
 *
 * Counting covers every call in src/sys/calls.def, or only `.call` ("pwrite").
 */
#ifndef TESTS_FAULTS_H
#define TESTS_FAULTS_H

struct hf_fault {
	const char *call; /* NULL: any call counts */
	int at;           /* 1: the first */
	int error;        /* errno to fail with */
	int kill;         /* 1: SIGKILL ourselves before the call instead */
	int mutating;     /* 1: only calls that change something count */
	int persist;      /* 1: all later ones fail too */
	int short_write;  /* 1: write and pwrite do half, then `error`; 2: the other half never works */
};

void hf_fault_arm(const struct hf_fault *fault);
void hf_fault_disarm(void);

/* 1 when the armed fault has struck. */
int hf_fault_hit(void);

/* Calls counted since arming, and the name of the one that was struck. */
int hf_fault_count(void);
const char *hf_fault_call(void);

/*
 * Arms from $HF_FAULT, for whole programs: "CALL:N:ERRNO" or "CALL:N:KILL", with CALL
 * "any" for all; ERRNO as a number. Returns 0 when the variable is unset, 1 armed, -1 bad.
 */
int hf_fault_arm_from_env(void);

#endif
