/*
 * exec/tree.h - the process tree below a subreaper: its members, TERM, KILL, empty.
 *
 * For the keeper, and for the supervisor when the keeper is gone. Since the caller is a
 * subreaper, the tree is empty exactly when it has no children left: a process that loses its
 * parent becomes the caller's child. So killing means: kill all children, reap them, and
 * kill those that thereby became children, until there are none. Each process that is
 * killed is an unreaped child of the caller, whose pid cannot belong to another process, or
 * a descendant that is proven by its start and its parent after its pidfd was opened (L6).
 * Where a reaper stands between (reaper.c), the same holds for what is below that one.
 */
#ifndef EXEC_TREE_H
#define EXEC_TREE_H

#include "hf/exec/cgroup/cgroup.h"
#include "hf/exec/marks.h"
#include "hf/exec/ptable.h"

#define HF_TREE_BESIDE_MAX 64

struct hf_tree {
	struct hf_cgroup group;
	/* Children that the process had before it became a supervisor: no part of the tree. */
	struct hf_stat *others;
	size_t n_others;
	int32_t reaper;          /* our child that the tree is below (reaper.c); 0: below us */
	char mark[HF_MARK_MAX];  /* prefix; tells their orphans from the tree's */
	uint64_t limit;          /* the limit mark, which does the same; 0: none */
	int32_t leader;          /* pid; 0: none, or reaped */
	int leader_exited;
	int leader_code;         /* CLD_EXITED, CLD_KILLED, CLD_DUMPED */
	int leader_status;
	unsigned killed;         /* processes that were sent SIGKILL */
	int group_struck;        /* the group was killed, and that was not enough */
	/*
	 * A process that serves the tree and ends by itself after the last of it (the helper of a sandbox); 0: none.
	 * The tree is not empty while it lives. It is not described, gets no TERM, and is killed when nobody else is left to kill.
	 */
	int32_t attendant;
	/* Children of this process that are no part of the tree, nor is what is below them, and that are not waited for: made with no signal at their end. */
	int32_t beside[HF_TREE_BESIDE_MAX];
	size_t n_beside;
	struct hf_victims victims; /* those, of this watch */
};

#define HF_TREE_INIT { .group = HF_CGROUP_INIT }

void hf_tree_done(struct hf_tree *tree);

/* Notes a child of this process that the tree is not to wait for; it was made with no signal at its end (clone(2), __WCLONE). */
void hf_tree_add_beside(struct hf_tree *tree, int32_t pid);

/*
 * Waits for the attendant's exit, at most `wait_ns`. 1 when it has exited: then nobody that it served is left, and that is known
 * without a look at every process. 0 when it lives, or there is none.
 */
int hf_tree_await_attendant(const struct hf_tree *tree, int64_t wait_ns);

/* Remembers the children that there are. Before the first fork. */
int hf_tree_note_others(struct hf_tree *tree);

/*
 * Reaps what has exited, and notes the leader's end. Returns 1 while there are children
 * of the tree, 0 when it is empty.
 */
int hf_tree_reap(struct hf_tree *tree);

/* SIGTERM, then SIGCONT, to all descendants but `spared` (0: none). Returns how many got it. */
int hf_tree_term(struct hf_tree *tree, int32_t spared);

#define HF_TREE_NAMES_MAX 120

/* Processes of a tree, for people. */
struct hf_tree_names {
	unsigned count;
	char names[HF_TREE_NAMES_MAX]; /* "sleep (2), node"; cut where there is no more room */
};

/* The living processes of the tree, without the leader. */
void hf_tree_describe(struct hf_tree *tree, struct hf_tree_names *ret);

/* A signal to all descendants. */
void hf_tree_signal(struct hf_tree *tree, int sig);

/* SIGKILL to all descendants but one, one by one. */
void hf_tree_kill_but(struct hf_tree *tree, int32_t spared);

/* SIGKILL to the group and to all children. Called again until hf_tree_reap gives 0. */
void hf_tree_kill(struct hf_tree *tree);

#endif
