/*
 * run/keeper/output/viewers.h - those that are attached to the terminal of a session in the background.
 *
 * Each viewer is a connection (session/attach.h) of this user. One of them types: the first that wanted to, and after it the next. What it typed
 * waits here until the command's side takes it; meanwhile nothing more is read from it. Nothing is ever waited for.
 */
#ifndef RUN_KEEPER_OUTPUT_VIEWERS_H
#define RUN_KEEPER_OUTPUT_VIEWERS_H

#include <poll.h>
#include <sys/ioctl.h>

#include "hf/run/session/attach.h"
#include "hf/run/session/record/store.h"

#define HF_VIEWERS_MAX 8

struct hf_viewers {
	int listener;           /* -1: the session has no terminal of its own */
	int dirfd;
	struct hf_viewer {
		int fd;         /* -1: free */
		int32_t pid;
		int wants;      /* to type */
		int greeted;
		uint64_t came;  /* which it was */
		uint16_t rows, columns;
	} all[HF_VIEWERS_MAX];
	int writer;             /* its place above; -1: none */
	uint64_t came;
	int pty;                /* the command's, while it runs, open until it is no terminal of the keeper's any more; -1 */
	struct winsize size;
	struct hf_boot typed;   /* the time of the last key */
	size_t at, len;         /* what of `keys` is still to be handed over */
	char keys[HF_ATTACH_KEYS];
};

#define HF_VIEWERS_INIT { .listener = -1, .dirfd = -1, .writer = -1, .pty = -1, .size = { .ws_row = 24, .ws_col = 80 } }

/* Lets viewers come. 0 or -errno. */
int hf_viewers_open(struct hf_viewers *viewers, struct hf_sessions *sessions, const char *name);

/* Takes leave of them; the socket's name goes. */
void hf_viewers_done(struct hf_viewers *viewers);

/* What to poll for; at most HF_VIEWERS_POLL. */
#define HF_VIEWERS_POLL (HF_VIEWERS_MAX + 2)
nfds_t hf_viewers_poll(const struct hf_viewers *viewers, struct pollfd *fds);

/*
 * Takes what came. Returns SIGINT or SIGQUIT when a key was typed for which the pty is about to send this to its foreground
 * group, *ret_group; else 0.
 */
int hf_viewers_take(struct hf_viewers *viewers, pid_t *ret_group);

/* Queues the answer to a terminal query behind the keys; drops it if the queue is full. */
void hf_viewers_answer(struct hf_viewers *viewers, const char *text);

/* Passes on what was typed, as far as it is taken. */
void hf_viewers_copy(struct hf_viewers *viewers);

#endif
