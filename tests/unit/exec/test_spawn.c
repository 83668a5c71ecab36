/* unit/exec/test_spawn.c - a command that is made, held back and let go: as a copy of us, and sharing our memory until its exec. */
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper/faults.h"
#include "helper/test.h"
#include "hf/exec/spawn.h"

extern char **environ;

static struct hf_cgroup none;
static sigset_t mask;

static struct hf_spawn command(const char *const *argv, const char *const *envp, int shares_memory)
{
	none = (struct hf_cgroup)HF_CGROUP_INIT;
	(void)sigprocmask(SIG_SETMASK, NULL, &mask);
	return (struct hf_spawn){ .argv = (char *const *)(uintptr_t)argv,
				  .envp = (char *const *)(uintptr_t)envp,
				  .stdio = { -1, -1, -1 },
				  .mask = &mask,
				  .cgroup = &none,
				  .shares_memory = shares_memory };
}

static int status_of(const struct hf_child *child)
{
	siginfo_t info = { 0 };

	assert_int_equal(waitid(P_PIDFD, (id_t)child->pidfd, &info, WEXITED), 0);
	return info.si_code == CLD_EXITED ? info.si_status : -info.si_status;
}

/* Lets it go; its status, or what exec said. */
static int run(const struct hf_spawn *spawn)
{
	struct hf_child child = HF_CHILD_INIT;
	char **before = environ;
	int r, status;

	ASSERT_OK(hf_spawn(spawn, &child));
	ASSERT_OK(hf_spawn_go(&child));
	r = hf_spawn_result(&child);
	status = status_of(&child);
	hf_child_done(&child);
	assert_ptr_equal(environ, before);
	return r < 0 ? r : status;
}

/* Is its memory ours? -1: the kernel does not say. */
static int is_shared(pid_t pid)
{
	long r = syscall(SYS_kcmp, getpid(), pid, KCMP_VM, 0UL, 0UL);

	return r < 0 ? -1 : r == 0;
}

static void each_way(void (*test)(int shares_memory))
{
	test(0);
	test(1);
	/* A kernel, a sandbox or a processor on which that does not work. */
	hf_fault_arm(&(struct hf_fault){ .call = "clone_sharing", .at = 1, .error = ENOSYS, .persist = 1 });
	test(1);
	assert_true(hf_fault_hit());
	hf_fault_disarm();
}

static void status_words(int shares_memory)
{
	const char *const envp[] = { "PATH=/nowhere:/bin:/usr/bin", "STATUS=7", NULL };
	const char *const good[] = { "sh", "-c", "exit $STATUS", NULL }, *const missing[] = { "no-such-command", NULL };
	struct hf_spawn spawn = command(good, envp, shares_memory);

	assert_int_equal(run(&spawn), 7);
	spawn = command(missing, envp, shares_memory);
	assert_int_equal(run(&spawn), -ENOENT);
}

static void it_gets_its_own_environment_and_ours_stays(void **state)
{
	(void)state;
	each_way(status_words);
}

static void hold_back(int shares_memory)
{
	const char *const envp[] = { NULL }, *const argv[] = { "/bin/true", NULL };
	struct hf_spawn spawn = command(argv, envp, shares_memory);
	struct hf_child child = HF_CHILD_INIT;

	ASSERT_OK(hf_spawn(&spawn, &child));
	hf_child_done(&(struct hf_child){ 0, -1, child.go, -1, NULL });
	child.go = -1;
	assert_int_not_equal(status_of(&child), 0);
	hf_child_done(&child);
}

static void one_that_is_not_let_go_ends_and_runs_nothing(void **state)
{
	(void)state;
	each_way(hold_back);
}

static void memory_is_shared_only_where_it_is_safe(void **state)
{
	const char *const envp[] = { NULL };
	const char *words[2000], **few = words + 1990;
	struct hf_spawn spawn;
	struct hf_child child = HF_CHILD_INIT;

	(void)state;
	for (size_t i = 0; i < 1999; i++)
		words[i] = "/bin/true";
	words[1999] = NULL;
	spawn = command(few, envp, 1);
	ASSERT_OK(hf_spawn(&spawn, &child));
#ifndef HF_LIBC_CALLS
	assert_int_not_equal(is_shared(child.pid), 0);
#endif
	ASSERT_OK(hf_spawn_go(&child));
	ASSERT_OK(hf_spawn_result(&child));
	assert_int_equal(status_of(&child), 0);
	hf_child_done(&child);
	/* The C library would put as many pointers on its stack. */
	spawn = command(words, envp, 1);
	ASSERT_OK(hf_spawn(&spawn, &child));
	assert_int_not_equal(is_shared(child.pid), 1);
	ASSERT_OK(hf_spawn_go(&child));
	ASSERT_OK(hf_spawn_result(&child));
	assert_int_equal(status_of(&child), 0);
	hf_child_done(&child);
}

static void script_words(int shares_memory)
{
	static char path[512];
	const char *words[1024];
	const char *const envp[] = { "PATH=/bin:/usr/bin", NULL };
	struct hf_spawn spawn;

	snprintf(path, sizeof(path), "%s", hf_test_path("script"));
	for (size_t i = 0; i < 1023; i++)
		words[i] = path;
	words[1023] = NULL;
	spawn = command(words, envp, shares_memory);
	/* All words but the first are its own: 1022, of which a status has what is left after 256. */
	assert_int_equal(run(&spawn), 1022 % 256);
}

static void script_without_its_first_line_gets_all_its_words(void **state)
{
	int fd = open(hf_test_path("script"), O_WRONLY | O_CREAT | O_CLOEXEC, 0700);

	(void)state;
	assert_int_equal(write(fd, "exit $(($# % 256))\n", 19), 19);
	close(fd);
	each_way(script_words);
}

static volatile sig_atomic_t handled;

static void note_signal(int sig)
{
	(void)sig;
	handled++;
}

static void signal_before_exec(int shares_memory)
{
	const struct sigaction handler = { .sa_handler = note_signal }, usual = { .sa_handler = SIG_DFL };
	const char *const envp[] = { NULL }, *const argv[] = { "/bin/true", NULL };
	struct hf_spawn spawn = command(argv, envp, shares_memory);
	struct hf_child child = HF_CHILD_INIT;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	assert_int_equal(sigaction(SIGUSR1, &handler, NULL), 0);
	assert_int_equal(sigprocmask(SIG_BLOCK, &set, NULL), 0);
	ASSERT_OK(hf_spawn(&spawn, &child));
	ASSERT_OK(hf_child_signal(&child, SIGUSR1));
	ASSERT_OK(hf_spawn_go(&child));
	ASSERT_OK(hf_spawn_result(&child));
	assert_int_equal(status_of(&child), -SIGUSR1);
	assert_int_equal(handled, 0);
	hf_child_done(&child);
	assert_int_equal(sigprocmask(SIG_UNBLOCK, &set, NULL), 0);
	assert_int_equal(sigaction(SIGUSR1, &usual, NULL), 0);
}

static void signal_before_its_exec_ends_it_and_runs_no_handler_of_ours(void **state)
{
	(void)state;
	each_way(signal_before_exec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HF_TEST(it_gets_its_own_environment_and_ours_stays),
		HF_TEST(one_that_is_not_let_go_ends_and_runs_nothing),
		HF_TEST(memory_is_shared_only_where_it_is_safe),
		HF_TEST(script_without_its_first_line_gets_all_its_words),
		HF_TEST(signal_before_its_exec_ends_it_and_runs_no_handler_of_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
