/*
 * crash/powercut/commit.c - commits a plan as the library does, with noise, or wrongly.
 *
 *     helper-powercut-commit STATE PLAN NOISE-FILE MUTANT
 *
 * After each call that changes names or modes an unrelated file is synced (NOISE-FILE; "-": none).
 * Without that, ext4 carries many changes in one transaction, and a missing sync is not found.
 *
 * MUTANT: 0 none; 1 the first sync is left out; 2 the first sync is a sync of the intent alone, so
 * that the new versions are not on disk; 3 the old versions go before the second sync, which is also
 * left out. On one file system 3 is not wrong: its journal keeps the order, and what is missing is done again
 * by recovery. On two the intent's end can reach its disk before the target's entries do.
 * The program exits 0 when the commit was acknowledged.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/plan/registry/registry.h"
#include "hf/sys/calls.h"
#include "holdfast/plan.h"

static struct hf_sys real;
static const char *noise_file;
static int mutant, syncs, moving, quiet;
static char intent[512], plan_dir[504];

static void make_noise(void)
{
	static unsigned count;
	char text[16];
	int fd;

	if (quiet || noise_file[0] == '-')
		return;
	fd = open(noise_file, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	snprintf(text, sizeof(text), "%u\n", count++);
	if (fd < 0 || write(fd, text, strlen(text)) < 0 || fsync(fd) < 0)
		exit(3);
	close(fd);
}

static int noisy_renameat2(int from, const char *from_name, int to, const char *to_name, unsigned flags)
{
	int r = real.renameat2(from, from_name, to, to_name, flags);

	/* Records are replaced; entries of a target are exchanged, or must not be there. */
	moving |= flags != 0;
	make_noise();
	return r;
}

static int noisy_unlinkat(int dirfd, const char *name, int flags)
{
	int r = real.unlinkat(dirfd, name, flags);

	make_noise();
	return r;
}

static int noisy_chmod(const char *path, mode_t mode)
{
	int r = real.chmod(path, mode);

	make_noise();
	return r;
}

/* The old versions, which must stay until the second sync (a deleted inode's number is used again). */
static void remove_old(void)
{
	char command[2048];

	snprintf(command, sizeof(command), "rm -rf '%s'/s/*/old '%s'/s/*/u/d0 '%s'/s/*/u/d1", plan_dir, plan_dir,
		 plan_dir);
	if (system(command) != 0)
		exit(4);
}

static int mutant_syncfs(int fd)
{
	int n = ++syncs;

	if (n == 1 && mutant == 1)
		return 0;
	if (n == 1 && mutant == 2) {
		char path[520];
		int file;

		snprintf(path, sizeof(path), "%s", intent);
		file = open(path, O_RDONLY | O_CLOEXEC);
		if (file < 0 || fsync(file) < 0)
			exit(5);
		close(file);
		return 0;
	}
	if (moving && mutant == 3) {
		remove_old();
		return 0;
	}
	return real.syncfs(fd);
}

int main(int argc, char **argv)
{
	struct hf_err err = HF_ERR_INIT;
	struct hf_state *state;
	struct hf_plans *plans;
	char text[HF_ERR_TEXT_MAX];
	int r;

	if (argc != 5)
		return 2;
	noise_file = argv[3];
	mutant = atoi(argv[4]);
	snprintf(plan_dir, sizeof(plan_dir), "%s/plans/%s", argv[1], argv[2]);
	snprintf(intent, sizeof(intent), "%s/intent", plan_dir);
	if (hf_state_open(argv[1], 0, &state, &err) < 0 || hf_plans_open(state, NULL, &plans, &err) < 0)
		return 4;
	real = hf_sys;
	hf_sys.renameat2 = noisy_renameat2;
	hf_sys.unlinkat = noisy_unlinkat;
	hf_sys.chmod = noisy_chmod;
	hf_sys.syncfs = mutant_syncfs;
	r = hf_plan_commit(plans, argv[2], NULL, NULL, &err);
	if (r < 0) {
		hf_err_format(&err, text, sizeof(text));
		fprintf(stderr, "%s\n", text);
		return 1;
	}
	printf("syncs %d\n", syncs);
	hf_plans_free(plans);
	hf_state_free(state);
	return 0;
}
