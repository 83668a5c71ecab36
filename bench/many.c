/*
 * bench/many.c - what thousands of sessions that have ended, and of locks that nobody holds, cost those that run.
 *
 *     bench-many [--json FILE] HOLDFAST          in an empty directory
 *     bench-many --bare DIR                      the peer of `ps`: reads DIR, and the record of each session that runs
 *
 * The records are written by the library, as a keeper does it; only the time of their end lies two days back. Each
 * command is measured in turn beside the same command in a state directory without all that.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "command.h"
#include "hf/run/session/notes/recent.h"
#include "hf/run/session/record/store.h"
#include "hf/sys/calls.h"
#include "holdfast/lock.h"
#include "holdfast/proc.h"
#include "holdfast/run.h"
#include "holdfast/state.h"

#define MANY	5000
#define RUNNING 10
#define ROUNDS	101
#define DAY_NS	(INT64_C(86400) * HF_SEC)

static void check(int r, const struct hf_err *err)
{
	if (r >= 0)
		return;
	fprintf(stderr, "bench-many: %s: %s\n", err->subject, err->detail);
	exit(1);
}

/* Takes the lock, writes the record of a run that has ended, frees the lock. */
static void add_session(struct hf_sessions *sessions, int n, int64_t ago_ns)
{
	struct hf_lock_opts opts = { .size = sizeof(opts) };
	struct hf_session_record record = { .phase = HF_PHASE_ENDED, .attempt = 1, .outcome = HF_OUTCOME_SUCCEEDED,
					    .command = "true", .cause = "exit 0", .ran_ns = HF_SEC };
	struct hf_err err = HF_ERR_INIT;
	struct hf_lock *lock;

	(void)snprintf(record.name, sizeof(record.name), "old-%04d", n);
	check(hf_proc_self(&record.keeper, &err), &err);
	record.supervisor = record.keeper;
	check(hf_lock_acquire(sessions->locks, record.name, &opts, &lock, NULL, &err), &err);
	record.token = hf_lock_token(lock);
	record.started.ns = hf_wall_now().ns - ago_ns - HF_SEC;
	record.ended.ns = record.started.ns + HF_SEC;
	check(hf_recent_add(sessions, record.name), &err);
	check(hf_session_save(sessions, &record, record.token, &err), &err);
	check(hf_session_load(sessions, record.name, &record, &err), &err);
	check(hf_lock_release(lock, &err), &err);
	hf_lock_free(lock);
}

static void add_lock(struct hf_locks *locks, int n)
{
	struct hf_lock_opts opts = { .size = sizeof(opts) };
	struct hf_err err = HF_ERR_INIT;
	struct hf_lock *lock;
	char name[16];

	(void)snprintf(name, sizeof(name), "idle-%04d", n);
	check(hf_lock_acquire(locks, name, &opts, &lock, NULL, &err), &err);
	check(hf_lock_release(lock, &err), &err);
	hf_lock_free(lock);
}

/* Five thousand waits for the disk are not what is measured. */
static int no_sync(int fd)
{
	(void)fd;
	return 0;
}

static void fill(const char *dir)
{
	struct hf_err err = HF_ERR_INIT;
	struct hf_state *state;
	struct hf_sessions *sessions;

	hf_sys.fsync = hf_sys.fdatasync = no_sync;
	check(hf_state_open(dir, 0, &state, &err), &err);
	check(hf_sessions_open(state, NULL, &sessions, &err), &err);
	for (int i = 0; i < MANY; i++) {
		add_session(sessions, i, 2 * DAY_NS);
		add_lock(sessions->locks, i);
	}
	hf_sessions_free(sessions);
	hf_state_free(state);
}

/* What any list of what runs costs at least: all names, and the records of those that run. */
static int bare(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	size_t n = 0, bytes = 0;

	while (dir && (entry = readdir(dir))) {
		char file[NAME_MAX + 32], line[8192];
		int fd;

		n++;
		if (strncmp(entry->d_name, "now-", 4) != 0)
			continue;
		(void)snprintf(file, sizeof(file), "%s/session.jsonl", entry->d_name);
		fd = openat(dirfd(dir), file, O_RDONLY | O_CLOEXEC);
		bytes += (size_t)read(fd, line, sizeof(line));
		(void)close(fd);
	}
	printf("%zu sessions, %zu bytes\n", n, bytes);
	return n > RUNNING ? 0 : 1;
}

static void start_running(const char *hf, const char *dir)
{
	for (int i = 0; i < RUNNING; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "now-%d", i);
		if (bench_spawn(ARGV(hf, "--dir", dir, "run", name, "--detach", "--", "sleep", "600")) < 0) {
			fputs("bench-many: no session can be started\n", stderr);
			exit(1);
		}
	}
}

/* One after the other in turn, so that both see the same machine. */
static void compare(FILE *json, int *rows, const char *what, const char *const ours[], const char *peer_name,
		    const char *const peer[], double bar)
{
	double a[ROUNDS], b[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		a[i] = bench_spawn(ours);
		b[i] = bench_spawn(peer);
		if (a[i] < 0 || b[i] < 0) {
			fprintf(stderr, "%s failed\n", what);
			exit(1);
		}
	}
	bench_row(json, rows, what, bench_median(a, ROUNDS), peer_name, bench_median(b, ROUNDS), bar);
}

int main(int argc, char **argv)
{
	FILE *json = bench_json_open(&argc, &argv);
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const char *hf;
	int rows = 0;
	double begun;

	if (argc == 3 && strcmp(argv[1], "--bare") == 0)
		return bare(argv[2]);
	if (argc != 2 || n < 0) {
		fputs("usage: bench-many [--json FILE] HOLDFAST\n", stderr);
		return 2;
	}
	self[n] = '\0';
	hf = argv[1];
	begun = bench_now_us();
	fill("many");
	printf("  %d sessions that ended two days ago, %d idle locks more: made in %.1f s\n", MANY, MANY, (bench_now_us() - begun) / 1e6);
	start_running(hf, "many");
	start_running(hf, "few");
	/* The first look takes out of recent/ what ended more than a day ago. */
	printf("  %-44s %9.1f us\n", "ps, the first after a day", bench_spawn(ARGV(hf, "--dir", "many", "ps")));
	compare(json, &rows, "ps, 10 run, 5,000 ended", ARGV(hf, "--dir", "many", "ps"), "readdir, read of those that run",
		ARGV(self, "--bare", "many/sessions"), 3);
	compare(json, &rows, "ps, 10 run, 5,000 ended", ARGV(hf, "--dir", "many", "ps"), "ps, 10 run",
		ARGV(hf, "--dir", "few", "ps"), 1.1);
	compare(json, &rows, "run beside 5,000 ended", ARGV(hf, "--dir", "many", "run", "x", "--", "true"), "run",
		ARGV(hf, "--dir", "few", "run", "x", "--", "true"), 1.1);
	compare(json, &rows, "lock run beside 10,000 idle locks", ARGV(hf, "--dir", "many", "lock", "run", "y", "--", "true"), "lock run",
		ARGV(hf, "--dir", "few", "lock", "run", "y", "--", "true"), 1.1);
	(void)bench_spawn(ARGV(hf, "--dir", "many", "kill", "--all"));
	(void)bench_spawn(ARGV(hf, "--dir", "few", "kill", "--all"));
	bench_json_close(json);
	return 0;
}
