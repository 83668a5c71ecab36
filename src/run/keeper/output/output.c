/* run/keeper/output/output.c - copying output to the log and to the caller, without ever blocking for long. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/run/keeper/output/ordered.h"
#include "hf/run/keeper/output/output.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

/* More than any pipe holds; a process outside of the tree that was handed it and goes on writing is cut off. */
#define DRAIN_TURNS 1024

/* Writes that are taken at once, so that a flood of output does not hold up the rest. */
#define ORDERED_TURNS 256

void hf_output_init(struct hf_output *output)
{
	memset(output, 0, sizeof(*output));
	output->log = (struct hf_log_writer)HF_LOG_WRITER_INIT;
	output->terminal = -1;
	output->order = -1;
	for (int i = 0; i < 3; i++)
		output->child[i] = -1;
	for (int i = 0; i < 2; i++)
		output->streams[i] = (struct hf_stream){ .from = -1, .to = i + 1, .stream = i ? HF_LOG_ERR : HF_LOG_OUT };
	output->last = hf_mono_now();
}

void hf_output_close_child(struct hf_output *output)
{
	for (int i = 0; i < 3; i++)
		if (output->child[i] != output->log.fd && output->child[i] != output->terminal)
			hf_auto_close(&output->child[i]);
		else
			output->child[i] = -1;
	hf_auto_close(&output->terminal);
}

void hf_output_done(struct hf_output *output)
{
	hf_output_close_child(output);
	for (int i = 0; i < 2; i++)
		hf_auto_close(&output->streams[i].from);
	hf_auto_close(&output->order);
	hf_log_writer_done(&output->log);
	hf_auto_free(&output->program);
}

/* A pty like the caller's terminal, or, where the log is the only reader, like any. The command's side, or -errno; ours is that of the first stream. */
static int open_pty(struct hf_output *output, int raw_output)
{
	struct termios modes = { 0 };
	struct winsize size = output->size;
	int ours, theirs;

	if (!output->alone && (tcgetattr(STDOUT_FILENO, &modes) < 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0))
		return -errno;
	if (raw_output)
		modes.c_oflag &= ~(tcflag_t)OPOST;
	if (openpty(&ours, &theirs, NULL, output->alone ? NULL : &modes, &size) < 0)
		return -errno;
	if (output->alone)
		output->streams[0].to = -1;
	(void)fcntl(ours, F_SETFD, FD_CLOEXEC);
	(void)fcntl(theirs, F_SETFD, FD_CLOEXEC);
	output->streams[0].from = ours;
	output->streams[0].stream = HF_LOG_BOTH;
	return theirs;
}

static int open_pipe(struct hf_output *output, int i)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	output->streams[i].from = ends[0];
	output->child[i + 1] = ends[1];
	return 0;
}

/* Standard error is where the rest of the terminal is, unless the caller sent it elsewhere. */
static int open_error(struct hf_output *output, int theirs)
{
	if (!output->alone && !isatty(STDERR_FILENO))
		return open_pipe(output, 1);
	output->child[2] = theirs;
	return 0;
}

static int open_terminal(struct hf_output *output)
{
	int theirs = open_pty(output, 0);

	if (theirs < 0)
		return theirs;
	output->terminal = theirs;
	output->on_pty = 1;
	output->program = calloc(1, sizeof(*output->program));
	output->child[0] = output->child[1] = theirs;
	return open_error(output, theirs);
}

/* The caller's terminal, which is an ordinary one meanwhile, makes line ends what they are to be. */
static int open_screen(struct hf_output *output)
{
	int theirs = open_pty(output, 1);

	if (theirs < 0)
		return theirs;
	output->child[1] = theirs;
	if (!isatty(STDERR_FILENO))
		return open_pipe(output, 1);
	output->child[2] = fcntl(theirs, F_DUPFD_CLOEXEC, 3);
	return output->child[2] < 0 ? -errno : 0;
}

/* Are both streams of the caller's one file, in which their order can be seen? */
static int is_one_file(void)
{
	struct stat out, err;

	return fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0 && !S_ISCHR(out.st_mode) &&
	       hf_is_same_file(&out, &err);
}

/* For the log alone: two pipes in the order in which they are written; where that cannot be told, one. 1: they are there. */
static int open_ordered(struct hf_output *output)
{
	int from[2];

	for (int i = 0; i < 2; i++)
		output->streams[i].to = -1;
	hf_auto_close(&output->order);
	if (hf_ordered_open(from, &output->child[1], &output->order) < 0)
		return 0;
	for (int i = 0; i < 2; i++) {
		output->streams[i].from = from[i];
		output->streams[i].stream = i ? HF_LOG_ERR : HF_LOG_OUT;
	}
	return 1;
}

static int open_pipes(struct hf_output *output)
{
	int together = output->alone || is_one_file(), r = 0;

	if (output->alone && open_ordered(output))
		return 0;
	for (int i = 0; r == 0 && i < (together ? 1 : 2); i++) {
		output->streams[i].stream = together ? HF_LOG_BOTH : i ? HF_LOG_ERR : HF_LOG_OUT;
		if (!output->passive || !isatty(i + 1))
			r = open_pipe(output, i);
	}
	if (r == 0 && together && output->child[1] >= 0) {
		output->child[2] = fcntl(output->child[1], F_DUPFD_CLOEXEC, 3);
		r = output->child[2] < 0 ? -errno : 0;
	}
	return r;
}

int hf_output_open(struct hf_output *output, enum hf_output_kind kind)
{
	int r;

	output->last = hf_mono_now();
	output->on_pty = 0;
	output->has_activity = 0;
	hf_auto_free(&output->program);
	output->program = NULL;
	if (output->direct) {
		output->child[1] = output->log.fd;
		output->child[2] = output->log.fd;
		return 0;
	}
	r = kind == HF_OUTPUT_TERMINAL ? open_terminal(output) : kind == HF_OUTPUT_SCREEN ? open_screen(output) : open_pipes(output);
	for (int i = 0; r == 0 && i < 2; i++)
		if (output->streams[i].from >= 0 && output->order < 0)
			(void)fcntl(output->streams[i].from, F_SETFL, O_NONBLOCK);
	return r;
}

nfds_t hf_output_poll(const struct hf_output *output, struct pollfd *fds)
{
	nfds_t n = 0;

	if (output->order >= 0)
		fds[n++] = (struct pollfd){ .fd = output->order, .events = POLLIN };
	for (int i = 0; i < 2; i++) {
		const struct hf_stream *s = &output->streams[i];

		if (output->order >= 0) {
			/* Its end alone. */
			if (s->from >= 0)
				fds[n++] = (struct pollfd){ .fd = s->from };
			continue;
		}
		if (s->len > 0)
			fds[n++] = (struct pollfd){ .fd = s->to, .events = POLLOUT };
		else if (s->from >= 0)
			fds[n++] = (struct pollfd){ .fd = s->from, .events = POLLIN };
	}
	return n;
}

/* Passes on what is held, as far as the reader takes it without blocking us. */
static void flush_held(struct hf_output *output, struct hf_stream *s)
{
	struct pollfd ready = { .fd = s->to, .events = POLLOUT };

	while (s->len > 0 && hf_sys.poll(&ready, 1, 0) > 0) {
		ssize_t n = hf_sys.write(s->to, s->held + s->at, s->len);

		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			return;
		if (n < 0) {
			if (errno != EPIPE && !output->on_pty)
				output->failed = errno;
			s->to = -1; /* its reader is gone; the log goes on, if it was asked for */
			s->len = 0;
			if (output->passive && !output->on_pty)
				hf_auto_close(&s->from);
			return;
		}
		s->at += (size_t)n;
		s->len -= (size_t)n;
		s->taken += (size_t)n;
	}
}

/* Reads once. Returns 1 when something came. */
static int fill(struct hf_output *output, struct hf_stream *s)
{
	char chunk[HF_LOG_CHUNK];
	char *to = s->to >= 0 ? s->held : chunk;
	ssize_t n = hf_sys.read(s->from, to, s->to >= 0 ? sizeof(s->held) : sizeof(chunk));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	/* End: the last writer is gone (a pty says EIO). */
	if (n <= 0) {
		hf_auto_close(&s->from);
		return 0;
	}
	output->last = hf_mono_now();
	if (hf_log_is_on(&output->log))
		hf_log_write(&output->log, s->stream, to, (size_t)n);
	if (output->program && s->stream == HF_LOG_BOTH)
		output->has_activity |= hf_program_take(output->program, to, (size_t)n);
	s->at = 0;
	s->len = s->to >= 0 ? (size_t)n : 0;
	/* Nobody reads it and nobody keeps it: the command is to learn that, as it would. */
	if (s->to < 0 && (!hf_log_is_on(&output->log) || (output->passive && !output->on_pty)))
		hf_auto_close(&s->from);
	return 1;
}

/* The rest of a write that is longer than a chunk; one that never ends waits for the next turn. */
static void take_write_rest(struct hf_output *output, struct hf_stream *s)
{
	for (int turn = 0; turn < 16 && s->from >= 0 && fill(output, s); turn++)
		continue;
}

/* One write of a stream: packets up to one that is not full, or as many as are there. */
static void take_write(struct hf_output *output, struct hf_stream *s)
{
	char chunk[HF_LOG_CHUNK];
	size_t len = 0;
	ssize_t n;

	do {
		n = hf_sys.read(s->from, chunk + len, PIPE_BUF);
		len += n > 0 ? (size_t)n : 0;
	} while (n == PIPE_BUF && len + PIPE_BUF <= sizeof(chunk));
	if (len == 0)
		return;
	output->last = hf_mono_now();
	hf_log_write(&output->log, s->stream, chunk, len);
	if (n == PIPE_BUF)
		take_write_rest(output, s);
}

static int has_ended(const struct hf_stream *s)
{
	struct pollfd fd = { .fd = s->from };

	return s->from >= 0 && hf_sys.poll(&fd, 1, 0) > 0;
}

/* As many writes as a turn may take, in their order. */
static void pump_ordered(struct hf_output *output)
{
	int ended[2], next = HF_ORDERED_NONE;

	/* What a stream that has ended was written is known by now. */
	for (int i = 0; i < 2; i++)
		ended[i] = has_ended(&output->streams[i]);
	for (int turn = 0; turn < ORDERED_TURNS; turn++) {
		next = hf_ordered_next(output->order);
		if (next < 0)
			break;
		for (int i = 0; i < 2; i++)
			if (output->streams[i].from == next)
				take_write(output, &output->streams[i]);
	}
	/* From now on as they come. */
	if (next == HF_ORDERED_LOST)
		hf_auto_close(&output->order);
	for (int i = 0; next == HF_ORDERED_NONE && i < 2; i++)
		for (int turn = 0; turn < DRAIN_TURNS && ended[i] && output->streams[i].from >= 0; turn++)
			(void)fill(output, &output->streams[i]);
}

void hf_output_pump(struct hf_output *output)
{
	if (output->order >= 0) {
		pump_ordered(output);
		return;
	}
	/* A bounded number of turns, so that a flood of output does not hold up the rest. */
	for (int turn = 0; turn < 16; turn++) {
		int moved = 0;

		for (int i = 0; i < 2; i++) {
			struct hf_stream *s = &output->streams[i];

			if (s->len > 0)
				flush_held(output, s);
			if (s->len == 0 && s->from >= 0)
				moved |= fill(output, s);
		}
		if (!moved)
			return;
	}
}

int hf_output_is_waiting(const struct hf_output *output, uint64_t *ret_taken)
{
	struct pollfd fds[4];
	nfds_t n = 0;
	int held = 0;

	*ret_taken = 0;
	for (int i = 0; i < 2; i++) {
		const struct hf_stream *s = &output->streams[i];

		*ret_taken += s->taken;
		held |= s->len > 0;
		if (s->from >= 0)
			fds[n++] = (struct pollfd){ .fd = s->from, .events = POLLIN };
	}
	/* Other processes that have the pipe open are not waited for. */
	return held || (n > 0 && hf_sys.poll(fds, n, 0) > 0);
}

void hf_output_drain(struct hf_output *output)
{
	hf_output_pump(output);
	for (int i = 0; i < 2; i++) {
		struct hf_stream *s = &output->streams[i];

		s->len = 0;
		for (int turn = 0; turn < DRAIN_TURNS && s->from >= 0 && fill(output, s); turn++)
			s->len = 0;
		hf_auto_close(&s->from);
	}
	hf_auto_close(&output->order);
}

int64_t hf_output_age(struct hf_output *output)
{
	struct stat st;

	if (output->direct && hf_sys.fstat(output->log.fd, &st) == 0 &&
	    st.st_size != output->last_size) {
		int64_t ago = hf_wall_now().ns -
			      ((int64_t)st.st_mtim.tv_sec * HF_SEC + st.st_mtim.tv_nsec);
		int64_t since = hf_mono_now().ns - output->last.ns;

		/* It grew since the last look, so it was no longer ago than that. */
		output->last_size = st.st_size;
		ago = ago < 0 ? 0 : ago > since ? since : ago;
		output->last.ns = hf_mono_now().ns - ago;
	}
	return hf_mono_now().ns - output->last.ns;
}
