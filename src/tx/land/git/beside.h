/*
 * tx/land/git/beside.h - a git that runs while its caller does other things.
 *
 * For questions alone: it runs outside of sandboxes, without hooks, and may be killed at any moment. It dies with its caller.
 */
#ifndef TX_LAND_GIT_BESIDE_H
#define TX_LAND_GIT_BESIDE_H

#include <signal.h>

#include "hf/exec/spawn.h"
#include "hf/tx/land/git/git.h"

struct hf_git_beside {
	struct hf_child child; /* pid 0: none runs */
	int out, said;
	struct sigaction sigchld; /* before: where it is ignored, nobody learns how a child ended */
};

#define HF_GIT_BESIDE_INIT { .child = HF_CHILD_INIT, .out = -1, .said = -1 }

/* Starts git with these words (NULL-ended) in `dir`. 0 or an error. */
int hf_git_beside_start(struct hf_git_beside *beside, const char *dir, const char *const *words, struct hf_err *err);

/*
 * Waits for it: the exit status, with its output in *out and the line of its standard error that says most in *said; or an error. HF_E_CANCELLED: we
 * got a signal, and it was ended.
 */
int hf_git_beside_end(struct hf_git_beside *beside, struct hf_buf *out, struct hf_buf *said, struct hf_err *err);

/* Kills it, if it runs. */
void hf_git_beside_done(struct hf_git_beside *beside);

#endif
