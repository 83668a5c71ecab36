/* stress/lock/mayhem.c - many workers, killed, stopped, their files deleted; and what must be true afterwards. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hf/lock/local/record/record.h"
#include "hf/sys/calls.h"
#include "holdfast/lock.h"
#include "stress/lock/stress.h"

/* -- the parent of many workers ----------------------------------------------------- */

struct crew {
	const char *leaf;
	unsigned what;
	pid_t pids[PROCESSES_MAX];
	int stopped[PROCESSES_MAX];
	uint64_t generation;
	uint64_t kills, stops;
};

static void hire(struct crew *crew, int i)
{
	pid_t pid = fork_child();

	if (pid == 0)
		run_worker(crew->leaf, i, crew->generation, crew->what);
	crew->generation++;
	crew->pids[i] = pid;
}

/* What the dead left in the tables is taken out. */
static void bury(pid_t pid)
{
	for (size_t s = 0; s < N_SUBJECTS; s++) {
		pid_t expected = pid;

		(void)__atomic_compare_exchange_n(&shared->guarding[s], &expected, 0, 0,
						  __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		for (int i = 0; i < PROCESSES_MAX; i++)
			if (shared->inside[s][i].pid == pid)
				__atomic_store_n(&shared->inside[s][i].pid, 0, __ATOMIC_SEQ_CST);
	}
}

static void check_end(pid_t pid, int status)
{
	if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
		wrong(&shared->dead, "worker %d died of signal %d", (int)pid, WTERMSIG(status));
	else if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
		wrong(&shared->dead, "worker %d ended with %d", (int)pid, WEXITSTATUS(status));
}

static void kill_one(struct crew *crew, int i)
{
	int status;

	kill(crew->pids[i], SIGKILL);
	if (waitpid(crew->pids[i], &status, 0) > 0)
		check_end(crew->pids[i], status);
	bury(crew->pids[i]);
	crew->stopped[i] = 0;
	crew->kills++;
	hire(crew, i);
}

static void stop_or_continue(struct crew *crew, int i)
{
	crew->stopped[i] = !crew->stopped[i];
	kill(crew->pids[i], crew->stopped[i] ? SIGSTOP : SIGCONT);
	crew->stops += crew->stopped[i] != 0;
}

/* By hand, but not while a process has the guard: that is a break, not an overlap. */
static void delete_one(struct crew *crew)
{
	static const char *const keys[] = { "strict%2Fexclusive", "strict%2Fshared",
					    "strict%2Fslots", "leased%2Fexclusive" };
	char path[320], dir[256];
	int fd;

	state_path(crew->leaf, dir);
	snprintf(path, sizeof(path), "%s/locks/name/%s", dir, keys[random_below(4)]);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	while (flock(fd, LOCK_EX) < 0 && errno == EINTR)
		continue;
	if (unlink(path) == 0)
		count(&shared->deleted);
	close(fd);
}

static void strike(struct crew *crew)
{
	int victim = (int)random_below((uint64_t)processes);

	if (crew->what & WITH_KILLS && random_below(3) == 0)
		kill_one(crew, victim);
	if (crew->what & WITH_STOPS && random_below(3) == 0)
		stop_or_continue(crew, (int)random_below((uint64_t)processes));
	if (crew->what & WITH_DELETIONS && random_below(3) == 0)
		delete_one(crew);
}

void show_lock(void *arg, const struct hf_lock_info *info)
{
	(void)arg;
	printf("# '%s': token %llu, %zu holders, %zu waiters\n", info->name,
	       (unsigned long long)info->token, info->n_holders, info->n_waiters);
	for (size_t i = 0; i < info->n_holders; i++)
		printf("#   held by pid %d, token %llu: %s\n", (int)info->holders[i].id.pid,
		       (unsigned long long)info->holders[i].token, info->holders[i].evidence);
	for (size_t i = 0; i < info->n_waiters; i++)
		printf("#   wanted by pid %d for %lld ms\n", (int)info->waiters[i].id.pid,
		       (long long)(info->waiters[i].waited_ns / HF_MSEC));
}

/* Waits for the end of one. 1 when it has ended. */
static int await_end(pid_t pid, struct hf_mono until)
{
	int status, r;

	while ((r = waitpid(pid, &status, WNOHANG)) == 0 && hf_mono_left(until) > 0)
		poll(NULL, 0, 2);
	if (r > 0)
		check_end(pid, status);
	return r != 0;
}

/* Everybody goes home by themselves. Returns how many do not. */
static int end_crew(struct crew *crew)
{
	struct hf_mono until = hf_mono_in(STUCK_NS);
	int stuck = 0;

	for (int i = 0; i < processes; i++)
		kill(crew->pids[i], SIGCONT);
	__atomic_store_n(&shared->over, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < processes; i++) {
		if (await_end(crew->pids[i], until))
			continue;
		if (stuck++ == 0) {
			struct context c = open_context(crew->leaf);

			(void)!hf_lock_list(c.locks, show_lock, NULL, NULL);
			close_context(&c);
		}
		end_child(crew->pids[i]);
	}
	return stuck;
}

/* -- what must be true afterwards ------------------------------------------------------ */

static int by_token(const void *a, const void *b)
{
	const struct acquisition *x = a, *y = b;

	if (x->subject != y->subject)
		return x->subject < y->subject ? -1 : 1;
	return x->token < y->token ? -1 : x->token > y->token;
}

/*
 * L2: no token twice, and none that was had before another was asked for is higher
 * than it. Returns how many are.
 */
uint32_t check_tokens(void)
{
	uint32_t n = shared->n_log < LOG_MAX ? shared->n_log : LOG_MAX, bad = 0;
	int64_t earliest_end = INT64_MAX;

	qsort(shared->log, n, sizeof(shared->log[0]), by_token);
	for (uint32_t i = n; i-- > 0;) {
		const struct acquisition *a = &shared->log[i];
		int last = i + 1 == n || a[1].subject != a->subject;

		if (a->token == 0)
			continue;
		if (last)
			earliest_end = INT64_MAX;
		bad += !last && a[1].token == a->token;
		bad += earliest_end < a->start_ns;
		if (a->end_ns < earliest_end)
			earliest_end = a->end_ns;
	}
	return bad;
}

/* A fresh acquisition of each name, in 3 s. Returns how many fail. */
static int check_fresh(const char *leaf)
{
	struct context c = open_context(leaf);
	int bad = 0;

	for (size_t s = 0; s < N_SUBJECTS; s++) {
		struct hf_lock_opts opts = { .size = sizeof(opts), .wait_ns = 3 * HF_SEC };
		struct hf_lock *lock;
		struct hf_err err;

		if (hf_lock_acquire(c.locks, subjects[s].name, &opts, &lock, NULL, &err) < 0) {
			printf("# '%s' afterwards: %s\n", subjects[s].name, err.detail);
			(void)!hf_lock_look(c.locks, subjects[s].name, show_lock, NULL, NULL);
			bad++;
			continue;
		}
		bad += hf_lock_release(lock, NULL) < 0;
		hf_lock_free(lock);
	}
	close_context(&c);
	return bad;
}

static void look_only(void *arg, const struct hf_lock_info *info)
{
	*(int *)arg += info->n_holders > 0;
}

static int count_entries(const char *leaf, const char *sub, int channels_only)
{
	char path[320], dir_path[256];
	struct dirent *entry;
	int n = 0;
	DIR *dir;

	state_path(leaf, dir_path);
	snprintf(path, sizeof(path), "%s/%s", dir_path, sub);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		n += channels_only ? entry->d_type == DT_FIFO : entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return n;
}

/* Does the channel belong to one of these processes, which all ended in peace? */
static int is_channel_of(int wait_fd, const char *file, const pid_t *pids)
{
	uint8_t bytes[HF_LOCK_ENTRY_SIZE];
	const char *dot = strrchr(file, '.');
	struct hf_lock_entry entry;
	uint64_t ticket = dot ? strtoull(dot + 1, NULL, 36) : 0;
	char record[300];
	ssize_t n;
	int fd;

	snprintf(record, sizeof(record), "../%.*s", dot ? (int)(dot - file) : 0, file);
	fd = openat(wait_fd, record, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = pread(fd, bytes, sizeof(bytes),
		  (off_t)(HF_LOCK_RECORD_MAX + ticket % QUEUE_RING * HF_LOCK_ENTRY_SIZE));
	close(fd);
	if (n != (ssize_t)sizeof(bytes) || hf_lock_entry_decode(bytes, ticket, &entry) < 0)
		return 0;
	for (int i = 0; i < processes; i++)
		if (pids[i] == entry.waiter.pid)
			return 1;
	return 0;
}

static int count_left_channels(const struct crew *crew)
{
	char path[320], dir_path[256];
	struct dirent *entry;
	int n = 0;
	DIR *dir;

	state_path(crew->leaf, dir_path);
	snprintf(path, sizeof(path), "%s/locks/name/.wait", dir_path);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		n += entry->d_type == DT_FIFO && is_channel_of(dirfd(dir), entry->d_name, crew->pids);
	if (dir)
		closedir(dir);
	return n;
}

/* Lock files decode, nothing was quarantined, nobody holds, no channel is left. */
static int check_files(const struct crew *crew)
{
	int held = 0, moved = count_entries(crew->leaf, "quarantine", 0);
	int left = count_left_channels(crew), all = count_entries(crew->leaf, "locks/name/.wait", 1);
	struct context c = open_context(crew->leaf);
	int r = hf_lock_list(c.locks, look_only, &held, NULL);

	close_context(&c);
	printf("# %d channels left behind, %d of them by living processes\n", all, left);
	if (crew->what & (WITH_KILLS | WITH_DELETIONS))
		all = 0; /* those of the dead stay until a process comes upon them */
	if (r < 0 || held || moved || left || all)
		printf("# list %d, %d held, %d quarantined\n", r, held, moved);
	return r == 0 && !held && !moved && !left && !all;
}

static void show_counts(const struct crew *crew)
{
	printf("# %s: %u acquired, %u actions, %u refused, %u timeouts, %u busy, %u broken, "
	       "%u deleted, %u children, %llu killed, %llu stopped\n",
	       crew->leaf, shared->acquired, shared->actions, shared->refused, shared->timeouts,
	       shared->busy, shared->broken, shared->deleted, shared->children,
	       (unsigned long long)crew->kills, (unsigned long long)crew->stops);
	if (shared->backwards || shared->unguarded || shared->overlaps || shared->early ||
	    shared->late || shared->stuck || shared->lost || shared->other)
		printf("# %u backwards, %u unguarded, %u overlaps, %u early, %u late, %u stuck, "
		       "%u lost, %u other\n",
		       shared->backwards, shared->unguarded, shared->overlaps, shared->early,
		       shared->late, shared->stuck, shared->lost, shared->other);
}

void mayhem(const char *leaf, unsigned what)
{
	struct crew crew = { .leaf = leaf, .what = what };
	struct hf_mono until = hf_mono_in(seconds * HF_SEC);
	char title[160];
	int stuck;

	memset(shared, 0, sizeof(*shared));
	seed_random(1000, what);
	fflush(stdout);
	for (int i = 0; i < processes; i++)
		hire(&crew, i);
	while (hf_mono_left(until) > 0) {
		poll(NULL, 0, (int)random_below(8));
		strike(&crew);
	}
	stuck = end_crew(&crew);
	show_counts(&crew);
	snprintf(title, sizeof(title), "%s: L1 no two holders are inside that exclude each other", leaf);
	result(shared->overlaps == 0 && shared->unguarded == 0 && shared->acquired > 0, title);
	snprintf(title, sizeof(title), "%s: L5 no token acts after a later one; L4 none is lost", leaf);
	result(shared->backwards == 0 && shared->lost == 0 && shared->actions > 0, title);
	snprintf(title, sizeof(title), "%s: L2 tokens are unique and rise", leaf);
	result(check_tokens() == 0, title);
	snprintf(title, sizeof(title), "%s: no wake-up is lost, no wait ends before its time", leaf);
	result(stuck == 0 && shared->early == 0 && shared->late == 0 && shared->stuck == 0 &&
		       shared->other == 0 && shared->dead == 0,
	       title);
	snprintf(title, sizeof(title), "%s: afterwards every lock is free and all files are sound",
		 leaf);
	stuck = check_fresh(leaf);
	result(check_files(&crew) && stuck == 0, title);
}
