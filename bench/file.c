/*
 * bench/file.c - replacing a shared file: the library beside a bare temp + fsync + rename, alone
 * and with several processes at one file.
 *
 *     bench-file [--json FILE]
 *
 * Runs in the current directory, with $HOLDFAST_DIR for the locks. The bare peer writes, syncs,
 * renames and syncs the directory: it has no lock, and keeps neither mode nor owner.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "holdfast/file.h"

#define ROUNDS  401
#define WORKERS 8
#define EACH    100

static struct hf_locks *locks;
static const char target[] = "bench.txt";

static void must(int good, const char *what)
{
	if (!good) {
		fprintf(stderr, "%s failed: %s\n", what, strerror(errno));
		exit(1);
	}
}

static void open_locks(void)
{
	struct hf_state *state;

	must(hf_state_open(NULL, 0, &state, NULL) == 0, "state");
	must(hf_locks_open(state, NULL, &locks, NULL) == 0, "locks");
}

/* Reads a number and writes the next one. */
static int next_number(int fd, char *text, size_t cap)
{
	char old[32] = "";

	must(pread(fd, old, sizeof(old) - 1, 0) >= 0, "pread");
	return snprintf(text, cap, "%ld\n", strtol(old, NULL, 10) + 1);
}

static void edit_ours(void)
{
	struct hf_file_opts opts = { .size = sizeof(opts) };
	struct hf_file *file;
	char text[32];
	int old = -1, new = -1, n;

	must(hf_file_open(locks, target, &opts, &file, NULL) == 0, "open");
	must(hf_file_lock(file, -1, NULL, NULL) == 0, "lock");
	must(hf_file_read(file, &old, NULL) == 0 && hf_file_write(file, &new, NULL) == 0, "read");
	n = next_number(old, text, sizeof(text));
	must(write(new, text, (size_t)n) == n && hf_file_commit(file, NULL) == 1, "commit");
	must(hf_file_close(file, NULL) == 0, "close");
}

static void edit_bare(void)
{
	int old = open(target, O_RDONLY | O_CLOEXEC), dir = open(".", O_RDONLY | O_CLOEXEC);
	int new = open("bench.tmp", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	char text[32];
	int n = next_number(old, text, sizeof(text));

	must(write(new, text, (size_t)n) == n && fsync(new) == 0, "write");
	must(rename("bench.tmp", target) == 0 && fsync(dir) == 0, "rename");
	close(old);
	close(new);
	close(dir);
}

/* The same under flock, which is the least that several processes need. */
static void edit_flocked(void)
{
	int lock = open(".bench.txt.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	must(flock(lock, LOCK_EX) == 0, "flock");
	edit_bare();
	close(lock);
}

static void reset(void)
{
	FILE *out = fopen(target, "we");

	must(out && fputs("0\n", out) >= 0 && fclose(out) == 0, "reset");
}

/* Microseconds for each edit, with several processes at it. */
static double contended(void (*edit)(void), int anew)
{
	double start = bench_now_us();
	long sum;
	char text[32];
	int fd;

	reset();
	for (int i = 0; i < WORKERS; i++) {
		pid_t pid = fork();

		must(pid >= 0, "fork");
		if (pid == 0) {
			if (anew)
				open_locks();
			for (int k = 0; k < EACH; k++)
				edit();
			_exit(0);
		}
	}
	for (int i = 0; i < WORKERS; i++) {
		int status;

		must(wait(&status) > 0 && status == 0, "worker");
	}
	fd = open(target, O_RDONLY | O_CLOEXEC);
	(void)next_number(fd, text, sizeof(text));
	close(fd);
	sum = strtol(text, NULL, 10) - 1;
	must(sum == WORKERS * EACH, "no increment lost");
	return (bench_now_us() - start) / (WORKERS * EACH);
}

int main(int argc, char **argv)
{
	static double ours[ROUNDS], bare[ROUNDS];
	FILE *json = bench_json_open(&argc, &argv);
	double a, b;
	int rows = 0;

	open_locks();
	reset();
	for (int i = 0; i < ROUNDS; i++) {
		double start = bench_now_us();

		edit_ours();
		ours[i] = bench_now_us() - start;
		start = bench_now_us();
		edit_bare();
		bare[i] = bench_now_us() - start;
	}
	a = bench_median(ours, ROUNDS);
	b = bench_median(bare, ROUNDS);
	bench_row(json, &rows, "edit, library, alone", a, "bare temp+fsync+rename", b, 0);
	printf("  %-44s %9.0f /s\n", "edits in a second", 1e6 / a);
	a = contended(edit_ours, 1);
	b = contended(edit_flocked, 0);
	bench_row(json, &rows, "edit, library, 8 processes at one file", a, "the same under flock", b,
		  0);
	printf("  %-44s %9.0f /s\n", "edits in a second", 1e6 / a);
	bench_json_close(json);
	return 0;
}
