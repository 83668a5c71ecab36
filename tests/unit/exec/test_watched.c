/* unit/exec/test_watched.c - a command below a watcher: how it ended, and in which order all of it ends when its caller is killed. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper/test.h"
#include "hf/base/cleanup.h"
#include "hf/exec/command.h"
#include "hf/exec/watched.h"
#include "holdfast/clock.h"

extern char **environ;

static struct hf_cgroup none = HF_CGROUP_INIT;

static int start(const char *script, const struct hf_command_signals *signals, struct hf_watched_command *ret)
{
	const char *argv[] = { "sh", "-c", script, NULL };
	struct hf_spawn spawn = { .argv = (char *const *)(uintptr_t)argv,
				  .envp = environ,
				  .stdio = { -1, -1, -1 },
				  .mask = &signals->mask,
				  .cgroup = &none };

	return hf_watched_start(&spawn, ret);
}

static void hear_to_the_end(struct hf_watched_command *watched)
{
	struct pollfd news = { .fd = watched->news, .events = POLLIN };

	while (hf_watched_hear(watched) && !watched->tree.leader_exited)
		(void)poll(&news, 1, -1);
}

static void status_of_the_command_is_told(void **state)
{
	struct { const char *script; int code, status; } cases[] = { { "exit 7", CLD_EXITED, 7 }, { "kill -9 $$", CLD_KILLED, 9 } };

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(hf_command_signals_done) struct hf_command_signals signals = { .fd = -1 };
		AUTO(hf_watched_done) struct hf_watched_command watched = HF_WATCHED_INIT;

		ASSERT_OK(hf_command_signals_take(&signals));
		ASSERT_OK(start(cases[i].script, &signals, &watched));
		hear_to_the_end(&watched);
		assert_true(watched.is_told);
		assert_int_equal(watched.tree.leader_code, cases[i].code);
		assert_int_equal(watched.tree.leader_status, cases[i].status);
		hf_watched_leave(&watched);
		while (hf_tree_reap(&watched.tree))
			(void)poll(&(struct pollfd){ .fd = signals.fd, .events = POLLIN }, 1, 10);
	}
}

#define OTHERS 24

/* Some that lost their parents, some in sessions of their own, some that stay children of the command; all ignore TERM. */
static const char *const crowd =
	"trap '' TERM\n"
	"one() { sh -c 'echo $$ >&7; exec sleep 1000'; }\n"
	"i=0; while [ $i -lt 8 ]; do one & (one & ); setsid sh -c 'echo $$ >&7; exec sleep 1000' & i=$((i + 1)); done; wait";

/* The caller: tells the command's pid and the watcher's, then sleeps until it is killed. */
static _Noreturn void caller_main(int out, int out_of_others)
{
	struct hf_command_signals signals = { .fd = -1 };
	struct hf_watched_command watched = HF_WATCHED_INIT;

	if (dup2(out_of_others, 7) < 0 || hf_command_signals_take(&signals) < 0 || start(crowd, &signals, &watched) < 0)
		_exit(1);
	(void)dprintf(out, "%d\n%d\n", (int)watched.pid, (int)watched.tree.reaper);
	for (;;)
		pause();
}

static int open_process(FILE *from)
{
	char line[32];
	int fd;

	assert_non_null(fgets(line, sizeof(line), from));
	fd = (int)syscall(SYS_pidfd_open, (pid_t)strtol(line, NULL, 10), 0);
	assert_true(fd >= 0);
	return fd;
}

static int has_ended(int pidfd, int wait_ms)
{
	return poll(&(struct pollfd){ .fd = pidfd, .events = POLLIN }, 1, wait_ms) == 1;
}

static void killed_caller_leaves_nothing_and_the_command_ends_last_L7(void **state)
{
	int ends[2], ends_of_others[2], command, watcher, others[OTHERS];
	FILE *from, *from_others;
	pid_t caller;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(pipe2(ends_of_others, O_CLOEXEC), 0);
	caller = fork();
	if (caller == 0)
		caller_main(ends[1], ends_of_others[1]);
	close(ends[1]);
	close(ends_of_others[1]);
	from = fdopen(ends[0], "re");
	from_others = fdopen(ends_of_others[0], "re");
	command = open_process(from);
	watcher = open_process(from);
	for (size_t i = 0; i < OTHERS; i++)
		others[i] = open_process(from_others);
	assert_int_equal(kill(caller, SIGKILL), 0);
	assert_true(has_ended(command, (int)(HF_TEST_PATIENCE_NS / HF_MSEC)));
	for (size_t i = 0; i < OTHERS; i++) {
		assert_true(has_ended(others[i], 0));
		close(others[i]);
	}
	assert_true(has_ended(watcher, (int)(HF_TEST_PATIENCE_NS / HF_MSEC)));
	/* The watcher, too, if this process is a subreaper. */
	while (waitpid(-1, NULL, 0) > 0)
		continue;
	fclose(from);
	fclose(from_others);
	close(command);
	close(watcher);
}

static void killed_watcher_leaves_nothing_either(void **state)
{
	AUTO(hf_command_signals_done) struct hf_command_signals signals = { .fd = -1 };
	AUTO(hf_watched_done) struct hf_watched_command watched = HF_WATCHED_INIT;
	int ends[2], others[OTHERS];
	FILE *from;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(dup2(ends[1], 7), 7);
	close(ends[1]);
	ASSERT_OK(hf_command_signals_take(&signals));
	ASSERT_OK(start(crowd, &signals, &watched));
	close(7);
	from = fdopen(ends[0], "re");
	for (size_t i = 0; i < OTHERS; i++)
		others[i] = open_process(from);
	assert_int_equal(kill(watched.tree.reaper, SIGKILL), 0);
	hear_to_the_end(&watched);
	assert_false(watched.is_told);
	assert_int_equal(watched.tree.leader_code, CLD_KILLED);
	for (size_t i = 0; i < OTHERS; i++) {
		assert_true(has_ended(others[i], 0));
		close(others[i]);
	}
	fclose(from);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HF_TEST(status_of_the_command_is_told),
		HF_TEST(killed_caller_leaves_nothing_and_the_command_ends_last_L7),
		HF_TEST(killed_watcher_leaves_nothing_either),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
