/* tests/unit/test_proc.c - identity, liveness and signals, with real processes. */
#include <dirent.h>
#include <linux/sched.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "helper/proc_helper.h"
#include "hf/proc/judge.h"
#include "hf/proc/stat.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static const int errors[] = { ENOSYS, EPERM, EMFILE, EIO, ENOENT };
static char evidence[HF_EVIDENCE_MAX];

static struct hf_proc_id identity_of(pid_t pid)
{
	struct hf_proc_id id = { 0 };

	ASSERT_OK(hf_proc_identify(pid, &id, ERR));
	return id;
}

static void assert_same_identity(const struct hf_proc_id *a, const struct hf_proc_id *b)
{
	assert_int_equal(a->pid, b->pid);
	assert_int_equal(a->pidfs_inode, b->pidfs_inode);
	assert_int_equal(a->start_ticks, b->start_ticks);
	assert_int_equal(a->time_ns, b->time_ns);
	assert_int_equal(a->pid_ns, b->pid_ns);
	assert_string_equal(a->boot_id, b->boot_id);
}

/* The answer; the evidence must name the pid, or nobody can check it. */
static enum hf_liveness judge(const struct hf_proc_id *id, unsigned flags)
{
	enum hf_liveness answer;
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", (int)id->pid);
	memset(evidence, 0, sizeof(evidence));
	answer = hf_proc_liveness(id, flags, evidence);
	if (!strstr(evidence, pid))
		fail_msg("pid %s is not in the evidence \"%s\"", pid, evidence);
	assert_int_equal(hf_proc_liveness(id, flags, NULL), answer);
	return answer;
}

static void need_pidfs(const struct hf_proc_id *id)
{
	if (id->pidfs_inode == 0)
		HF_SKIP("this kernel has no pidfs (before 6.9)");
}

static ino_t inode_of(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st.st_ino : 0;
}

/* ---- identity ---- */

static void identity_of_self_is_what_the_kernel_says(void **state)
{
	struct hf_proc_id self = { 0 }, again;
	char boot_id[HF_BOOT_ID_LEN + 1] = "";
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	(void)state;
	assert_non_null(f);
	assert_int_equal(fread(boot_id, 1, HF_BOOT_ID_LEN, f), HF_BOOT_ID_LEN);
	fclose(f);
	ASSERT_OK(hf_proc_self(&self, ERR));
	assert_int_equal(self.pid, getpid());
	assert_int_equal(self.pid_ns, inode_of("/proc/self/ns/pid"));
	assert_int_equal(self.time_ns, inode_of("/proc/self/ns/time"));
	assert_string_equal(self.boot_id, boot_id);
	assert_true(self.start_ticks > 0 && self.start_ticks <= boottime_ticks());
	again = identity_of(getpid());
	assert_same_identity(&self, &again);
	assert_int_equal(judge(&self, 0), HF_ALIVE);
}

static void identity_of_a_child_has_its_own_start(void **state)
{
	uint64_t before = boottime_ticks(), after;
	struct hf_proc_id self = identity_of(getpid()), id;
	struct child *c = child_start(child_answers, NULL);

	(void)state;
	after = boottime_ticks();
	id = identity_of(c->pid);
	assert_int_equal(id.pid, c->pid);
	assert_in_range(id.start_ticks, before, after);
	assert_int_equal(id.pid_ns, self.pid_ns);
	if (id.pidfs_inode)
		assert_int_not_equal(id.pidfs_inode, self.pidfs_inode);
}

static void identify_refuses_what_is_no_process(void **state)
{
	static const int32_t bad[] = { 0, -1, INT32_MIN };
	struct hf_proc_id id = { .pid = 77 };
	struct child *zombie, *gone;
	pid_t pid;

	(void)state;
	for (size_t i = 0; i < ROWS(bad); i++)
		ASSERT_ERR(hf_proc_identify(bad[i], &id, ERR), -EINVAL);
	ASSERT_ERR(hf_proc_identify(INT32_MAX, &id, ERR), HF_E_GONE);
	zombie = child_start(child_answers, NULL);
	child_kill_only(zombie);
	ASSERT_ERR(hf_proc_identify(zombie->pid, &id, ERR), HF_E_GONE);
	gone = child_start(child_answers, NULL);
	pid = gone->pid;
	child_kill(gone);
	ASSERT_ERR(hf_proc_identify(pid, &id, ERR), HF_E_GONE);
	assert_int_equal(id.pid, 77); /* written only on success */
}

static void child_with_forged_stat(int in, int out, void *arg)
{
	MUST(hf_proc_self(arg, NULL) == 0);
	MUST(prctl(PR_SET_NAME, "x) R 1 1 (y") == 0);
	child_answers(in, out, NULL);
}

static void command_name_cannot_forge_identity_L6(void **state)
{
	struct hf_proc_id *before = shared_new(sizeof(*before)), after;
	uint64_t earliest = boottime_ticks();
	struct child *c = child_start(child_with_forged_stat, before);
	struct hf_stat st;

	(void)state;
	after = identity_of(c->pid);
	assert_same_identity(before, &after);
	ASSERT_OK(hf_stat_read(c->pid, &st));
	assert_int_equal(st.pid, c->pid);
	assert_int_equal(st.ppid, getpid());
	assert_int_equal(st.start_ticks, after.start_ticks);
	assert_in_range(after.start_ticks, earliest, boottime_ticks());
	assert_int_equal(judge(before, 0), HF_ALIVE);
	munmap(before, sizeof(*before));
}

/* ---- text form ---- */

#define BOOT "01234567-89ab-cdef-0123-456789abcdef"

static uint64_t random_u64(void)
{
	static uint64_t x = 0x9e3779b97f4a7c15U; /* xorshift; fixed, so that a failure repeats */

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x >> (x & 63);
}

static void assert_round_trip(const struct hf_proc_id *id)
{
	char text[HF_PROC_TEXT_MAX], again[HF_PROC_TEXT_MAX];
	struct hf_proc_id parsed;
	int len = hf_proc_format(id, text);

	assert_int_equal(len, strlen(text));
	ASSERT_OK(hf_proc_parse(text, (size_t)len, &parsed, ERR));
	assert_same_identity(id, &parsed);
	assert_int_equal(hf_proc_format(&parsed, again), len);
	assert_string_equal(text, again);
}

static void text_form_round_trips(void **state)
{
	struct hf_proc_id id = identity_of(getpid());

	(void)state;
	assert_round_trip(&id);
	for (int i = 0; i < 2000; i++) {
		id.pid = (int32_t)(random_u64() & INT32_MAX) | 1;
		id.pidfs_inode = random_u64();
		id.start_ticks = random_u64();
		id.time_ns = random_u64();
		id.pid_ns = random_u64();
		for (int j = 0; j < HF_BOOT_ID_LEN; j++)
			if (id.boot_id[j] != '-')
				id.boot_id[j] = "0123456789abcdef"[random_u64() & 15];
		assert_round_trip(&id);
	}
	id.pid = INT32_MAX;
	id.pidfs_inode = id.start_ticks = id.time_ns = id.pid_ns = UINT64_MAX;
	assert_round_trip(&id);
}

static void assert_not_parsed(const char *text, size_t len)
{
	struct hf_proc_id id = { .pid = 77 };

	/* An exact copy on the heap, so that the sanitizer sees a read behind it. */
	char *copy = malloc(len ? len : 1);

	memcpy(copy, text, len);
	if (hf_proc_parse(copy, len, &id, ERR) != HF_E_SYNTAX)
		fail_msg("accepted: \"%.*s\" (%zu bytes)", (int)len, text, len);
	assert_int_equal(id.pid, 77);
	free(copy);
}

static void every_truncation_is_refused(void **state)
{
	struct hf_proc_id id = identity_of(getpid());
	char text[HF_PROC_TEXT_MAX];
	size_t len = (size_t)hf_proc_format(&id, text);

	(void)state;
	for (size_t i = 0; i < len; i++)
		assert_not_parsed(text, i);
	for (size_t i = 1; i <= len; i++)
		assert_not_parsed(text + i, len - i);
	assert_not_parsed(text, len + 1); /* its NUL */
}

static void only_the_one_text_of_an_identity_is_read(void **state)
{
	static const char good[] = "p1:12:3:4:5:6:" BOOT;
	static const char *const bad[] = {
		"p1:0:3:4:5:6:" BOOT, "p1:-1:3:4:5:6:" BOOT, "p1:+1:3:4:5:6:" BOOT,
		"p1:012:3:4:5:6:" BOOT, "p1:12:03:4:5:6:" BOOT, "p1:12:3:04:5:6:" BOOT,
		"p1:12:3:4:05:6:" BOOT, "p1:12:3:4:5:06:" BOOT, "p1:12:00:4:5:6:" BOOT,
		"p1:2147483648:3:4:5:6:" BOOT, "p1:4294967308:3:4:5:6:" BOOT,
		"p1:18446744073709551628:3:4:5:6:" BOOT, "p1:12:18446744073709551616:4:5:6:" BOOT,
		"p1:12:3:18446744073709551616:5:6:" BOOT, "p1:12:3:4:99999999999999999999:6:" BOOT,
		"p1:12:3:4:5:18446744073709551616:" BOOT, "p1:12:-3:4:5:6:" BOOT,
		"p1:12:0x3:4:5:6:" BOOT, "p1: 12:3:4:5:6:" BOOT, "p1:12 :3:4:5:6:" BOOT,
		"p1::3:4:5:6:" BOOT, "p1:12::4:5:6:" BOOT, "p1:12:3:4:5::" BOOT,
		"p1:12:3:4:5:" BOOT, "p1:12:3:4:5:6:7:" BOOT, "p1:12:3:4:5:6" BOOT,
		"p2:12:3:4:5:6:" BOOT, "P1:12:3:4:5:6:" BOOT, "p:12:3:4:5:6:" BOOT,
		"p01:12:3:4:5:6:" BOOT, "p1;12:3:4:5:6:" BOOT, " p1:12:3:4:5:6:" BOOT,
		"p1:12:3:4:5:6:" BOOT "\n", "p1:12:3:4:5:6:" BOOT " ", "p1:12:3:4:5:6:" BOOT "0",
		"p1:12:3:4:5:6:" BOOT ":", "p1:12:3:4:5:6:",
		"p1:12:3:4:5:6:01234567-89AB-cdef-0123-456789abcdef",
		"p1:12:3:4:5:6:01234567-89ag-cdef-0123-456789abcdef",
		"p1:12:3:4:5:6:0123456789ab-cdef-0123-456789abcdef-",
		"p1:12:3:4:5:6:01234567089ab0cdef001230456789abcdef",
		"p1:12:3:4:5:6:------------------------------------",
		"p1:12:3:4:5:6:1234567-89ab-cdef-0123-456789abcdef",
	};
	struct hf_proc_id id;

	(void)state;
	ASSERT_OK(hf_proc_parse(good, strlen(good), &id, ERR));
	assert_int_equal(id.pid, 12);
	for (size_t i = 0; i < ROWS(bad); i++)
		assert_not_parsed(bad[i], strlen(bad[i]));
	assert_not_parsed("p1:12:3:4:5\0:6:" BOOT, sizeof("p1:12:3:4:5\0:6:" BOOT) - 1);
}

static void too_long_a_text_is_refused(void **state)
{
	char text[400];

	(void)state;
	memset(text, '1', sizeof(text));
	memcpy(text, "p1:", 3);
	for (size_t len = HF_PROC_TEXT_MAX - 2; len <= sizeof(text); len++)
		assert_not_parsed(text, len);
}

/* ---- liveness ---- */

static void running_process_is_alive_L4(void **state)
{
	struct child *c = child_start(child_answers, NULL);
	struct hf_proc_id id = identity_of(c->pid);

	(void)state;
	assert_int_equal(judge(&id, 0), HF_ALIVE);
	assert_int_equal(judge(&id, HF_PROC_SHARED), HF_ALIVE);
}

static void stopped_process_is_alive_L4(void **state)
{
	struct child *c = child_start(child_answers, NULL);
	struct hf_proc_id id;
	siginfo_t info;

	(void)state;
	assert_int_equal(kill(c->pid, SIGSTOP), 0);
	assert_int_equal(waitid(P_PID, (id_t)c->pid, &info, WSTOPPED), 0);
	for (int k = 0; k < N_KERNELS; k++) {
		kernel_pretend(k);
		id = identity_of(c->pid);
		assert_int_equal(judge(&id, 0), HF_ALIVE);
		kernel_restore();
	}
}

static void zombie_is_dead_before_and_after_reaping_L4(void **state)
{
	(void)state;
	for (int k = 0; k < N_KERNELS; k++) {
		struct child *c = child_start(child_answers, NULL);
		struct hf_proc_id id;

		kernel_pretend(k);
		id = identity_of(c->pid);
		child_kill_only(c);
		assert_int_equal(judge(&id, 0), HF_DEAD);
		assert_int_equal(judge(&id, HF_PROC_SHARED), HF_DEAD);
		child_reap(c);
		assert_int_equal(judge(&id, 0), HF_DEAD);
		kernel_restore();
	}
}

struct pipe_ends {
	int in, out;
};

static void *thread_answers(void *arg)
{
	struct pipe_ends *ends = arg;
	struct hf_stat st = { 0 };

	/* The leader's end is not an event that can be waited for; its state letter shows it. */
	while (st.state != 'Z') {
		MUST(hf_stat_read(0, &st) == 0);
		sched_yield();
	}
	child_answers(ends->in, ends->out, NULL);
	_exit(0);
}

static void child_without_leader(int in, int out, void *arg)
{
	static struct pipe_ends ends;
	pthread_t thread;

	(void)arg;
	ends = (struct pipe_ends){ in, out };
	MUST(pthread_create(&thread, NULL, thread_answers, &ends) == 0);
	pthread_exit(NULL);
}

static void process_whose_main_thread_ended_is_alive_L4(void **state)
{
	struct child *c = child_start(child_without_leader, NULL);
	struct hf_proc_id id = { 0 };
	struct hf_stat st;

	(void)state;
	ASSERT_OK(hf_stat_read(c->pid, &st));
	assert_int_equal(st.state, 'Z');
	for (int k = 0; k < N_KERNELS; k++) {
		kernel_pretend(k);
		id = identity_of(c->pid);
		assert_int_equal(judge(&id, 0), HF_ALIVE);
		kernel_restore();
	}
	id = identity_of(c->pid);
	ASSERT_OK(hf_proc_signal(&id, SIGUSR1, 0, ERR));
	assert_int_equal(child_ask(c), 'y');
	child_kill_only(c);
	assert_int_equal(judge(&id, 0), HF_DEAD);
}

static void other_boot_is_dead_on_local_and_unknown_on_shared_storage_L4(void **state)
{
	struct child *c = child_start(child_answers, NULL);
	struct hf_proc_id id = identity_of(c->pid);

	(void)state;
	id.boot_id[0] = id.boot_id[0] == '0' ? '1' : '0';
	assert_int_equal(judge(&id, 0), HF_DEAD);
	assert_int_equal(judge(&id, HF_PROC_SHARED), HF_UNKNOWN);
	ASSERT_ERR(hf_proc_signal(&id, SIGUSR1, 0, ERR), HF_E_GONE);
	ASSERT_ERR(hf_proc_signal(&id, SIGUSR1, HF_PROC_SHARED, ERR), HF_E_UNKNOWN);
	assert_int_equal(child_ask(c), 'n');
}

static void other_pid_namespace_is_unknown_L4(void **state)
{
	struct child *c = child_start(child_answers, NULL);
	struct hf_proc_id id = identity_of(c->pid), none;
	pid_t gone = c->pid;

	(void)state;
	id.pid_ns ^= 1;
	assert_int_equal(judge(&id, 0), HF_UNKNOWN);
	ASSERT_ERR(hf_proc_signal(&id, SIGUSR1, 0, ERR), HF_E_UNKNOWN);
	assert_int_equal(child_ask(c), 'n');
	child_kill(c);
	/* That nobody has the number here says nothing about there. */
	none = id;
	none.pid = gone;
	assert_int_equal(judge(&none, 0), HF_UNKNOWN);
}

static void malformed_identity_is_unknown_L4(void **state)
{
	struct hf_proc_id good = identity_of(getpid()), bad[5];

	(void)state;
	for (size_t i = 0; i < ROWS(bad); i++)
		bad[i] = good;
	bad[0].pid = 0;
	bad[1].pid = -1;
	bad[2].boot_id[0] = '\0';
	memset(bad[3].boot_id, 'a', sizeof(bad[3].boot_id)); /* not even terminated */
	bad[4].boot_id[4] = 'G';
	for (size_t i = 0; i < ROWS(bad); i++) {
		evidence[0] = '\0';
		assert_int_equal(hf_proc_liveness(&bad[i], 0, evidence), HF_UNKNOWN);
		assert_true(strlen(evidence) > 0);
	}
}

/* ---- namespaces ---- */

struct outside {
	int skip;
	char text[HF_PROC_TEXT_MAX];
};

static void child_in_other_pid_namespace(int in, int out, void *arg)
{
	struct outside *shared = arg;
	struct hf_proc_id self;

	shared->skip = enter_namespaces(CLONE_NEWPID);
	if (shared->skip) {
		tell(out, 'r');
		return;
	}
	descend(NULL); /* pid 1 of it, which is refused for another reason */
	descend(NULL);
	MUST(getpid() == 2);
	MUST(hf_proc_self(&self, NULL) == 0);
	hf_proc_format(&self, shared->text);
	child_answers(in, out, NULL);
}

static void process_in_other_pid_namespace_is_unknown_and_not_signalled_L4_L6(void **state)
{
	struct outside *shared = shared_new(sizeof(*shared));
	struct child *c = child_start(child_in_other_pid_namespace, shared);
	struct hf_proc_id id;

	(void)state;
	if (shared->skip)
		HF_SKIP("no pid namespaces for this user: %s", strerror(shared->skip));
	ASSERT_OK(hf_proc_parse(shared->text, strlen(shared->text), &id, ERR));
	assert_int_equal(id.pid, 2);
	for (int k = 0; k < N_KERNELS; k++) {
		kernel_pretend(k);
		assert_int_equal(judge(&id, 0), HF_UNKNOWN);
		ASSERT_ERR(hf_proc_signal(&id, SIGUSR1, 0, ERR), HF_E_UNKNOWN);
		kernel_restore();
	}
	assert_int_equal(child_ask(c), 'n');
	munmap(shared, sizeof(*shared));
}

struct shifted {
	int skip;
	struct hf_proc_id target, weak_target; /* read outside */
	struct hf_proc_id inside;              /* the same process, read inside */
	int with_pidfs, without_pidfs, signalled;
};

static void child_in_other_time_namespace(int in, int out, void *arg)
{
	struct shifted *shared = arg;

	(void)in;
	shared->skip = enter_namespaces(CLONE_NEWTIME);
	if (!shared->skip)
		shared->skip = write_text("/proc/self/timens_offsets", "boottime 1000 0");
	if (!shared->skip) {
		descend(NULL); /* only children are in it */
		shared->with_pidfs = hf_proc_liveness(&shared->target, 0, NULL);
		kernel_pretend(KERNEL_NO_PIDFS);
		shared->without_pidfs = hf_proc_liveness(&shared->weak_target, 0, NULL);
		shared->signalled = hf_proc_signal(&shared->weak_target, SIGUSR1, 0, NULL);
		MUST(hf_proc_identify(shared->target.pid, &shared->inside, NULL) == 0);
	}
	tell(out, 'r');
}

static void start_time_of_other_time_namespace_is_not_compared_L4(void **state)
{
	struct shifted *shared = shared_new(sizeof(*shared));
	struct child *target = child_start(child_answers, NULL);

	(void)state;
	shared->target = identity_of(target->pid);
	kernel_pretend(KERNEL_NO_PIDFS);
	shared->weak_target = identity_of(target->pid);
	kernel_restore();
	child_reap(child_start(child_in_other_time_namespace, shared));
	if (shared->skip)
		HF_SKIP("no time namespaces for this user: %s", strerror(shared->skip));
	/* The trap is real: the same process has another start time in there. */
	assert_int_equal(shared->inside.start_ticks,
			 shared->target.start_ticks + 1000 * (uint64_t)sysconf(_SC_CLK_TCK));
	assert_int_not_equal(shared->inside.time_ns, shared->target.time_ns);
	assert_int_equal(shared->without_pidfs, HF_UNKNOWN);
	assert_int_equal(shared->signalled, HF_E_UNKNOWN);
	assert_int_equal(child_ask(target), 'n');
	if (shared->target.pidfs_inode)
		assert_int_equal(shared->with_pidfs, HF_ALIVE);
	munmap(shared, sizeof(*shared));
}

struct foreign_proc {
	int skip;
	struct hf_proc_id self, target_self, target, weak;
	uint64_t self_ticks;
	int live, weak_live, weak_recycled, asked[2], signalled, weak_signalled;
	int to_parent, parent_came, zombie, gone;
};

/* What the target says of itself; "self" needs no translation. */
static void child_writes_itself(int in, int out, void *arg)
{
	MUST(hf_proc_self(arg, NULL) == 0);
	child_answers(in, out, NULL);
}

static void signal_through_foreign_proc(struct foreign_proc *shared, struct child *target)
{
	shared->signalled = hf_proc_signal(&shared->target, SIGUSR1, 0, NULL);
	shared->asked[0] = child_ask(target);
	kernel_pretend(KERNEL_NO_PIDFS);
	shared->weak_signalled = hf_proc_signal(&shared->weak, SIGUSR1, 0, NULL);
	shared->asked[1] = child_ask(target);
	kernel_restore();
}

static void judge_through_foreign_proc(struct foreign_proc *shared, struct child *target)
{
	struct hf_proc_id parent, other;

	MUST(hf_proc_identify(target->pid, &shared->target, NULL) == 0);
	shared->live = hf_proc_liveness(&shared->target, 0, NULL);
	kernel_pretend(KERNEL_NO_PIDFS);
	MUST(hf_proc_identify(target->pid, &shared->weak, NULL) == 0);
	shared->weak_live = hf_proc_liveness(&shared->weak, 0, NULL);
	other = shared->weak;
	other.start_ticks++;
	shared->weak_recycled = hf_proc_signal(&other, SIGUSR1, 0, NULL);
	kernel_restore();
	signal_through_foreign_proc(shared, target);
	MUST(hf_proc_identify(getppid(), &parent, NULL) == 0);
	shared->to_parent = hf_proc_signal(&parent, SIGUSR1, 0, NULL);
	child_kill_only(target);
	shared->zombie = hf_proc_liveness(&shared->target, 0, NULL);
	child_reap(target);
	shared->gone = hf_proc_liveness(&shared->target, 0, NULL);
}

static void child_with_foreign_proc(int in, int out, void *arg)
{
	struct foreign_proc *shared = arg;
	struct hf_stat st;

	(void)in;
	shared->skip = enter_namespaces(CLONE_NEWPID);
	if (!shared->skip) {
		descend(NULL);
		descend(&shared->parent_came);
		descend(NULL);
		descend(&shared->parent_came);
		MUST(getpid() == 4 && getppid() == 3);
		MUST(hf_proc_self(&shared->self, NULL) == 0);
		MUST(hf_stat_read(0, &st) == 0);
		MUST(st.pid != getpid()); /* else /proc is not a foreign one */
		shared->self_ticks = st.start_ticks;
		judge_through_foreign_proc(shared,
					   child_start(child_writes_itself, &shared->target_self));
	}
	tell(out, 'r');
}

static void proc_of_another_pid_namespace_is_translated_L4_L6(void **state)
{
	struct foreign_proc *shared = shared_new(sizeof(*shared));
	struct child *c = child_start(child_with_foreign_proc, shared);

	(void)state;
	if (shared->skip)
		HF_SKIP("no pid namespaces for this user: %s", strerror(shared->skip));
	assert_int_equal(child_reap(c), 0);
	assert_int_equal(shared->self.pid, 4);
	assert_int_equal(shared->self.start_ticks, shared->self_ticks);
	assert_int_equal(shared->target.pid, 5);
	assert_same_identity(&shared->target, &shared->target_self);
	assert_int_equal(shared->live, HF_ALIVE);
	assert_int_equal(shared->weak_live, HF_ALIVE);
	ASSERT_ERR(shared->weak_recycled, HF_E_RECYCLED);
	ASSERT_OK(shared->signalled);
	ASSERT_OK(shared->weak_signalled);
	assert_int_equal(shared->asked[0], 'y');
	assert_int_equal(shared->asked[1], 'y');
	ASSERT_ERR(shared->to_parent, HF_E_PROTECTED);
	assert_false(shared->parent_came);
	assert_int_equal(shared->zombie, HF_DEAD);
	assert_int_equal(shared->gone, HF_DEAD);
	munmap(shared, sizeof(*shared));
}

/* A fork that gets `pid` in its pid namespace and in the one above. */
static pid_t fork_with_pid_twice(pid_t pid)
{
	pid_t numbers[2] = { pid, pid };
	struct clone_args args = { .exit_signal = SIGCHLD,
				   .set_tid = (uint64_t)(uintptr_t)numbers,
				   .set_tid_size = 2 };

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static void act_with_coinciding_number(struct foreign_proc *shared)
{
	struct child *target = child_start(child_writes_itself, &shared->target_self);
	struct hf_proc_id parent;

	MUST(hf_proc_identify(target->pid, &shared->target, NULL) == 0);
	MUST(hf_proc_identify(getppid(), &parent, NULL) == 0);
	shared->to_parent = hf_proc_signal(&parent, SIGUSR1, 0, NULL);
	shared->signalled = hf_proc_signal(&shared->target, SIGUSR1, 0, NULL);
	shared->asked[0] = child_ask(target);
	child_kill(target);
}

static void child_with_coinciding_number(int in, int out, void *arg)
{
	struct foreign_proc *shared = arg;
	pid_t pid = -1;

	(void)in;
	shared->skip = unshare(CLONE_NEWPID) < 0 ? errno : 0;
	if (!shared->skip) {
		descend(NULL);
		descend(NULL);
		for (pid_t want = 20000; pid < 0 && want < 20100; want++)
			pid = fork_with_pid_twice(want);
		shared->skip = pid < 0 ? errno : 0;
	}
	if (pid == 0) {
		act_with_coinciding_number(shared);
		_exit(0);
	}
	if (pid > 0) {
		int status;

		MUST(waitpid(pid, &status, 0) == pid && status == 0);
		shared->parent_came = usr1_came();
	}
	tell(out, 'r');
}

/*
 * /proc of the outer namespace, in which the caller happens to have the very
 * number that it has in its own: that is no sign that the other numbers agree.
 */
static void coinciding_own_pid_does_not_stop_translation_L6(void **state)
{
	struct foreign_proc *shared = shared_new(sizeof(*shared));
	struct child *c = child_start(child_with_coinciding_number, shared);

	(void)state;
	if (shared->skip)
		HF_SKIP("needs root and clone3 with set_tid: %s", strerror(shared->skip));
	assert_int_equal(child_reap(c), 0);
	assert_same_identity(&shared->target, &shared->target_self);
	ASSERT_ERR(shared->to_parent, HF_E_PROTECTED);
	assert_false(shared->parent_came);
	ASSERT_OK(shared->signalled);
	assert_int_equal(shared->asked[0], 'y');
	munmap(shared, sizeof(*shared));
}

/* ---- signals ---- */

static void signal_reaches_exactly_that_child_L6(void **state)
{
	struct child *other = child_start(child_answers, NULL);
	struct child *c = child_start(child_answers, NULL);
	struct hf_proc_id id = identity_of(c->pid);
	int status;

	(void)state;
	ASSERT_OK(hf_proc_signal(&id, 0, 0, ERR));
	assert_int_equal(child_ask(c), 'n');
	ASSERT_OK(hf_proc_signal(&id, SIGUSR1, 0, ERR));
	assert_int_equal(child_ask(c), 'y');
	ASSERT_OK(hf_proc_signal(&id, SIGTERM, 0, ERR));
	status = child_reap(c);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGTERM);
	assert_int_equal(child_ask(other), 'n');
}

static void gone_and_zombie_are_refused_as_gone_L6(void **state)
{
	(void)state;
	for (int k = 0; k < N_KERNELS; k++) {
		struct child *c = child_start(child_answers, NULL);
		struct hf_proc_id id;

		kernel_pretend(k);
		id = identity_of(c->pid);
		child_kill_only(c);
		ASSERT_ERR(hf_proc_signal(&id, SIGUSR1, 0, ERR), HF_E_GONE);
		ASSERT_ERR(hf_proc_signal(&id, 0, 0, ERR), HF_E_GONE);
		child_reap(c);
		ASSERT_ERR(hf_proc_signal(&id, SIGUSR1, 0, ERR), HF_E_GONE);
		kernel_restore();
	}
}

static void other_pidfs_inode_is_recycled_and_gets_no_signal_L6(void **state)
{
	struct child *c = child_start(child_answers, NULL);
	struct hf_proc_id id = identity_of(c->pid);
	int pidfd = -1;

	(void)state;
	need_pidfs(&id);
	id.pidfs_inode++;
	assert_int_equal(judge(&id, 0), HF_DEAD);
	ASSERT_ERR(hf_proc_signal(&id, SIGUSR1, 0, ERR), HF_E_RECYCLED);
	assert_non_null(strstr(ERR->detail, "another process"));
	ASSERT_ERR(hf_proc_open(&id, 0, &pidfd, ERR), HF_E_RECYCLED);
	assert_int_equal(pidfd, -1);
	assert_int_equal(child_ask(c), 'n');
}

static void bad_signal_number_is_refused_L6(void **state)
{
	static const int bad[] = { -1, -SIGTERM, 65, 1000, INT32_MAX, INT32_MIN };
	struct child *c = child_start(child_answers, NULL);
	struct hf_proc_id id = identity_of(c->pid);

	(void)state;
	for (size_t i = 0; i < ROWS(bad); i++)
		ASSERT_ERR(hf_proc_signal(&id, bad[i], 0, ERR), -EINVAL);
	ASSERT_ERR(hf_proc_signal(NULL, SIGUSR1, 0, ERR), -EINVAL);
	assert_int_equal(child_ask(c), 'n');
	/* Our refusal, not the kernel's, which would not be asked here. */
	child_kill(c);
	for (size_t i = 0; i < ROWS(bad); i++)
		ASSERT_ERR(hf_proc_signal(&id, bad[i], 0, ERR), -EINVAL);
}

static void pid_one_and_below_are_protected_L6(void **state)
{
	static const int32_t pids[] = { 1, 0, -1, INT32_MIN };
	struct child *c = child_start(child_answers, NULL);
	struct hf_proc_id id = identity_of(c->pid);

	(void)state;
	for (size_t i = 0; i < ROWS(pids); i++) {
		/* Also with 0 and -1, which mean "my group" and "everybody" to kill(2). */
		id.pid = pids[i];
		ASSERT_ERR(hf_proc_signal(&id, SIGUSR1, 0, ERR), HF_E_PROTECTED);
	}
	id = identity_of(1);
	ASSERT_ERR(hf_proc_signal(&id, 0, 0, ERR), HF_E_PROTECTED);
	assert_int_equal(child_ask(c), 'n');
	assert_false(usr1_came());
}

struct family {
	struct hf_proc_id self, parent, grandparent;
	int results[3];
	int self_came, parent_came;
	int sent; /* refusals that were none, over all faults */
	int strikes;
	char first[128];
};

static void meet_family(struct family *shared)
{
	MUST(hf_proc_self(&shared->self, NULL) == 0);
	MUST(hf_proc_identify(getppid(), &shared->parent, NULL) == 0);
}

static void child_signals_its_family(int in, int out, void *arg)
{
	struct family *shared = arg;

	(void)in;
	descend(&shared->parent_came);
	meet_family(shared);
	shared->results[0] = hf_proc_signal(&shared->self, SIGUSR1, 0, NULL);
	shared->results[1] = hf_proc_signal(&shared->parent, SIGUSR1, 0, NULL);
	shared->results[2] = hf_proc_signal(&shared->grandparent, SIGUSR1, 0, NULL);
	shared->self_came = usr1_came();
	tell(out, 'r');
}

static void self_and_ancestors_are_protected_L6(void **state)
{
	struct family *shared = shared_new(sizeof(*shared));
	struct child *c;

	(void)state;
	shared->grandparent = identity_of(getpid());
	c = child_start(child_signals_its_family, shared);
	assert_int_equal(child_reap(c), 0);
	for (int i = 0; i < 3; i++)
		ASSERT_ERR(shared->results[i], HF_E_PROTECTED);
	assert_false(shared->self_came);
	assert_false(shared->parent_came);
	assert_false(usr1_came());
	munmap(shared, sizeof(*shared));
}

static void child_of_other_user(int in, int out, void *arg)
{
	(void)arg;
	MUST(setresuid(65534, 65534, 65534) == 0);
	child_answers(in, out, NULL);
}

static int is_ancestor(pid_t pid)
{
	struct hf_stat st = { .ppid = getpid() };

	while (st.ppid > 1) {
		if (st.ppid == pid)
			return 1;
		if (hf_stat_read(st.ppid, &st) < 0)
			return 0;
	}
	return 0;
}

/* Some process of another user that is neither pid 1 nor an ancestor; 0 if there is none. */
static pid_t find_other_users_process(void)
{
	DIR *d = opendir("/proc");
	struct dirent *entry;
	pid_t found = 0;
	uint32_t uid;

	assert_non_null(d);
	while (!found && (entry = readdir(d))) {
		pid_t pid = atoi(entry->d_name);

		if (pid > 1 && hf_status_read_uid(pid, &uid) == 0 && uid != geteuid() &&
		    !is_ancestor(pid))
			found = pid;
	}
	closedir(d);
	return found;
}

static void other_users_process_is_foreign_L6(void **state)
{
	struct child *c = NULL;
	struct hf_proc_id id;
	pid_t pid;

	(void)state;
	if (geteuid() == 0)
		c = child_start(child_of_other_user, NULL);
	pid = c ? c->pid : find_other_users_process();
	if (pid == 0)
		HF_SKIP("no process of another user to be seen");
	id = identity_of(pid);
	/* Nothing that could hurt is sent to a stranger, should the refusal fail. */
	ASSERT_ERR(hf_proc_signal(&id, c ? SIGUSR1 : 0, 0, ERR), HF_E_FOREIGN);
	assert_string_equal(ERR->op, "owner"); /* our refusal, not the kernel's */
	assert_int_equal(judge(&id, 0), HF_ALIVE);
	if (c)
		assert_int_equal(child_ask(c), 'n');
}

static void no_signal_without_a_pidfd_L6(void **state)
{
	struct child *c = child_start(child_answers, NULL);
	struct hf_proc_id id;
	int pidfd = -1;

	(void)state;
	kernel_pretend(KERNEL_NO_PIDFD);
	id = identity_of(c->pid);
	assert_int_equal(id.pidfs_inode, 0);
	assert_int_equal(judge(&id, 0), HF_ALIVE);
	assert_non_null(strstr(evidence, "weak"));
	ASSERT_ERR(hf_proc_signal(&id, SIGUSR1, 0, ERR), HF_E_UNKNOWN);
	ASSERT_ERR(hf_proc_open(&id, 0, &pidfd, ERR), HF_E_UNKNOWN);
	assert_int_equal(pidfd, -1);
	assert_int_equal(child_ask(c), 'n');
}

/* ---- threads ---- */

struct waiting_thread {
	pthread_t thread;
	int wake[2], up[2];
	pid_t tid;
};

static void *thread_waits(void *arg)
{
	struct waiting_thread *t = arg;
	char byte;

	t->tid = gettid();
	tell(t->up[1], 'r');
	return read(t->wake[0], &byte, 1) < 0 ? t : NULL;
}

static void thread_start(struct waiting_thread *t)
{
	assert_int_equal(pipe2(t->wake, O_CLOEXEC), 0);
	assert_int_equal(pipe2(t->up, O_CLOEXEC), 0);
	assert_int_equal(pthread_create(&t->thread, NULL, thread_waits, t), 0);
	assert_int_equal(hear(t->up[0]), 'r');
}

static void thread_end(struct waiting_thread *t)
{
	close(t->wake[1]);
	pthread_join(t->thread, NULL);
	close(t->wake[0]);
	close(t->up[0]);
	close(t->up[1]);
}

static void thread_id_is_no_process_L6(void **state)
{
	struct hf_proc_id id = { 0 }, stored = identity_of(getpid());
	struct waiting_thread t;
	int identified[N_KERNELS], live, sent;

	(void)state;
	thread_start(&t);
	for (int k = 0; k < N_KERNELS; k++) {
		kernel_pretend(k);
		identified[k] = hf_proc_identify(t.tid, &id, ERR);
		kernel_restore();
	}
	/* A process that had this number is gone, whatever its start time was. */
	stored.pid = t.tid;
	live = hf_proc_liveness(&stored, 0, NULL);
	sent = hf_proc_signal(&stored, SIGUSR1, 0, ERR);
	thread_end(&t); /* before the assertions, which do not come back */
	assert_int_equal(live, HF_DEAD);
	ASSERT_ERR(sent, HF_E_RECYCLED);
	assert_false(usr1_came());
	ASSERT_ERR(identified[KERNEL_AS_IS], -EINVAL);
	ASSERT_ERR(identified[KERNEL_NO_PIDFS], -EINVAL);
	ASSERT_ERR(identified[KERNEL_NO_PIDFD], -EINVAL);
}

/* ---- pidfds ---- */

static void opened_pidfd_is_cloexec_and_shows_the_exit(void **state)
{
	struct child *c = child_start(child_answers, NULL);
	struct hf_proc_id id = identity_of(c->pid);
	struct pollfd p = { .fd = -1, .events = POLLIN };
	int early, late, flags;

	(void)state;
	ASSERT_OK(hf_proc_open(&id, 0, &p.fd, ERR));
	flags = fcntl(p.fd, F_GETFD);
	early = poll(&p, 1, 0);
	assert_int_equal(kill(c->pid, SIGKILL), 0);
	late = poll(&p, 1, DEADLINE_MS);
	close(p.fd);
	assert_true(flags & FD_CLOEXEC);
	assert_int_equal(early, 0);
	assert_int_equal(late, 1);
	assert_true(p.revents & POLLIN);
	ASSERT_ERR(hf_proc_open(&id, 0, &p.fd, ERR), HF_E_GONE);
	ASSERT_ERR(hf_proc_open(NULL, 0, &p.fd, ERR), -EINVAL);
	ASSERT_ERR(hf_proc_open(&id, 0, NULL, ERR), -EINVAL);
}

/* ---- kernels that lack things ---- */

static void without_pidfs_the_start_time_decides_and_says_weak_L4(void **state)
{
	struct child *c = child_start(child_answers, NULL);
	struct hf_proc_id strong = identity_of(c->pid), id, other;

	(void)state;
	kernel_pretend(KERNEL_NO_PIDFS);
	id = identity_of(c->pid);
	assert_int_equal(id.pidfs_inode, 0);
	assert_int_equal(id.start_ticks, strong.start_ticks);
	assert_int_equal(judge(&id, 0), HF_ALIVE);
	assert_non_null(strstr(evidence, "weak"));
	other = id;
	other.start_ticks--;
	assert_int_equal(judge(&other, 0), HF_DEAD);
	ASSERT_ERR(hf_proc_signal(&other, SIGUSR1, 0, ERR), HF_E_RECYCLED);
	assert_int_equal(child_ask(c), 'n');
	other.start_ticks = 0;
	assert_int_equal(judge(&other, 0), HF_UNKNOWN);
	ASSERT_ERR(hf_proc_signal(&other, SIGUSR1, 0, ERR), HF_E_UNKNOWN);
	assert_int_equal(child_ask(c), 'n');
	ASSERT_OK(hf_proc_signal(&id, SIGUSR1, 0, ERR));
	assert_int_equal(child_ask(c), 'y');
}

static void with_pidfs_the_evidence_is_not_weak(void **state)
{
	struct child *c = child_start(child_answers, NULL);
	struct hf_proc_id id = identity_of(c->pid);

	(void)state;
	need_pidfs(&id);
	assert_int_equal(judge(&id, 0), HF_ALIVE);
	assert_null(strstr(evidence, "weak"));
	/* The inode is enough: a start time that cannot be right changes nothing. */
	id.start_ticks = 0;
	assert_int_equal(judge(&id, 0), HF_ALIVE);
}

/* As /proc mounted with hidepid=2 looks to one who may not trace that process. */
static char hidden_path[32];
static int polls_to_fail;

static int openat_hidden(int dirfd, const char *path, int flags, mode_t mode)
{
	if (strncmp(path, hidden_path, strlen(hidden_path)) == 0) {
		errno = ENOENT;
		return -1;
	}
	return openat(dirfd, path, flags, mode);
}

static int poll_fails(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	if (polls_to_fail-- <= 0)
		return poll(fds, n, timeout_ms);
	errno = ENOMEM;
	return -1;
}

/* As if another thread had closed the descriptor. */
static int poll_finds_no_file(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	(void)n;
	(void)timeout_ms;
	fds->revents = POLLNVAL;
	return 1;
}

static void hide_from_proc(pid_t pid)
{
	snprintf(hidden_path, sizeof(hidden_path), "/proc/%d/", (int)pid);
	hf_sys.openat = openat_hidden;
}

static void living_process_hidden_by_proc_is_never_dead_L4(void **state)
{
	struct child *c = child_start(child_answers, NULL);
	int answers[N_KERNELS], sent[N_KERNELS], identified[N_KERNELS];
	struct hf_proc_id id, found;

	(void)state;
	for (int k = 0; k < N_KERNELS; k++) {
		kernel_pretend(k);
		id = identity_of(c->pid);
		hide_from_proc(c->pid);
		answers[k] = judge(&id, 0);
		sent[k] = hf_proc_signal(&id, SIGUSR1, 0, ERR);
		identified[k] = hf_proc_identify(c->pid, &found, ERR);
		kernel_restore();
	}
	assert_int_equal(child_ask(c), 'n');
	for (int k = 0; k < N_KERNELS; k++) {
		if (answers[k] == HF_DEAD || sent[k] == HF_E_GONE || identified[k] == HF_E_GONE)
			fail_msg("kernel %s: a hidden living process is called dead "
				 "(liveness %d, signal %d, identify %d)",
				 kernel_names[k], answers[k], sent[k], identified[k]);
	}
}

static void failing_poll_is_no_proof_of_death_L4(void **state)
{
	struct child *c = child_start(child_answers, NULL);
	struct hf_proc_id id;

	(void)state;
	kernel_pretend(KERNEL_NO_PIDFS);
	id = identity_of(c->pid);
	hide_from_proc(c->pid);
	hf_sys.poll = poll_fails;
	for (int n = 1; n <= 3; n++) {
		polls_to_fail = n;
		assert_int_equal(hf_proc_liveness(&id, 0, NULL), HF_UNKNOWN);
	}
	kernel_restore();
	id = identity_of(c->pid);
	hf_sys.poll = poll_finds_no_file;
	assert_int_equal(hf_proc_liveness(&id, 0, NULL), HF_UNKNOWN);
}

/* ---- every call failing in turn ---- */

struct strike {
	enum kernel kernel;
	int n, error;
	char call[32];
	int result;
};

static struct {
	struct child *child;
	struct hf_proc_id id;      /* what the call under test is given */
	struct hf_proc_id right;   /* the truth, on this kernel */
	struct hf_proc_id found;
	int pidfd;
	int violations, strikes;
} sweep;

static void violated(const struct strike *s, const char *law)
{
	if (++sweep.violations > 5)
		return; /* enough to see the pattern */
	print_error("kernel %s, call %d (%s) fails with %s: result %d: %s\n",
		    kernel_names[s->kernel], s->n, s->call, strerrorname_np(s->error), s->result,
		    law);
}

/* pidfd_open's ENOENT is the kernel's own word for "that is a thread", so it may be believed. */
static int says_thread(const struct strike *s)
{
	return s->error == ENOENT && strcmp(s->call, "pidfd_open") == 0;
}

/* 1 when call n was struck. */
static int strike_once(struct strike *s, int (*act)(void), int persist)
{
	int hit;

	hf_fault_arm(&(struct hf_fault){ .at = s->n, .error = s->error, .persist = persist });
	kernel_pretend(s->kernel);
	s->result = act();
	hit = hf_fault_hit();
	snprintf(s->call, sizeof(s->call), "%s", hf_fault_call());
	kernel_restore();
	return hit;
}

static void sweep_error(enum kernel kernel, int error, int persist, int (*act)(void),
			void (*check)(const struct strike *s))
{
	struct strike s = { .kernel = kernel, .error = error };
	int fds = hf_test_fd_count(), hit;

	do {
		s.n++;
		hit = strike_once(&s, act, persist);
		check(&s); /* also the last time, when no call was left to fail */
		if (hf_test_fd_count() != fds)
			violated(&s, "a descriptor leaked");
		sweep.strikes += hit;
	} while (hit && s.n < 1000);
	assert_true(s.n > 3 && s.n < 1000); /* it struck, and it came to an end */
}

/* `prepare` makes sweep.id from sweep.right. */
static void sweep_all(void (*prepare)(void), int (*act)(void),
		      void (*check)(const struct strike *s))
{
	sweep.violations = sweep.strikes = 0;
	for (int k = 0; k < N_KERNELS; k++) {
		kernel_pretend(k);
		sweep.right = identity_of(sweep.child ? sweep.child->pid : getpid());
		kernel_restore();
		sweep.id = sweep.right;
		if (prepare)
			prepare();
		for (size_t i = 0; i < ROWS(errors); i++) {
			sweep_error(k, errors[i], 0, act, check);
			sweep_error(k, errors[i], 1, act, check);
		}
	}
	assert_true(sweep.strikes > 100);
	assert_int_equal(sweep.violations, 0);
}

static int act_liveness(void)
{
	return hf_proc_liveness(&sweep.id, 0, NULL);
}

static void check_not_dead(const struct strike *s)
{
	if (s->result != HF_ALIVE && s->result != HF_UNKNOWN && !says_thread(s))
		violated(s, "a living process is called dead");
}

static void no_failing_call_makes_the_living_dead_L4(void **state)
{
	(void)state;
	sweep.child = child_start(child_answers, NULL);
	sweep_all(NULL, act_liveness, check_not_dead);
	assert_int_equal(child_ask(sweep.child), 'n');
}

static void end_the_child(void)
{
	if (sweep.child->pid)
		child_kill_only(sweep.child);
}

static void check_not_alive(const struct strike *s)
{
	if (s->result == HF_ALIVE)
		violated(s, "a zombie is called alive");
}

static void no_failing_call_makes_the_dead_alive_L4(void **state)
{
	(void)state;
	sweep.violations = sweep.strikes = 0;
	for (int k = 0; k < N_KERNELS; k++) {
		sweep.child = child_start(child_answers, NULL);
		kernel_pretend(k);
		sweep.id = identity_of(sweep.child->pid);
		kernel_restore();
		end_the_child();
		for (size_t i = 0; i < ROWS(errors); i++)
			sweep_error(k, errors[i], 0, act_liveness, check_not_alive);
		child_reap(sweep.child);
		for (size_t i = 0; i < ROWS(errors); i++)
			sweep_error(k, errors[i], 0, act_liveness, check_not_alive);
	}
	assert_int_equal(sweep.violations, 0);
}

static int act_identify(void)
{
	memset(&sweep.found, 0, sizeof(sweep.found));
	return hf_proc_identify(sweep.child->pid, &sweep.found, NULL);
}

/* What could not be read may be missing; nothing may be wrong. */
static void check_found(const struct strike *s)
{
	const struct hf_proc_id *found = &sweep.found, *right = &sweep.right;

	if (s->result == HF_E_GONE)
		violated(s, "a living process is called gone");
	if (s->result < 0 && found->pid != 0)
		violated(s, "a failed call has written its result");
	if (s->result < 0)
		return;
	if (found->pid != right->pid || found->pid_ns != right->pid_ns ||
	    strcmp(found->boot_id, right->boot_id) != 0)
		violated(s, "wrong pid, namespace or boot id");
	if (found->pidfs_inode && found->pidfs_inode != right->pidfs_inode)
		violated(s, "wrong pidfs inode");
	if (found->start_ticks && found->start_ticks != right->start_ticks)
		violated(s, "wrong start time");
	/* ENOENT: a kernel without time namespaces. */
	if (found->time_ns != right->time_ns && (found->time_ns || s->error != ENOENT))
		violated(s, "wrong time namespace");
	if (!found->pidfs_inode && !found->start_ticks)
		violated(s, "an identity that identifies nothing");
	if (hf_proc_liveness(found, 0, NULL) == HF_DEAD)
		violated(s, "an identity that is dead at once");
}

static void no_failing_call_makes_a_wrong_identity_L6(void **state)
{
	(void)state;
	sweep.child = child_start(child_answers, NULL);
	sweep_all(NULL, act_identify, check_found);
}

static int act_signal(void)
{
	return hf_proc_signal(&sweep.id, SIGUSR1, 0, NULL);
}

/* Sent means 0, and 0 means sent: whoever reads the result must be able to rely on it. */
static void check_sent_is_told(const struct strike *s)
{
	int came = child_ask(sweep.child);

	if (came != (s->result == 0 ? 'y' : 'n'))
		violated(s, "result and delivery disagree");
	if (s->result == HF_E_GONE || (s->result == HF_E_RECYCLED && !says_thread(s)))
		violated(s, "a living process is called gone");
}

static void result_of_signal_says_whether_it_was_sent_L6(void **state)
{
	(void)state;
	sweep.child = child_start(child_answers, NULL);
	sweep_all(NULL, act_signal, check_sent_is_told);
}

static void check_never_sent(const struct strike *s)
{
	int came = child_ask(sweep.child);

	if (s->result == 0 || came != 'n')
		violated(s, "a process was signalled whose identity does not match");
}

static void make_other_inode(void)
{
	sweep.id.pidfs_inode = sweep.right.pidfs_inode + 1;
}

static void make_other_start(void)
{
	sweep.id.pidfs_inode = 0;
	sweep.id.start_ticks--;
}

static void make_other_pid_ns(void)
{
	sweep.id.pid_ns ^= 1;
}

static void no_failing_call_lets_a_signal_reach_another_inode_L6(void **state)
{
	struct hf_proc_id self = identity_of(getpid());

	(void)state;
	need_pidfs(&self);
	sweep.child = child_start(child_answers, NULL);
	sweep_all(make_other_inode, act_signal, check_never_sent);
}

static void no_failing_call_lets_a_signal_reach_another_start_time_L6(void **state)
{
	(void)state;
	sweep.child = child_start(child_answers, NULL);
	sweep_all(make_other_start, act_signal, check_never_sent);
}

static void no_failing_call_lets_a_signal_reach_another_namespace_L6(void **state)
{
	(void)state;
	sweep.child = child_start(child_answers, NULL);
	sweep_all(make_other_pid_ns, act_signal, check_never_sent);
}

static void no_failing_call_lets_a_signal_reach_another_user_L6(void **state)
{
	(void)state;
	if (geteuid() != 0)
		HF_SKIP("needs root: the kernel itself protects other users from this one");
	sweep.child = child_start(child_of_other_user, NULL);
	sweep_all(NULL, act_signal, check_never_sent);
}

static void sweep_relative(struct family *shared, const struct hf_proc_id *id, int error)
{
	struct strike s = { .error = error };

	sweep.id = *id;
	for (s.n = 1; s.n < 1000 && strike_once(&s, act_signal, 0); s.n++) {
		shared->strikes++;
		if (s.result != 0)
			continue;
		if (shared->sent++ == 0)
			snprintf(shared->first, sizeof(shared->first),
				 "call %d (%s) fails with %s, and pid %d is signalled", s.n, s.call,
				 strerrorname_np(s.error), (int)id->pid);
	}
}

static void child_signals_its_family_with_faults(int in, int out, void *arg)
{
	struct family *shared = arg;

	(void)in;
	descend(&shared->parent_came);
	meet_family(shared);
	for (size_t i = 0; i < ROWS(errors); i++) {
		sweep_relative(shared, &shared->self, errors[i]);
		sweep_relative(shared, &shared->parent, errors[i]);
		/* ENOENT there is an ancestor hidden by /proc; who is above it cannot be known. */
		if (errors[i] != ENOENT)
			sweep_relative(shared, &shared->grandparent, errors[i]);
	}
	shared->self_came = usr1_came();
	tell(out, 'r');
}

static void no_failing_call_lets_a_signal_reach_self_or_ancestors_L6(void **state)
{
	struct family *shared = shared_new(sizeof(*shared));
	struct child *c;

	(void)state;
	shared->grandparent = identity_of(getpid());
	c = child_start(child_signals_its_family_with_faults, shared);
	assert_int_equal(child_reap(c), 0);
	assert_true(shared->strikes > 100);
	if (shared->sent)
		fail_msg("%d times, first: %s", shared->sent, shared->first);
	assert_false(shared->self_came || shared->parent_came || usr1_came());
	munmap(shared, sizeof(*shared));
}

static int act_open(void)
{
	sweep.pidfd = -1;
	return hf_proc_open(&sweep.id, 0, &sweep.pidfd, NULL);
}

static void check_opened(const struct strike *s)
{
	int sent;

	if ((s->result == 0) != (sweep.pidfd >= 0))
		violated(s, "result and descriptor disagree");
	if (sweep.pidfd < 0)
		return;
	sent = (int)syscall(SYS_pidfd_send_signal, sweep.pidfd, SIGUSR1, NULL, 0);
	if (sent != 0 || child_ask(sweep.child) != 'y')
		violated(s, "a descriptor of something else");
	close(sweep.pidfd);
}

static void no_failing_call_opens_a_wrong_process_L6(void **state)
{
	(void)state;
	sweep.child = child_start(child_answers, NULL);
	sweep_all(NULL, act_open, check_opened);
}

/* ---- the caller's process ---- */

struct surroundings {
	int blocked[32];
	uintptr_t handlers[32];
	int flags[32];
	char cwd[512];
	mode_t umask;
};

static void look_around(struct surroundings *s)
{
	struct sigaction action;
	sigset_t mask;

	memset(s, 0, sizeof(*s));
	sigprocmask(SIG_BLOCK, NULL, &mask);
	for (int sig = 1; sig < 32; sig++) {
		sigaction(sig, NULL, &action);
		s->blocked[sig] = sigismember(&mask, sig);
		s->handlers[sig] = (uintptr_t)action.sa_handler;
		s->flags[sig] = action.sa_flags;
	}
	assert_non_null(getcwd(s->cwd, sizeof(s->cwd)));
	s->umask = umask(0);
	umask(s->umask);
}

static void call_everything(const struct hf_proc_id *id)
{
	char text[HF_PROC_TEXT_MAX];
	struct hf_proc_id other;
	int pidfd = -1;

	if (hf_proc_self(&other, NULL) < 0 || hf_proc_identify(id->pid, &other, NULL) == 0)
		assert_int_equal(other.pid, id->pid);
	hf_proc_liveness(id, 0, NULL);
	hf_proc_liveness(id, HF_PROC_SHARED, NULL);
	if (hf_proc_open(id, 0, &pidfd, NULL) == 0)
		close(pidfd);
	assert_true(hf_proc_signal(id, SIGUSR1, 0, NULL) <= 0);
	ASSERT_OK(hf_proc_parse(text, (size_t)hf_proc_format(id, text), &other, ERR));
}

static void calls_leave_the_process_as_it_was_L13(void **state)
{
	struct surroundings before, after;
	struct child *live = child_start(child_answers, NULL);
	struct child *dead = child_start(child_answers, NULL);
	struct hf_proc_id live_id = identity_of(live->pid), dead_id = identity_of(dead->pid);
	siginfo_t info = { 0 };

	(void)state;
	child_kill_only(dead);
	look_around(&before);
	for (int k = 0; k < N_KERNELS; k++) {
		kernel_pretend(k);
		call_everything(&live_id);
		call_everything(&dead_id);
		kernel_restore();
	}
	look_around(&after);
	assert_memory_equal(&before, &after, sizeof(before));
	/* The zombie is still ours to reap, and is the only child that has ended. */
	assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT), 0);
	assert_int_equal(info.si_pid, dead->pid);
	assert_int_equal(WTERMSIG(child_reap(dead)), SIGKILL);
	info.si_pid = 0;
	assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT), 0);
	assert_int_equal(info.si_pid, 0);
}

static void identities_are_equal_by_inode_or_by_start(void **state)
{
	struct hf_proc_id a, b;

	(void)state;
	ASSERT_OK(hf_proc_self(&a, ERR));
	b = a;
	assert_true(hf_proc_equal(&a, &b));
	b.pid++;
	assert_false(hf_proc_equal(&a, &b));
	b = a;
	b.boot_id[0] ^= 1;
	assert_false(hf_proc_equal(&a, &b));
	b = a;
	b.pid_ns++;
	assert_false(hf_proc_equal(&a, &b));
	/* The inode decides where both have one. */
	b = a;
	a.pidfs_inode = b.pidfs_inode = 7;
	b.start_ticks++;
	assert_true(hf_proc_equal(&a, &b));
	b.pidfs_inode = 8;
	assert_false(hf_proc_equal(&a, &b));
	b.pidfs_inode = 0;
	assert_false(hf_proc_equal(&a, &b));
	b.start_ticks--;
	assert_true(hf_proc_equal(&a, &b));
	b.time_ns++;
	assert_false(hf_proc_equal(&a, &b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PROC_TEST(identity_of_self_is_what_the_kernel_says),
		PROC_TEST(identity_of_a_child_has_its_own_start),
		PROC_TEST(identify_refuses_what_is_no_process),
		PROC_TEST(command_name_cannot_forge_identity_L6),
		PROC_TEST(text_form_round_trips),
		PROC_TEST(every_truncation_is_refused),
		PROC_TEST(only_the_one_text_of_an_identity_is_read),
		PROC_TEST(too_long_a_text_is_refused),
		PROC_TEST(running_process_is_alive_L4),
		PROC_TEST(stopped_process_is_alive_L4),
		PROC_TEST(zombie_is_dead_before_and_after_reaping_L4),
		PROC_TEST(process_whose_main_thread_ended_is_alive_L4),
		PROC_TEST(other_boot_is_dead_on_local_and_unknown_on_shared_storage_L4),
		PROC_TEST(other_pid_namespace_is_unknown_L4),
		PROC_TEST(malformed_identity_is_unknown_L4),
		PROC_TEST(process_in_other_pid_namespace_is_unknown_and_not_signalled_L4_L6),
		PROC_TEST(start_time_of_other_time_namespace_is_not_compared_L4),
		PROC_TEST(proc_of_another_pid_namespace_is_translated_L4_L6),
		PROC_TEST(coinciding_own_pid_does_not_stop_translation_L6),
		PROC_TEST(signal_reaches_exactly_that_child_L6),
		PROC_TEST(gone_and_zombie_are_refused_as_gone_L6),
		PROC_TEST(other_pidfs_inode_is_recycled_and_gets_no_signal_L6),
		PROC_TEST(bad_signal_number_is_refused_L6),
		PROC_TEST(pid_one_and_below_are_protected_L6),
		PROC_TEST(self_and_ancestors_are_protected_L6),
		PROC_TEST(other_users_process_is_foreign_L6),
		PROC_TEST(no_signal_without_a_pidfd_L6),
		PROC_TEST(thread_id_is_no_process_L6),
		PROC_TEST(opened_pidfd_is_cloexec_and_shows_the_exit),
		PROC_TEST(without_pidfs_the_start_time_decides_and_says_weak_L4),
		PROC_TEST(with_pidfs_the_evidence_is_not_weak),
		PROC_TEST(living_process_hidden_by_proc_is_never_dead_L4),
		PROC_TEST(failing_poll_is_no_proof_of_death_L4),
		PROC_TEST(no_failing_call_makes_the_living_dead_L4),
		PROC_TEST(no_failing_call_makes_the_dead_alive_L4),
		PROC_TEST(no_failing_call_makes_a_wrong_identity_L6),
		PROC_TEST(result_of_signal_says_whether_it_was_sent_L6),
		PROC_TEST(no_failing_call_lets_a_signal_reach_another_inode_L6),
		PROC_TEST(no_failing_call_lets_a_signal_reach_another_start_time_L6),
		PROC_TEST(no_failing_call_lets_a_signal_reach_another_namespace_L6),
		PROC_TEST(no_failing_call_lets_a_signal_reach_another_user_L6),
		PROC_TEST(no_failing_call_lets_a_signal_reach_self_or_ancestors_L6),
		PROC_TEST(no_failing_call_opens_a_wrong_process_L6),
		PROC_TEST(calls_leave_the_process_as_it_was_L13),
		PROC_TEST(identities_are_equal_by_inode_or_by_start),
	};

	proc_test_begin();
	return hf_run_tests("proc", tests);
}
