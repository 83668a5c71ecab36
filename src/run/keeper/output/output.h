/*
 * run/keeper/output/output.h - where the command's output goes.
 *
 * Without a log and an idle limit the command has the caller's own descriptors, and
 * nobody stands between. Else it writes to pipes (or to a pty, where the caller has a
 * terminal) and the keeper copies: to the log first, then to the caller. In the background the log has both streams in
 * the order in which they were written (ordered.h). Where both streams of the caller's are
 * one file, one pipe is for both, so that lines stay in their order. When a process may outlive the keeper, the
 * command writes to the log itself.
 *
 * A log that nobody asked for is passive: it changes nothing for the command and its caller. A stream that is a terminal stays the
 * command's, a reader that goes away is the command's loss, and one that is slow is waited for.
 */
#ifndef RUN_KEEPER_OUTPUT_OUTPUT_H
#define RUN_KEEPER_OUTPUT_OUTPUT_H

#include <poll.h>
#include <stdint.h>
#include <sys/ioctl.h>

#include "hf/run/keeper/output/program.h"
#include "hf/run/session/log/log.h"
#include "holdfast/clock.h"

#define HF_OUTPUT_CHUNK 4096 /* a pipe that poll calls writable takes so much without blocking */

struct hf_stream {
	int from;              /* our end; -1: closed */
	int to;                /* 1 or 2; -1: closed by its reader */
	enum hf_log_stream stream;
	size_t at, len;        /* what of `held` is still to be written */
	uint64_t taken;        /* by its reader, in all */
	char held[HF_OUTPUT_CHUNK];
};

struct hf_output {
	struct hf_log_writer log;    /* fd -1: none */
	int direct;                  /* the command writes to the log itself */
	int alone;                   /* the log is the only reader */
	int passive;                 /* nobody asked for the log */
	int failed;                  /* errno of what the caller's file could not take; 0: nothing */
	int terminal;                /* the pty's side for the command; -1: none */
	int on_pty;                  /* the command that runs has a pty */
	struct winsize size;         /* of a pty that is like no terminal of the caller's */
	struct hf_stream streams[2]; /* standard output (or the pty), standard error */
	int child[3];                /* for the command; -1: as it is */
	int order;                   /* tells which stream was written next (ordered.h); -1: nothing does */
	struct hf_program *program;  /* reports of the command on its pty; NULL without a pty */
	int has_activity;                /* it changed */
	struct hf_mono last;         /* when the last output came */
	long long last_size;         /* of the log, when it is written directly */
};

void hf_output_init(struct hf_output *output);
void hf_output_done(struct hf_output *output);

/* What a command gets for its output. */
enum hf_output_kind {
	HF_OUTPUT_PIPES,
	HF_OUTPUT_TERMINAL, /* a pty for all three */
	HF_OUTPUT_SCREEN,   /* a pty for output alone, which is no controlling terminal */
};

/* Makes the ends for the next command. 0 or -errno. */
int hf_output_open(struct hf_output *output, enum hf_output_kind kind);

/* The command has them; ours must not keep them open. */
void hf_output_close_child(struct hf_output *output);

/* Adds what to poll for; at most 4. Returns how many. */
nfds_t hf_output_poll(const struct hf_output *output, struct pollfd *fds);

/* Copies what can be copied without blocking. */
void hf_output_pump(struct hf_output *output);

/* Is there output that its reader has not taken yet? *ret_taken grows as it does. */
int hf_output_is_waiting(const struct hf_output *output, uint64_t *ret_taken);

/* After the tree is empty: what is still there goes to the log, and its reader loses it. */
void hf_output_drain(struct hf_output *output);

/* Nanoseconds since the last output. */
int64_t hf_output_age(struct hf_output *output);

#endif
