/* unit/proc/test_signal.c - a signal reaches exactly the process that is meant (L6). */
#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "helper/proc_judge.h"
#include "hf/proc/stat.h"

/* ---- signals ---- */

static void signal_reaches_exactly_that_child_L6(void **state)
{
	struct child *other = child_start(child_answers, NULL);
	struct child *c = child_start(child_answers, NULL);
	struct hf_proc_id id = identity_of(c->pid);
	int status;

	(void)state;
	ASSERT_OK(hf_proc_signal(&id, 0, 0, ERR));
	assert_int_equal(child_ask(c), 'n');
	ASSERT_OK(hf_proc_signal(&id, SIGUSR1, 0, ERR));
	assert_int_equal(child_ask(c), 'y');
	ASSERT_OK(hf_proc_signal(&id, SIGTERM, 0, ERR));
	status = child_reap(c);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGTERM);
	assert_int_equal(child_ask(other), 'n');
}

static void gone_and_zombie_are_refused_as_gone_L6(void **state)
{
	(void)state;
	for (int k = 0; k < N_KERNELS; k++) {
		struct child *c = child_start(child_answers, NULL);
		struct hf_proc_id id;

		kernel_pretend(k);
		id = identity_of(c->pid);
		child_kill_only(c);
		ASSERT_ERR(hf_proc_signal(&id, SIGUSR1, 0, ERR), HF_E_GONE);
		ASSERT_ERR(hf_proc_signal(&id, 0, 0, ERR), HF_E_GONE);
		child_reap(c);
		ASSERT_ERR(hf_proc_signal(&id, SIGUSR1, 0, ERR), HF_E_GONE);
		kernel_restore();
	}
}

static void other_pidfs_inode_is_recycled_and_gets_no_signal_L6(void **state)
{
	struct child *c = child_start(child_answers, NULL);
	struct hf_proc_id id = identity_of(c->pid);
	int pidfd = -1;

	(void)state;
	need_pidfs(&id);
	id.pidfs_inode++;
	assert_int_equal(judge(&id, 0), HF_DEAD);
	ASSERT_ERR(hf_proc_signal(&id, SIGUSR1, 0, ERR), HF_E_RECYCLED);
	assert_non_null(strstr(ERR->detail, "another process"));
	ASSERT_ERR(hf_proc_open(&id, 0, &pidfd, ERR), HF_E_RECYCLED);
	assert_int_equal(pidfd, -1);
	assert_int_equal(child_ask(c), 'n');
}

static void bad_signal_number_is_refused_L6(void **state)
{
	static const int bad[] = { -1, -SIGTERM, 65, 1000, INT32_MAX, INT32_MIN };
	struct child *c = child_start(child_answers, NULL);
	struct hf_proc_id id = identity_of(c->pid);

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		ASSERT_ERR(hf_proc_signal(&id, bad[i], 0, ERR), -EINVAL);
	ASSERT_ERR(hf_proc_signal(NULL, SIGUSR1, 0, ERR), -EINVAL);
	assert_int_equal(child_ask(c), 'n');
	/* Our refusal, not the kernel's, which would not be asked here. */
	child_kill(c);
	for (size_t i = 0; i < COUNT(bad); i++)
		ASSERT_ERR(hf_proc_signal(&id, bad[i], 0, ERR), -EINVAL);
}

static void pid_one_and_below_are_protected_L6(void **state)
{
	static const int32_t pids[] = { 1, 0, -1, INT32_MIN };
	struct child *c = child_start(child_answers, NULL);
	struct hf_proc_id id = identity_of(c->pid);

	(void)state;
	for (size_t i = 0; i < COUNT(pids); i++) {
		/* Also with 0 and -1, which mean "my group" and "everybody" to kill(2). */
		id.pid = pids[i];
		ASSERT_ERR(hf_proc_signal(&id, SIGUSR1, 0, ERR), HF_E_PROTECTED);
	}
	id = identity_of(1);
	ASSERT_ERR(hf_proc_signal(&id, 0, 0, ERR), HF_E_PROTECTED);
	assert_int_equal(child_ask(c), 'n');
	assert_false(usr1_came());
}

static void child_signals_its_family(int in, int out, void *arg)
{
	struct family *shared = arg;

	(void)in;
	descend(&shared->parent_came);
	meet_family(shared);
	shared->results[0] = hf_proc_signal(&shared->self, SIGUSR1, 0, NULL);
	shared->results[1] = hf_proc_signal(&shared->parent, SIGUSR1, 0, NULL);
	shared->results[2] = hf_proc_signal(&shared->grandparent, SIGUSR1, 0, NULL);
	shared->self_came = usr1_came();
	tell(out, 'r');
}

static void self_and_ancestors_are_protected_L6(void **state)
{
	struct family *shared = shared_new(sizeof(*shared));
	struct child *c;

	(void)state;
	shared->grandparent = identity_of(getpid());
	c = child_start(child_signals_its_family, shared);
	assert_int_equal(child_reap(c), 0);
	for (int i = 0; i < 3; i++)
		ASSERT_ERR(shared->results[i], HF_E_PROTECTED);
	assert_false(shared->self_came);
	assert_false(shared->parent_came);
	assert_false(usr1_came());
	munmap(shared, sizeof(*shared));
}

static int is_ancestor(pid_t pid)
{
	struct hf_stat st = { .ppid = getpid() };

	while (st.ppid > 1) {
		if (st.ppid == pid)
			return 1;
		if (hf_stat_read(st.ppid, &st) < 0)
			return 0;
	}
	return 0;
}

/* Some process of another user that is neither pid 1 nor an ancestor; 0 if there is none. */
static pid_t find_other_users_process(void)
{
	DIR *d = opendir("/proc");
	struct dirent *entry;
	pid_t found = 0;
	uint32_t uid;

	assert_non_null(d);
	while (!found && (entry = readdir(d))) {
		pid_t pid = atoi(entry->d_name);

		if (pid > 1 && hf_status_read_uid(pid, &uid) == 0 && uid != geteuid() &&
		    !is_ancestor(pid))
			found = pid;
	}
	closedir(d);
	return found;
}

static void other_users_process_is_foreign_L6(void **state)
{
	struct child *c = NULL;
	struct hf_proc_id id;
	pid_t pid;

	(void)state;
	if (geteuid() == 0)
		c = child_start(child_of_other_user, NULL);
	pid = c ? c->pid : find_other_users_process();
	if (pid == 0)
		HF_SKIP("no process of another user to be seen");
	id = identity_of(pid);
	/* Nothing that could hurt is sent to a stranger, should the refusal fail. */
	ASSERT_ERR(hf_proc_signal(&id, c ? SIGUSR1 : 0, 0, ERR), HF_E_FOREIGN);
	assert_string_equal(ERR->op, "owner"); /* our refusal, not the kernel's */
	assert_int_equal(judge(&id, 0), HF_ALIVE);
	if (c)
		assert_int_equal(child_ask(c), 'n');
}

static void no_signal_without_a_pidfd_L6(void **state)
{
	struct child *c = child_start(child_answers, NULL);
	struct hf_proc_id id;
	int pidfd = -1;

	(void)state;
	kernel_pretend(KERNEL_NO_PIDFD);
	id = identity_of(c->pid);
	assert_int_equal(id.pidfs_inode, 0);
	assert_int_equal(judge(&id, 0), HF_ALIVE);
	assert_non_null(strstr(evidence, "weak"));
	ASSERT_ERR(hf_proc_signal(&id, SIGUSR1, 0, ERR), HF_E_UNKNOWN);
	ASSERT_ERR(hf_proc_open(&id, 0, &pidfd, ERR), HF_E_UNKNOWN);
	assert_int_equal(pidfd, -1);
	assert_int_equal(child_ask(c), 'n');
}

/* ---- threads ---- */

struct waiting_thread {
	pthread_t thread;
	int wake[2], up[2];
	pid_t tid;
};

static void *thread_waits(void *arg)
{
	struct waiting_thread *t = arg;
	char byte;

	t->tid = gettid();
	tell(t->up[1], 'r');
	return read(t->wake[0], &byte, 1) < 0 ? t : NULL;
}

static void thread_start(struct waiting_thread *t)
{
	assert_int_equal(pipe2(t->wake, O_CLOEXEC), 0);
	assert_int_equal(pipe2(t->up, O_CLOEXEC), 0);
	assert_int_equal(pthread_create(&t->thread, NULL, thread_waits, t), 0);
	assert_int_equal(hear(t->up[0]), 'r');
}

static void thread_end(struct waiting_thread *t)
{
	close(t->wake[1]);
	pthread_join(t->thread, NULL);
	close(t->wake[0]);
	close(t->up[0]);
	close(t->up[1]);
}

static void thread_id_is_no_process_L6(void **state)
{
	struct hf_proc_id id = { 0 }, stored = identity_of(getpid());
	struct waiting_thread t;
	int identified[N_KERNELS], live, sent;

	(void)state;
	thread_start(&t);
	for (int k = 0; k < N_KERNELS; k++) {
		kernel_pretend(k);
		identified[k] = hf_proc_identify(t.tid, &id, ERR);
		kernel_restore();
	}
	/* A process that had this number is gone, whatever its start time was. */
	stored.pid = t.tid;
	live = hf_proc_liveness(&stored, 0, NULL);
	sent = hf_proc_signal(&stored, SIGUSR1, 0, ERR);
	thread_end(&t); /* before the assertions, which do not come back */
	assert_int_equal(live, HF_DEAD);
	ASSERT_ERR(sent, HF_E_RECYCLED);
	assert_false(usr1_came());
	ASSERT_ERR(identified[KERNEL_AS_IS], -EINVAL);
	ASSERT_ERR(identified[KERNEL_NO_PIDFS], -EINVAL);
	ASSERT_ERR(identified[KERNEL_NO_PIDFD], -EINVAL);
}

/* ---- pidfds ---- */

static void opened_pidfd_is_cloexec_and_shows_the_exit(void **state)
{
	struct child *c = child_start(child_answers, NULL);
	struct hf_proc_id id = identity_of(c->pid);
	struct pollfd p = { .fd = -1, .events = POLLIN };
	int early, late, flags;

	(void)state;
	ASSERT_OK(hf_proc_open(&id, 0, &p.fd, ERR));
	flags = fcntl(p.fd, F_GETFD);
	early = poll(&p, 1, 0);
	assert_int_equal(kill(c->pid, SIGKILL), 0);
	late = poll(&p, 1, DEADLINE_MS);
	close(p.fd);
	assert_true(flags & FD_CLOEXEC);
	assert_int_equal(early, 0);
	assert_int_equal(late, 1);
	assert_true(p.revents & POLLIN);
	ASSERT_ERR(hf_proc_open(&id, 0, &p.fd, ERR), HF_E_GONE);
	ASSERT_ERR(hf_proc_open(NULL, 0, &p.fd, ERR), -EINVAL);
	ASSERT_ERR(hf_proc_open(&id, 0, NULL, ERR), -EINVAL);
}

/* ---- the caller's process ---- */

struct surroundings {
	int blocked[32];
	uintptr_t handlers[32];
	int flags[32];
	char cwd[512];
	mode_t umask;
};

static void look_around(struct surroundings *s)
{
	struct sigaction action;
	sigset_t mask;

	memset(s, 0, sizeof(*s));
	sigprocmask(SIG_BLOCK, NULL, &mask);
	for (int sig = 1; sig < 32; sig++) {
		sigaction(sig, NULL, &action);
		s->blocked[sig] = sigismember(&mask, sig);
		s->handlers[sig] = (uintptr_t)action.sa_handler;
		s->flags[sig] = action.sa_flags;
	}
	assert_non_null(getcwd(s->cwd, sizeof(s->cwd)));
	s->umask = umask(0);
	umask(s->umask);
}

static void call_everything(const struct hf_proc_id *id)
{
	char text[HF_PROC_TEXT_MAX];
	struct hf_proc_id other;
	int pidfd = -1;

	if (hf_proc_self(&other, NULL) < 0 || hf_proc_identify(id->pid, &other, NULL) == 0)
		assert_int_equal(other.pid, id->pid);
	hf_proc_liveness(id, 0, NULL);
	hf_proc_liveness(id, HF_PROC_SHARED, NULL);
	if (hf_proc_open(id, 0, &pidfd, NULL) == 0)
		close(pidfd);
	assert_true(hf_proc_signal(id, SIGUSR1, 0, NULL) <= 0);
	ASSERT_OK(hf_proc_parse(text, (size_t)hf_proc_format(id, text), &other, ERR));
}

static void calls_leave_the_process_as_it_was_L13(void **state)
{
	struct surroundings before, after;
	struct child *live = child_start(child_answers, NULL);
	struct child *dead = child_start(child_answers, NULL);
	struct hf_proc_id live_id = identity_of(live->pid), dead_id = identity_of(dead->pid);
	siginfo_t info = { 0 };

	(void)state;
	child_kill_only(dead);
	look_around(&before);
	for (int k = 0; k < N_KERNELS; k++) {
		kernel_pretend(k);
		call_everything(&live_id);
		call_everything(&dead_id);
		kernel_restore();
	}
	look_around(&after);
	assert_memory_equal(&before, &after, sizeof(before));
	/* The zombie is still ours to reap, and is the only child that has ended. */
	assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT), 0);
	assert_int_equal(info.si_pid, dead->pid);
	assert_int_equal(WTERMSIG(child_reap(dead)), SIGKILL);
	info.si_pid = 0;
	assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT), 0);
	assert_int_equal(info.si_pid, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PROC_TEST(signal_reaches_exactly_that_child_L6),
		PROC_TEST(gone_and_zombie_are_refused_as_gone_L6),
		PROC_TEST(other_pidfs_inode_is_recycled_and_gets_no_signal_L6),
		PROC_TEST(bad_signal_number_is_refused_L6),
		PROC_TEST(pid_one_and_below_are_protected_L6),
		PROC_TEST(self_and_ancestors_are_protected_L6),
		PROC_TEST(other_users_process_is_foreign_L6),
		PROC_TEST(no_signal_without_a_pidfd_L6),
		PROC_TEST(thread_id_is_no_process_L6),
		PROC_TEST(opened_pidfd_is_cloexec_and_shows_the_exit),
		PROC_TEST(calls_leave_the_process_as_it_was_L13),
	};

	proc_test_begin();
	return hf_run_tests("signal", tests);
}
