/* cli/file/file.h - functions shared by the file commands: options, opening and locking, and the write. */
#ifndef CLI_FILE_FILE_H
#define CLI_FILE_FILE_H

#include "holdfast/file.h"
#include "lock/lock.h"

struct file_options {
	struct lock_options lock;
	const char *root;
	int follow;
	int replace_symlink;
	int sidecar;
	/* For commands that write. */
	int create;
	const char *mode;
	int break_links;
	uint64_t backups;
	const char *validate;
	int64_t limit_ns;
	const char *fence; /* NAME:TOKEN */
	int fenced;        /* the fence comes from the environment */
};

#define FILE_OPTIONS_INIT                                                            \
	{                                                                            \
		.lock = { .wait_ns = HF_FILE_WAIT_NS, .ttl_ns = -1, .busy_status = HF_EXIT_NO }, \
		.limit_ns = 30 * HF_SEC,                                             \
	}

#define FILE_LOCK_SPECS(o)                                                                          \
	{ "nonblock", 'n', OPTION_FLAG, &(o).lock.no_wait, NULL, "do not wait" },                   \
	{ "wait", 'w', OPTION_DURATION, &(o).lock.wait_ns, "DUR", "wait at most DUR (30s)" },       \
	{ "on-timeout", 0, OPTION_TEXT, &(o).lock.on_timeout_word, "WHAT", "fail, skip or proceed" }, \
	{ "conflict-exit-code", 'E', OPTION_COUNT, &(o).lock.busy_status, "N",                      \
	  "exit status if the lock is busy (1)" },                                          \
	{ "root", 0, OPTION_TEXT, &(o).root, "DIR", "the file must be inside DIR" },                \
	{ "follow", 0, OPTION_FLAG, &(o).follow, NULL, "follow a symlink in its directory, or inside --root" }, \
	{ "sidecar", 0, OPTION_FLAG, &(o).sidecar, NULL, "create and lock .FILE.lock, for tools that use it" }, \
	{ "replace-symlink", 0, OPTION_FLAG, &(o).replace_symlink, NULL,                            \
	  "replace the symlink itself; its target is not read" }

#define FILE_WRITE_SPECS(o)                                                                         \
	FILE_LOCK_SPECS(o),                                                                         \
	{ "create", 0, OPTION_FLAG, &(o).create, NULL, "a missing file counts as empty" },          \
	{ "mode", 0, OPTION_TEXT, &(o).mode, "MODE", "mode of a file made by --create, such as 0600 (default: by the umask)" },       \
	{ "break-links", 0, OPTION_FLAG, &(o).break_links, NULL,                                    \
	  "replace one of several hard links" },                                          \
	{ "backup", 0, OPTION_COUNT, &(o).backups, "N", "keep N earlier versions; FILE.~1~ is the newest" }, \
	{ "validate", 0, OPTION_TEXT, &(o).validate, "CMD",                                         \
	  "shell command that must accept the new content on stdin" },                        \
	{ "deadline", 0, OPTION_DURATION, &(o).limit_ns, "DUR", "time limit for each command (30s)" },         \
	{ "fence", 0, OPTION_TEXT, &(o).fence, "NAME:TOKEN", "write only while that token is current" }, \
	{ "fenced", 0, OPTION_FLAG, &(o).fenced, NULL,                                              \
	  "like --fence, with $HOLDFAST_LOCK and $HOLDFAST_TOKEN" }

/* The work of one command on one file. */
struct file_work {
	struct cli *cli;
	struct file_options o;
	struct lock_context context;
	struct lock_context fence; /* open if the fence is a lock in another machine's store */
	const char *path;
	struct hf_file *file;
	struct hf_err err;
};

/*
 * Opens and locks the file and applies the policy for a busy lock. Returns HF_EXIT_DONE with *ret_go
 * set to 1. Otherwise reports why and returns the exit status. Call file_end() in both cases.
 */
int file_begin(struct file_work *work, unsigned flags, int *ret_go);
void file_end(struct file_work *work);

/* Makes git ignore a new lock file, if the file is in a work tree (exclude.c). Failures are ignored. */
void file_exclude(int sidecar_fd);

/* Reports and journals that new content was rejected. Returns `status`. */
int file_abandon(const struct file_work *work, int status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

enum file_made {
	FILE_FAILED,  /* the library's error is in work->err */
	FILE_STOPPED, /* already reported; *ret_status is set */
	FILE_SAME,    /* nothing to write */
	FILE_WRITTEN,
};

/*
 * Calls `make` to write the new content, validates it and commits it. Repeats all of this if another
 * process has changed the file in between. Returns the exit status.
 */
int file_replace(struct file_work *work,
		 enum file_made (*make)(struct file_work *work, void *arg, int *ret_status),
		 void *arg);

#endif
