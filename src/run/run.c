/* run/run.c - the public starts, and the way into the background. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/run/options.h"
#include "hf/run/stage.h"
#include "hf/run/supervisor/supervise.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

static int check(const char *name, const struct hf_run_opts *opts, struct hf_err *err)
{
	if (!opts || opts->size < sizeof(*opts))
		return FAIL(err, -EINVAL, "arguments", name ? name : "", "size is not set");
	return hf_options_check(name, opts, err);
}

int hf_run_supervise_staged(struct hf_state *state, const char *name, const struct hf_run_opts *opts,
			    const struct hf_stage *stage, struct hf_run_report *ret_report,
			    struct hf_err *err)
{
	struct hf_run_report report = { 0 };
	int r;

	if (!state || !ret_report)
		return FAIL(err, -EINVAL, "arguments", "hf_run_supervise", "NULL");
	r = check(name, opts, err);
	if (r == 0)
		r = hf_supervise(&(struct hf_start){ .state = state, .name = name, .given = opts, .stage = stage },
				 &report, err);
	if (r == 0 || r == HF_E_BUSY || r == HF_E_TIMEOUT)
		*ret_report = report;
	return r;
}

int hf_run_supervise(struct hf_state *state, const char *name, const struct hf_run_opts *opts,
		     struct hf_run_report *ret_report, struct hf_err *err)
{
	return hf_run_supervise_staged(state, name, opts, NULL, ret_report, err);
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
	news.result = hf_supervise(&(struct hf_start){ .state = state,
						       .name = name,
						       .given = o,
						       .detached = 1,
						       .started = send_news,
						       .arg = &news_fd },
				   &news.report, &news.err);
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
	AUTO_FD from = -1;
	AUTO_FD to = -1;
	int ends[2], r;
	pid_t pid;

	if (!state || !ret_report)
		return FAIL(err, -EINVAL, "arguments", "hf_run_start", "NULL");
	r = check(name, opts, err);
	if (r < 0)
		return r;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return FAIL_SYS(err, "pipe", name);
	from = ends[0];
	to = ends[1];
	pid = fork();
	if (pid == 0)
		middle(state, name, opts, to);
	if (pid < 0)
		return FAIL_SYS(err, "fork", name);
	hf_auto_close(&to);
	while (waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 }, WEXITED) < 0 && errno == EINTR)
		continue;
	if (!receive(from, &news))
		return FAIL(err, -ECHILD, "start", name, "its supervisor was killed");
	if (news.kind == HF_LINK_STARTED)
		news.result = 0;
	if (opts->resumed && news.report.resumed[0])
		opts->resumed(opts->resumed_arg, news.report.resumed);
	if (news.result == 0 || news.result == HF_E_BUSY || news.result == HF_E_TIMEOUT)
		*ret_report = news.report;
	if (news.result < 0 && err)
		*err = news.err;
	return news.result;
}
