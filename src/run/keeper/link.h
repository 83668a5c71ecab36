/*
 * run/keeper/link.h - what supervisor and keeper say to each other, through a socket pair.
 *
 * Whole messages (SOCK_SEQPACKET) between two processes of one program, so the structs
 * go over as they are. The end of the stream means that the other one is gone.
 */
#ifndef RUN_KEEPER_LINK_H
#define RUN_KEEPER_LINK_H

#include "holdfast/run.h"

enum hf_link_kind {
	HF_LINK_HELD = 1,    /* the keeper has the lock: from now on there may be a tree */
	HF_LINK_STARTED = 2, /* the command runs */
	HF_LINK_ENDED = 3,   /* the session is over, its lock is free; or it was never begun */
	HF_LINK_TERMINAL = 4, /* a pty's descriptor comes with it; none: the pty is done with */
	HF_LINK_SUSPENDED = 5, /* the command on the pty has stopped itself */
	HF_LINK_KEEPER = 6, /* from who stands between: the keeper's pidfd comes with it */
};

/* From the keeper. */
struct hf_link_news {
	enum hf_link_kind kind;
	int result;                  /* HF_LINK_ENDED: what hf_run_supervise returns */
	struct hf_run_report report;
	struct hf_err err;
};

/* To the keeper. */
struct hf_link_order {
	int signal;
	int from_terminal; /* the kernel sent it to the whole foreground group */
};

#endif
