/*
 * stress/lock/main.c - many processes over several locks, killed and stopped at random; TAP.
 *
 *     stress-lock [--seed N] [--seconds N] [--processes N] [--only WORD]
 *
 * Every acquisition is written into a log in shared memory, and every guarded action
 * checks, while it has the guard, that no action of a later holder was before it. What
 * cannot be lost (no lease, nobody breaks it) is also checked for plain exclusion: a process
 * that is inside says so in a table. The seed decides what the processes do and which of them the
 * parent strikes, as far as the scheduler lets it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "stress/lock/stress.h"

static void calm(void)
{
	mayhem("calm", WITH_FORKS);
}

static void killed(void)
{
	mayhem("killed", WITH_KILLS | WITH_FORKS | WITH_BREAKS);
}

static void stopped(void)
{
	mayhem("stopped", WITH_KILLS | WITH_STOPS | WITH_BREAKS);
}

static void deleted(void)
{
	mayhem("deleted", WITH_DELETIONS | WITH_BREAKS);
}

static void told_by_nobody(void)
{
	killed_before_telling("own", BY_ITS_HOLDER,
			      "telling: the holder dies while it releases: the next gets it");
	killed_before_telling("token", BY_TOKEN,
			      "telling: a process that releases by token dies meanwhile: the next gets it");
	killed_before_telling("break", BY_BREAK,
			      "telling: a process that breaks it dies meanwhile: the next gets it");
}

static const struct part {
	const char *word;
	void (*run)(void);
	int tests;
} parts[] = {
	{ "calm", calm, TESTS_OF_MAYHEM },       { "killed", killed, TESTS_OF_MAYHEM },
	{ "stopped", stopped, TESTS_OF_MAYHEM }, { "deleted", deleted, TESTS_OF_MAYHEM },
	{ "queue", twenty_in_a_queue, 3 },       { "sweep", fifty_at_once, 1 },
	{ "line", stopped_in_the_queue, 3 },     { "telling", told_by_nobody, 3 },
	{ "taken", deleted_under_waiters, 2 },   { "told", killed_while_told, 2 },
	{ "late", stopped_as_holder, 2 },        { "places", stopped_for_good, 2 },
};

#define N_PARTS (sizeof(parts) / sizeof(parts[0]))

static void usage(const char *self)
{
	fprintf(stderr, "usage: %s [--seed N] [--seconds N] [--processes N] [--only WORD]\n", self);
	exit(2);
}

static void read_options(int argc, char **argv)
{
	the_seed = (uint64_t)hf_wall_now().ns;
	for (int i = 1; i < argc; i += 2) {
		if (i + 1 >= argc)
			usage(argv[0]);
		if (strcmp(argv[i], "--seed") == 0)
			the_seed = strtoull(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--seconds") == 0)
			seconds = strtoll(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--processes") == 0)
			processes = (int)strtol(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--only") == 0)
			only = argv[i + 1];
		else
			usage(argv[0]);
	}
	if (seconds < 1 || seconds > 3600 || processes < 2 || processes > PROCESSES_MAX)
		usage(argv[0]);
}

int main(int argc, char **argv)
{
	const char *dir = getenv("TMPDIR");
	int planned = 0;

	read_options(argc, argv);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		give_up("mmap");
	for (size_t i = 0; i < N_PARTS; i++)
		planned += strstr(parts[i].word, only) ? parts[i].tests : 0;
	printf("# seed %llu, %d processes, %lld s for each part\n", (unsigned long long)the_seed,
	       processes, (long long)seconds);
	printf("1..%d\n", planned);
	snprintf(base, sizeof(base), "%s/hf-stress-XXXXXX", dir && strlen(dir) < 90 ? dir : "/tmp");
	if (!mkdtemp(base))
		give_up(base);
	for (size_t i = 0; i < N_PARTS; i++)
		if (strstr(parts[i].word, only))
			parts[i].run();
	remove_all();
	return failures > 0;
}
