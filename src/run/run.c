/* run/run.c - the public starts: arguments, defaults, and the way into the background. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/run/supervisor/supervise.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "holdfast/name.h"

static void fill_default(int64_t *value, int64_t otherwise)
{
	if (*value == 0)
		*value = otherwise;
}

/* Seventy years: so long that a clock can be added to it. */
#define LONGEST_NS (INT64_MAX / 4)

static void bound_durations(struct hf_run_opts *o)
{
	int64_t *const all[] = { &o->deadline_ns, &o->idle_ns,	  &o->hang_ns,	 &o->grace_ns,
				 &o->verify_ns,	  &o->every_ns,	  &o->backoff_ns, &o->backoff_max_ns };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (*all[i] > LONGEST_NS)
			*all[i] = LONGEST_NS;
}

/* Checks the options and fills in what was left out. */
static int complete(const char *name, const struct hf_run_opts *opts, struct hf_run_opts *ret,
		    struct hf_err *err)
{
	char key[HF_NAME_KEY_MAX];
	int r = hf_name_key(name, name ? strlen(name) : 0, key, err);

	if (r < 0)
		return r;
	if (!opts || opts->size < sizeof(*opts))
		return FAIL(err, -EINVAL, "arguments", name, "size is not set");
	*ret = *opts;
	if ((!ret->argv || !ret->argv[0]) && !(ret->flags & HF_RUN_RESUME))
		return FAIL(err, -EINVAL, "arguments", name, "there is no command");
	if (ret->argv && !ret->argv[0])
		ret->argv = NULL;
	if (ret->deadline_ns < 0 || ret->idle_ns < 0 || ret->hang_ns < 0 || ret->every_ns < 0 ||
	    ret->verify_ns < 0 || ret->backoff_ns < 0 || ret->backoff_max_ns < 0)
		return FAIL(err, -EINVAL, "arguments", name, "a duration is negative");
	if (ret->ttl_ns < 0 || ret->ttl_ns > HF_LOCK_TTL_MAX || (ret->ttl_ns && ret->ttl_ns < 100 * HF_MSEC))
		return FAIL(err, -EINVAL, "arguments", name, "a lease goes from 100ms to 30d");
	if (ret->flags & ~(unsigned)(HF_RUN_RESUME | HF_RUN_LEAVE_RUNNING | HF_RUN_LOG | HF_RUN_LOOP) ||
	    (unsigned)ret->tree > HF_TREE_WALK)
		return FAIL(err, -EINVAL, "arguments", name, "there is no such flag or tree");
	if (ret->log_max && ret->log_max < HF_RUN_LOG_MIN)
		return FAIL(err, -EINVAL, "arguments", name, "a log's limit is at least %d bytes",
			    HF_RUN_LOG_MIN);
	if (ret->max_active > HF_LOCK_SLOTS_MAX)
		return FAIL(err, -EINVAL, "arguments", name, "max_active is at most %d",
			    HF_LOCK_SLOTS_MAX);
	fill_default(&ret->grace_ns, HF_RUN_GRACE_NS);
	fill_default(&ret->hang_ns, HF_RUN_HANG_NS);
	fill_default(&ret->ttl_ns, HF_RUN_TTL_NS);
	fill_default(&ret->verify_ns, HF_RUN_VERIFY_NS);
	fill_default(&ret->backoff_ns, HF_RUN_BACKOFF_NS);
	fill_default(&ret->backoff_max_ns, HF_RUN_BACKOFF_MAX_NS);
	bound_durations(ret);
	if (ret->log_max == 0)
		ret->log_max = HF_RUN_LOG_MAX;
	if (ret->max_depth == 0)
		ret->max_depth = HF_RUN_DEPTH_MAX;
	if (!ret->group)
		ret->group = HF_RUN_GROUP_ALL;
	if (ret->every_ns || ret->max_runs || ret->until)
		ret->flags |= HF_RUN_LOOP;
	/* One that nothing bounds does not become a busy one by succeeding. */
	if (ret->flags & HF_RUN_LOOP && ret->max_runs == 0)
		fill_default(&ret->every_ns, ret->backoff_ns);
	return 0;
}

int hf_run_supervise(struct hf_state *state, const char *name, const struct hf_run_opts *opts,
		     struct hf_run_report *ret_report, struct hf_err *err)
{
	struct hf_run_report report = { 0 };
	struct hf_run_opts o;
	int r;

	if (!state || !ret_report)
		return FAIL(err, -EINVAL, "arguments", "hf_run_supervise", "NULL");
	r = complete(name, opts, &o, err);
	if (r == 0)
		r = hf_supervise(state, name, &o, 0, NULL, NULL, &report, err);
	if (r == 0 || r == HF_E_BUSY || r == HF_E_TIMEOUT)
		*ret_report = report;
	return r;
}

/* -- in the background --------------------------------------------------------------- */

static void send_news(void *arg, const struct hf_link_news *news)
{
	int *fd = arg;

	(void)!write(*fd, news, sizeof(*news));
	hf_auto_close(fd);
}

/* Whoever waits for the end of a pipe must not wait for a session: keep only what is ours. */
static void close_others(int state_fd, int news_fd)
{
	unsigned keep[2] = { (unsigned)(state_fd < news_fd ? state_fd : news_fd),
			     (unsigned)(state_fd < news_fd ? news_fd : state_fd) };
	unsigned from = 3;

	for (int i = 0; i < 2; i++) {
		if (keep[i] > from)
			(void)close_range(from, keep[i] - 1, 0);
		from = keep[i] + 1;
	}
	(void)close_range(from, ~0U, 0);
}

static _Noreturn void background(struct hf_state *state, const char *name,
				 const struct hf_run_opts *o, int news_fd)
{
	struct hf_link_news news = { .kind = HF_LINK_ENDED };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = 0; null >= 0 && i < 3; i++)
		(void)dup2(null, i);
	close_others(hf_state_dirfd(state), news_fd);
	news.result = hf_supervise(state, name, o, 1, send_news, &news_fd, &news.report, &news.err);
	/* Not told yet: it never ran. */
	if (news_fd >= 0)
		send_news(&news_fd, &news);
	_exit(0);
}

/* The one in between: leads a new session and leaves the supervisor to init. */
static _Noreturn void middle(struct hf_state *state, const char *name, const struct hf_run_opts *o,
			     int news_fd)
{
	(void)setsid();
	if (fork() == 0)
		background(state, name, o, news_fd);
	_exit(0);
}

/* Exactly one message: the keeper has the pipe open too, so its end may be far off. */
static int receive(int fd, struct hf_link_news *ret)
{
	size_t have = 0;

	while (have < sizeof(*ret)) {
		ssize_t n = hf_sys.read(fd, (char *)ret + have, sizeof(*ret) - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return 0;
		have += (size_t)n;
	}
	return 1;
}

int hf_run_start(struct hf_state *state, const char *name, const struct hf_run_opts *opts,
		 struct hf_run_report *ret_report, struct hf_err *err)
{
	struct hf_link_news news;
	struct hf_run_opts o;
	AUTO_FD from = -1;
	AUTO_FD to = -1;
	int ends[2], r;
	pid_t pid;

	if (!state || !ret_report)
		return FAIL(err, -EINVAL, "arguments", "hf_run_start", "NULL");
	r = complete(name, opts, &o, err);
	if (r < 0)
		return r;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return FAIL_SYS(err, "pipe", name);
	from = ends[0];
	to = ends[1];
	pid = fork();
	if (pid == 0)
		middle(state, name, &o, to);
	if (pid < 0)
		return FAIL_SYS(err, "fork", name);
	hf_auto_close(&to);
	while (waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 }, WEXITED) < 0 && errno == EINTR)
		continue;
	if (!receive(from, &news))
		return FAIL(err, -ECHILD, "start", name, "its supervisor was killed");
	if (news.kind == HF_LINK_STARTED)
		news.result = 0;
	if (news.result == 0 || news.result == HF_E_BUSY || news.result == HF_E_TIMEOUT)
		*ret_report = news.report;
	if (news.result < 0 && err)
		*err = news.err;
	return news.result;
}
