/*
 * plan/inside/helper.h - the process that stays inside with a command.
 *
 * It does three things: renames and exchanges directories that the overlay cannot (EXDEV), knows when the last process of
 * the command has ended, and then brings the sandboxes to rest. The kernel tells it of
 * each rename through a seccomp listener, and of the end by hanging that up.
 *
 * Forked, never executed, from a process that may have threads: no memory is allocated here.
 */
#ifndef PLAN_INSIDE_HELPER_H
#define PLAN_INSIDE_HELPER_H

#include <stddef.h>
#include <sys/types.h>

#include "hf/plan/inside/namespace.h"

struct hf_helper {
	int in_fd;                            /* the plan's file, locked (use.h) */
	int sandboxes[HF_PLAN_SANDBOXES_MAX]; /* directories of the overlays, to be settled */
	size_t n;
	int copies[HF_PLAN_SANDBOXES_MAX];    /* directories of clones and copies, to be settled as well (used.h) */
	size_t n_copies;
	int is_joined;                        /* 1: the namespaces are those of an earlier enter */
	int parent;                           /* socket to the process that waits for the command */
	int listener;                         /* -1: there is none */
};

/* What the parent asks and is told, one byte each. */
enum hf_helper_word {
	HF_HELPER_ENDED = 'e',   /* to the helper: the command was reaped */
	HF_HELPER_SETTLED = 's', /* no process is left; synced */
	HF_HELPER_OTHERS = 'o',  /* no process of this command is left; another enter is inside */
	HF_HELPER_LEFT = 'l',    /* processes of the command live on */
	HF_HELPER_FAILED = 'f',  /* no process is left, but syncing failed */
};

/* Installs the filter in the calling process. The listener, or -errno. */
int hf_helper_filter(void);

/* Answers one rename that the kernel asks for. A long one goes on in a child of the caller. serve.c */
void hf_helper_serve(int listener);

/* 1 when `pid` is such a child. */
int hf_helper_is_renaming(pid_t pid);

/* Notes that the child was reaped. A rename without an answer fails with EIO. */
void hf_helper_forget(int listener, pid_t pid);

/* Closes all descriptors but the helper's and two more. */
void hf_helper_keep_only(const struct hf_helper *helper, int fd, int other);

/* No process is left: settles the sandboxes and gives the lock of the plan's file back. What to tell. */
char hf_helper_rest(const struct hf_helper *helper);

/* The process's life. Does not return. */
_Noreturn void hf_helper_main(const struct hf_helper *helper);

/*
 * Renames the directory `old` to `new` entry by entry, as rename(2) would: complete, or undone
 * and an errno. Both are in one overlay; a plain rename gave EXDEV. rename.c
 */
int hf_rename_directory(int old_dir, const char *old_name, int new_dir, const char *new_name,
			int no_replace);

/*
 * The same for RENAME_EXCHANGE; one side may be another kind of file. Replaces each directory by an equal
 * new one, then exchanges the two by one rename.
 */
int hf_exchange_directories(int old_dir, const char *old_name, int new_dir, const char *new_name);

#endif
