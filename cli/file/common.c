/* cli/file/common.c - opens, locks, validates and commits for the file commands. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "file/file.h"
#include "hf/base/cleanup.h"
#include "hf/base/parse.h"
#include "hf/exec/spawn.h"

/* Reads the fence of --fence or --fenced. The caller frees the name. */
static int read_fence(struct file_work *work, char **ret_name, enum hf_lock_kind *ret_kind,
		      uint64_t *ret_token)
{
	const struct file_options *o = &work->o;
	const char *name = getenv("HOLDFAST_LOCK"), *token = getenv("HOLDFAST_TOKEN");
	size_t len = name ? strlen(name) : 0;
	int kind;

	*ret_name = NULL;
	if (o->fence && o->fenced)
		return cli_usage(work->cli, "--fence and --fenced cannot be combined");
	if (!o->fence && !o->fenced)
		return HF_EXIT_DONE;
	if (o->fenced && (!name || !name[0] || !token)) {
		return file_abandon(work, HF_EXIT_REFUSED, "--fenced, but HOLDFAST_LOCK and "
				    "HOLDFAST_TOKEN have no token: the lock is not held");
	}
	if (o->fence) {
		const char *colon = strrchr(o->fence, ':');

		name = o->fence;
		len = colon ? (size_t)(colon - name) : 0;
		token = colon ? colon + 1 : "";
	}
	if (len == 0 || hf_parse_u64(token, strlen(token), UINT64_MAX, ret_token) < 0 ||
	    *ret_token == 0)
		return cli_usage(work->cli, "a fence must be NAME:TOKEN, and the token a number");
	/* A user or an older program may set HOLDFAST_LOCK without a kind. */
	kind = o->fenced && getenv("HOLDFAST_LOCK_KIND") ? lock_kind(getenv("HOLDFAST_LOCK_KIND"))
							  : HF_LOCK_KIND_NAME;
	if (kind < 0)
		return cli_usage(work->cli, "HOLDFAST_LOCK_KIND: '%s' is not a kind of lock",
				 getenv("HOLDFAST_LOCK_KIND"));
	*ret_kind = (enum hf_lock_kind)kind;
	*ret_name = strndup(name, len);
	if (!*ret_name)
		cli_die_oom();
	return HF_EXIT_DONE;
}

/* Finds the lock that an enclosing "file with" holds, if any. */
static void read_held(struct hf_file_opts *opts)
{
	const char *token = getenv("HOLDFAST_TOKEN"), *kind = getenv("HOLDFAST_LOCK_KIND");

	opts->held_name = getenv("HOLDFAST_LOCK");
	if (!opts->held_name || !token || !kind || lock_kind(kind) != HF_LOCK_KIND_FILE ||
	    hf_parse_u64(token, strlen(token), UINT64_MAX, &opts->held_token) < 0)
		opts->held_name = NULL;
}

/*
 * Returns how long to wait for an editor that has the file open for writing: not at all with -n, otherwise
 * the time of -w, but at most the time limit of a command. The default is the library's.
 */
static int64_t writer_wait(const struct file_options *o)
{
	int64_t wait_ns = o->lock.wait_ns < 0 ? INT64_MAX / 4 : o->lock.wait_ns;

	if (o->lock.wait_ns == HF_FILE_WAIT_NS)
		wait_ns = HF_FILE_WRITER_WAIT_NS;
	if (o->lock.no_wait || wait_ns == 0)
		return 1;
	return wait_ns < o->limit_ns || o->limit_ns <= 0 ? wait_ns : o->limit_ns;
}

/* Parses an octal mode. Returns 0 if `text` is not one. */
static unsigned mode_of(const char *text)
{
	unsigned mode = 0;

	for (; text && *text >= '0' && *text <= '7' && mode < 01000; text++)
		mode = mode * 8 + (unsigned)(*text - '0');
	return text && *text ? 0 : mode;
}

static int open_file(struct file_work *work, unsigned flags)
{
	const struct file_options *o = &work->o;
	struct hf_file_opts opts = { .size = sizeof(opts),
				     .flags = flags | (o->create ? HF_FILE_CREATE : 0) |
					      (o->follow ? HF_FILE_FOLLOW : 0) |
					      (o->replace_symlink ? HF_FILE_REPLACE_SYMLINK : 0) |
					      (o->break_links ? HF_FILE_BREAK_LINKS : 0) |
					      (o->sidecar ? HF_FILE_SIDECAR : 0),
				     .mode = mode_of(o->mode),
				     .root = o->root,
				     .backups = (unsigned)o->backups,
				     .writer_wait_ns = writer_wait(o),
				     .journal = work->context.journal };
	AUTO_FREE char *fence = NULL;
	int status = read_fence(work, &fence, &opts.fence_kind, &opts.fence_token);

	if (status != HF_EXIT_DONE)
		return status;
	opts.fence_name = fence;
	/* A named lock may be in another machine's store; files belong to this machine. */
	if (fence && opts.fence_kind == HF_LOCK_KIND_NAME && cli_store(work->cli)) {
		status = lock_open(work->cli, &work->fence);
		if (status != HF_EXIT_DONE)
			return status;
		if (hf_locks_lease(work->fence.locks) > 0)
			opts.fence_locks = work->fence.locks;
	}
	read_held(&opts);
	if (hf_file_open(work->context.locks, work->path, &opts, &work->file, &work->err) < 0)
		return cli_fail(work->cli, &work->err);
	return HF_EXIT_DONE;
}

static int check_options(struct file_work *work)
{
	struct file_options *o = &work->o;
	int status = lock_options_check(work->cli, &o->lock);

	if (status != HF_EXIT_DONE)
		return status;
	if (o->follow && o->replace_symlink)
		return cli_usage(work->cli, "--follow and --replace-symlink cannot be combined");
	if (o->mode && (!o->create || mode_of(o->mode) == 0))
		return cli_usage(work->cli, "--mode must be an octal number such as 0600, and needs --create");
	if (o->backups > HF_FILE_BACKUPS_MAX)
		return cli_usage(work->cli, "--backup keeps at most %d versions", HF_FILE_BACKUPS_MAX);
	if (!work->path[0])
		return cli_usage(work->cli, "the file's path is empty");
	return HF_EXIT_DONE;
}

int file_begin(struct file_work *work, unsigned flags, int *ret_go)
{
	struct hf_mono start = hf_mono_now();
	struct hf_holder blocker = { 0 };
	int r, status = check_options(work);

	*ret_go = 0;
	if (status == HF_EXIT_DONE)
		status = lock_open_here(work->cli, &work->context);
	if (status == HF_EXIT_DONE)
		status = open_file(work, flags);
	if (status != HF_EXIT_DONE)
		return status;
	work->context.kind = HF_LOCK_KIND_FILE;
	r = hf_file_lock(work->file, work->o.lock.wait_ns, &blocker, &work->err);
	*ret_go = r == 0;
	if (r == 0 && hf_file_made_sidecar(work->file))
		file_exclude(hf_file_lock_fd(work->file));
	/* A refusal for safety is not a time-out; the policy does not apply. */
	if (r < 0 && hf_err_exit_status(r) == HF_EXIT_REFUSED)
		return cli_fail(work->cli, &work->err);
	if (r < 0)
		status = lock_settle(work->cli, &work->context, &work->o.lock,
				     hf_file_lock_name(work->file), r, start, &blocker, &work->err,
				     ret_go);
	return status;
}

void file_end(struct file_work *work)
{
	(void)hf_file_close(work->file, NULL);
	lock_close(&work->fence);
	lock_close(&work->context);
}

int file_abandon(const struct file_work *work, int status, const char *format, ...)
{
	char cause[512];
	struct hf_field fields[] = { HF_FIELD_TEXT("path", work->path),
				     HF_FIELD_TEXT("cause", cause) };
	va_list args;

	va_start(args, format);
	(void)vsnprintf(cause, sizeof(cause), format, args);
	va_end(args);
	if (work->context.journal)
		(void)hf_journal_append(work->context.journal, HF_EV_FILE_ABANDONED, NULL, fields, 2,
					0, NULL);
	cli_say(work->cli, "%s is unchanged: %s", work->path, cause);
	if (work->cli->json) {
		json_t *object = json_object(), *error = json_object();

		cli_set(error, "code", json_string("abandoned"));
		cli_set(error, "message", cli_text(cause));
		cli_set(error, "exit", json_integer(status));
		cli_set(object, "file", cli_text(work->path));
		cli_set(object, "changed", json_false());
		cli_set(object, "error", error);
		cli_print_json(object);
	}
	return status;
}

/* Runs the validator on the new content. */
static int validate(struct file_work *work, int new_fd)
{
	char shell[] = "/bin/sh", option[] = "-c", path[48];
	AUTO_FREE char *text = strdup(work->o.validate);
	char *command[] = { shell, option, text, NULL };
	struct filter filter = { .command = command, .out = -1, .limit_ns = work->o.limit_ns };
	struct filter_result result;
	AUTO_FD fd = -1;

	if (!text)
		cli_die_oom();
	/* A new descriptor: at offset 0, read-only. */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", new_fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return file_abandon(work, HF_EXIT_OS, "the new content cannot be read again: %s",
				    strerrordesc_np(errno));
	filter.in = fd;
	result = command_filter(work->cli, &filter);
	if (result.status == 0)
		return HF_EXIT_DONE;
	if (result.timed_out || result.signal)
		return file_abandon(work, result.status, "%s during validation",
				    result.timed_out ? "the deadline passed" : "a signal arrived");
	return file_abandon(work, HF_EXIT_NO, "'%s' did not accept the new content (exit %d)",
			    work->o.validate, result.status);
}

static int print_result(const struct file_work *work, int changed, int attempts)
{
	json_t *object;

	if (!work->cli->json)
		return HF_EXIT_DONE;
	object = json_object();
	cli_set(object, "file", cli_text(work->path));
	cli_set(object, "changed", json_boolean(changed));
	cli_set(object, "attempts", json_integer(attempts));
	cli_set(object, "lock", cli_text(hf_file_lock_name(work->file)));
	cli_set(object, "token", json_integer((json_int_t)hf_file_token(work->file)));
	cli_print_json(object);
	return HF_EXIT_DONE;
}

/* -- attempts ----------------------------------------------------------------- */

struct replacing {
	struct file_work *work;
	enum file_made (*make)(struct file_work *work, void *arg, int *ret_status);
	void *arg;
	int stopped; /* `status` is set, and the reason was reported */
	int status;
};

/* Makes and validates the content that hf_file_update() commits. */
static int make_valid(void *arg, struct hf_file *file, struct hf_err *err)
{
	struct replacing *r = arg;
	struct file_work *work = r->work;
	enum file_made made = r->make(work, r->arg, &r->status);

	if (made == FILE_WRITTEN && work->o.validate) {
		r->status = validate(work, hf_file_new_fd(file));
		if (r->status != HF_EXIT_DONE)
			made = FILE_STOPPED;
	}
	switch (made) {
	case FILE_SAME:
		return 0;
	case FILE_WRITTEN:
		return 1;
	case FILE_STOPPED:
		r->stopped = 1;
		return -ECANCELED;
	case FILE_FAILED:
	default:
		*err = work->err;
		return work->err.code;
	}
}

static void report_kept(const struct file_work *work)
{
	const char *kept = hf_file_kept(work->file);

	if (kept)
		cli_say(work->cli, "%s: a version that another process saved during a commit was "
			"replaced by a later one; it is kept as %s", work->path, kept);
}

int file_replace(struct file_work *work,
		 enum file_made (*make)(struct file_work *work, void *arg, int *ret_status),
		 void *arg)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct replacing replacing = { .work = work, .make = make, .arg = arg };
	struct hf_err err = HF_ERR_INIT;
	unsigned attempts;
	int r;

	/* This process waits for its children, and its process name shows that. */
	hf_command_waits(HF_WAITS_IN_EDIT);
	/* A limit on file sizes must be an error, not a signal. */
	(void)sigaction(SIGXFSZ, &ignore, NULL);
	r = hf_file_update(work->file, make_valid, &replacing, &attempts, &err);
	report_kept(work);
	if (replacing.stopped)
		return replacing.status;
	if (r == HF_E_CHANGED)
		return file_abandon(work, HF_EXIT_NO, "a process keeps changing it without the lock "
				    "(%u attempts; %s)", attempts, err.detail);
	if (r == HF_E_MOVED)
		return file_abandon(work, HF_EXIT_NO, "%s; run the command again", err.detail);
	if (r < 0)
		return cli_fail(work->cli, &err);
	return print_result(work, r, (int)attempts);
}
