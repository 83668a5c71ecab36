/*
 * cli/session/terminal/detach_keys.h - the keys that end an attach, found in what is typed.
 *
 * They are not passed on. The beginning of them is held back until it is clear that it is none, or for a second.
 */
#ifndef CLI_SESSION_TERMINAL_DETACH_KEYS_H
#define CLI_SESSION_TERMINAL_DETACH_KEYS_H

#include <stddef.h>

#define DETACH_KEYS_MAX     8
#define DETACH_KEYS_DEFAULT "ctrl-p,ctrl-q"

struct detach_keys {
	char keys[DETACH_KEYS_MAX];
	size_t n;    /* 0: there are none */
	size_t held; /* how many of them were typed */
};

/* "ctrl-p,ctrl-q", "ctrl-\\", "q", "" (none), as docker writes them. 0, or -1 when it is none. */
int detach_keys_parse(struct detach_keys *keys, const char *text);

/*
 * Passes typed bytes through to `out`, which has room for n + DETACH_KEYS_MAX. Returns 1 when the keys were typed: what
 * follows them is dropped.
 */
int detach_keys_feed(struct detach_keys *keys, const char *typed, size_t n, char *out, size_t *ret_n);

/* What was held back after all belongs to what was typed. */
void detach_keys_release(struct detach_keys *keys, char *out, size_t *ret_n);

#endif
