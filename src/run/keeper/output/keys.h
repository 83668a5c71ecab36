/* run/keeper/output/keys.h - keys that a terminal turns into signals. */
#ifndef RUN_KEEPER_OUTPUT_KEYS_H
#define RUN_KEEPER_OUTPUT_KEYS_H

#include <stddef.h>
#include <sys/types.h>

/*
 * SIGINT or SIGQUIT when `keys` hold one for which the pty, whose other side `pty` is, is about to send this to its foreground
 * group, *ret_group; else 0.
 */
int hf_keys_signal(int pty, const char *keys, size_t n, pid_t *ret_group);

#endif
