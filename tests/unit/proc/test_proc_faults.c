/* unit/proc/test_proc_faults.c - every system call of the proc layer fails in turn: no wrong answer, no wrong signal. */
#include "helper/proc_judge.h"

static const int errors[] = { ENOSYS, EPERM, EMFILE, EIO, ENOENT };

struct strike {
	enum kernel kernel;
	int n, error;
	char call[32];
	int result;
};

static struct {
	struct child *child;
	struct hf_proc_id id;      /* what the call under test is given */
	struct hf_proc_id right;   /* the truth, on this kernel */
	struct hf_proc_id found;
	int pidfd;
	int violations, strikes;
} sweep;

static void violated(const struct strike *s, const char *law)
{
	if (++sweep.violations > 5)
		return; /* enough to see the pattern */
	print_error("kernel %s, call %d (%s) fails with %s: result %d: %s\n",
		    kernel_names[s->kernel], s->n, s->call, strerrorname_np(s->error), s->result,
		    law);
}

/* pidfd_open's ENOENT is the kernel's own word for "that is a thread", so it may be believed. */
static int says_thread(const struct strike *s)
{
	return s->error == ENOENT && strcmp(s->call, "pidfd_open") == 0;
}

/* 1 when call n was struck. */
static int strike_once(struct strike *s, int (*act)(void), int persist)
{
	int hit;

	hf_fault_arm(&(struct hf_fault){ .at = s->n, .error = s->error, .persist = persist });
	kernel_pretend(s->kernel);
	s->result = act();
	hit = hf_fault_hit();
	snprintf(s->call, sizeof(s->call), "%s", hf_fault_call());
	kernel_restore();
	return hit;
}

static void sweep_error(enum kernel kernel, int error, int persist, int (*act)(void),
			void (*check)(const struct strike *s))
{
	struct strike s = { .kernel = kernel, .error = error };
	int fds = hf_test_fd_count(), hit;

	do {
		s.n++;
		hit = strike_once(&s, act, persist);
		check(&s); /* also the last time, when no call was left to fail */
		if (hf_test_fd_count() != fds)
			violated(&s, "a descriptor leaked");
		sweep.strikes += hit;
	} while (hit && s.n < 1000);
	assert_true(s.n > 3 && s.n < 1000); /* it struck, and it came to an end */
}

/* `prepare` makes sweep.id from sweep.right. */
static void sweep_all(void (*prepare)(void), int (*act)(void),
		      void (*check)(const struct strike *s))
{
	sweep.violations = sweep.strikes = 0;
	for (int k = 0; k < N_KERNELS; k++) {
		kernel_pretend(k);
		sweep.right = identity_of(sweep.child ? sweep.child->pid : getpid());
		kernel_restore();
		sweep.id = sweep.right;
		if (prepare)
			prepare();
		for (size_t i = 0; i < COUNT(errors); i++) {
			sweep_error(k, errors[i], 0, act, check);
			sweep_error(k, errors[i], 1, act, check);
		}
	}
	assert_true(sweep.strikes > 100);
	assert_int_equal(sweep.violations, 0);
}

static int act_liveness(void)
{
	return hf_proc_liveness(&sweep.id, 0, NULL);
}

static void check_not_dead(const struct strike *s)
{
	if (s->result != HF_ALIVE && s->result != HF_UNKNOWN && !says_thread(s))
		violated(s, "a living process is called dead");
}

static void no_failing_call_makes_the_living_dead_L4(void **state)
{
	(void)state;
	sweep.child = child_start(child_answers, NULL);
	sweep_all(NULL, act_liveness, check_not_dead);
	assert_int_equal(child_ask(sweep.child), 'n');
}

static void end_the_child(void)
{
	if (sweep.child->pid)
		child_kill_only(sweep.child);
}

static void check_not_alive(const struct strike *s)
{
	if (s->result == HF_ALIVE)
		violated(s, "a zombie is called alive");
}

static void no_failing_call_makes_the_dead_alive_L4(void **state)
{
	(void)state;
	sweep.violations = sweep.strikes = 0;
	for (int k = 0; k < N_KERNELS; k++) {
		sweep.child = child_start(child_answers, NULL);
		kernel_pretend(k);
		sweep.id = identity_of(sweep.child->pid);
		kernel_restore();
		end_the_child();
		for (size_t i = 0; i < COUNT(errors); i++)
			sweep_error(k, errors[i], 0, act_liveness, check_not_alive);
		child_reap(sweep.child);
		for (size_t i = 0; i < COUNT(errors); i++)
			sweep_error(k, errors[i], 0, act_liveness, check_not_alive);
	}
	assert_int_equal(sweep.violations, 0);
}

static int act_identify(void)
{
	memset(&sweep.found, 0, sizeof(sweep.found));
	return hf_proc_identify(sweep.child->pid, &sweep.found, NULL);
}

/* What could not be read may be missing; nothing may be wrong. */
static void check_found(const struct strike *s)
{
	const struct hf_proc_id *found = &sweep.found, *right = &sweep.right;

	if (s->result == HF_E_GONE)
		violated(s, "a living process is called gone");
	if (s->result < 0 && found->pid != 0)
		violated(s, "a failed call has written its result");
	if (s->result < 0)
		return;
	if (found->pid != right->pid || found->pid_ns != right->pid_ns ||
	    strcmp(found->boot_id, right->boot_id) != 0)
		violated(s, "wrong pid, namespace or boot id");
	if (found->pidfs_inode && found->pidfs_inode != right->pidfs_inode)
		violated(s, "wrong pidfs inode");
	if (found->start_ticks && found->start_ticks != right->start_ticks)
		violated(s, "wrong start time");
	/* ENOENT: a kernel without time namespaces. */
	if (found->time_ns != right->time_ns && (found->time_ns || s->error != ENOENT))
		violated(s, "wrong time namespace");
	if (!found->pidfs_inode && !found->start_ticks)
		violated(s, "an identity that identifies nothing");
	if (hf_proc_liveness(found, 0, NULL) == HF_DEAD)
		violated(s, "an identity that is dead at once");
}

static void no_failing_call_makes_a_wrong_identity_L6(void **state)
{
	(void)state;
	sweep.child = child_start(child_answers, NULL);
	sweep_all(NULL, act_identify, check_found);
}

static int act_signal(void)
{
	return hf_proc_signal(&sweep.id, SIGUSR1, 0, NULL);
}

/* Sent means 0, and 0 means sent: the caller must be able to rely on it. */
static void check_sent_is_told(const struct strike *s)
{
	int came = child_ask(sweep.child);

	if (came != (s->result == 0 ? 'y' : 'n'))
		violated(s, "result and delivery disagree");
	if (s->result == HF_E_GONE || (s->result == HF_E_RECYCLED && !says_thread(s)))
		violated(s, "a living process is called gone");
}

static void result_of_signal_says_whether_it_was_sent_L6(void **state)
{
	(void)state;
	sweep.child = child_start(child_answers, NULL);
	sweep_all(NULL, act_signal, check_sent_is_told);
}

static void check_never_sent(const struct strike *s)
{
	int came = child_ask(sweep.child);

	if (s->result == 0 || came != 'n')
		violated(s, "a process was signalled whose identity does not match");
}

static void make_other_inode(void)
{
	sweep.id.pidfs_inode = sweep.right.pidfs_inode + 1;
}

static void make_other_start(void)
{
	sweep.id.pidfs_inode = 0;
	sweep.id.start_ticks--;
}

static void make_other_pid_ns(void)
{
	sweep.id.pid_ns ^= 1;
}

static void no_failing_call_lets_a_signal_reach_another_inode_L6(void **state)
{
	struct hf_proc_id self = identity_of(getpid());

	(void)state;
	need_pidfs(&self);
	sweep.child = child_start(child_answers, NULL);
	sweep_all(make_other_inode, act_signal, check_never_sent);
}

static void no_failing_call_lets_a_signal_reach_another_start_time_L6(void **state)
{
	(void)state;
	sweep.child = child_start(child_answers, NULL);
	sweep_all(make_other_start, act_signal, check_never_sent);
}

static void no_failing_call_lets_a_signal_reach_another_namespace_L6(void **state)
{
	(void)state;
	sweep.child = child_start(child_answers, NULL);
	sweep_all(make_other_pid_ns, act_signal, check_never_sent);
}

static void no_failing_call_lets_a_signal_reach_another_user_L6(void **state)
{
	(void)state;
	if (geteuid() != 0)
		HF_SKIP("needs root: the kernel itself protects other users from this one");
	sweep.child = child_start(child_of_other_user, NULL);
	sweep_all(NULL, act_signal, check_never_sent);
}

static void sweep_relative(struct family *shared, const struct hf_proc_id *id, int error)
{
	struct strike s = { .error = error };

	sweep.id = *id;
	for (s.n = 1; s.n < 1000 && strike_once(&s, act_signal, 0); s.n++) {
		shared->strikes++;
		if (s.result != 0)
			continue;
		if (shared->sent++ == 0)
			snprintf(shared->first, sizeof(shared->first),
				 "call %d (%s) fails with %s, and pid %d is signalled", s.n, s.call,
				 strerrorname_np(s.error), (int)id->pid);
	}
}

static void child_signals_its_family_with_faults(int in, int out, void *arg)
{
	struct family *shared = arg;

	(void)in;
	descend(&shared->parent_came);
	meet_family(shared);
	for (size_t i = 0; i < COUNT(errors); i++) {
		sweep_relative(shared, &shared->self, errors[i]);
		sweep_relative(shared, &shared->parent, errors[i]);
		/* ENOENT there is an ancestor hidden by /proc; what is above it cannot be known. */
		if (errors[i] != ENOENT)
			sweep_relative(shared, &shared->grandparent, errors[i]);
	}
	shared->self_came = usr1_came();
	tell(out, 'r');
}

static void no_failing_call_lets_a_signal_reach_self_or_ancestors_L6(void **state)
{
	struct family *shared = shared_new(sizeof(*shared));
	struct child *c;

	(void)state;
	shared->grandparent = identity_of(getpid());
	c = child_start(child_signals_its_family_with_faults, shared);
	assert_int_equal(child_reap(c), 0);
	assert_true(shared->strikes > 100);
	if (shared->sent)
		fail_msg("%d times, first: %s", shared->sent, shared->first);
	assert_false(shared->self_came || shared->parent_came || usr1_came());
	munmap(shared, sizeof(*shared));
}

static int act_open(void)
{
	sweep.pidfd = -1;
	return hf_proc_open(&sweep.id, 0, &sweep.pidfd, NULL);
}

static void check_opened(const struct strike *s)
{
	int sent;

	if ((s->result == 0) != (sweep.pidfd >= 0))
		violated(s, "result and descriptor disagree");
	if (sweep.pidfd < 0)
		return;
	sent = (int)syscall(SYS_pidfd_send_signal, sweep.pidfd, SIGUSR1, NULL, 0);
	if (sent != 0 || child_ask(sweep.child) != 'y')
		violated(s, "a descriptor of something else");
	close(sweep.pidfd);
}

static void no_failing_call_opens_a_wrong_process_L6(void **state)
{
	(void)state;
	sweep.child = child_start(child_answers, NULL);
	sweep_all(NULL, act_open, check_opened);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PROC_TEST(no_failing_call_makes_the_living_dead_L4),
		PROC_TEST(no_failing_call_makes_the_dead_alive_L4),
		PROC_TEST(no_failing_call_makes_a_wrong_identity_L6),
		PROC_TEST(result_of_signal_says_whether_it_was_sent_L6),
		PROC_TEST(no_failing_call_lets_a_signal_reach_another_inode_L6),
		PROC_TEST(no_failing_call_lets_a_signal_reach_another_start_time_L6),
		PROC_TEST(no_failing_call_lets_a_signal_reach_another_namespace_L6),
		PROC_TEST(no_failing_call_lets_a_signal_reach_another_user_L6),
		PROC_TEST(no_failing_call_lets_a_signal_reach_self_or_ancestors_L6),
		PROC_TEST(no_failing_call_opens_a_wrong_process_L6),
	};

	proc_test_begin();
	return hf_run_tests("proc_faults", tests);
}
