/*
 * cli/session/terminal/detach_keys.h - finds the keys that detach in typed text.
 *
 * The keys are not passed on. A beginning of them is held back for a second, or until another key follows.
 */
#ifndef CLI_SESSION_TERMINAL_DETACH_KEYS_H
#define CLI_SESSION_TERMINAL_DETACH_KEYS_H

#include <stddef.h>

#define DETACH_KEYS_MAX     8
#define DETACH_KEYS_DEFAULT "ctrl-p,ctrl-q"

struct detach_keys {
	char keys[DETACH_KEYS_MAX];
	size_t n;    /* 0: detaching by keys is disabled */
	size_t held; /* number of keys typed so far */
};

/* Parses "ctrl-p,ctrl-q", "ctrl-\\", "q" or "" (no keys), as docker does. Returns 0 or -1. */
int detach_keys_parse(struct detach_keys *keys, const char *text);

/*
 * Copies typed bytes to `out`, which has room for n + DETACH_KEYS_MAX. Returns 1 if the keys were typed; bytes after them
 * are dropped.
 */
int detach_keys_feed(struct detach_keys *keys, const char *typed, size_t n, char *out, size_t *ret_n);

/* Passes on the bytes that were held back. */
void detach_keys_release(struct detach_keys *keys, char *out, size_t *ret_n);

#endif
