/* unit/proc/test_namespaces.c - processes in other pid and time namespaces, and a /proc of another one. */
#include <linux/sched.h>

#include "helper/proc_judge.h"
#include "hf/proc/stat.h"

struct outside {
	int skip;
	char text[HF_PROC_TEXT_MAX];
};

static void child_in_other_pid_namespace(int in, int out, void *arg)
{
	struct outside *shared = arg;
	struct hf_proc_id self;

	shared->skip = enter_namespaces(CLONE_NEWPID);
	if (shared->skip) {
		tell(out, 'r');
		return;
	}
	descend(NULL); /* pid 1 of it, which is refused for another reason */
	descend(NULL);
	MUST(getpid() == 2);
	MUST(hf_proc_self(&self, NULL) == 0);
	hf_proc_format(&self, shared->text);
	child_answers(in, out, NULL);
}

static void process_in_other_pid_namespace_is_unknown_and_not_signalled_L4_L6(void **state)
{
	struct outside *shared = shared_new(sizeof(*shared));
	struct child *c = child_start(child_in_other_pid_namespace, shared);
	struct hf_proc_id id;

	(void)state;
	if (shared->skip)
		HF_SKIP("no pid namespaces for this user: %s", strerror(shared->skip));
	ASSERT_OK(hf_proc_parse(shared->text, strlen(shared->text), &id, ERR));
	assert_int_equal(id.pid, 2);
	for (int k = 0; k < N_KERNELS; k++) {
		kernel_pretend(k);
		assert_int_equal(judge(&id, 0), HF_UNKNOWN);
		ASSERT_ERR(hf_proc_signal(&id, SIGUSR1, 0, ERR), HF_E_UNKNOWN);
		kernel_restore();
	}
	assert_int_equal(child_ask(c), 'n');
	munmap(shared, sizeof(*shared));
}

struct shifted {
	int skip;
	struct hf_proc_id target, weak_target; /* read outside */
	struct hf_proc_id inside;              /* the same process, read inside */
	int with_pidfs, without_pidfs, signalled;
};

static void child_in_other_time_namespace(int in, int out, void *arg)
{
	struct shifted *shared = arg;

	(void)in;
	shared->skip = enter_namespaces(CLONE_NEWTIME);
	if (!shared->skip)
		shared->skip = write_text("/proc/self/timens_offsets", "boottime 1000 0");
	if (!shared->skip) {
		descend(NULL); /* only children are in it */
		shared->with_pidfs = hf_proc_liveness(&shared->target, 0, NULL);
		kernel_pretend(KERNEL_NO_PIDFS);
		shared->without_pidfs = hf_proc_liveness(&shared->weak_target, 0, NULL);
		shared->signalled = hf_proc_signal(&shared->weak_target, SIGUSR1, 0, NULL);
		MUST(hf_proc_identify(shared->target.pid, &shared->inside, NULL) == 0);
	}
	tell(out, 'r');
}

static void start_time_of_other_time_namespace_is_not_compared_L4(void **state)
{
	struct shifted *shared = shared_new(sizeof(*shared));
	struct child *target = child_start(child_answers, NULL);

	(void)state;
	shared->target = identity_of(target->pid);
	kernel_pretend(KERNEL_NO_PIDFS);
	shared->weak_target = identity_of(target->pid);
	kernel_restore();
	child_reap(child_start(child_in_other_time_namespace, shared));
	if (shared->skip)
		HF_SKIP("no time namespaces for this user: %s", strerror(shared->skip));
	/* The trap is real: the same process has another start time in there. */
	assert_int_equal(shared->inside.start_ticks,
			 shared->target.start_ticks + 1000 * (uint64_t)sysconf(_SC_CLK_TCK));
	assert_int_not_equal(shared->inside.time_ns, shared->target.time_ns);
	assert_int_equal(shared->without_pidfs, HF_UNKNOWN);
	assert_int_equal(shared->signalled, HF_E_UNKNOWN);
	assert_int_equal(child_ask(target), 'n');
	if (shared->target.pidfs_inode)
		assert_int_equal(shared->with_pidfs, HF_ALIVE);
	munmap(shared, sizeof(*shared));
}

struct foreign_proc {
	int skip;
	struct hf_proc_id self, target_self, target, weak;
	uint64_t self_ticks;
	int live, weak_live, weak_recycled, asked[2], signalled, weak_signalled;
	int to_parent, parent_came, zombie, gone;
};

/* What the target says of itself; "self" needs no translation. */
static void child_writes_itself(int in, int out, void *arg)
{
	MUST(hf_proc_self(arg, NULL) == 0);
	child_answers(in, out, NULL);
}

static void signal_through_foreign_proc(struct foreign_proc *shared, struct child *target)
{
	shared->signalled = hf_proc_signal(&shared->target, SIGUSR1, 0, NULL);
	shared->asked[0] = child_ask(target);
	kernel_pretend(KERNEL_NO_PIDFS);
	shared->weak_signalled = hf_proc_signal(&shared->weak, SIGUSR1, 0, NULL);
	shared->asked[1] = child_ask(target);
	kernel_restore();
}

static void judge_through_foreign_proc(struct foreign_proc *shared, struct child *target)
{
	struct hf_proc_id parent, other;

	MUST(hf_proc_identify(target->pid, &shared->target, NULL) == 0);
	shared->live = hf_proc_liveness(&shared->target, 0, NULL);
	kernel_pretend(KERNEL_NO_PIDFS);
	MUST(hf_proc_identify(target->pid, &shared->weak, NULL) == 0);
	shared->weak_live = hf_proc_liveness(&shared->weak, 0, NULL);
	other = shared->weak;
	other.start_ticks++;
	shared->weak_recycled = hf_proc_signal(&other, SIGUSR1, 0, NULL);
	kernel_restore();
	signal_through_foreign_proc(shared, target);
	MUST(hf_proc_identify(getppid(), &parent, NULL) == 0);
	shared->to_parent = hf_proc_signal(&parent, SIGUSR1, 0, NULL);
	child_kill_only(target);
	shared->zombie = hf_proc_liveness(&shared->target, 0, NULL);
	child_reap(target);
	shared->gone = hf_proc_liveness(&shared->target, 0, NULL);
}

static void child_with_foreign_proc(int in, int out, void *arg)
{
	struct foreign_proc *shared = arg;
	struct hf_stat st;

	(void)in;
	shared->skip = enter_namespaces(CLONE_NEWPID);
	if (!shared->skip) {
		descend(NULL);
		descend(&shared->parent_came);
		descend(NULL);
		descend(&shared->parent_came);
		MUST(getpid() == 4 && getppid() == 3);
		MUST(hf_proc_self(&shared->self, NULL) == 0);
		MUST(hf_stat_read(0, &st) == 0);
		MUST(st.pid != getpid()); /* else /proc is not a foreign one */
		shared->self_ticks = st.start_ticks;
		judge_through_foreign_proc(shared,
					   child_start(child_writes_itself, &shared->target_self));
	}
	tell(out, 'r');
}

static void proc_of_another_pid_namespace_is_translated_L4_L6(void **state)
{
	struct foreign_proc *shared = shared_new(sizeof(*shared));
	struct child *c = child_start(child_with_foreign_proc, shared);

	(void)state;
	if (shared->skip)
		HF_SKIP("no pid namespaces for this user: %s", strerror(shared->skip));
	assert_int_equal(child_reap(c), 0);
	assert_int_equal(shared->self.pid, 4);
	assert_int_equal(shared->self.start_ticks, shared->self_ticks);
	assert_int_equal(shared->target.pid, 5);
	assert_same_identity(&shared->target, &shared->target_self);
	assert_int_equal(shared->live, HF_ALIVE);
	assert_int_equal(shared->weak_live, HF_ALIVE);
	ASSERT_ERR(shared->weak_recycled, HF_E_RECYCLED);
	ASSERT_OK(shared->signalled);
	ASSERT_OK(shared->weak_signalled);
	assert_int_equal(shared->asked[0], 'y');
	assert_int_equal(shared->asked[1], 'y');
	ASSERT_ERR(shared->to_parent, HF_E_PROTECTED);
	assert_false(shared->parent_came);
	assert_int_equal(shared->zombie, HF_DEAD);
	assert_int_equal(shared->gone, HF_DEAD);
	munmap(shared, sizeof(*shared));
}

/* A fork that gets `pid` in its pid namespace and in the one above. */
static pid_t fork_with_pid_twice(pid_t pid)
{
	pid_t numbers[2] = { pid, pid };
	struct clone_args args = { .exit_signal = SIGCHLD,
				   .set_tid = (uint64_t)(uintptr_t)numbers,
				   .set_tid_size = 2 };

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static void act_with_coinciding_number(struct foreign_proc *shared)
{
	struct child *target = child_start(child_writes_itself, &shared->target_self);
	struct hf_proc_id parent;

	MUST(hf_proc_identify(target->pid, &shared->target, NULL) == 0);
	MUST(hf_proc_identify(getppid(), &parent, NULL) == 0);
	shared->to_parent = hf_proc_signal(&parent, SIGUSR1, 0, NULL);
	shared->signalled = hf_proc_signal(&shared->target, SIGUSR1, 0, NULL);
	shared->asked[0] = child_ask(target);
	child_kill(target);
}

static void child_with_coinciding_number(int in, int out, void *arg)
{
	struct foreign_proc *shared = arg;
	pid_t pid = -1;

	(void)in;
	shared->skip = unshare(CLONE_NEWPID) < 0 ? errno : 0;
	if (!shared->skip) {
		descend(NULL);
		descend(NULL);
		for (pid_t want = 20000; pid < 0 && want < 20100; want++)
			pid = fork_with_pid_twice(want);
		shared->skip = pid < 0 ? errno : 0;
	}
	if (pid == 0) {
		act_with_coinciding_number(shared);
		_exit(0);
	}
	if (pid > 0) {
		int status;

		MUST(waitpid(pid, &status, 0) == pid && status == 0);
		shared->parent_came = usr1_came();
	}
	tell(out, 'r');
}

/*
 * /proc of the outer namespace, in which the caller happens to have the very
 * number that it has in its own: that is no sign that the other numbers agree.
 */
static void coinciding_own_pid_does_not_stop_translation_L6(void **state)
{
	struct foreign_proc *shared = shared_new(sizeof(*shared));
	struct child *c = child_start(child_with_coinciding_number, shared);

	(void)state;
	if (shared->skip)
		HF_SKIP("needs root and clone3 with set_tid: %s", strerror(shared->skip));
	assert_int_equal(child_reap(c), 0);
	assert_same_identity(&shared->target, &shared->target_self);
	ASSERT_ERR(shared->to_parent, HF_E_PROTECTED);
	assert_false(shared->parent_came);
	ASSERT_OK(shared->signalled);
	assert_int_equal(shared->asked[0], 'y');
	munmap(shared, sizeof(*shared));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PROC_TEST(process_in_other_pid_namespace_is_unknown_and_not_signalled_L4_L6),
		PROC_TEST(start_time_of_other_time_namespace_is_not_compared_L4),
		PROC_TEST(proc_of_another_pid_namespace_is_translated_L4_L6),
		PROC_TEST(coinciding_own_pid_does_not_stop_translation_L6),
	};

	proc_test_begin();
	return hf_run_tests("namespaces", tests);
}
