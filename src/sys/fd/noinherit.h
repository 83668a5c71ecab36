/*
 * sys/fd/noinherit.h - descriptors that a forked child must not carry.
 *
 * flock(2) belongs to the open file description, and fork() gives the child a share in it. If the
 * parent is then killed, its lock stays with a child that knows nothing of it, for as long as that
 * child lives (L4). The same with a FIFO: as long as one process has it open, its reader seems to
 * live. So every descriptor that this library flocks, and each waiter's channel, is opened here and noted in a table, and
 * a handler of pthread_atfork(3) replaces each of them in the child by one that means nothing. The
 * number stays taken: the child may still free its handles (L13).
 *
 * Not covered: children made without the C library's fork(). vfork() and posix_spawn() end in
 * exec, which closes these descriptors (O_CLOEXEC); a raw clone() or _Fork() that does not is
 * the caller's. Our own clone (calls.def: clone_into) is covered.
 *
 * Order. A fork that fell between the opening and the note in the table would miss it. So openings
 * share a lock that a fork has alone. A fork that cannot get it within 100 ms (an opening hangs in its file
 * system, or a signal handler that interrupted one forks) goes on, and then the opening is
 * repeated: what is given up was never flocked, so it does no harm in the child. A descriptor
 * leaves the table before it is closed, and is unlocked before that.
 *
 * Cost: four atomic operations for an opening and a closing; no system call unless a fork is under way. A
 * fork costs one dup3 for each descriptor in the table.
 *
 * Unloading: glibc ties the handler to the shared object that registered it and forgets it with
 * dlclose(); musl never unloads.
 */
#ifndef SYS_FD_NOINHERIT_H
#define SYS_FD_NOINHERIT_H

#include <sys/types.h>

/*
 * Around an opening of any kind, with nothing else between the two:
 *
 *     do {
 *             r = hf_noinherit_begin(&opening);
 *             if (r < 0)
 *                     return r;
 *             fd = open(...);
 *     } while ((r = hf_noinherit_note(&fd, &opening)) == 0);
 *
 * _begin returns 0, or -ENOMEM when the handler cannot be registered. _note ends what _begin began
 * and returns 1; 0 when a fork came between: `fd` is closed, open it again; `fd` itself when that
 * is an error; -EMFILE for a number of 1048576 or more, which is closed.
 */
struct hf_opening {
	int locked;
	unsigned impatient;
};

int hf_noinherit_begin(struct hf_opening *ret);
int hf_noinherit_note(int *fd, struct hf_opening *opening);

/* hf_open_at, and hf_open_noatime, with the above around them. Not for O_EXCL. */
int hf_noinherit_open(int dirfd, const char *path, int flags, mode_t mode);
int hf_noinherit_open_noatime(int dirfd, const char *path, int flags, mode_t mode);

/* A second number for the same description, above stdio. */
int hf_noinherit_dup(int fd);

/* Closes an unlocked descriptor. -1 is fine. */
void hf_noinherit_close(int *fd);

/*
 * Closes the descriptor and gives its number to `other` in one step, so that no thread takes the number
 * in between. Returns the number, or -1. The caller has unlocked it.
 */
int hf_noinherit_turn(int *fd, int other);

/* The same as hf_noinherit_close, unlocking it before. For AUTO. Not for a child that inherited it. */
void hf_noinherit_unlock_close(int *fd);

/*
 * The same for one number of several for a description that may be flocked: `other`, any
 * descriptor, takes its number first.
 */
void hf_noinherit_close_shared(int *fd, int other);

/* Around a fork that the C library does not know of; _child in the child alone. */
void hf_noinherit_before_fork(void);
void hf_noinherit_after_fork(void);
void hf_noinherit_child(void);

#define AUTO_FLOCK_FD AUTO(hf_noinherit_unlock_close) int

#endif
