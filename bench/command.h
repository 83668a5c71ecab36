/* bench/command.h - how long a command takes from its start to its exit. Header only: each program is one file. */
#ifndef BENCH_COMMAND_H
#define BENCH_COMMAND_H

#include <errno.h>
#include <spawn.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define ARGV(...) ((const char *const[]){ __VA_ARGS__, NULL })

extern char **environ;

/* What the commands of a comparison get on their standard input; NULL: ours. */
static const char *bench_input;

/* Where they are run; NULL: here. */
static const char *bench_place;

/* Microseconds from start to exit, or -1 when it cannot be started. */
static inline double bench_spawn(const char *const argv[])
{
	posix_spawn_file_actions_t actions;
	double start = bench_now_us();
	siginfo_t info;
	pid_t pid;
	int r;

	posix_spawn_file_actions_init(&actions);
	if (bench_place)
		posix_spawn_file_actions_addchdir_np(&actions, bench_place);
	if (bench_input)
		posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, bench_input, 0, 0);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", 1, 0);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", 1, 0);
	r = posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (r != 0)
		return -1;
	while (waitid(P_PID, (id_t)pid, &info, WEXITED) < 0 && errno == EINTR)
		continue;
	return info.si_code == CLD_EXITED && info.si_status == 0 ? bench_now_us() - start : -1;
}

#endif
