/* tests/helper/proc_judge.h - identities, judgements and families, for the tests of the proc layer itself. */
#ifndef TESTS_PROC_JUDGE_H
#define TESTS_PROC_JUDGE_H

#include "helper/proc_helper.h"

/* What judge() was told. */
static char evidence[HF_EVIDENCE_MAX];

static inline struct hf_proc_id identity_of(pid_t pid)
{
	struct hf_proc_id id = { 0 };

	ASSERT_OK(hf_proc_identify(pid, &id, ERR));
	return id;
}

static inline void assert_same_identity(const struct hf_proc_id *a, const struct hf_proc_id *b)
{
	assert_int_equal(a->pid, b->pid);
	assert_int_equal(a->pidfs_inode, b->pidfs_inode);
	assert_int_equal(a->start_ticks, b->start_ticks);
	assert_int_equal(a->time_ns, b->time_ns);
	assert_int_equal(a->pid_ns, b->pid_ns);
	assert_string_equal(a->boot_id, b->boot_id);
}

/* The answer; the evidence must name the pid, or nobody can check it. */
static inline enum hf_liveness judge(const struct hf_proc_id *id, unsigned flags)
{
	enum hf_liveness answer;
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", (int)id->pid);
	memset(evidence, 0, sizeof(evidence));
	answer = hf_proc_liveness(id, flags, evidence);
	if (!strstr(evidence, pid))
		fail_msg("pid %s is not in the evidence \"%s\"", pid, evidence);
	assert_int_equal(hf_proc_liveness(id, flags, NULL), answer);
	return answer;
}

static inline void need_pidfs(const struct hf_proc_id *id)
{
	if (id->pidfs_inode == 0)
		HF_SKIP("this kernel has no pidfs (before 6.9)");
}

/* A process, its parent and its grandparent, in shared memory; and what became of signals to them. */
struct family {
	struct hf_proc_id self, parent, grandparent;
	int results[3];
	int self_came, parent_came;
	int sent; /* refusals that were none, over all faults */
	int strikes;
	char first[128];
};

static inline void meet_family(struct family *shared)
{
	MUST(hf_proc_self(&shared->self, NULL) == 0);
	MUST(hf_proc_identify(getppid(), &shared->parent, NULL) == 0);
}

static inline void child_of_other_user(int in, int out, void *arg)
{
	(void)arg;
	MUST(setresuid(65534, 65534, 65534) == 0);
	child_answers(in, out, NULL);
}

#endif
