/* unit/run/test_run.c - sessions through the library: what a program gets, and what it keeps (L13). */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper/test.h"
#include "holdfast/run.h"

#define WITHIN(ns) (&(struct hf_wait_opts){ .size = sizeof(struct hf_wait_opts), .wait_ns = (ns) })
#define SOON (20 * HF_SEC)

static struct hf_sessions *open_sessions(void)
{
	struct hf_sessions *sessions = NULL;

	ASSERT_OK(hf_sessions_open(hf_test_state(), NULL, &sessions, ERR));
	return sessions;
}

static struct hf_run_opts options(char *const *argv)
{
	return (struct hf_run_opts){ .size = sizeof(struct hf_run_opts), .argv = argv };
}

static char *const say_and_exit_3[] = { (char[]){ "sh" }, (char[]){ "-c" },
					(char[]){ "echo out; echo err >&2; exit 3" }, NULL };
static char *const sleeps[] = { (char[]){ "sleep" }, (char[]){ "60" }, NULL };
static char *const succeeds[] = { (char[]){ "true" }, NULL };
static char *const missing[] = { (char[]){ "/no/such/program" }, NULL };

/* What a look gives, kept beyond the callback. */
struct seen {
	struct hf_session_info info;
	int calls;
};

static void see(void *arg, const struct hf_session_info *info)
{
	struct seen *seen = arg;

	seen->info = *info;
	seen->calls++;
}

/* -- what a process has, before and after --------------------------------------- */

struct around {
	sigset_t mask;
	char cwd[512];
	mode_t mask_of_files;
	int subreaper;
	int fds;
	struct sigaction actions[32];
};

static void take_around(struct around *a)
{
	memset(a, 0, sizeof(*a));
	assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &a->mask), 0);
	assert_non_null(getcwd(a->cwd, sizeof(a->cwd)));
	a->mask_of_files = umask(0);
	(void)umask(a->mask_of_files);
	assert_int_equal(prctl(PR_GET_CHILD_SUBREAPER, &a->subreaper), 0);
	a->fds = hf_test_fd_count();
	for (int sig = 1; sig < 32; sig++)
		(void)sigaction(sig, NULL, &a->actions[sig]);
}

static void assert_unchanged(const struct around *before)
{
	struct around now;

	take_around(&now);
	for (int sig = 1; sig < 32; sig++) {
		assert_int_equal(sigismember(&now.mask, sig), sigismember(&before->mask, sig));
		assert_ptr_equal(now.actions[sig].sa_handler, before->actions[sig].sa_handler);
	}
	assert_string_equal(now.cwd, before->cwd);
	assert_int_equal(now.mask_of_files, before->mask_of_files);
	assert_int_equal(now.subreaper, before->subreaper);
	assert_int_equal(now.fds, before->fds);
	/* No child is left, neither living nor a zombie. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void a_start_returns_when_it_runs_and_changes_nothing_of_the_caller(void **state)
{
	struct hf_run_opts o = options(sleeps);
	struct hf_sessions *sessions = open_sessions();
	struct hf_run_report report = { 0 };
	struct around before;
	sigset_t some;

	(void)state;
	sigemptyset(&some);
	sigaddset(&some, SIGUSR2);
	assert_int_equal(sigprocmask(SIG_BLOCK, &some, NULL), 0);
	(void)umask(027);
	take_around(&before);
	ASSERT_OK(hf_run_start(hf_test_state(), "x", &o, &report, ERR));
	assert_int_equal(report.outcome, HF_OUTCOME_NONE);
	assert_true(report.pid > 1 && report.token > 0 && report.supervisor.pid > 1);
	assert_int_equal(report.attempt, 1);
	assert_int_equal(kill(report.pid, 0), 0);
	assert_unchanged(&before);
	ASSERT_ERR(hf_run_start(hf_test_state(), "x", &o, &report, ERR), HF_E_BUSY);
	assert_true(report.blocker.id.pid > 1);
	assert_unchanged(&before);
	assert_int_equal(hf_session_stop(sessions, "x", -1, ERR), HF_STOP_KILLED);
	assert_int_equal(hf_session_stop(sessions, "x", -1, ERR), HF_STOP_ALREADY_GONE);
	assert_unchanged(&before);
	hf_sessions_free(sessions);
	assert_int_equal(sigprocmask(SIG_UNBLOCK, &some, NULL), 0);
	(void)umask(022);
}

static void a_wait_gives_the_outcome_and_the_log_the_output(void **state)
{
	struct hf_run_opts o = options(say_and_exit_3);
	struct hf_sessions *sessions = open_sessions();
	struct hf_run_report report;
	struct seen seen = { 0 };
	struct hf_log *log = NULL;
	char text[64] = "";

	(void)state;
	ASSERT_OK(hf_run_start(hf_test_state(), "x", &o, &report, ERR));
	ASSERT_OK(hf_session_wait(sessions, "x", WITHIN(SOON), see, &seen, ERR));
	assert_int_equal(seen.calls, 1);
	assert_int_equal(seen.info.outcome, HF_OUTCOME_FAILED);
	assert_int_equal(seen.info.exit_status, 3);
	assert_int_equal(seen.info.state, HF_SESSION_FAILED);
	assert_int_equal(seen.info.pid, 0);
	ASSERT_ERR(hf_session_log(sessions, "x", 1, &log, ERR), -ENOENT);
	ASSERT_ERR(hf_session_log(sessions, "x", 2, &log, ERR), -EINVAL);
	ASSERT_ERR(hf_session_log(sessions, "never", 0, &log, ERR), HF_E_NO_SESSION);
	ASSERT_OK(hf_session_log(sessions, "x", 0, &log, ERR));
	assert_int_equal(hf_log_read(log, text, sizeof(text) - 1, ERR), 8);
	assert_string_equal(text, "out\nerr\n");
	assert_int_equal(hf_log_read(log, text, sizeof(text) - 1, ERR), 0);
	assert_int_equal(hf_log_dropped(log), 0);
	hf_log_free(log);
	assert_int_equal(hf_session_reap(sessions, "x", ERR), 0);
	ASSERT_OK(hf_session_look(sessions, "x", see, &seen, ERR));
	ASSERT_OK(hf_session_list(sessions, see, &seen, ERR));
	assert_int_equal(seen.calls, 3);
	hf_sessions_free(sessions);
}

static void a_start_says_why_the_command_did_not_run(void **state)
{
	struct hf_run_opts o = options(missing);
	struct hf_run_report report;
	struct around before;

	(void)state;
	take_around(&before);
	(void)hf_test_state();
	ASSERT_OK(hf_run_start(hf_test_state(), "x", &o, &report, ERR));
	assert_int_equal(report.outcome, HF_OUTCOME_NOT_STARTED);
	assert_int_equal(report.exit_status, 127);
	assert_int_equal(report.pid, 0);
	assert_non_null(strstr(report.cause, "No such file"));
}

static void a_wait_that_is_too_short_says_so(void **state)
{
	struct hf_run_opts o = options(sleeps);
	struct hf_sessions *sessions = open_sessions();
	struct hf_run_report report;
	struct seen seen = { 0 };

	(void)state;
	ASSERT_OK(hf_run_start(hf_test_state(), "x", &o, &report, ERR));
	ASSERT_ERR(hf_session_wait(sessions, "x", WITHIN(20 * HF_MSEC), see, &seen, ERR), HF_E_TIMEOUT);
	ASSERT_ERR(hf_session_wait(sessions, "x", WITHIN(0), see, &seen, ERR), HF_E_TIMEOUT);
	assert_int_equal(seen.calls, 0);
	ASSERT_ERR(hf_session_reap(sessions, "x", ERR), HF_E_BUSY);
	assert_int_equal(hf_session_stop(sessions, "x", 5 * HF_SEC, ERR), HF_STOP_STOPPED);
	ASSERT_OK(hf_session_wait(sessions, "x", WITHIN(0), see, &seen, ERR));
	assert_int_equal(seen.info.outcome, HF_OUTCOME_STOPPED);
	hf_sessions_free(sessions);
}

/* In a child of its own, which must come back from it as it went in. */
static int supervise_in_child(void)
{
	struct hf_run_opts o = options(say_and_exit_3);
	struct hf_state *own = NULL;
	struct hf_run_report report = { 0 };
	struct around before;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = 0; i < 3; i++)
		(void)dup2(null, i);
	close(null);
	(void)signal(SIGCHLD, SIG_IGN);
	(void)umask(027);
	if (hf_state_open(hf_test_path("state"), 0, &own, NULL) < 0)
		return 90;
	take_around(&before);
	if (hf_run_supervise(own, "x", &o, &report, NULL) < 0)
		return 91;
	if (report.outcome != HF_OUTCOME_FAILED || report.exit_status != 3)
		return 92;
	assert_unchanged(&before);
	o.argv = succeeds;
	o.deadline_ns = SOON;
	if (hf_run_supervise(own, "x", &o, &report, NULL) < 0 || report.outcome != HF_OUTCOME_SUCCEEDED)
		return 93;
	assert_unchanged(&before);
	hf_state_free(own);
	return 0;
}

static void a_supervisor_comes_back_as_it_was(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(supervise_in_child());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* A child that the program had before is none of the session's. */
static int supervise_beside_a_child(void)
{
	struct hf_run_opts o = options(say_and_exit_3);
	struct hf_run_report report = { 0 };
	struct hf_state *own = NULL;
	int status, null = open("/dev/null", O_RDWR | O_CLOEXEC);
	pid_t other = fork();

	if (other == 0) {
		pause();
		_exit(0);
	}
	for (int i = 0; i < 3; i++)
		(void)dup2(null, i);
	if (hf_state_open(hf_test_path("state"), 0, &own, NULL) < 0)
		return 90;
	if (hf_run_supervise(own, "x", &o, &report, NULL) < 0 || report.exit_status != 3)
		return 91;
	if (waitpid(other, &status, WNOHANG) != 0)
		return 92;
	(void)kill(other, SIGKILL);
	(void)waitpid(other, &status, 0);
	hf_state_free(own);
	return 0;
}

static void a_child_of_the_caller_is_left_alone(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(supervise_beside_a_child());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void nothing(int number)
{
	(void)number;
}

static void a_wait_is_ended_by_its_descriptor_and_not_by_a_signal(void **state)
{
	struct hf_run_opts o = options(sleeps);
	struct hf_sessions *sessions = open_sessions();
	struct hf_wait_opts forever = { .size = sizeof(forever), .wait_ns = -1 };
	struct itimerval often = { { 0, 5000 }, { 0, 5000 } }, never = { { 0, 0 }, { 0, 0 } };
	struct sigaction act = { .sa_handler = nothing }, before;
	struct hf_run_report report;
	struct seen seen = { 0 };
	int ends[2];

	(void)state;
	ASSERT_OK(hf_run_start(hf_test_state(), "x", &o, &report, ERR));
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(sigaction(SIGALRM, &act, &before), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	/* It sees many signals, and its time is not prolonged by them. */
	ASSERT_ERR(hf_session_wait(sessions, "x", WITHIN(100 * HF_MSEC), see, &seen, ERR), HF_E_TIMEOUT);
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
	assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
	forever.cancel_fd = ends[0];
	assert_int_equal(write(ends[1], "x", 1), 1);
	ASSERT_ERR(hf_session_wait(sessions, "x", &forever, see, &seen, ERR), HF_E_CANCELLED);
	assert_int_equal(seen.calls, 0);
	close(ends[0]);
	close(ends[1]);
	forever.cancel_fd = -1;
	ASSERT_ERR(hf_session_wait(sessions, "x", &forever, see, &seen, ERR), -EINVAL);
	assert_int_equal(hf_session_stop(sessions, "x", 5 * HF_SEC, ERR), HF_STOP_STOPPED);
	/* Nothing to wait for: the descriptor does not matter. */
	ASSERT_OK(hf_session_wait(sessions, "x", NULL, see, &seen, ERR));
	hf_sessions_free(sessions);
}

static void a_forked_child_is_refused_and_may_free(void **state)
{
	struct hf_sessions *sessions = open_sessions();
	struct seen seen = { 0 };
	struct hf_log *log = NULL;
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		int bad = 0;

		bad |= hf_session_look(sessions, "x", see, &seen, NULL) != HF_E_FORKED;
		bad |= hf_session_list(sessions, see, &seen, NULL) != HF_E_FORKED;
		bad |= hf_session_wait(sessions, "x", WITHIN(0), see, &seen, NULL) != HF_E_FORKED;
		bad |= hf_session_stop(sessions, "x", 0, NULL) != HF_E_FORKED;
		bad |= hf_session_reap(sessions, "x", NULL) != HF_E_FORKED;
		bad |= hf_session_log(sessions, "x", 0, &log, NULL) != HF_E_FORKED;
		hf_sessions_free(sessions);
		_exit(bad || seen.calls);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	hf_sessions_free(sessions);
}

static void wrong_arguments_are_refused_and_nothing_is_touched(void **state)
{
	struct hf_run_opts o = options(succeeds), bad;
	struct hf_sessions *sessions = open_sessions();
	struct hf_run_report report = { .attempt = 4711 };
	struct hf_sessions *none = NULL;
	char *const empty[] = { NULL };
	struct hf_log *log = NULL;

	(void)state;
	ASSERT_ERR(hf_sessions_open(NULL, NULL, &none, ERR), -EINVAL);
	ASSERT_ERR(hf_sessions_open(hf_test_state(), NULL, NULL, ERR), -EINVAL);
	hf_sessions_free(NULL);
	ASSERT_ERR(hf_run_start(NULL, "x", &o, &report, ERR), -EINVAL);
	ASSERT_ERR(hf_run_start(hf_test_state(), "x", &o, NULL, ERR), -EINVAL);
	ASSERT_ERR(hf_run_start(hf_test_state(), "x", NULL, &report, ERR), -EINVAL);
	ASSERT_ERR(hf_run_start(hf_test_state(), NULL, &o, &report, ERR), HF_E_NAME);
	ASSERT_ERR(hf_run_start(hf_test_state(), "", &o, &report, ERR), HF_E_NAME);
	ASSERT_ERR(hf_run_supervise(NULL, "x", &o, &report, ERR), -EINVAL);
	ASSERT_ERR(hf_run_supervise(hf_test_state(), "x", NULL, &report, ERR), -EINVAL);
#define REFUSED(change)                                                                        \
	do {                                                                                   \
		bad = o;                                                                       \
		bad.change;                                                                    \
		ASSERT_ERR(hf_run_start(hf_test_state(), "x", &bad, &report, ERR), -EINVAL);   \
	} while (0)
	REFUSED(size = 0);
	REFUSED(argv = NULL);
	REFUSED(argv = empty);
	REFUSED(deadline_ns = -1);
	REFUSED(idle_ns = -1);
	REFUSED(hang_ns = -1);
	REFUSED(every_ns = -1);
	REFUSED(verify_ns = -1);
	REFUSED(backoff_ns = -1);
	REFUSED(backoff_max_ns = -1);
	REFUSED(ttl_ns = -1);
	REFUSED(ttl_ns = 1);
	REFUSED(ttl_ns = INT64_MAX);
	REFUSED(max_active = 65);
	REFUSED(tree = (enum hf_run_tree)7);
	REFUSED(flags = 1 << 20);
#undef REFUSED
	assert_int_equal(report.attempt, 4711);
	ASSERT_ERR(hf_session_look(NULL, "x", see, NULL, ERR), -EINVAL);
	ASSERT_ERR(hf_session_look(sessions, "x", NULL, NULL, ERR), -EINVAL);
	ASSERT_ERR(hf_session_list(NULL, see, NULL, ERR), -EINVAL);
	ASSERT_ERR(hf_session_list(sessions, NULL, NULL, ERR), -EINVAL);
	ASSERT_ERR(hf_session_wait(NULL, "x", WITHIN(0), see, NULL, ERR), -EINVAL);
	ASSERT_ERR(hf_session_wait(sessions, "x", WITHIN(0), NULL, NULL, ERR), -EINVAL);
	ASSERT_ERR(hf_session_stop(NULL, "x", 0, ERR), -EINVAL);
	ASSERT_ERR(hf_session_stop(sessions, NULL, 0, ERR), HF_E_NAME);
	ASSERT_ERR(hf_session_reap(NULL, "x", ERR), -EINVAL);
	ASSERT_ERR(hf_session_log(NULL, "x", 0, &log, ERR), -EINVAL);
	ASSERT_ERR(hf_session_log(sessions, "x", 0, NULL, ERR), -EINVAL);
	assert_null(log);
	/* An error that nobody wants is no error of its own. */
	assert_int_equal(hf_session_stop(sessions, "never", 0, NULL), HF_E_NO_SESSION);
	assert_int_equal(hf_run_start(NULL, "x", &o, &report, NULL), -EINVAL);
	hf_sessions_free(sessions);
}

static void durations_beyond_all_measure_do_not_wrap(void **state)
{
	struct hf_run_opts o = options(succeeds);
	struct hf_sessions *sessions = open_sessions();
	struct hf_run_report report;
	struct seen seen = { 0 };

	(void)state;
	o.deadline_ns = o.idle_ns = o.hang_ns = o.grace_ns = o.verify_ns = INT64_MAX;
	o.backoff_ns = o.backoff_max_ns = INT64_MAX;
	ASSERT_OK(hf_run_start(hf_test_state(), "x", &o, &report, ERR));
	ASSERT_OK(hf_session_wait(sessions, "x", WITHIN(INT64_MAX), see, &seen, ERR));
	assert_int_equal(seen.info.outcome, HF_OUTCOME_SUCCEEDED);
	hf_sessions_free(sessions);
}

static void words_are_words_for_every_number(void **state)
{
	(void)state;
	for (int i = -2; i < 40; i++) {
		assert_non_null(hf_session_word((enum hf_session_state)i));
		assert_non_null(hf_outcome_word((enum hf_outcome)i));
	}
	assert_string_equal(hf_session_word(HF_SESSION_DEAD_UNREAPED), "dead-unreaped");
	assert_string_equal(hf_outcome_word((enum hf_outcome)99), "unknown");
}

static void a_program_that_never_answers_does_not_hold_up_the_caller(void **state)
{
	/* `sleep 60`: the name of the session is the program's argument. */
	struct hf_run_opts opts = options(succeeds);
	struct hf_run_report report;
	char text[1024];

	(void)state;
	assert_int_equal(mkdir(hf_test_path("libexec"), 0700), 0);
	(void)snprintf(text, sizeof(text), "install -m 0700 \"$(command -v sleep)\" '%s/holdfast-supervise'", hf_test_path("libexec"));
	assert_int_equal(system(text), 0);
	assert_int_equal(setenv("HOLDFAST_LIBEXEC", hf_test_path("libexec"), 1), 0);
	opts.start_ns = 200 * HF_MSEC;
	ASSERT_ERR(hf_run_start(hf_test_state(), "60", &opts, &report, ERR), HF_E_TIMEOUT);
	assert_non_null(strstr(ERR->detail, "did not answer"));
	/* It is gone, and was reaped. */
	assert_true(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	assert_int_equal(unsetenv("HOLDFAST_LIBEXEC"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HF_TEST(a_start_returns_when_it_runs_and_changes_nothing_of_the_caller),
		HF_TEST(a_wait_gives_the_outcome_and_the_log_the_output),
		HF_TEST(a_start_says_why_the_command_did_not_run),
		HF_TEST(a_wait_that_is_too_short_says_so),
		HF_TEST(a_wait_is_ended_by_its_descriptor_and_not_by_a_signal),
		HF_TEST(a_supervisor_comes_back_as_it_was),
		HF_TEST(a_child_of_the_caller_is_left_alone),
		HF_TEST(a_forked_child_is_refused_and_may_free),
		HF_TEST(wrong_arguments_are_refused_and_nothing_is_touched),
		HF_TEST(durations_beyond_all_measure_do_not_wrap),
		HF_TEST(a_program_that_never_answers_does_not_hold_up_the_caller),
		HF_TEST(words_are_words_for_every_number),
	};

	return hf_run_tests("run", tests);
}
