/* unit/run/test_hunt.c - two sessions with the same limit mark: no process is killed for the wrong one (L6). */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper/test.h"
#include "hf/exec/marks.h"
#include "hf/proc/here.h"
#include "hf/run/session/record/store.h"
#include "hf/run/supervisor/remains/hunt.h"

struct run {
	struct hf_lock *lock;
	struct hf_session_record record;
};

/* The identity of a process that has ended. */
static struct hf_proc_id dead(void)
{
	struct hf_proc_id id;
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		char byte;

		(void)close(ends[1]);
		(void)!read(ends[0], &byte, 1);
		_exit(0);
	}
	ASSERT_OK(hf_proc_identify((int32_t)pid, &id, ERR));
	(void)close(ends[0]);
	(void)close(ends[1]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return id;
}

/* A session that was killed with its keepers, on record as running with that mark. */
static void record_run(struct hf_sessions *sessions, const char *name, uint64_t mark, struct run *ret)
{
	struct hf_lock_opts opts = { .size = sizeof(opts) };

	memset(ret, 0, sizeof(*ret));
	ASSERT_OK(hf_lock_acquire(sessions->locks, name, &opts, &ret->lock, NULL, ERR));
	(void)snprintf(ret->record.name, sizeof(ret->record.name), "%s", name);
	ret->record.token = hf_lock_token(ret->lock);
	ret->record.phase = HF_PHASE_RUNNING;
	ret->record.attempt = 1;
	ret->record.supervisor = ret->record.keeper = dead();
	ret->record.started = hf_wall_now();
	ret->record.mark = mark;
	ASSERT_OK(hf_session_save(sessions, &ret->record, ret->record.token, ERR));
}

static void end_run(struct run *run)
{
	ASSERT_OK(hf_lock_release(run->lock, ERR));
	hf_lock_free(run->lock);
}

/* A process with that mark; `env` (may be NULL): its only variable. Returns when it is there. */
static pid_t start_marked(uint64_t mark, char *env)
{
	char *argv[] = { (char[]){ "sleep" }, (char[]){ "60" }, NULL }, *envp[] = { env, NULL };
	char byte;
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		if (hf_limit_mark_set(mark) == 0)
			(void)execvpe(argv[0], argv, envp);
		(void)!write(ends[1], "x", 1);
		_exit(1);
	}
	(void)close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 0); /* closed by exec */
	(void)close(ends[0]);
	return pid;
}

static int lives(pid_t pid)
{
	return waitpid(pid, NULL, WNOHANG) == 0;
}

static void a_mark_that_two_sessions_share_kills_nothing_and_nothing_is_started_beside_it_L6_L7(void **state)
{
	char env[HF_MARK_MAX + 64] = HF_MARK_VARIABLE "=";
	struct hf_sessions *sessions = NULL;
	char prefix[HF_MARK_MAX];
	struct run a, b;
	uint64_t mark;
	pid_t pid;
	int r;

	(void)state;
	ASSERT_OK(hf_sessions_open(hf_test_state(), NULL, &sessions, ERR));
	mark = hf_limit_mark_make(hf_limit_own(),
				  hf_limit_mark_name(sessions->dir_device, sessions->dir_inode, "a"), 4711);
	assert_true(mark != 0);
	record_run(sessions, "a", mark, &a);
	record_run(sessions, "b", mark, &b);

	/* Whose it is cannot be told: it is left alone, and that is said, for the one and for the other. */
	pid = start_marked(mark, NULL);
	ASSERT_ERR(hf_remains_end(sessions, "a", &a.record, 0, ERR), HF_E_REMAINS);
	assert_non_null(strstr(ERR->detail, "same mark"));
	ASSERT_ERR(hf_remains_end(sessions, "b", &b.record, 0, ERR), HF_E_REMAINS);
	assert_true(lives(pid));

	/* Its environment can: it is killed for that one alone. */
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	(void)hf_mark_prefix(sessions->dir_inode, "a", prefix);
	(void)snprintf(env + strlen(env), sizeof(env) - strlen(env), "%s%llu", prefix,
		       (unsigned long long)a.record.token);
	pid = start_marked(mark, env);
	ASSERT_ERR(hf_remains_end(sessions, "b", &b.record, 0, ERR), HF_E_REMAINS);
	assert_true(lives(pid));
	r = hf_remains_end(sessions, "a", &a.record, 0, ERR);
	assert_int_equal(r, 1);
	assert_int_equal(waitpid(pid, NULL, 0), pid);

	/* With the other session's record gone the mark is proof again. */
	pid = start_marked(mark, NULL);
	b.record.mark = 0;
	ASSERT_OK(hf_session_save(sessions, &b.record, b.record.token, ERR));
	r = hf_remains_end(sessions, "a", &a.record, 0, ERR);
	assert_int_equal(r, 1);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	end_run(&a);
	end_run(&b);
	hf_sessions_free(sessions);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HF_TEST(a_mark_that_two_sessions_share_kills_nothing_and_nothing_is_started_beside_it_L6_L7),
	};

	return hf_run_tests("hunt", tests);
}
