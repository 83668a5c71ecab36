/* run/supervisor/detach.c - the way into the background: what the caller does, and what the program does. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/run/options_json.h"
#include "hf/run/supervisor/order.h"
#include "hf/run/supervisor/supervise.h"
#include "hf/sys/calls.h"
#include "hf/sys/fd/fdpass.h"
#include "hf/sys/io.h"
#include "hf/sys/fd/poll.h"
#include "hf/sys/state/state.h"
#include "holdfast/exit.h"
#include "holdfast/version.h"

/* -- both sides ---------------------------------------------------------------------- */

/* Reads exactly so much. 1; 0 when the other one is gone before; HF_E_TIMEOUT. */
static int receive(int fd, void *to, size_t len, struct hf_mono until)
{
	size_t have = 0;

	while (have < len) {
		struct pollfd ready = { .fd = fd, .events = POLLIN };
		int r = hf_poll_until(&ready, 1, until);
		ssize_t n;

		if (r == 0)
			return HF_E_TIMEOUT;
		if (r == -EINTR)
			continue;
		n = r < 0 ? r : hf_sys.read(fd, (char *)to + have, len - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return 0;
		have += (size_t)n;
	}
	return 1;
}

/* Sends all, with the descriptor `fd` (-1: none) beside the first byte. 0 or -errno. */
static int send_all(int to, const void *from, size_t len, int fd)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = hf_send_fd(to, (const char *)from + done, len - done, 0, fd);

		if (n == -EINTR)
			continue;
		if (n < 0)
			return (int)n;
		done += (size_t)n;
		fd = -1;
	}
	return 0;
}

/* -- the caller ---------------------------------------------------------------------- */

static int fail_ended(struct hf_err *err, const char *name)
{
	return FAIL(err, -ECHILD, "start", name, "its supervisor was killed");
}

/* The process that was started: it is to end at once, and is reaped; if it has not ended by then, it is killed. */
static void reap_program(pid_t pid, struct hf_mono until)
{
	/* Our child, not reaped: the number is its own. */
	AUTO_FD pidfd = hf_sys.pidfd_open(pid, 0);
	struct pollfd exited = { .fd = pidfd, .events = POLLIN };
	int r = 0;

	if (pidfd >= 0) {
		do
			r = hf_poll_until(&exited, 1, until);
		while (r == -EINTR);
		if (r <= 0)
			(void)hf_sys.pidfd_send_signal(pidfd, SIGKILL);
	}
	while (waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 }, WEXITED) < 0 && errno == EINTR)
		continue;
}

/* Starts the program in a session of its own; the socket to it. */
static int start_program(const char *name, pid_t *ret_pid, int *ret_socket, struct hf_err *err)
{
	char *argv[] = { (char[]){ HF_SUPERVISE_PROGRAM }, (char *)(uintptr_t)name, NULL };
	AUTO_FD program = -1;
	AUTO_FD ours = -1;
	AUTO_FD theirs = -1;
	char path[64];
	int ends[2];
	int r = hf_supervise_open(&program, err);

	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return FAIL_SYS(err, "socketpair", name);
	ours = ends[0];
	theirs = ends[1];
	/* By its descriptor: what was checked is what runs. */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", program);
	if (hf_sys.spawn_session(path, argv, theirs, ret_pid) < 0)
		return FAIL_SYS(err, "spawn", HF_SUPERVISE_PROGRAM);
	*ret_socket = fd_take(&ours);
	return 0;
}

static int check_hello(int socket, struct hf_mono until, struct hf_err *err)
{
	struct hf_hello hello;
	int r = receive(socket, &hello, sizeof(hello), until);

	if (r == HF_E_TIMEOUT)
		return FAIL(err, r, "start", HF_SUPERVISE_PROGRAM, "it did not answer in time; it may be another program");
	if (r <= 0 || memcmp(hello.magic, HF_HELLO_MAGIC, sizeof(HF_HELLO_MAGIC)) != 0)
		return FAIL(err, -ENOEXEC, "start", HF_SUPERVISE_PROGRAM, "it ended at once, or is another program");
	hello.version[sizeof(hello.version) - 1] = '\0';
	if (strcmp(hello.version, hf_version()) != 0 || hello.news_size != sizeof(struct hf_link_news))
		return FAIL(err, HF_E_FORMAT, "start", HF_SUPERVISE_PROGRAM,
			    "it has version %s, and this is %s; install both from the same build", hello.version, hf_version());
	return 0;
}

int hf_detach(struct hf_state *state, const char *name, const struct hf_run_opts *given, struct hf_link_news *ret,
	      struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf order = HF_BUF_INIT;
	struct hf_order_head head = { 0 };
	struct hf_link_news news;
	struct hf_mono until = hf_mono_in(given->start_ns > 0 ? given->start_ns : HF_RUN_START_NS);
	AUTO_FD socket = -1;
	pid_t pid;
	int r;

	hf_order_add_json(&order, name, hf_state_path(state), given);
	if (order.err)
		return hf_fail_sys(err, -order.err, "memory", name);
	if (order.len > HF_OPTIONS_JSON_MAX)
		return hf_fail_sys(err, E2BIG, "start", name);
	r = start_program(name, &pid, &socket, err);
	if (r < 0)
		return r;
	r = check_hello(socket, until, err);
	reap_program(pid, until);
	if (r < 0)
		return r;
	head.len = order.len;
	head.has_input = given->input_fd > 0;
	if (send_all(socket, &head, sizeof(head), hf_state_dirfd(state)) < 0 ||
	    (head.has_input && send_all(socket, "i", 1, given->input_fd) < 0) ||
	    send_all(socket, order.s, order.len, -1) < 0)
		return fail_ended(err, name);
	/* One message, and before it those of a wait: the keeper has the socket open too, so its end may be far off. */
	for (int told = 0;;) {
		if (receive(socket, &news, sizeof(news), HF_MONO_NEVER) <= 0)
			return fail_ended(err, name);
		if (given->waiting && (told || news.kind == HF_LINK_WAITING))
			given->waiting(given->waiting_arg, news.kind == HF_LINK_WAITING ? &news.waiting : NULL);
		told = news.kind == HF_LINK_WAITING;
		if (!told)
			break;
	}
	*ret = news;
	return 0;
}

/* -- the program --------------------------------------------------------------------- */

static void send_news(void *arg, const struct hf_link_news *news)
{
	int *fd = arg;

	(void)send_all(*fd, news, sizeof(*news), -1);
	hf_auto_close(fd);
}

/* Where it stands, unless the caller has not read what was sent before: it may be stopped, and we do not wait for it. */
static void send_waiting(void *arg, const struct hf_link_news *news)
{
	const int *fd = arg;
	int unread = 1;

	if (*fd >= 0 && ioctl(*fd, SIOCOUTQ, &unread) == 0 && unread == 0)
		(void)send_all(*fd, news, sizeof(*news), -1);
}

/* The first message: a length, and beside it the state directory. 1, or 0 when it is none. */
static int receive_head(int socket, struct hf_order_head *ret, int *ret_fd)
{
	ssize_t n;

	do {
		n = hf_recv_fd(socket, ret, sizeof(*ret), MSG_WAITALL, ret_fd);
	} while (n == -EINTR);
	return n == sizeof(*ret) && *ret_fd >= 0 && ret->len > 0 && ret->len <= HF_OPTIONS_JSON_MAX;
}

static int receive_input(int socket, int *ret_fd)
{
	char byte;
	ssize_t n;

	do {
		n = hf_recv_fd(socket, &byte, 1, MSG_WAITALL, ret_fd);
	} while (n == -EINTR);
	return n == 1 && *ret_fd >= 0;
}

/* Keeps nothing of the caller's but the socket: what waits for the end of a pipe must not wait for a session. */
static int take_socket(int fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), socket;

	socket = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	for (int i = 0; null >= 0 && i <= STDERR_FILENO; i++)
		(void)dup2(null, i);
	if (null > STDERR_FILENO)
		(void)close(null);
	return socket;
}

struct ordered {
	struct hf_start start;
	struct hf_link_news *news;
};

static int supervise_staged(void *arg, const struct hf_stage *stage)
{
	struct ordered *ordered = arg;

	ordered->start.stage = stage;
	return hf_supervise(&ordered->start, &ordered->news->report, &ordered->news->err);
}

static int supervise_ordered(const struct hf_start *start, hf_stager_fn *stager, struct hf_link_news *news)
{
	struct ordered ordered = { .start = *start, .news = news };

	return stager ? stager(start->state, start->name, supervise_staged, &ordered) : supervise_staged(&ordered, NULL);
}

/* The order is read and carried out; what came of it, if the command never ran, goes to *news. */
static int carry_out(int *socket, hf_stager_fn *stager, struct hf_link_news *news)
{
	AUTO(hf_order_done) struct hf_order order = { 0 };
	AUTO_FREE char *text = NULL;
	struct hf_state *state = NULL;
	struct hf_order_head head;
	AUTO_FD state_fd = -1;
	AUTO_FD input = -1;
	int r;

	if (!receive_head(*socket, &head, &state_fd))
		return FAIL(&news->err, HF_E_FORMAT, "order", HF_SUPERVISE_PROGRAM, "its caller sent none");
	if (head.has_input && !receive_input(*socket, &input))
		return FAIL(&news->err, HF_E_FORMAT, "order", HF_SUPERVISE_PROGRAM, "its caller sent no input");
	text = malloc(head.len);
	if (!text)
		return hf_fail_sys(&news->err, ENOMEM, "memory", HF_SUPERVISE_PROGRAM);
	if (receive(*socket, text, head.len, HF_MONO_NEVER) <= 0)
		return FAIL(&news->err, HF_E_FORMAT, "order", HF_SUPERVISE_PROGRAM, "its caller is gone");
	r = hf_order_read(text, head.len, &order, &news->err);
	hf_auto_free(&text);
	if (r == 0)
		r = hf_state_adopt(state_fd, order.state_path, &state, &news->err);
	hf_auto_close(&state_fd);
	order.o.input_fd = input > 0 ? input : 0;
	if (r == 0)
		r = supervise_ordered(&(struct hf_start){ .state = state,
							  .name = order.name,
							  .given = &order.o,
							  .detached = 1,
							  .started = send_news,
							  .waiting = send_waiting,
							  .arg = socket },
				      stager, news);
	hf_state_free(state);
	return r;
}

int hf_supervise_main(int fd, hf_stager_fn *stager)
{
	struct hf_hello hello = { .magic = HF_HELLO_MAGIC, .news_size = sizeof(struct hf_link_news) };
	struct hf_link_news news = { .kind = HF_LINK_ENDED };
	int socket;
	pid_t pid;

	(void)close_range(STDERR_FILENO + 1, ~0U, 0);
	/* The one that was started leads the new session and ends; the supervisor belongs to init, and cannot come to a terminal. */
	pid = fork();
	if (pid != 0)
		return pid < 0 ? HF_EXIT_AROUND : 0;
	socket = take_socket(fd);
	/* As in the foreground; else it would have the number of a descriptor. */
	(void)prctl(PR_SET_NAME, "holdfast");
	hf_copy_text(hello.version, sizeof(hello.version), hf_version());
	if (socket < 0 || send_all(socket, &hello, sizeof(hello), -1) < 0)
		return HF_EXIT_AROUND;
	news.result = carry_out(&socket, stager, &news);
	/* Not told yet: it never ran. */
	if (socket >= 0)
		send_news(&socket, &news);
	return 0;
}
