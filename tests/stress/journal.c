/*
 * stress/journal.c - many writers, killed and stopped at random; TAP.
 *
 *     stress-journal [--seed N] [--seconds N]
 *
 * A writer tells its parent of each record through a pipe, after the append has
 * returned. Whatever happened to the writers: every record that was told of is
 * in the journal once, and verify finds no problem. The seed decides which process the
 * parent strikes and when, as far as the scheduler lets it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "holdfast/journal.h"

#define MANY          20
#define EACH          500
#define WRITERS       8
#define IDS_A_SECOND  (1 << 18) /* more than any machine writes in the parts below */
#define IDS_A_WRITER  300
#define SLACK_MS      900 /* beyond the 100 ms, for a loaded machine */
#define ROTATE_BYTES  16384
#define RETAIN_BYTES  (UINT64_C(1) << 40)

static uint64_t random_state;
static int64_t seconds = 3;
static uint32_t ids_most; /* no record told of has this id or a higher one */
static char base[128];
static int test_number, failures;
static int *over; /* shared with the writers: 1 when they shall end */

static uint64_t random_below(uint64_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % n;
}

static void result(int ok, const char *what)
{
	printf("%sok %d - %s\n", ok ? "" : "not ", ++test_number, what);
	fflush(stdout);
	failures += !ok;
}

static void give_up(const char *what)
{
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(99);
}

/* -- state directories ------------------------------------------------------ */

static struct hf_state *new_state(const char *leaf)
{
	struct hf_state *state;
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", base, leaf);
	if (hf_state_open(path, 0, &state, NULL) < 0)
		give_up(path);
	return state;
}

static void remove_all(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		execlp("rm", "rm", "-rf", "--", base, (char *)NULL);
		_exit(127);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

/* -- writers ---------------------------------------------------------------- */

/* What a writer tells: one of these for each append, in one atomic write. */
struct told {
	uint32_t id;	  /* of the record */
	int32_t returned; /* by the append */
	int32_t took_ms;
	int32_t excused; /* it was stopped meanwhile: its time says nothing */
};

static volatile sig_atomic_t resumed;

/* Runs before anything else when a stopped process goes on. */
static void note_resumption(int sig)
{
	(void)sig;
	resumed++;
}

static int append_id(struct hf_journal *journal, uint32_t id)
{
	char text[80];
	struct hf_field fields[] = { HF_FIELD_TEXT("text", text) };

	/* Of many lengths, so that cuts and page ends fall everywhere. */
	snprintf(text, sizeof(text), "%u %.*s", id, (int)(id % 60),
		 "............................................................");
	return hf_journal_append(journal, HF_EV_NOTE, "stress", fields, 1, 0, NULL);
}

static int64_t now_ms(void)
{
	return hf_mono_now().ns / HF_MSEC;
}

static int append_and_tell(struct hf_journal *journal, uint32_t id, int to)
{
	struct told told = { .id = id };
	sig_atomic_t before = resumed;
	int64_t start = now_ms();

	told.returned = append_id(journal, id);
	told.took_ms = (int32_t)(now_ms() - start);
	told.excused = resumed != before;
	if (write(to, &told, sizeof(told)) != (ssize_t)sizeof(told))
		_exit(1);
	return told.returned;
}

/* Child: appends from `first` until `count` are done, or it is over. */
static void write_ids(struct hf_state *state, uint32_t first, uint32_t count, uint64_t segment,
		      int to)
{
	struct hf_journal_opts opts = { .size = sizeof(opts),
					.segment_bytes = segment,
					.retain_bytes = RETAIN_BYTES };
	struct hf_journal *journal;

	if (hf_journal_open(state, &opts, &journal, NULL) < 0)
		_exit(1);
	for (uint32_t i = 0; i < count && !__atomic_load_n(over, __ATOMIC_RELAXED); i++)
		(void)append_and_tell(journal, first + i, to);
	/* One that gets through tells of all losses that could not be counted before. */
	for (int i = 0; i < 1000 && append_and_tell(journal, ids_most, to) != 0; i++)
		poll(NULL, 0, 10);
	hf_journal_free(journal);
	_exit(0);
}

static pid_t start_writer(struct hf_state *state, uint32_t first, uint32_t count,
			  uint64_t segment, const int pipe_fds[2])
{
	struct sigaction sa = { .sa_handler = note_resumption, .sa_flags = SA_RESTART };
	pid_t pid = fork();

	if (pid < 0)
		give_up("fork");
	if (pid == 0) {
		sigaction(SIGCONT, &sa, NULL);
		close(pipe_fds[0]);
		write_ids(state, first, count, segment, pipe_fds[1]);
	}
	return pid;
}

/* -- what was told and what is there ---------------------------------------- */

struct ledger {
	uint8_t *told;	/* 1: acknowledged, 2: refused */
	uint8_t *found; /* times */
	uint64_t answers, acknowledged, refused, slowest_ms, slow;
	uint64_t missing, twice, undead; /* undead: refused and yet there */
	uint64_t records, steps, journalled_losses;
};

static struct ledger *new_ledger(void)
{
	struct ledger *l = calloc(1, sizeof(*l));

	if (!l || !(l->told = calloc(ids_most, 1)) || !(l->found = calloc(ids_most, 1)))
		give_up("memory");
	return l;
}

static void free_ledger(struct ledger *l)
{
	free(l->told);
	free(l->found);
	free(l);
}

static void enter(struct ledger *l, const struct told *told)
{
	l->refused += told->returned == HF_E_LOST;
	if (told->id < ids_most) { /* else a writer's last word, of which there are several */
		l->told[told->id] = told->returned == 0 ? 1 : 2;
		l->answers++;
		l->acknowledged += told->returned == 0;
	}
	if (!told->excused) {
		if ((uint64_t)told->took_ms > l->slowest_ms)
			l->slowest_ms = (uint64_t)told->took_ms;
		l->slow += told->took_ms > HF_JOURNAL_WAIT_NS / HF_MSEC + SLACK_MS;
	}
}

static void read_back(const struct hf_state *state, struct ledger *l)
{
	struct hf_journal_reader *reader;
	struct hf_record record;
	uint64_t last = 0;
	int64_t lost;
	unsigned id;
	int r;

	if (hf_journal_read(state, &reader, NULL) < 0)
		give_up("read");
	while ((r = hf_journal_next(reader, &record, NULL)) > 0) {
		const char *text = hf_record_text(&record, "text");

		l->records++;
		l->steps += record.seq != last + 1;
		last = record.seq;
		if (record.info->event == HF_EV_JOURNAL_LOST && hf_record_int(&record, "count", &lost))
			l->journalled_losses += (uint64_t)lost;
		if (text && sscanf(text, "%u", &id) == 1 && id < ids_most && l->found[id] < 255)
			l->found[id]++;
	}
	if (r < 0)
		give_up("read");
	hf_journal_reader_free(reader);
	for (id = 0; id < ids_most; id++) {
		l->missing += l->told[id] == 1 && l->found[id] == 0;
		l->twice += l->found[id] > 1;
		l->undead += l->told[id] == 2 && l->found[id] > 0;
	}
}

static void show_problem(void *arg, const struct hf_problem_info *problem)
{
	(void)arg;
	if (problem->problem != HF_PROBLEM_TORN)
		printf("# %s:%llu problem %d, %s\n", problem->file,
		       (unsigned long long)problem->line, (int)problem->problem, problem->text);
}

static struct hf_verify_result verify(const struct hf_state *state)
{
	struct hf_verify_result verified;

	if (hf_journal_verify(state, show_problem, NULL, &verified, NULL) < 0)
		give_up("verify");
	return verified;
}

static void show(const char *title, const struct ledger *l, const struct hf_verify_result *v)
{
	printf("# %s: %llu acknowledged, %llu refused, %llu records, %llu torn, %llu lost, "
	       "slowest append %llu ms\n",
	       title, (unsigned long long)l->acknowledged, (unsigned long long)l->refused,
	       (unsigned long long)l->records, (unsigned long long)v->torn,
	       (unsigned long long)v->lost, (unsigned long long)l->slowest_ms);
	if (l->refused != l->journalled_losses)
		printf("# %llu losses in the journal\n", (unsigned long long)l->journalled_losses);
	if (l->missing || l->twice || l->undead || l->steps)
		printf("# %llu missing, %llu twice, %llu refused but there, %llu steps\n",
		       (unsigned long long)l->missing, (unsigned long long)l->twice,
		       (unsigned long long)l->undead, (unsigned long long)l->steps);
}

/* -- (1) twenty processes --------------------------------------------------- */

/* Returns 1 when nothing was lost. All else must hold in every round. */
static int many_round(int round, int *sound)
{
	struct ledger *l = new_ledger();
	struct hf_verify_result verified;
	struct hf_state *state;
	int fds[2], lost_none;
	struct told told;
	char leaf[32];

	snprintf(leaf, sizeof(leaf), "many-%d", round);
	state = new_state(leaf);
	if (pipe2(fds, O_CLOEXEC) < 0)
		give_up("pipe");
	for (int i = 0; i < MANY; i++)
		(void)start_writer(state, (uint32_t)(i * EACH), EACH, 0, fds);
	close(fds[1]);
	while (read(fds[0], &told, sizeof(told)) == (ssize_t)sizeof(told))
		enter(l, &told);
	close(fds[0]);
	while (wait(NULL) > 0)
		continue;
	read_back(state, l);
	verified = verify(state);
	show("many", l, &verified);
	lost_none = verified.lost == 0 && l->refused == 0;
	*sound = *sound && l->answers == MANY * EACH && !l->missing &&
		 !l->twice && !l->undead && !l->steps && !verified.problems &&
		 verified.lost == l->refused && l->journalled_losses == l->refused;
	/* And the last word of each writer. */
	*sound = *sound && (!lost_none || (l->records == MANY * EACH + MANY &&
					   verified.last == MANY * EACH + MANY));
	free_ledger(l);
	hf_state_free(state);
	return lost_none;
}

static void many_processes(void)
{
	int sound = 1, lost_none = 0;

	/* A machine that stalls everybody for 100 ms is not the journal's doing: three tries. */
	for (int i = 0; i < 3 && !lost_none; i++)
		lost_none = many_round(i, &sound);
	result(sound, "20 processes x 500 appends: all valid, numbers without gap or repeat");
	result(lost_none, "20 processes x 500 appends: none lost");
}

/* -- (2) and (3) killed at random -------------------------------------------- */

struct crew {
	pid_t pids[WRITERS];
	int stopped[WRITERS];
	uint32_t next_id;
	int fds[2];
	uint64_t strikes;
};

static void hire(struct crew *crew, struct hf_state *state, int i, uint32_t count, uint64_t segment)
{
	crew->pids[i] = start_writer(state, crew->next_id, count, segment, crew->fds);
	crew->next_id += count;
}

/* Takes in all that has been told; sleeps for at most `ms` where there is nothing. */
static void listen_for(struct crew *crew, struct ledger *l, int ms)
{
	struct pollfd p = { .fd = crew->fds[0], .events = POLLIN };
	struct told told[256];
	ssize_t n;

	if (poll(&p, 1, ms) <= 0)
		return;
	n = read(crew->fds[0], told, sizeof(told));
	for (ssize_t i = 0; i < n / (ssize_t)sizeof(told[0]); i++)
		enter(l, &told[i]);
}

static void start_crew(struct crew *crew, struct hf_state *state, uint32_t count, uint64_t segment)
{
	memset(crew, 0, sizeof(*crew));
	__atomic_store_n(over, 0, __ATOMIC_RELAXED);
	if (pipe2(crew->fds, O_CLOEXEC | O_NONBLOCK) < 0)
		give_up("pipe");
	/* Only our end must not block. */
	if (fcntl(crew->fds[1], F_SETFL, 0) < 0)
		give_up("fcntl");
	for (int i = 0; i < WRITERS; i++)
		hire(crew, state, i, count, segment);
}

/* Hears the rest until the last writer has gone. */
static void end_crew(struct crew *crew, struct ledger *l)
{
	struct told told;
	ssize_t n;

	__atomic_store_n(over, 1, __ATOMIC_RELAXED);
	close(crew->fds[1]);
	(void)fcntl(crew->fds[0], F_SETFL, 0);
	while ((n = read(crew->fds[0], &told, sizeof(told))) == (ssize_t)sizeof(told))
		enter(l, &told);
	close(crew->fds[0]);
	while (wait(NULL) > 0)
		continue;
}

static void killed_at_random(const char *leaf, uint64_t segment, const char *title)
{
	struct hf_state *state = new_state(leaf);
	struct hf_mono until = hf_mono_in(seconds * HF_SEC);
	struct ledger *l = new_ledger();
	const uint32_t count = IDS_A_WRITER;
	struct hf_verify_result verified;
	struct crew crew;

	start_crew(&crew, state, count, segment);
	while (hf_mono_left(until) > 0 && crew.next_id + WRITERS * count < ids_most) {
		int victim = (int)random_below(WRITERS);

		listen_for(&crew, l, (int)random_below(4));
		if (random_below(4) != 0)
			continue;
		kill(crew.pids[victim], SIGKILL);
		waitpid(crew.pids[victim], NULL, 0);
		crew.strikes++;
		hire(&crew, state, victim, count, segment);
	}
	for (int i = 0; i < WRITERS; i++)
		kill(crew.pids[i], SIGKILL);
	end_crew(&crew, l);
	read_back(state, l);
	verified = verify(state);
	show(title, l, &verified);
	printf("# %llu killed\n", (unsigned long long)crew.strikes);
	result(!l->missing && !l->twice && !l->undead && !l->steps && l->acknowledged > 0 &&
		       crew.strikes > 0,
	       title);
	result(verified.problems == 0, "verify finds no problem behind it");
	free_ledger(l);
	hf_state_free(state);
}

/* -- (4) stopped at random ---------------------------------------------------- */

static void strike_or_free(struct crew *crew, int i)
{
	siginfo_t info;

	if (crew->stopped[i]) {
		crew->stopped[i] = 0;
		kill(crew->pids[i], SIGCONT);
		return;
	}
	if (kill(crew->pids[i], SIGSTOP) < 0 ||
	    waitid(P_PID, (id_t)crew->pids[i], &info, WSTOPPED | WEXITED | WNOWAIT) < 0 ||
	    info.si_code != CLD_STOPPED)
		return;
	(void)waitid(P_PID, (id_t)crew->pids[i], &info, WSTOPPED);
	crew->stopped[i] = 1;
	crew->strikes++;
}

static void free_all(struct crew *crew)
{
	for (int i = 0; i < WRITERS; i++)
		if (crew->stopped[i])
			strike_or_free(crew, i);
}

static void stopped_at_random(void)
{
	struct hf_state *state = new_state("stopped");
	struct hf_mono until = hf_mono_in(seconds * HF_SEC);
	struct ledger *l = new_ledger();
	struct hf_verify_result verified;
	struct crew crew;

	start_crew(&crew, state, ids_most / WRITERS, ROTATE_BYTES);
	while (hf_mono_left(until) > 0) {
		listen_for(&crew, l, (int)random_below(20));
		if (random_below(10) == 0)
			strike_or_free(&crew, (int)random_below(WRITERS));
	}
	free_all(&crew);
	end_crew(&crew, l);
	read_back(state, l);
	verified = verify(state);
	show("stopped", l, &verified);
	printf("# %llu stopped\n", (unsigned long long)crew.strikes);
	result(l->slow == 0 && l->acknowledged > 0 && crew.strikes > 0,
	       "writers stopped at random hold up nobody else for more than 100 ms");
	result(!l->missing && !l->twice && !l->undead && !l->steps && !verified.problems,
	       "writers stopped at random: acknowledged is readable, once");
	result(l->refused == verified.lost && l->refused == l->journalled_losses,
	       "writers stopped at random: every loss is counted and journalled");
	free_ledger(l);
	hf_state_free(state);
}

/* -- main --------------------------------------------------------------------- */

static void usage(const char *self)
{
	fprintf(stderr, "usage: %s [--seed N] [--seconds N]\n", self);
	exit(2);
}

int main(int argc, char **argv)
{
	const char *dir = getenv("TMPDIR");
	uint64_t seed = (uint64_t)hf_wall_now().ns;

	for (int i = 1; i < argc; i += 2) {
		if (i + 1 >= argc)
			usage(argv[0]);
		if (strcmp(argv[i], "--seed") == 0)
			seed = strtoull(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--seconds") == 0)
			seconds = strtoll(argv[i + 1], NULL, 10);
		else
			usage(argv[0]);
	}
	if (seconds < 1 || seconds > 3600)
		usage(argv[0]);
	random_state = seed ? seed : 1;
	ids_most = (uint32_t)(seconds + 1) * IDS_A_SECOND;
	over = mmap(NULL, sizeof(*over), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (over == MAP_FAILED)
		give_up("mmap");
	printf("# seed %llu, %lld s for each part\n", (unsigned long long)seed, (long long)seconds);
	printf("1..9\n");
	snprintf(base, sizeof(base), "%s/hf-stress-XXXXXX", dir && strlen(dir) < 90 ? dir : "/tmp");
	if (!mkdtemp(base))
		give_up(base);
	many_processes();
	killed_at_random("killed", 0, "killed at random: acknowledged is readable, once");
	killed_at_random("killed-rotating", ROTATE_BYTES,
			 "killed at random while rotating: acknowledged is readable, once");
	stopped_at_random();
	remove_all();
	return failures > 0;
}
