/*
 * tests/unit/proc/test_proc_reuse.c - the pid was given away again: nobody may be hit.
 *
 * Reuse is forced, not hoped for: in a pid namespace of its own, where nothing
 * else forks, /proc/sys/kernel/ns_last_pid says which number comes next. There
 * a victim is identified and killed, and a bystander with the victim's pid, name
 * and (nearly always at once) start tick takes its place.
 */
#include <pthread.h>
#include <sys/mount.h>
#include <sys/prctl.h>

#include "helper/proc_helper.h"
#include "hf/proc/stat.h"

#define NAME       "victim"
#define ATTEMPTS   200
#define LAST_PID   "/proc/sys/kernel/ns_last_pid"
#define VICTIM_PID 300

/* What a scene tells the test outside. */
struct report {
	const char *skip_what; /* NULL: the scene ran */
	int skip_errno;
	int attempts;
	int same_pid, same_comm, same_tick;
	int live, sent, asked;
	int checked, wrong; /* of many */
	char first_wrong[160];
	char evidence[HF_EVIDENCE_MAX];
};

/* ---- the stage ---- */

static int lacks(struct report *r, const char *what, int error)
{
	r->skip_what = what;
	r->skip_errno = error;
	return -1;
}

static int set_stage(struct report *r)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return lacks(r, "private mounts", errno);
	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return lacks(r, "a /proc of its own", errno);
	MUST(getpid() == 1);
	if (access(LAST_PID, W_OK) < 0)
		return lacks(r, LAST_PID, errno);
	return 0;
}

struct scene {
	void (*play)(struct report *r);
	struct report *report;
};

static void child_plays_scene(int in, int out, void *arg)
{
	struct scene *scene = arg;
	int failed = enter_namespaces(CLONE_NEWPID | CLONE_NEWNS);

	(void)in;
	if (failed)
		lacks(scene->report, "a pid namespace", failed);
	tell(out, 'r');
	if (failed)
		return;
	descend(NULL);
	if (set_stage(scene->report) == 0)
		scene->play(scene->report);
	children_end();
}

/* Runs the scene as pid 1 of a new namespace and returns what it reported. */
static struct report play(void (*scene_fn)(struct report *r))
{
	struct scene scene = { scene_fn, shared_new(sizeof(struct report)) };
	int status = child_reap(child_start(child_plays_scene, &scene));
	struct report r = *scene.report;

	munmap(scene.report, sizeof(struct report));
	if (status != 0)
		fail_msg("the scene broke off (wait status %#x)", (unsigned)status);
	if (r.skip_what)
		HF_SKIP("needs %s: %s", r.skip_what, strerror(r.skip_errno));
	return r;
}

/* ---- the actors ---- */

static void child_named(int in, int out, void *arg)
{
	(void)arg;
	MUST(prctl(PR_SET_NAME, NAME) == 0);
	child_answers(in, out, NULL);
}

static void next_pid_is(pid_t pid)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", (int)pid - 1);
	MUST(write_text(LAST_PID, text) == 0);
}

static struct child *start_with_pid(pid_t pid)
{
	struct child *c;

	next_pid_is(pid);
	c = child_start(child_named, NULL);
	MUST(c->pid == pid);
	return c;
}

/* The child is the last of the table, whose place is used again. */
static void end_last(struct child *c)
{
	MUST(c == &proc_children[proc_n_children - 1]);
	if (c->pid)
		child_kill(c);
	children_end();
}

static uint64_t start_of(pid_t pid)
{
	struct hf_stat st;

	MUST(hf_stat_read(pid, &st) == 0);
	return st.start_ticks;
}

/* Time passes by itself; this only watches for it. */
static void await_tick_after(uint64_t tick)
{
	while (boottime_ticks() <= tick)
		sched_yield();
}

/* A victim that has ended, and its identity. */
static struct hf_proc_id identify_and_kill(void)
{
	struct child *victim = start_with_pid(VICTIM_PID);
	struct hf_proc_id id;

	MUST(hf_proc_identify(victim->pid, &id, NULL) == 0);
	end_last(victim);
	return id;
}

static int has_comm(pid_t pid, const char *name)
{
	char path[32], text[32] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	MUST(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	text[strcspn(text, "\n")] = '\0';
	return strcmp(text, name) == 0;
}

/* A bystander that looks like the victim down to the start tick, or NULL after many tries. */
static struct child *cast_double(struct report *r, struct hf_proc_id *ret_victim)
{
	for (r->attempts = 1; r->attempts <= ATTEMPTS; r->attempts++) {
		struct hf_proc_id id = identify_and_kill();
		struct child *bystander = start_with_pid(id.pid);

		r->same_pid = bystander->pid == id.pid;
		r->same_comm = has_comm(bystander->pid, NAME);
		r->same_tick = start_of(bystander->pid) == id.start_ticks;
		if (r->same_tick) {
			*ret_victim = id;
			return bystander;
		}
		end_last(bystander);
	}
	return NULL;
}

static void act_on(struct report *r, const struct hf_proc_id *id, struct child *bystander)
{
	r->live = hf_proc_liveness(id, 0, r->evidence);
	r->sent = hf_proc_signal(id, SIGUSR1, 0, NULL);
	r->asked = child_ask(bystander);
	if (r->asked != 'n')
		return;
	r->sent = hf_proc_signal(id, SIGKILL, 0, NULL);
	r->asked = child_ask(bystander);
}

static void assert_bystander_spared(const struct report *r)
{
	assert_true(r->same_pid && r->same_comm);
	assert_int_equal(r->live, HF_DEAD);
	ASSERT_ERR(r->sent, HF_E_RECYCLED);
	assert_int_equal(r->asked, 'n'); /* it answers, and no SIGUSR1 came either */
}

static int have_pidfs(void)
{
	struct hf_proc_id self;

	ASSERT_OK(hf_proc_self(&self, ERR));
	return self.pidfs_inode != 0;
}

/* ---- reuse between two calls ---- */

static void scene_double(struct report *r)
{
	struct hf_proc_id victim;
	struct child *bystander = cast_double(r, &victim);

	if (bystander)
		act_on(r, &victim, bystander);
}

static void recycled_pid_with_same_name_and_tick_gets_no_signal_L6(void **state)
{
	struct report r;

	(void)state;
	if (!have_pidfs())
		HF_SKIP("this kernel has no pidfs: the same tick cannot be told apart");
	r = play(scene_double);
	if (!r.same_tick)
		fail_msg("no two processes shared a start tick in %d attempts", ATTEMPTS);
	assert_bystander_spared(&r);
	assert_non_null(strstr(r.evidence, "another process"));
}

static void scene_later_tick_without_pidfs(struct report *r)
{
	struct child *bystander;
	struct hf_proc_id id;

	kernel_pretend(KERNEL_NO_PIDFS);
	id = identify_and_kill();
	MUST(id.pidfs_inode == 0);
	await_tick_after(id.start_ticks);
	bystander = start_with_pid(id.pid);
	r->same_pid = bystander->pid == id.pid;
	r->same_comm = has_comm(bystander->pid, NAME);
	r->same_tick = start_of(bystander->pid) == id.start_ticks;
	act_on(r, &id, bystander);
}

static void recycled_pid_with_other_tick_gets_no_signal_without_pidfs_L6(void **state)
{
	struct report r = play(scene_later_tick_without_pidfs);

	(void)state;
	assert_false(r.same_tick);
	assert_bystander_spared(&r);
}

static void scene_double_without_pidfs(struct report *r)
{
	struct hf_proc_id victim;

	kernel_pretend(KERNEL_NO_PIDFS);
	if (cast_double(r, &victim))
		r->live = hf_proc_liveness(&victim, 0, r->evidence);
}

/* The stated limit of old kernels (holdfast/proc.h): wrong within one tick, and it says so. */
static void without_pidfs_the_same_tick_is_taken_for_the_same_process(void **state)
{
	struct report r = play(scene_double_without_pidfs);

	(void)state;
	if (!r.same_tick)
		fail_msg("no two processes shared a start tick in %d attempts", ATTEMPTS);
	assert_int_equal(r.live, HF_ALIVE);
	assert_non_null(strstr(r.evidence, "weak"));
}

static int fstatfs_fails(int fd, struct statfs *st)
{
	(void)fd;
	(void)st;
	errno = ENOSYS;
	return -1;
}

static void scene_inode_stored_but_not_readable(struct report *r)
{
	struct hf_proc_id victim;
	struct child *bystander = cast_double(r, &victim);

	if (!bystander)
		return;
	/* A sandbox, say. The inode was stored, so the tick must not do in its place. */
	hf_sys.fstatfs = fstatfs_fails;
	act_on(r, &victim, bystander);
}

static void stored_inode_is_not_replaced_by_the_tick_L6(void **state)
{
	struct report r;

	(void)state;
	if (!have_pidfs())
		HF_SKIP("this kernel has no pidfs: no inode is ever stored");
	r = play(scene_inode_stored_but_not_readable);
	if (!r.same_tick)
		fail_msg("no two processes shared a start tick in %d attempts", ATTEMPTS);
	assert_int_equal(r.asked, 'n');
	assert_true(r.sent == HF_E_UNKNOWN || r.sent == HF_E_RECYCLED);
}

/* ---- a thread takes the number ---- */

struct thread_ends {
	int in, out;
};

static void *thread_takes_the_number(void *arg)
{
	struct thread_ends *ends = arg;

	MUST(gettid() == VICTIM_PID);
	tell(ends->out, 't');
	child_answers_until_eof(ends->in, ends->out);
	_exit(0);
}

static void child_with_thread(int in, int out, void *arg)
{
	struct thread_ends ends = { in, out };
	pthread_t thread;
	char go;

	(void)arg;
	MUST(prctl(PR_SET_NAME, NAME) == 0);
	tell(out, 'r');
	if (read(in, &go, 1) != 1)
		return;
	next_pid_is(VICTIM_PID);
	MUST(pthread_create(&thread, NULL, thread_takes_the_number, &ends) == 0);
	pthread_join(thread, NULL);
}

static void scene_thread(struct report *r)
{
	struct hf_proc_id id = identify_and_kill();
	struct child *bystander;

	next_pid_is(VICTIM_PID + 100);
	bystander = child_start(child_with_thread, NULL);
	tell(bystander->to, 'g');
	MUST(hear(bystander->from) == 't');
	r->same_pid = 1; /* the thread checked it */
	r->same_comm = has_comm(id.pid, NAME);
	act_on(r, &id, bystander);
}

static void pid_reused_by_a_thread_gets_no_signal_L6(void **state)
{
	struct report r = play(scene_thread);

	(void)state;
	assert_bystander_spared(&r);
}

static void scene_thread_without_pidfs(struct report *r)
{
	kernel_pretend(KERNEL_NO_PIDFS);
	scene_thread(r);
}

static void pid_reused_by_a_thread_gets_no_signal_without_pidfs_L6(void **state)
{
	struct report r = play(scene_thread_without_pidfs);

	(void)state;
	assert_bystander_spared(&r);
}

/* ---- reuse in the middle of a call ---- */

/*
 * Before the nth system call of the function under test, the victim ends and a
 * bystander takes its pid. Every n is tried.
 */
static struct {
	int at, count, swapped;
	int other_tick; /* the bystander must not share the victim's start tick */
	int no_reuse;   /* the victim stays a zombie, and there is no bystander */
	struct child *actor;
	struct hf_sys real;
} swap;

static void swap_actors(void)
{
	uint64_t tick = start_of(VICTIM_PID);

	swap.swapped = 1;
	if (swap.no_reuse) {
		child_kill_only(swap.actor);
		return;
	}
	end_last(swap.actor);
	if (swap.other_tick)
		await_tick_after(tick);
	swap.actor = start_with_pid(VICTIM_PID);
}

static void before_call(void)
{
	struct hf_sys hooked = hf_sys;

	if (++swap.count != swap.at)
		return;
	hf_sys = swap.real; /* the swap's own calls do not count */
	swap_actors();
	hf_sys = hooked;
}

#define HF_SYS_CALL(result, name, params, args) \
	static result hook_##name params        \
	{                                       \
		before_call();                  \
		return swap.real.name args;     \
	}
#include "hf/sys/calls.def"
#undef HF_SYS_CALL

static void swap_arm(int at)
{
	swap.at = at;
	swap.count = swap.swapped = 0;
	swap.real = hf_sys;
#define HF_SYS_CALL(result, name, params, args) hf_sys.name = hook_##name;
#include "hf/sys/calls.def"
#undef HF_SYS_CALL
}

static void note_wrong(struct report *r, const char *what, int result)
{
	if (r->wrong++ == 0)
		snprintf(r->first_wrong, sizeof(r->first_wrong), "swapped before call %d: %s (%d)",
			 swap.at, what, result);
}

/* One identity, one call of the function, one swap. 1 while there was a call to swap at. */
static int swap_in(struct report *r, int at,
		   void (*act)(struct report *r, const struct hf_proc_id *id))
{
	struct hf_proc_id id;

	swap.actor = start_with_pid(VICTIM_PID);
	MUST(hf_proc_identify(VICTIM_PID, &id, NULL) == 0);
	swap_arm(at);
	act(r, &id);
	hf_sys = swap.real;
	end_last(swap.actor);
	r->checked += swap.swapped;
	return swap.swapped;
}

static void act_signal(struct report *r, const struct hf_proc_id *id)
{
	int sent = hf_proc_signal(id, SIGUSR1, 0, NULL);
	int asked;

	hf_sys = swap.real;
	asked = child_ask(swap.actor);
	if (!swap.swapped)
		return;
	if (asked != 'n')
		note_wrong(r, "the bystander was signalled", asked);
	if (sent != HF_E_GONE && sent != HF_E_RECYCLED)
		note_wrong(r, "neither gone nor recycled", sent);
}

static void act_liveness(struct report *r, const struct hf_proc_id *id)
{
	int live = hf_proc_liveness(id, 0, r->evidence);

	if (swap.swapped && live != HF_DEAD)
		note_wrong(r, "the dead victim is not called dead", live);
}

/* A zombie takes every signal and does nothing: only in the very last call may that happen. */
static void act_signal_zombie(struct report *r, const struct hf_proc_id *id)
{
	int sent = hf_proc_signal(id, SIGUSR1, 0, NULL);

	if (swap.swapped && sent != HF_E_GONE && !(sent == 0 && swap.at == swap.count))
		note_wrong(r, "the zombie is not called gone", sent);
}

/* The victim is gone or the bystander is found: never half of each. */
static void act_identify(struct report *r, const struct hf_proc_id *id)
{
	struct hf_proc_id found, right;
	int result = hf_proc_identify(id->pid, &found, NULL);

	hf_sys = swap.real;
	if (!swap.swapped || result == HF_E_GONE)
		return;
	MUST(hf_proc_identify(id->pid, &right, NULL) == 0);
	if (result < 0)
		note_wrong(r, "neither gone nor found", result);
	else if (found.pidfs_inode != right.pidfs_inode || found.start_ticks != right.start_ticks)
		note_wrong(r, "an identity mixed from two processes", 0);
}

static void swap_everywhere(struct report *r,
			    void (*act)(struct report *r, const struct hf_proc_id *id))
{
	int at = 1;

	while (swap_in(r, at, act))
		at++;
}

static void scene_swaps(struct report *r)
{
	swap_everywhere(r, act_signal);
	swap_everywhere(r, act_liveness);
	swap_everywhere(r, act_identify);
}

static void scene_swaps_without_pidfs(struct report *r)
{
	kernel_pretend(KERNEL_NO_PIDFS);
	swap.other_tick = 1; /* within one tick it is weak, as said above */
	scene_swaps(r);
}

static void scene_ends(struct report *r)
{
	swap.no_reuse = 1;
	swap_everywhere(r, act_signal_zombie);
	swap_everywhere(r, act_liveness);
	kernel_pretend(KERNEL_NO_PIDFS);
	swap_everywhere(r, act_signal_zombie);
	swap_everywhere(r, act_liveness);
}

static void assert_nothing_wrong(const struct report *r)
{
	assert_true(r->checked > 20);
	if (r->wrong)
		fail_msg("%d of %d: %s", r->wrong, r->checked, r->first_wrong);
}

static void pid_recycled_in_the_middle_of_a_call_gets_no_signal_L6(void **state)
{
	struct report r;

	(void)state;
	if (!have_pidfs())
		HF_SKIP("this kernel has no pidfs: the same tick cannot be told apart");
	r = play(scene_swaps);
	assert_nothing_wrong(&r);
}

static void pid_recycled_in_the_middle_of_a_call_gets_no_signal_without_pidfs_L6(void **state)
{
	struct report r = play(scene_swaps_without_pidfs);

	(void)state;
	assert_nothing_wrong(&r);
}

static void process_that_ends_in_the_middle_of_a_call_is_gone_L4_L6(void **state)
{
	struct report r = play(scene_ends);

	(void)state;
	assert_nothing_wrong(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PROC_TEST(recycled_pid_with_same_name_and_tick_gets_no_signal_L6),
		PROC_TEST(recycled_pid_with_other_tick_gets_no_signal_without_pidfs_L6),
		PROC_TEST(without_pidfs_the_same_tick_is_taken_for_the_same_process),
		PROC_TEST(stored_inode_is_not_replaced_by_the_tick_L6),
		PROC_TEST(pid_reused_by_a_thread_gets_no_signal_L6),
		PROC_TEST(pid_reused_by_a_thread_gets_no_signal_without_pidfs_L6),
		PROC_TEST(pid_recycled_in_the_middle_of_a_call_gets_no_signal_L6),
		PROC_TEST(pid_recycled_in_the_middle_of_a_call_gets_no_signal_without_pidfs_L6),
		PROC_TEST(process_that_ends_in_the_middle_of_a_call_is_gone_L4_L6),
	};

	proc_test_begin();
	return hf_run_tests("proc_reuse", tests);
}
