/* tx/unlanded.h - work of a session, in its sandbox or as its candidate, that neither landed nor was committed nor dropped. */
#ifndef TX_UNLANDED_H
#define TX_UNLANDED_H

#include <limits.h>

#include "hf/base/buf.h"
#include "holdfast/land.h"
#include "holdfast/name.h"
#include "holdfast/plan.h"

/* How much is asked. */
enum hf_unlanded_depth {
	HF_UNLANDED_QUICK,  /* does not fork, and does not find merged changes */
	HF_UNLANDED_BRANCH, /* asks git for the branch, if it has moved */
	HF_UNLANDED_ALL,    /* asks git in the sandbox of a change that has landed for later work */
};

struct hf_unlanded {
	char plan[HF_NAME_MAX + 1];
	int has_plan;     /* 1: the plan exists and holds work, or that is not known */
	int in_use;       /* 1: processes are in it */
	int is_over_git;  /* 1: its sandbox is over a work tree, for a landing */
	enum hf_plan_state plan_state; /* 0: no plan */
	enum hf_land_state land; /* of the run's candidate; 0: no candidate */
	int is_kept;      /* 1: a ref keeps the candidate, and its change is not part of the branch */
	int is_part;      /* 1: its change is part of the branch: it landed, or a user has merged or cherry-picked it */
	int is_all_landed; /* 1: it landed, and its kept sandbox holds no later work */
	unsigned n_left;  /* it landed, but for that many files, for which the sandbox is kept */
	uint64_t token;   /* of the candidate's run */
	struct hf_wall changed; /* the last change of the candidate's state */
	unsigned commits, files; /* of a kept candidate */
	int is_counted;   /* 1: `files` are those in the sandbox */
	char branch[256];
	char top[PATH_MAX], base[HF_LAND_OID_MAX]; /* of the candidate; "" */
};

/*
 * Finds the work that the last run of `name` left. `landings` may be NULL. Returns 1 if work was found, 0, or an error. Fills *ret unless it returns an
 * error. A change of git's index alone does not count.
 */
int hf_unlanded_look(struct hf_plans *plans, struct hf_landings *landings, const char *name, enum hf_unlanded_depth depth, struct hf_unlanded *ret,
		     struct hf_err *err);

/* Adds "3 files changed, 2 commits". Counts the files, and runs git in the sandbox to count the commits. */
void hf_unlanded_describe(struct hf_plans *plans, const struct hf_unlanded *work, struct hf_buf *out);

/* Drops the candidate with its ref, and the sandbox. Returns 0 also if nothing exists. */
int hf_unlanded_drop(struct hf_plans *plans, struct hf_landings *landings, const struct hf_unlanded *work, const char *name, struct hf_err *err);

#endif
