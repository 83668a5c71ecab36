/* name/names.h - the names that a directory has entries for: sessions, plans, candidates. */
#ifndef NAME_NAMES_H
#define NAME_NAMES_H

#include <stddef.h>

struct hf_names {
	char **list;
	size_t n;
};

/*
 * Reads the names whose keys stand in the directory, in order; other entries are passed over. `dirfd` -1: there is
 * no directory, and so there are none. Returns 0 or -errno.
 */
int hf_names_read(int dirfd, struct hf_names *ret);

/* 0 or -ENOMEM. */
int hf_names_add(struct hf_names *names, const char *name);
void hf_names_sort(struct hf_names *names);

/* 1 when it is among the first `n`, which are sorted. */
int hf_names_has(const struct hf_names *names, size_t n, const char *name);

void hf_names_done(struct hf_names *names);

#endif
