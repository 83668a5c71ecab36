/*
 * exec/spawn.h - starting a command in two steps: made and held back, then let go.
 *
 * Between the two the caller records the child's identity. A child whose parent dies before
 * it says go does not start; one whose parent dies later is killed by the kernel
 * (PDEATHSIG), besides all else that looks after it.
 */
#ifndef EXEC_SPAWN_H
#define EXEC_SPAWN_H

#include <sched.h>
#include <signal.h>
#include <sys/types.h>

#include "hf/exec/cgroup/cgroup.h"

struct hf_spawn {
	char *const *argv;
	char *const *envp;
	int stdio[3];      /* -1: as it is */
	int terminal;      /* 1: a group of its own, in front on stdio[1], which is our controlling terminal (its input may be another) */
	pid_t group;       /* process group to join; 0: a new one */
	const sigset_t *mask;
	struct hf_cgroup *cgroup; /* fd -1: none */
	uint64_t mark;     /* limit mark (marks.h) for the child and what it starts; 0: none */
	/*
	 * Called in the child, last before exec, with its stdio in place: only what is safe in a
	 * signal handler. 0, or -errno, which is then what exec said. NULL: none.
	 */
	int (*enter)(void *arg);
	void *enter_arg;
	const struct hf_spawn_limits *limits; /* NULL: none */
	/*
	 * 1: the child shares our memory until its exec, so that no page is copied. For a process
	 * with one thread and one such child at a time. `spawn` and all it points to stay as they are until hf_spawn_result,
	 * which follows hf_spawn_go immediately. Where that is not possible, or with `enter`, it is a copy as always.
	 * Until the exec the kernel may end both for one: the OOM killer does, and before Linux 5.16 so does a signal that dumps core. The
	 * supervisor then ends the session as after any death of its keeper.
	 */
	int shares_memory;
};

/* What the child is bounded by, and all that it starts. */
struct hf_spawn_limits {
	uint64_t data;   /* RLIMIT_DATA, bytes; 0: none */
	uint64_t nproc;  /* RLIMIT_NPROC; 0: none */
	int nice;        /* added; 0: none */
	int has_cpus;
	cpu_set_t cpus;  /* that it may run on */
};

struct hf_child {
	pid_t pid;
	int pidfd;
	int go;     /* writing a byte starts it; closing it does not */
	int report; /* what exec said */
	char **environ_before; /* the parent's environ, put back after the child's exec; NULL: the child has memory of its own */
};

#define HF_CHILD_INIT { 0, -1, -1, -1, NULL }

void hf_child_done(struct hf_child *child);

/* Sends a signal, through its pidfd. 0 or -errno. */
int hf_child_signal(const struct hf_child *child, int sig);

/* Makes the child. Returns 0 or -errno. */
int hf_spawn(const struct hf_spawn *spawn, struct hf_child *ret);

/* Lets it go. Returns 0 or -errno. */
int hf_spawn_go(struct hf_child *child);

/* Waits for its exec: 0 when the command runs, else -errno of what failed in the child. */
int hf_spawn_result(struct hf_child *child);

/* The exit status by which a command that could not be executed is known: 126 or 127. */
int hf_spawn_status(int error);

/*
 * The environment for a command: "K=V" of `set`, then of `more` (may be NULL), then the caller's
 * without those and without `unset`. All NULL-ended. One block to be freed.
 */
char **hf_spawn_environment(char *const *set, char *const *more, const char *const *unset);

/* What the process does that waits for a command; the search for deadlocks goes by it (proc/blocked.h). */
enum hf_waits {
	HF_WAITS_WITH_LEASE, /* renews the lease of its lock */
	HF_WAITS_IN_EDIT,    /* makes a new version of a file */
};

/* From now on the process does nothing but wait for its children: so says its name. */
void hf_command_waits(enum hf_waits what);

#endif
