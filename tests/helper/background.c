/*
 * helper/background.c - background NAME MIB -- CMD...: a caller as a library user may be one, that starts a session.
 *
 * It has MIB of memory, threads that allocate, a descriptor without CLOEXEC (the write end of a pipe whose end it then
 * waits for), a blocked SIGUSR1, a umask of 027. Whenever it forks, another thread has the lock of the allocator at
 * that moment: the child of a fork that allocates hangs. Prints the supervisor's pid, then "end" when the pipe
 * has no writer any more.
 */
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "holdfast/run.h"

/* -- an allocator with a lock that knows nothing of fork ------------------------------ */

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__GLIBC__)
static pthread_mutex_t allocator = PTHREAD_MUTEX_INITIALIZER;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void __libc_free(void *block);

void *malloc(size_t size)
{
	void *block;

	(void)pthread_mutex_lock(&allocator);
	block = __libc_malloc(size);
	(void)pthread_mutex_unlock(&allocator);
	return block;
}

void *calloc(size_t n, size_t size)
{
	void *block;

	(void)pthread_mutex_lock(&allocator);
	block = __libc_calloc(n, size);
	(void)pthread_mutex_unlock(&allocator);
	return block;
}

void *realloc(void *old, size_t size)
{
	void *block;

	(void)pthread_mutex_lock(&allocator);
	block = __libc_realloc(old, size);
	(void)pthread_mutex_unlock(&allocator);
	return block;
}

void free(void *block)
{
	(void)pthread_mutex_lock(&allocator);
	__libc_free(block);
	(void)pthread_mutex_unlock(&allocator);
}

static sem_t take, taken, give, given;

static void *hold_during_forks(void *arg)
{
	for (;;) {
		(void)sem_wait(&take);
		(void)pthread_mutex_lock(&allocator);
		(void)sem_post(&taken);
		(void)sem_wait(&give);
		(void)pthread_mutex_unlock(&allocator);
		(void)sem_post(&given);
	}
	return arg;
}

static void before_fork(void)
{
	(void)sem_post(&take);
	(void)sem_wait(&taken);
}

static void after_fork(void)
{
	(void)sem_post(&give);
	(void)sem_wait(&given);
}

static void hook_forks(void)
{
	pthread_t thread;

	(void)sem_init(&take, 0, 0);
	(void)sem_init(&taken, 0, 0);
	(void)sem_init(&give, 0, 0);
	(void)sem_init(&given, 0, 0);
	if (pthread_create(&thread, NULL, hold_during_forks, NULL) != 0 || pthread_atfork(before_fork, after_fork, NULL) != 0)
		_exit(98);
}
#else
static void hook_forks(void)
{
}
#endif

/* -- the caller ---------------------------------------------------------------------- */

static void *allocate(void *arg)
{
	for (;;) {
		void *volatile block = malloc(1000);

		free(block);
	}
	return arg;
}

static void fill(size_t mib)
{
	char *memory = mmap(NULL, mib << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		_exit(98);
	memset(memory, 1, mib << 20);
}

int main(int argc, char **argv)
{
	struct hf_run_opts o = { .size = sizeof(o) };
	struct hf_run_report report = { 0 };
	struct hf_err err = HF_ERR_INIT;
	struct hf_state *state = NULL;
	char text[HF_ERR_TEXT_MAX], byte;
	sigset_t set;
	int ends[2], r;

	if (argc < 5 || hf_state_open(NULL, 0, &state, &err) < 0 || pipe(ends) < 0)
		return 98;
	o.argv = argv + 4;
	fill((size_t)strtoul(argv[2], NULL, 10));
	(void)umask(027);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
	hook_forks();
	for (int i = 0; i < 3; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, allocate, NULL) != 0)
			return 98;
	}
	r = hf_run_start(state, argv[1], &o, &report, &err);
	if (r < 0) {
		(void)hf_err_format(&err, text, sizeof(text));
		fprintf(stderr, "%s\n", text);
		return hf_err_exit_status(r);
	}
	printf("%d\n", (int)report.supervisor.pid);
	(void)close(ends[1]);
	if (read(ends[0], &byte, 1) == 0)
		puts("end");
	(void)fflush(stdout);
	_exit(0);
}
