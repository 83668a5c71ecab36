/* unit/proc/test_pid_ns.c - holders in pid namespaces that end: dead only with proof, from the machine's first namespace alone (L4). */
#include <sys/mount.h>
#include <sys/stat.h>

#include "helper/proc_judge.h"
#include "hf/proc/here.h"

/* The notes of a process in a new namespace. */
struct inside {
	int skip;
	int alone;	/* the holder ends at once, and pid 1 stays */
	int deep;	/* one namespace more */
	struct hf_proc_id holder, above; /* `above`: a process of the namespace above */
};

/* Answers until it reads "q". Its parents wait for it, so they end after it. */
static void stay(int in, int out)
{
	char question;

	tell(out, 'r');
	while (read(in, &question, 1) == 1 && question != 'q')
		tell(out, 'n');
}

static void child_inside(int in, int out, void *arg)
{
	struct inside *inside = arg;

	inside->skip = enter_namespaces(CLONE_NEWPID);
	if (inside->skip) {
		tell(out, 'r');
		return;
	}
	descend(NULL);
	MUST(hf_proc_self(&inside->above, NULL) == 0);
	if (inside->deep) {
		MUST(unshare(CLONE_NEWPID) == 0);
		descend(NULL);
	}
	if (inside->alone) {
		pid_t pid = fork();

		MUST(pid >= 0);
		if (pid == 0) {
			MUST(hf_proc_self(&inside->holder, NULL) == 0);
			_exit(0);
		}
		MUST(waitpid(pid, NULL, 0) == pid);
	} else {
		descend(NULL);
		MUST(hf_proc_self(&inside->holder, NULL) == 0);
	}
	stay(in, out);
}

/* The namespace and all in it end, and are reaped. */
static void end_inside(struct child *c)
{
	tell(c->to, 'q');
	assert_int_equal(child_reap(c), 0);
}

static struct child *begin_inside(struct inside *inside)
{
	struct child *c = child_start(child_inside, inside);

	if (inside->skip)
		HF_SKIP("no pid namespaces for this user: %s", strerror(inside->skip));
	return c;
}

static void need_first_namespace(void)
{
	struct hf_here here;

	ASSERT_OK(hf_here_read(&here, ERR));
	if (here.pid_ns != HF_FIRST_PID_NS)
		HF_SKIP("these tests do not run in the machine's first pid namespace");
}

/* An ordinary user cannot read the namespaces of other users. While one of their processes may be the holder, nothing is proven. */
static int judge_ended(const struct hf_proc_id *id)
{
	int answer = judge(id, 0);

	for (int n = 0; answer == HF_UNKNOWN && geteuid() != 0 && n < 1000; n++) {
		(void)usleep(20000);
		answer = judge(id, 0);
	}
	return answer;
}

static void holder_is_dead_when_its_namespace_has_no_process_left_L4(void **state)
{
	struct inside *inside = shared_new(sizeof(*inside));
	struct child *c = begin_inside(inside);

	(void)state;
	need_first_namespace();
	assert_int_equal(inside->holder.pid, 2);
	assert_int_equal(judge(&inside->holder, 0), HF_UNKNOWN);
	end_inside(c);
	for (int k = 0; k < N_KERNELS; k++) {
		kernel_pretend(k);
		assert_int_equal(judge_ended(&inside->holder), HF_DEAD);
		assert_non_null(strstr(evidence, "no process left"));
		ASSERT_ERR(hf_proc_signal(&inside->holder, SIGUSR1, 0, ERR), HF_E_GONE);
		kernel_restore();
	}
}

static void holder_is_unknown_while_its_namespace_has_a_process_L4(void **state)
{
	struct inside *inside = shared_new(sizeof(*inside));
	struct child *c;

	(void)state;
	inside->alone = 1;
	c = begin_inside(inside);
	assert_int_equal(judge(&inside->holder, 0), HF_UNKNOWN);
	end_inside(c);
}

static void nested_namespace_is_judged_by_its_own_processes_L4(void **state)
{
	struct inside *inside = shared_new(sizeof(*inside));
	struct child *c;

	(void)state;
	need_first_namespace();
	inside->deep = 1;
	c = begin_inside(inside);
	assert_int_not_equal(inside->above.pid_ns, inside->holder.pid_ns);
	assert_int_equal(judge(&inside->holder, 0), HF_UNKNOWN);
	assert_int_equal(judge(&inside->above, 0), HF_UNKNOWN);
	end_inside(c);
	assert_int_equal(judge_ended(&inside->holder), HF_DEAD);
	assert_int_equal(judge_ended(&inside->above), HF_DEAD);
}

struct question {
	const struct hf_proc_id *id;
	int skip, hide;
	uid_t uid;
	int answer;
};

static void child_judges(int in, int out, void *arg)
{
	struct question *q = arg;

	(void)in;
	if (q->hide) {
		MUST(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
		q->skip = mount("proc", "/proc", "proc", 0, "hidepid=2") < 0 ? errno : 0;
	}
	if (q->uid)
		MUST(setresuid(q->uid, q->uid, q->uid) == 0);
	q->answer = hf_proc_liveness(q->id, 0, NULL);
	tell(out, 'r');
}

static int ask(struct question *q)
{
	assert_int_equal(child_reap(child_start(child_judges, q)), 0);
	if (q->skip)
		HF_SKIP("this /proc cannot be mounted: %s", strerror(q->skip));
	return q->answer;
}

static void child_judges_inside(int in, int out, void *arg)
{
	struct question *q = arg;

	(void)in;
	q->skip = enter_namespaces(CLONE_NEWPID | CLONE_NEWNS);
	if (!q->skip) {
		descend(NULL);
		MUST(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
		q->skip = mount("proc", "/proc", "proc", 0, NULL) < 0 ? errno : 0;
		q->answer = hf_proc_liveness(q->id, 0, NULL);
	}
	tell(out, 'r');
}

static void from_another_namespace_nothing_is_proven_L4(void **state)
{
	struct inside *inside = shared_new(sizeof(*inside));
	struct question *q = shared_new(sizeof(*q));
	struct child *c = begin_inside(inside);

	(void)state;
	q->id = &inside->holder;
	assert_int_equal(child_reap(child_start(child_judges_inside, q)), 0);
	if (q->skip)
		HF_SKIP("no /proc in a pid namespace for this user: %s", strerror(q->skip));
	assert_int_equal(q->answer, HF_UNKNOWN);
	assert_int_equal(child_ask(c), 'n');
	end_inside(c);
	assert_int_equal(child_reap(child_start(child_judges_inside, q)), 0);
	assert_int_equal(q->answer, HF_UNKNOWN);
}

/* Root's namespaces cannot be read by other users; their pids can. */
static void another_user_sees_a_living_holder_of_root_L4(void **state)
{
	struct inside *inside = shared_new(sizeof(*inside)), *other = shared_new(sizeof(*other));
	struct question *q = shared_new(sizeof(*q));
	struct child *c, *unrelated;

	(void)state;
	if (geteuid() != 0)
		HF_SKIP("needs root");
	need_first_namespace();
	c = begin_inside(inside);
	q->id = &inside->holder;
	q->uid = 65534;
	assert_int_equal(ask(q), HF_UNKNOWN);
	/* The same pid in a namespace that cannot be read: perhaps the holder. Another pid: certainly not. */
	unrelated = begin_inside(other);
	assert_int_equal(other->holder.pid, inside->holder.pid);
	end_inside(c);
	assert_int_equal(ask(q), HF_UNKNOWN);
	inside->holder.pid = 3;
	assert_int_equal(ask(q), HF_DEAD);
	end_inside(unrelated);
}

static void hidden_processes_prove_nothing_L4(void **state)
{
	struct inside *inside = shared_new(sizeof(*inside));
	struct question *q = shared_new(sizeof(*q));
	struct child *c;

	(void)state;
	if (geteuid() != 0)
		HF_SKIP("needs root");
	c = begin_inside(inside);
	q->id = &inside->holder;
	q->hide = 1;
	q->uid = 65534;
	assert_int_equal(ask(q), HF_UNKNOWN);
	end_inside(c);
	assert_int_equal(ask(q), HF_UNKNOWN);
}

/* The kernel gives the number of an ended namespace to the next one. */
static void reused_number_of_a_namespace_is_not_the_proof_of_a_death_L4(void **state)
{
	struct inside *inside = shared_new(sizeof(*inside));
	struct hf_proc_id old;
	int reused = 0;

	(void)state;
	need_first_namespace();
	end_inside(begin_inside(inside));
	child_end(&proc_children[--proc_n_children]);
	old = inside->holder;
	for (int i = 0; i < 200 && !reused; i++) {
		struct child *c = begin_inside(inside);

		reused = inside->holder.pid_ns == old.pid_ns;
		if (reused)
			assert_int_equal(judge(&old, 0), HF_UNKNOWN);
		end_inside(c);
		child_end(&proc_children[--proc_n_children]);
	}
	if (!reused)
		HF_SKIP("the kernel did not reuse the number");
	assert_int_equal(judge_ended(&old), HF_DEAD);
}

/* Processes are born and die in each namespace; pids of the first one are passed on at once. */
static void child_forks_on(int in, int out, void *arg)
{
	struct pollfd told = { .fd = in, .events = POLLIN };
	struct inside *inside = arg;

	inside->skip = enter_namespaces(CLONE_NEWPID);
	if (!inside->skip) {
		descend(NULL);
		descend(NULL);
		MUST(hf_proc_self(&inside->holder, NULL) == 0);
	}
	tell(out, 'r');
	while (!inside->skip && poll(&told, 1, 0) == 0) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		MUST(pid > 0 && waitpid(pid, NULL, 0) == pid);
	}
}

static void births_and_deaths_do_not_hide_a_living_holder_L4(void **state)
{
	struct inside *inside[3];
	struct child *children[COUNT(inside)];

	(void)state;
	for (size_t i = 0; i < COUNT(inside); i++) {
		inside[i] = shared_new(sizeof(*inside[i]));
		children[i] = child_start(child_forks_on, inside[i]);
		if (inside[i]->skip)
			HF_SKIP("no pid namespaces for this user: %s", strerror(inside[i]->skip));
	}
	for (int round = 0; round < 100; round++)
		for (size_t i = 0; i < COUNT(inside); i++)
			assert_int_equal(judge(&inside[i]->holder, 0), HF_UNKNOWN);
	for (size_t i = 0; i < COUNT(inside); i++)
		end_inside(children[i]);
}

static void no_failing_call_makes_a_living_holder_dead_L4(void **state)
{
	static const int errors[] = { EPERM, EACCES, ENOENT, EIO, EMFILE, ENOSYS };
	struct inside *inside = shared_new(sizeof(*inside));
	struct child *c;
	int strikes = 0;

	(void)state;
	need_first_namespace();
	c = begin_inside(inside);
	for (size_t i = 0; i < 2 * COUNT(errors); i++)
		for (int n = 1, hit = 1; hit && n < 20000; n += n < 60 ? 1 : 7) {
			int answer;

			hf_fault_arm(&(struct hf_fault){ .at = n, .error = errors[i / 2], .persist = i % 2 });
			answer = hf_proc_liveness(&inside->holder, 0, evidence);
			hit = hf_fault_hit();
			hf_fault_disarm();
			strikes += hit;
			if (answer != HF_UNKNOWN)
				fail_msg("call %d fails with %s: %s", n, strerrorname_np(errors[i / 2]), evidence);
		}
	assert_true(strikes > 100);
	end_inside(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PROC_TEST(holder_is_dead_when_its_namespace_has_no_process_left_L4),
		PROC_TEST(holder_is_unknown_while_its_namespace_has_a_process_L4),
		PROC_TEST(nested_namespace_is_judged_by_its_own_processes_L4),
		PROC_TEST(from_another_namespace_nothing_is_proven_L4),
		PROC_TEST(another_user_sees_a_living_holder_of_root_L4),
		PROC_TEST(hidden_processes_prove_nothing_L4),
		PROC_TEST(reused_number_of_a_namespace_is_not_the_proof_of_a_death_L4),
		PROC_TEST(births_and_deaths_do_not_hide_a_living_holder_L4),
		PROC_TEST(no_failing_call_makes_a_living_holder_dead_L4),
	};

	proc_test_begin();
	return hf_run_tests("pid_ns", tests);
}
