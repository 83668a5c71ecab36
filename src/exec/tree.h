/*
 * exec/tree.h - the process tree below a subreaper: who is in it, TERM, KILL, empty.
 *
 * For the keeper, and for the supervisor when the keeper is gone. Since the caller is a
 * subreaper, the tree is empty exactly when it has no children left: whoever loses its
 * parent becomes the caller's child. So killing means: kill all children, reap them, and
 * kill those that thereby became children, until there are none. Each process that is
 * killed is an unreaped child of the caller, whose pid cannot belong to anybody else, or
 * a descendant that is proven by its start and its parent after its pidfd was opened (L6).
 * Where a reaper stands between (reaper.c), the same holds for what is below that one.
 */
#ifndef EXEC_TREE_H
#define EXEC_TREE_H

#include "hf/exec/cgroup.h"
#include "hf/exec/marks.h"
#include "hf/exec/ptable.h"

struct hf_tree {
	struct hf_cgroup group;
	/* Children that the process had before it became a supervisor: none of ours. */
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
	struct hf_victims victims; /* those, of this watch */
};

#define HF_TREE_INIT { .group = HF_CGROUP_INIT }

void hf_tree_done(struct hf_tree *tree);

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

/* Who of the tree lives, without the leader. */
void hf_tree_describe(struct hf_tree *tree, struct hf_tree_names *ret);

/* A signal to all descendants. */
void hf_tree_signal(struct hf_tree *tree, int sig);

/* SIGKILL to the group and to all children. Called again until hf_tree_reap gives 0. */
void hf_tree_kill(struct hf_tree *tree);

#endif
