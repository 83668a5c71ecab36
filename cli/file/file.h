/* cli/file/file.h - what the file commands share: options, opening and locking, and the write. */
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
	/* Of those that write. */
	int create;
	const char *mode;
	int break_links;
	uint64_t backups;
	const char *validate;
	int64_t limit_ns;
	const char *fence; /* NAME:TOKEN */
	int fenced;        /* the same from the environment */
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
	  "exit status when the lock is busy (1)" },                                          \
	{ "root", 0, OPTION_TEXT, &(o).root, "DIR", "the file must be inside DIR" },                \
	{ "follow", 0, OPTION_FLAG, &(o).follow, NULL, "follow a symlink in its directory, or inside --root" }, \
	{ "sidecar", 0, OPTION_FLAG, &(o).sidecar, NULL, "make and lock .FILE.lock, for tools that use it" }, \
	{ "replace-symlink", 0, OPTION_FLAG, &(o).replace_symlink, NULL,                            \
	  "replace a symlink itself; its target is not read" }

#define FILE_WRITE_SPECS(o)                                                                         \
	FILE_LOCK_SPECS(o),                                                                         \
	{ "create", 0, OPTION_FLAG, &(o).create, NULL, "a missing file counts as empty" },          \
	{ "mode", 0, OPTION_TEXT, &(o).mode, "MODE", "of a file that --create makes: 0600" },       \
	{ "break-links", 0, OPTION_FLAG, &(o).break_links, NULL,                                    \
	  "replace one name of a file that has several" },                                          \
	{ "backup", 0, OPTION_COUNT, &(o).backups, "N", "keep N earlier versions, FILE.~1~ the last" }, \
	{ "validate", 0, OPTION_TEXT, &(o).validate, "CMD",                                         \
	  "a shell command that must accept the new content on its stdin" },                        \
	{ "deadline", 0, OPTION_DURATION, &(o).limit_ns, "DUR", "for each command (30s)" },         \
	{ "fence", 0, OPTION_TEXT, &(o).fence, "NAME:TOKEN", "write only while that token is current" }, \
	{ "fenced", 0, OPTION_FLAG, &(o).fenced, NULL,                                              \
	  "the same with $HOLDFAST_LOCK and $HOLDFAST_TOKEN" }

/* One command's work on one file. */
struct file_work {
	struct cli *cli;
	struct file_options o;
	struct lock_context context;
	struct lock_context fence; /* of the store of several machines, where the fence is in it */
	const char *path;
	struct hf_file *file;
	struct hf_err err;
};

/*
 * Opens and locks, by the policy. Returns HF_EXIT_DONE with *ret_go 1; else the status, after
 * saying why. file_end() in any case.
 */
int file_begin(struct file_work *work, unsigned flags, int *ret_go);
void file_end(struct file_work *work);

/* A lock file was made, which stays: git is told to ignore it, where it is in a work tree (exclude.c). Does nothing where it cannot. */
void file_exclude(int sidecar_fd);

/* Says that new content was not taken, journals it, and gives `status`. */
int file_abandon(const struct file_work *work, int status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

enum file_made {
	FILE_FAILED,  /* the library's error is in work->err */
	FILE_STOPPED, /* said and done; the status was given */
	FILE_SAME,    /* nothing to write */
	FILE_WRITTEN,
};

/*
 * Lets `make` write the new content, has it validated, and commits; does it all again when
 * another process changed the file meanwhile. Returns the status.
 */
int file_replace(struct file_work *work,
		 enum file_made (*make)(struct file_work *work, void *arg, int *ret_status),
		 void *arg);

#endif
