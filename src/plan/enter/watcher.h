/*
 * plan/enter/watcher.h - the process between `plan enter` and its command.
 *
 * It is inside, as the command's parent and as a subreaper: whatever the command starts comes to it when it loses its
 * parent, so that it knows when the last one has ended, and can end all of them. It does so when the caller
 * of hf_plan_enter is killed: nothing of a command outlives that. It is the helper as well
 * (helper.h): renames directories, and brings the sandboxes to rest. It has the plan's file locked (use.h) until then.
 *
 * What the command leaves behind when it ends by itself is left alone; the watcher stays with it.
 * A watcher that is killed takes the command with it (PDEATHSIG); what that had started is found by the next verb
 * (strays.h).
 *
 * Forked, never executed, from a process that may have threads: no memory is allocated here.
 */
#ifndef PLAN_ENTER_WATCHER_H
#define PLAN_ENTER_WATCHER_H

#include <signal.h>

#include "hf/plan/enter/enter_inner.h"

/* What a child that could not execute the command says. */
struct hf_watch_failed {
	int exec; /* 1: inside, but exec failed */
	struct hf_inside_fail fail;
};

struct hf_watched {
	struct hf_enter *enter;
	char *const *argv;
	char *const *envp;
	sigset_t mask;           /* the command's */
	struct sigaction child;  /* the same of SIGCHLD */
	int caller;              /* pidfd of the process that called hf_plan_enter */
	int report;              /* one struct hf_watch_failed; closed: the command runs */
	int go[2];               /* the command waits until the caller has closed the second */
};

/* To the watcher, over the entry's channel. */
struct hf_watch_signal {
	int signal;
};

/* From it, once: when the last process has ended, or when the command has and others live on. */
struct hf_watch_end {
	char word;        /* enum hf_helper_word */
	int code, status; /* of the command, as waitid(2) gives them */
};

/* Starts it, as a child of init: the caller of the library has no child that it did not make. 0 or -errno. */
int hf_watch_start(struct hf_watched *watched);

#endif
