/* unit/proc/test_liveness.c - alive, dead or unknown, with real processes and with kernels that lack things (L4). */
#include <pthread.h>

#include "helper/proc_judge.h"
#include "hf/proc/stat.h"

/* ---- liveness ---- */

static void running_process_is_alive_L4(void **state)
{
	struct child *c = child_start(child_answers, NULL);
	struct hf_proc_id id = identity_of(c->pid);

	(void)state;
	assert_int_equal(judge(&id, 0), HF_ALIVE);
	assert_int_equal(judge(&id, HF_PROC_SHARED), HF_ALIVE);
}

static void stopped_process_is_alive_L4(void **state)
{
	struct child *c = child_start(child_answers, NULL);
	struct hf_proc_id id;
	siginfo_t info;

	(void)state;
	assert_int_equal(kill(c->pid, SIGSTOP), 0);
	assert_int_equal(waitid(P_PID, (id_t)c->pid, &info, WSTOPPED), 0);
	for (int k = 0; k < N_KERNELS; k++) {
		kernel_pretend(k);
		id = identity_of(c->pid);
		assert_int_equal(judge(&id, 0), HF_ALIVE);
		kernel_restore();
	}
}

static void zombie_is_dead_before_and_after_reaping_L4(void **state)
{
	(void)state;
	for (int k = 0; k < N_KERNELS; k++) {
		struct child *c = child_start(child_answers, NULL);
		struct hf_proc_id id;

		kernel_pretend(k);
		id = identity_of(c->pid);
		child_kill_only(c);
		assert_int_equal(judge(&id, 0), HF_DEAD);
		assert_int_equal(judge(&id, HF_PROC_SHARED), HF_DEAD);
		child_reap(c);
		assert_int_equal(judge(&id, 0), HF_DEAD);
		kernel_restore();
	}
}

struct pipe_ends {
	int in, out;
};

static void *thread_answers(void *arg)
{
	struct pipe_ends *ends = arg;
	struct hf_stat st = { 0 };

	/* The leader's end is not an event that can be waited for; its state letter shows it. */
	while (st.state != 'Z') {
		MUST(hf_stat_read(0, &st) == 0);
		sched_yield();
	}
	child_answers(ends->in, ends->out, NULL);
	_exit(0);
}

static void child_without_leader(int in, int out, void *arg)
{
	static struct pipe_ends ends;
	pthread_t thread;

	(void)arg;
	ends = (struct pipe_ends){ in, out };
	MUST(pthread_create(&thread, NULL, thread_answers, &ends) == 0);
	pthread_exit(NULL);
}

static void process_whose_main_thread_ended_is_alive_L4(void **state)
{
	struct child *c = child_start(child_without_leader, NULL);
	struct hf_proc_id id = { 0 };
	struct hf_stat st;

	(void)state;
	ASSERT_OK(hf_stat_read(c->pid, &st));
	assert_int_equal(st.state, 'Z');
	for (int k = 0; k < N_KERNELS; k++) {
		kernel_pretend(k);
		id = identity_of(c->pid);
		assert_int_equal(judge(&id, 0), HF_ALIVE);
		kernel_restore();
	}
	id = identity_of(c->pid);
	ASSERT_OK(hf_proc_signal(&id, SIGUSR1, 0, ERR));
	assert_int_equal(child_ask(c), 'y');
	child_kill_only(c);
	assert_int_equal(judge(&id, 0), HF_DEAD);
}

static void other_boot_is_dead_on_local_and_unknown_on_shared_storage_L4(void **state)
{
	struct child *c = child_start(child_answers, NULL);
	struct hf_proc_id id = identity_of(c->pid);

	(void)state;
	id.boot_id[0] = id.boot_id[0] == '0' ? '1' : '0';
	assert_int_equal(judge(&id, 0), HF_DEAD);
	assert_int_equal(judge(&id, HF_PROC_SHARED), HF_UNKNOWN);
	ASSERT_ERR(hf_proc_signal(&id, SIGUSR1, 0, ERR), HF_E_GONE);
	ASSERT_ERR(hf_proc_signal(&id, SIGUSR1, HF_PROC_SHARED, ERR), HF_E_UNKNOWN);
	assert_int_equal(child_ask(c), 'n');
}

static void other_pid_namespace_is_unknown_L4(void **state)
{
	struct child *c = child_start(child_answers, NULL);
	struct hf_proc_id id = identity_of(c->pid), none;
	pid_t gone = c->pid;

	(void)state;
	id.pid_ns ^= 1;
	assert_int_equal(judge(&id, 0), HF_UNKNOWN);
	ASSERT_ERR(hf_proc_signal(&id, SIGUSR1, 0, ERR), HF_E_UNKNOWN);
	assert_int_equal(child_ask(c), 'n');
	child_kill(c);
	/* That nobody has the number here says nothing about there. */
	none = id;
	none.pid = gone;
	assert_int_equal(judge(&none, 0), HF_UNKNOWN);
}

static void malformed_identity_is_unknown_L4(void **state)
{
	struct hf_proc_id good = identity_of(getpid()), bad[5];

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		bad[i] = good;
	bad[0].pid = 0;
	bad[1].pid = -1;
	bad[2].boot_id[0] = '\0';
	memset(bad[3].boot_id, 'a', sizeof(bad[3].boot_id)); /* not even terminated */
	bad[4].boot_id[4] = 'G';
	for (size_t i = 0; i < COUNT(bad); i++) {
		evidence[0] = '\0';
		assert_int_equal(hf_proc_liveness(&bad[i], 0, evidence), HF_UNKNOWN);
		assert_true(strlen(evidence) > 0);
	}
}

/* ---- kernels that lack things ---- */

static void without_pidfs_the_start_time_decides_and_says_weak_L4(void **state)
{
	struct child *c = child_start(child_answers, NULL);
	struct hf_proc_id strong = identity_of(c->pid), id, other;

	(void)state;
	kernel_pretend(KERNEL_NO_PIDFS);
	id = identity_of(c->pid);
	assert_int_equal(id.pidfs_inode, 0);
	assert_int_equal(id.start_ticks, strong.start_ticks);
	assert_int_equal(judge(&id, 0), HF_ALIVE);
	assert_non_null(strstr(evidence, "weak"));
	other = id;
	other.start_ticks--;
	assert_int_equal(judge(&other, 0), HF_DEAD);
	ASSERT_ERR(hf_proc_signal(&other, SIGUSR1, 0, ERR), HF_E_RECYCLED);
	assert_int_equal(child_ask(c), 'n');
	other.start_ticks = 0;
	assert_int_equal(judge(&other, 0), HF_UNKNOWN);
	ASSERT_ERR(hf_proc_signal(&other, SIGUSR1, 0, ERR), HF_E_UNKNOWN);
	assert_int_equal(child_ask(c), 'n');
	ASSERT_OK(hf_proc_signal(&id, SIGUSR1, 0, ERR));
	assert_int_equal(child_ask(c), 'y');
}

static void with_pidfs_the_evidence_is_not_weak(void **state)
{
	struct child *c = child_start(child_answers, NULL);
	struct hf_proc_id id = identity_of(c->pid);

	(void)state;
	need_pidfs(&id);
	assert_int_equal(judge(&id, 0), HF_ALIVE);
	assert_null(strstr(evidence, "weak"));
	/* The inode is enough: a start time that cannot be right changes nothing. */
	id.start_ticks = 0;
	assert_int_equal(judge(&id, 0), HF_ALIVE);
}

/* As /proc mounted with hidepid=2 looks to a user that may not trace that process. */
static char hidden_path[32];

static int polls_to_fail;

static int openat_hidden(int dirfd, const char *path, int flags, mode_t mode)
{
	if (strncmp(path, hidden_path, strlen(hidden_path)) == 0) {
		errno = ENOENT;
		return -1;
	}
	return openat(dirfd, path, flags, mode);
}

static int poll_fails(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	if (polls_to_fail-- <= 0)
		return poll(fds, n, timeout_ms);
	errno = ENOMEM;
	return -1;
}

/* As if another thread had closed the descriptor. */
static int poll_finds_no_file(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	(void)n;
	(void)timeout_ms;
	fds->revents = POLLNVAL;
	return 1;
}

static void hide_from_proc(pid_t pid)
{
	snprintf(hidden_path, sizeof(hidden_path), "/proc/%d/", (int)pid);
	hf_sys.openat = openat_hidden;
}

static void living_process_hidden_by_proc_is_never_dead_L4(void **state)
{
	struct child *c = child_start(child_answers, NULL);
	int answers[N_KERNELS], sent[N_KERNELS], identified[N_KERNELS];
	struct hf_proc_id id, found;

	(void)state;
	for (int k = 0; k < N_KERNELS; k++) {
		kernel_pretend(k);
		id = identity_of(c->pid);
		hide_from_proc(c->pid);
		answers[k] = judge(&id, 0);
		sent[k] = hf_proc_signal(&id, SIGUSR1, 0, ERR);
		identified[k] = hf_proc_identify(c->pid, &found, ERR);
		kernel_restore();
	}
	assert_int_equal(child_ask(c), 'n');
	for (int k = 0; k < N_KERNELS; k++) {
		if (answers[k] == HF_DEAD || sent[k] == HF_E_GONE || identified[k] == HF_E_GONE)
			fail_msg("kernel %s: a hidden living process is called dead "
				 "(liveness %d, signal %d, identify %d)",
				 kernel_names[k], answers[k], sent[k], identified[k]);
	}
}

static void failing_poll_is_no_proof_of_death_L4(void **state)
{
	struct child *c = child_start(child_answers, NULL);
	struct hf_proc_id id;

	(void)state;
	kernel_pretend(KERNEL_NO_PIDFS);
	id = identity_of(c->pid);
	hide_from_proc(c->pid);
	hf_sys.poll = poll_fails;
	for (int n = 1; n <= 3; n++) {
		polls_to_fail = n;
		assert_int_equal(hf_proc_liveness(&id, 0, NULL), HF_UNKNOWN);
	}
	kernel_restore();
	id = identity_of(c->pid);
	hf_sys.poll = poll_finds_no_file;
	assert_int_equal(hf_proc_liveness(&id, 0, NULL), HF_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PROC_TEST(running_process_is_alive_L4),
		PROC_TEST(stopped_process_is_alive_L4),
		PROC_TEST(zombie_is_dead_before_and_after_reaping_L4),
		PROC_TEST(process_whose_main_thread_ended_is_alive_L4),
		PROC_TEST(other_boot_is_dead_on_local_and_unknown_on_shared_storage_L4),
		PROC_TEST(other_pid_namespace_is_unknown_L4),
		PROC_TEST(malformed_identity_is_unknown_L4),
		PROC_TEST(without_pidfs_the_start_time_decides_and_says_weak_L4),
		PROC_TEST(with_pidfs_the_evidence_is_not_weak),
		PROC_TEST(living_process_hidden_by_proc_is_never_dead_L4),
		PROC_TEST(failing_poll_is_no_proof_of_death_L4),
	};

	proc_test_begin();
	return hf_run_tests("liveness", tests);
}
