/*
 * bench/journal.c - what an append costs beside the bare system calls.
 *
 *     bench-journal [--json FILE] [--rounds N] [--dir DIR]
 *
 * In one process, on one file system, in alternating rounds (so that a change of
 * the machine's mood meets all of them): the median of each, and its ratio to
 * the bare write of a line of the same length.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "holdfast/journal.h"

#define ROUNDS_MOST   101
#define PLAIN_APPENDS 20000
#define SYNC_APPENDS  50
#define LINE_MOST     1024

static const char text40[] = "0123456789012345678901234567890123456789";

static char base[256];
static struct hf_state *state;
static struct hf_journal *journal;
static char line[LINE_MOST];
static size_t line_len;
static int file = -1, locked_file = -1;

static void give_up(const char *what)
{
	perror(what);
	exit(1);
}

/* -- what is measured --------------------------------------------------------- */

static void append(unsigned flags)
{
	struct hf_field fields[] = { HF_FIELD_TEXT("text", text40) };

	if (hf_journal_append(journal, HF_EV_NOTE, "bench", fields, 1, flags, NULL) != 0)
		give_up("append");
}

static void do_append(void)
{
	append(0);
}

static void do_durable_append(void)
{
	append(HF_JOURNAL_DURABLE);
}

static void do_write(void)
{
	if (write(file, line, line_len) != (ssize_t)line_len)
		give_up("write");
}

static void do_locked_write(void)
{
	if (flock(locked_file, LOCK_EX) < 0 ||
	    write(locked_file, line, line_len) != (ssize_t)line_len ||
	    flock(locked_file, LOCK_UN) < 0)
		give_up("flock and write");
}

static void do_synced_write(void)
{
	do_write();
	if (fdatasync(file) < 0)
		give_up("fdatasync");
}

static struct measure {
	const char *name, *key;
	void (*once)(void);
	int times;
	int base; /* index of what its ratio is to */
	double per_second[ROUNDS_MOST];
	double median;
} measures[] = {
	{ .name = "write(2), O_APPEND", .key = "write", do_write, PLAIN_APPENDS, 0 },
	{ .name = "flock, write, unlock", .key = "flock_write", do_locked_write, PLAIN_APPENDS, 0 },
	{ .name = "hf_journal_append", .key = "append", do_append, PLAIN_APPENDS, 0 },
	{ .name = "write, fdatasync", .key = "write_fdatasync", do_synced_write, SYNC_APPENDS, 3 },
	{ .name = "hf_journal_append, durable", .key = "append_durable", do_durable_append, SYNC_APPENDS, 3 },
};
#define MEASURES (sizeof(measures) / sizeof(measures[0]))

/* -- measuring ------------------------------------------------------------------ */

static double run(const struct measure *m)
{
	int64_t start = hf_mono_now().ns, took;

	for (int i = 0; i < m->times; i++)
		m->once();
	took = hf_mono_now().ns - start;
	return (double)m->times * (double)HF_SEC / (double)(took > 0 ? took : 1);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void measure_all(int rounds)
{
	for (int i = 0; i < rounds; i++)
		for (size_t k = 0; k < MEASURES; k++)
			measures[k].per_second[i] = run(&measures[k]);
	for (size_t k = 0; k < MEASURES; k++) {
		qsort(measures[k].per_second, (size_t)rounds, sizeof(double), by_value);
		measures[k].median = measures[k].per_second[rounds / 2];
	}
}

/* -- files ------------------------------------------------------------------------ */

static int open_file(const char *leaf)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", base, leaf);
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0)
		give_up(path);
	return fd;
}

/* The bare writes write what the journal writes: one of its own lines. */
static void take_line(void)
{
	struct hf_journal_reader *reader;
	struct hf_record record;

	append(0);
	if (hf_journal_read(state, &reader, NULL) < 0 ||
	    hf_journal_next(reader, &record, NULL) != 1 || record.line_len + 1 > sizeof(line))
		give_up("read");
	/* Numbers grow while it runs; six digits are the middle of it. */
	memcpy(line, record.line, record.line_len);
	memcpy(line + record.line_len, "00000\n", 6);
	line_len = record.line_len + 6;
	hf_journal_reader_free(reader);
}

static void set_up(const char *dir)
{
	struct hf_journal_opts opts = { .size = sizeof(opts) };
	char path[512];

	snprintf(base, sizeof(base), "%.200s/hf-bench-XXXXXX", dir);
	if (!mkdtemp(base))
		give_up(base);
	snprintf(path, sizeof(path), "%s/state", base);
	if (hf_state_open(path, 0, &state, NULL) < 0 ||
	    hf_journal_open(state, &opts, &journal, NULL) < 0)
		give_up(path);
	file = open_file("bare");
	locked_file = open_file("locked");
	take_line();
}

static void tear_down(void)
{
	pid_t pid;

	hf_journal_free(journal);
	hf_state_free(state);
	close(file);
	close(locked_file);
	pid = fork();
	if (pid == 0) {
		execlp("rm", "rm", "-rf", "--", base, (char *)NULL);
		_exit(127);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

/* -- output ------------------------------------------------------------------------- */

static void print_table(int rounds)
{
	printf("one process, lines of %zu bytes, median of %d rounds\n\n", line_len, rounds);
	printf("%-28s %12s %10s %8s   %s\n", "", "per second", "us each", "ratio", "to");
	for (size_t k = 0; k < MEASURES; k++) {
		const struct measure *m = &measures[k], *to = &measures[m->base];

		printf("%-28s %12.0f %10.2f %7.2fx   %s\n", m->name, m->median, 1e6 / m->median,
		       to->median / m->median, m == to ? "(itself)" : to->name);
	}
}

static void write_json(const char *path, int rounds)
{
	FILE *out = fopen(path, "we");

	if (!out)
		give_up(path);
	fprintf(out, "{\"v\":1,\"bench\":\"journal\",\"rounds\":%d,\"line_bytes\":%zu,\"results\":[",
		rounds, line_len);
	for (size_t k = 0; k < MEASURES; k++)
		fprintf(out, "%s\n{\"name\":\"%s\",\"per_second\":%.0f,\"ratio\":%.3f,\"to\":\"%s\"}",
			k ? "," : "", measures[k].key, measures[k].median,
			measures[measures[k].base].median / measures[k].median,
			measures[measures[k].base].key);
	fprintf(out, "\n]}\n");
	if (fclose(out) != 0)
		give_up(path);
}

static void usage(const char *self)
{
	fprintf(stderr, "usage: %s [--json FILE] [--rounds N] [--dir DIR]\n", self);
	exit(2);
}

int main(int argc, char **argv)
{
	const char *dir = getenv("TMPDIR"), *json = NULL;
	int rounds = 11;

	for (int i = 1; i < argc; i += 2) {
		if (i + 1 >= argc)
			usage(argv[0]);
		if (strcmp(argv[i], "--json") == 0)
			json = argv[i + 1];
		else if (strcmp(argv[i], "--rounds") == 0)
			rounds = atoi(argv[i + 1]);
		else if (strcmp(argv[i], "--dir") == 0)
			dir = argv[i + 1];
		else
			usage(argv[0]);
	}
	if (rounds < 1 || rounds > ROUNDS_MOST)
		usage(argv[0]);
	set_up(dir ? dir : "/tmp");
	measure_all(rounds);
	print_table(rounds);
	if (json)
		write_json(json, rounds);
	tear_down();
	return 0;
}
