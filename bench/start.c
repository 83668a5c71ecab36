/*
 * bench/start.c - how long a short command takes, beside its peers, interleaved, medians.
 *
 *     bench-start [--json FILE] HOLDFAST [servers]
 *
 * HOLDFAST by its whole path: some are run in other directories. A peer that is not installed, or whose server does not answer, is left out.
 */
#include <string.h>

#include "command.h"

#define ROUNDS 301
#define ROUNDS_INSIDE 41 /* of what takes many milliseconds */

/* A stop that is none of those before it, so that it is decided and not only answered again. */
static void write_stop(const char *path, int n)
{
	FILE *file = fopen(path, "w");

	if (!file || fprintf(file, "{\"session_id\":\"bench\",\"hook_event_name\":\"Stop\",\"prompt_id\":\"%d\"}", n) < 0 || fclose(file) != 0) {
		perror(path);
		exit(1);
	}
}

/* One after the other in turn, so that both see the same machine. The bar is `bar` times the peer, and `plus_us` more. */
static void compare_plus(FILE *json, int *rows, const char *what, const char *const ours[],
			 const char *peer_name, const char *const peer[], int rounds, double bar, double plus_us)
{
	static double a[ROUNDS], b[ROUNDS];
	double peer_us;

	if (bench_spawn(peer) < 0) {
		printf("  %-44s %-28s is not available here\n", what, peer_name);
		return;
	}
	for (int i = 0; i < rounds; i++) {
		if (bench_input)
			write_stop(bench_input, i);
		a[i] = bench_spawn(ours);
		b[i] = bench_spawn(peer);
		if (a[i] < 0) {
			fprintf(stderr, "%s failed\n", what);
			exit(1);
		}
	}
	peer_us = bench_median(b, (size_t)rounds);
	bench_row(json, rows, what, bench_median(a, (size_t)rounds), peer_name, peer_us, bar > 0 ? bar + plus_us / peer_us : 0);
}

static void compare(FILE *json, int *rows, const char *what, const char *const ours[],
		    const char *peer_name, const char *const peer[], double bar)
{
	compare_plus(json, rows, what, ours, peer_name, peer, ROUNDS, bar, 0);
}

/* Those that need a server: bench/run starts them, where they are installed. */
static void compare_with_servers(FILE *json, int *rows, const char *hf)
{
	compare(json, rows, "lock run X -- true", ARGV(hf, "lock", "run", "bench", "--", "true"),
		"redis-cli set nx, del",
		ARGV("redis-cli", "-s", "redis.sock", "eval",
		     "redis.call('set','bench','1','nx','px',60000) return redis.call('del','bench')", "0"),
		0);
	compare(json, rows, "lock run X -- true", ARGV(hf, "lock", "run", "bench", "--", "true"),
		"etcdctl lock X true", ARGV("etcdctl", "--dial-timeout=1s", "lock", "bench", "true"), 0);
}

/* What a client waits for whenever its agent stops: with work mode off, and on. */
static void compare_hooks(FILE *json, int *rows, const char *hf)
{
	write_stop("bench.stop", 0);
	bench_input = "bench.stop";
	compare(json, rows, "hook stop, work mode off", ARGV(hf, "hook", "stop"), "true", ARGV("true"), 2);
	if (bench_spawn(ARGV(hf, "keep", "on", "--session", "bench")) < 0) {
		fputs("keep on failed\n", stderr);
		exit(1);
	}
	compare(json, rows, "hook stop, blocked", ARGV(hf, "hook", "stop"), "true", ARGV("true"), 2);
	bench_input = NULL;
}

static void must_run(const char *command)
{
	if (system(command) != 0) {
		fprintf(stderr, "failed: %s\n", command);
		exit(1);
	}
}

/* `files` of them, 100 in a directory; with `repository`, all in one commit. */
static void grow_tree(const char *name, int files, int repository)
{
	char command[400];

	snprintf(command, sizeof(command),
		 "mkdir %s && cd %s && seq 0 %d | while read -r n; do "
		 "mkdir -p d$((n / 100)) && echo \"$n\" >d$((n / 100))/f$n || exit; done", name, name, files - 1);
	must_run(command);
	snprintf(command, sizeof(command),
		 "cd %s && git init -q && git add . && git -c user.name=bench -c user.email=bench@localhost commit -q -m bench", name);
	if (repository)
		must_run(command);
}

/* A sandbox, nothing changed in it, and its end: over a few files and over many, which must cost the same. */
static void compare_inside(FILE *json, int *rows, const char *hf)
{
	static const struct {
		const char *what, *tree;
		int files, repository;
	} trees[] = {
		{ "run X --in ., 10 files", "bench.few", 10, 0 },
		{ "run X --in ., 20,000 files", "bench.many", 20000, 0 },
		{ "run X --in ., git, 10 files", "bench.few.git", 10, 1 },
		{ "run X --in ., git, 20,000 files", "bench.many.git", 20000, 1 },
	};

	for (size_t i = 0; i < sizeof(trees) / sizeof(*trees); i++) {
		grow_tree(trees[i].tree, trees[i].files, trees[i].repository);
		/* What was just written is on its way to the disk; that is none of the command's time. */
		sync();
		bench_place = trees[i].tree;
		compare_plus(json, rows, trees[i].what, ARGV(hf, "-q", "run", "bench", "--in", ".", "--", "true"),
			     "run X -- true", ARGV(hf, "run", "bench", "--", "true"), ROUNDS_INSIDE, 2, 3000);
		bench_place = NULL;
	}
}

int main(int argc, char **argv)
{
	FILE *json = bench_json_open(&argc, &argv);
	const char *hf;
	int rows = 0;

	if (argc < 2 || argc > 3 || (argc == 3 && strcmp(argv[2], "servers") != 0)) {
		fputs("usage: bench-start [--json FILE] HOLDFAST [servers]\n", stderr);
		return 2;
	}
	hf = argv[1];
	if (argc == 3) {
		compare_with_servers(json, &rows, hf);
		bench_json_close(json);
		return 0;
	}
	compare(json, &rows, "lock run X -- true", ARGV(hf, "lock", "run", "bench", "--", "true"),
		"flock F true", ARGV("flock", "bench.lock", "true"), 0.95);
	compare(json, &rows, "lock run X -- true", ARGV(hf, "lock", "run", "bench", "--", "true"),
		"s6-setlock F true", ARGV("s6-setlock", "bench.lock", "true"), 0);
	compare(json, &rows, "lock run X -- true", ARGV(hf, "lock", "run", "bench", "--", "true"),
		"python3 filelock",
		ARGV("/usr/bin/python3", "-c",
		     "import filelock, subprocess\nwith filelock.FileLock('bench.pylock'): subprocess.run(['true'])"),
		0);
	compare(json, &rows, "lock run X -- true", ARGV(hf, "lock", "run", "bench", "--", "true"),
		"sqlite3 begin exclusive",
		ARGV("sqlite3", "bench.db", "begin exclusive; create table if not exists t(x); commit"),
		0);
	compare(json, &rows, "run X -- true", ARGV(hf, "run", "bench", "--", "true"), "timeout 10 true",
		ARGV("timeout", "10", "true"), 1.75);
	compare(json, &rows, "run X --tree walk -- true",
		ARGV(hf, "run", "bench", "--tree", "walk", "--", "true"), "timeout 10 true",
		ARGV("timeout", "10", "true"), 0);
	compare(json, &rows, "run X -- true", ARGV(hf, "run", "bench", "--", "true"), "tini -s true",
		ARGV("tini", "-s", "true"), 0);
	compare(json, &rows, "run X -- true", ARGV(hf, "run", "bench", "--", "true"), "dumb-init true",
		ARGV("dumb-init", "true"), 0);
	compare(json, &rows, "run X -- true", ARGV(hf, "run", "bench", "--", "true"), "setsid -w true",
		ARGV("setsid", "-w", "true"), 0);
	compare(json, &rows, "run X -- true", ARGV(hf, "run", "bench", "--", "true"),
		"systemd-run --scope true", ARGV("systemd-run", "--scope", "-q", "true"), 0);
	compare_inside(json, &rows, hf);
	/* sponge neither locks nor syncs; the others do both. */
	compare(json, &rows, "file edit F -- date", ARGV(hf, "file", "edit", "bench.txt", "--create", "--", "date", "+%N"),
		"sh -c 'date | sponge F'", ARGV("sh", "-c", "date +%N | sponge bench.txt"), 0);
	compare(json, &rows, "file edit F -- date", ARGV(hf, "file", "edit", "bench.txt", "--", "date", "+%N"),
		"python3 filelock + rename",
		ARGV("/usr/bin/python3", "-c",
		     "import filelock, os, subprocess\n"
		     "with filelock.FileLock('bench.txt.pylock'):\n"
		     "    new = subprocess.run(['date', '+%N'], capture_output=True).stdout\n"
		     "    with open('bench.txt.tmp', 'wb') as f: f.write(new); f.flush(); os.fsync(f.fileno())\n"
		     "    os.rename('bench.txt.tmp', 'bench.txt')"),
		0);
	compare(json, &rows, "file block F ID --text T", ARGV(hf, "file", "block", "bench.md", "x", "--create", "--text", "t"),
		"flock F.lock tail F", ARGV("flock", ".bench.md.lock", "tail", "bench.txt"), 0);
	compare(json, &rows, "journal emit note text=hello",
		ARGV(hf, "journal", "emit", "note", "text=hello"), "sh -c 'echo hello >>F'",
		ARGV("sh", "-c", "echo hello >>bench.log"), 0);
	compare(json, &rows, "version", ARGV(hf, "version"), "true", ARGV("true"), 0);
	compare_hooks(json, &rows, hf);
	bench_json_close(json);
	return 0;
}
