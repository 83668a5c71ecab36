/*
 * bench/start.c - how long a short command takes, beside its peer, interleaved, medians.
 *
 *     bench-start [--json FILE] HOLDFAST
 */
#include <errno.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

#define ROUNDS 301

static double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static double run_once(const char *const argv[])
{
	posix_spawn_file_actions_t actions;
	double start = now_us();
	siginfo_t info;
	pid_t pid;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", 1, 0);
	if (posix_spawnp(&pid, argv[0], &actions, NULL,
			 (char *const *)(uintptr_t)argv, environ) != 0) {
		perror(argv[0]);
		exit(1);
	}
	while (waitid(P_PID, (id_t)pid, &info, WEXITED) < 0 && errno == EINTR)
		continue;
	posix_spawn_file_actions_destroy(&actions);
	return now_us() - start;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), by_value);
	return values[n / 2];
}

/* One after the other in turn, so that both see the same machine. */
static void compare(const char *what, const char *const ours[], const char *const peer[], FILE *json,
		    const char *comma)
{
	static double a[ROUNDS], b[ROUNDS];
	double ma, mb;

	for (int i = 0; i < ROUNDS; i++) {
		a[i] = run_once(ours);
		b[i] = run_once(peer);
	}
	ma = median(a, ROUNDS);
	mb = median(b, ROUNDS);
	printf("  %-34s %8.0f us   %-12s %8.0f us   ratio %.2f\n", what, ma, peer[0], mb, ma / mb);
	if (json)
		fprintf(json, "%s{\"what\":\"%s\",\"us\":%.1f,\"peer\":\"%s\",\"peer_us\":%.1f,\"ratio\":%.3f}",
			comma, what, ma, peer[0], mb, ma / mb);
}

int main(int argc, char **argv)
{
	FILE *json = NULL;
	char *holdfast;

	if (argc == 4 && strcmp(argv[1], "--json") == 0) {
		json = fopen(argv[2], "we");
		argv += 2;
		argc -= 2;
	}
	if (argc != 2) {
		fputs("usage: bench-start [--json FILE] HOLDFAST\n", stderr);
		return 2;
	}
	holdfast = argv[1];
	if (json)
		fputs("{\"v\":1,\"results\":[", json);
	compare("holdfast version", (const char *[]){ holdfast, "version", NULL },
		(const char *[]){ "true", NULL }, json, "");
	compare("holdfast journal emit note",
		(const char *[]){ holdfast, "journal", "emit", "note", "text=hello", NULL },
		(const char *[]){ "logger", "--no-act", "hello", NULL }, json, ",");
	if (json) {
		fputs("]}\n", json);
		fclose(json);
	}
	return 0;
}
