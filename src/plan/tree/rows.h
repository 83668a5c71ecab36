/*
 * plan/tree/rows.h - the entries of directories as packed rows, for a process that may not allocate.
 *
 * Such a process is the child of a fork in a program that may have threads: the census of a target, the memory of a work tree. Its caller gives the room
 * (mmap): pages that are not touched cost nothing.
 */
#ifndef PLAN_TREE_ROWS_H
#define PLAN_TREE_ROWS_H

#include <stddef.h>
#include <stdint.h>

/* A row; its name stands behind it, without a NUL. */
struct hf_row {
	uint64_t ino;
	uint8_t type; /* DT_ */
	uint8_t name_len;
} __attribute__((packed));

struct hf_rows {
	char *at;
	size_t room, used;
	char buffer[32768] __attribute__((aligned(8)));
};

/* Adds all entries of the directory but "." and "..". Returns how many, -E2BIG when the room is used up, or -errno. */
int64_t hf_rows_list(struct hf_rows *rows, int dir_fd);

#endif
