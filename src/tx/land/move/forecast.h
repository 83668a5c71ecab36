/*
 * tx/land/move/forecast.h - while a candidate waits for its branch, a child verifies it on top of the one before it in the queue.
 *
 * The one before says in its record which commit it will be (hf_landing.commit while it is verified and lands, .forecast while it
 * waits), so candidates stand on each other. When this one has the branch and the branch is at the commit that it stands on, the child's
 * verdict counts. Else what stood on a candidate that failed, or on a branch that its user moved, is thrown away.
 */
#ifndef TX_LAND_MOVE_FORECAST_H
#define TX_LAND_MOVE_FORECAST_H

#include <stdatomic.h>

#include "hf/tx/land/candidate/land.h"

/* Written by the child. */
struct hf_forecast_result {
	atomic_int is_known;  /* 1: `commit` is what it will be */
	atomic_int is_over;   /* 1: the rest is there as well */
	enum hf_land_state state; /* REJECTED: the verifier said no; VERIFYING: it said yes */
	int rebased, is_signed, is_unsigned;
	unsigned commits;
	int64_t verify_ns;
	char commit[HF_LAND_OID_MAX];
	char text[256];
};

struct hf_forecast {
	struct hf_land_work *work;
	struct hf_forecast_result *result; /* shared with the child; NULL: not wanted */
	char onto[HF_LAND_OID_MAX];        /* what the child's candidate stands on */
	pid_t pid;                         /* 0: no child */
	int pidfd;
};

#define HF_FORECAST_INIT { .pidfd = -1 }
#define HF_FORECAST_NS   (200 * HF_MSEC) /* how often the one before is looked at */

/* Only with hf_land_opts.speculate and a verifier. */
void hf_forecast_begin(struct hf_forecast *forecast, struct hf_land_work *work);

/* While the branch is waited for, again and again. */
void hf_forecast_look(struct hf_forecast *forecast);

/*
 * The branch is ours and at work->head. 1: the candidate was verified on top of it; 2: it was refused so, and its state is REJECTED;
 * 0: nothing is known of that. An error of `alive`, or of the record.
 */
int hf_forecast_take(struct hf_forecast *forecast, struct hf_err *err);

/* Ends the child, and what it made goes. */
void hf_forecast_done(struct hf_forecast *forecast);

#endif
