/*
 * tests/helper/tree_shapes.h - the shapes of trees, and how a process of one is known.
 */
#ifndef TREE_SHAPES_H
#define TREE_SHAPES_H

#include <sys/types.h>

extern const char *file; /* which processes are there, one line each */

_Noreturn void die(const char *what);
_Noreturn void stay(void);
void pause_ms(long ms);

/* Start tick of a process and inode of a pidfd; 0 when there is none. */
unsigned long long start_ticks(pid_t pid);
unsigned long long inode_of(int pidfd);
int open_pidfd(pid_t pid);

/* Writes our pid and role to the file. */
void announce(void);

/* Makes a shape, "chain:9". Returns how many processes will announce themselves; exits when there is none such. */
int make_shape(const char *word);

#endif
