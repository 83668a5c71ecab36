/* hook/install/install.c - the files of a client's settings, and our hooks in them. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/file/file.h"
#include "hf/file/sidecar.h"
#include "hf/hook/install/places.h"
#include "hf/hook/settings/settings.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"
#include "holdfast/file.h"

static int check_opts(const struct hf_settings_opts *opts, struct hf_err *err)
{
	if (!opts || opts->size != sizeof(*opts) || !opts->program || !opts->program[0])
		return FAIL(err, -EINVAL, "arguments", "struct hf_settings_opts", "size or program");
	return 0;
}

/* -- a report -------------------------------------------------------------------------------------- */

struct memory {
	struct hf_found found;
	struct hf_found other;
	struct hf_buf text;
};

void hf_settings_report_done(struct hf_settings_report *report)
{
	struct memory *memory = report->memory;

	if (memory) {
		hf_found_done(&memory->found);
		hf_found_done(&memory->other);
		hf_buf_done(&memory->text);
		free(memory);
	}
	*report = (struct hf_settings_report){ 0 };
}

static int begin(const struct hf_settings_opts *opts, struct hf_settings_report *report, struct hf_err *err)
{
	const struct hf_place *place;
	struct memory *memory;
	int r = check_opts(opts, err);

	if (r < 0)
		return r;
	place = hf_place_of(opts, err);
	if (!place)
		return -EINVAL;
	memory = calloc(1, sizeof(*memory));
	if (!memory)
		return hf_fail_sys(err, ENOMEM, "malloc", "settings");
	memory->text = (struct hf_buf)HF_BUF_INIT;
	*report = (struct hf_settings_report){ .path = "", .other = "", .text = "", .memory = memory };
	r = hf_place_find(place, opts, &memory->found, err);
	if (r == 0)
		report->path = memory->found.path;
	return r;
}

static struct hf_settings_want want_of(const struct hf_settings_opts *opts)
{
	return (struct hf_settings_want){ opts->client, opts->program, opts->dir, opts->guard };
}

/* "disableAllHooks" of Claude, and what is the same in others. */
static int switches_off(const struct hf_settings_opts *opts, const struct hf_buf *text)
{
	AUTO(hf_buf_done) struct hf_buf plain = HF_BUF_INIT;
	json_t *root;
	int off;

	(void)hf_settings_strip(text->s, text->len, HF_STRIP_COMMENTS, &plain);
	root = json_loadb(plain.s, plain.len, HF_SETTINGS_JSON, NULL);
	off = json_is_true(json_object_get(root, "disableAllHooks"));
	if (opts->client == HF_CLIENT_GEMINI)
		off = off || json_is_false(json_object_get(json_object_get(root, "hooksConfig"), "enabled"));
	json_decref(root);
	return off;
}

/* What the text says of our hooks. */
static int judge(const struct hf_settings_opts *opts, struct hf_settings_report *report, struct hf_err *err)
{
	struct memory *memory = report->memory;
	const struct hf_settings_want want = want_of(opts);
	int same = 0, n = 0;

	report->text = memory->text.s;
	report->state = HF_SETTINGS_ABSENT;
	if (memory->text.len > 0)
		n = hf_settings_count(&want, &memory->text, &same, report->path, err);
	if (n < 0)
		return n;
	if (n > 0)
		report->state = same ? HF_SETTINGS_INSTALLED : HF_SETTINGS_DIFFERENT;
	report->disabled = switches_off(opts, &memory->text);
	return 0;
}

/* -- reading ------------------------------------------------------------------------------------------- */

static int read_text(int fd, const char *path, struct hf_buf *text, struct hf_err *err)
{
	struct stat st;
	ssize_t n;

	hf_buf_reset(text);
	if (fd < 0)
		return 0;
	if (fstat(fd, &st) < 0)
		return FAIL_SYS(err, "fstat", path);
	if (!S_ISREG(st.st_mode))
		return FAIL(err, HF_E_KIND, "read", path, "it is not a regular file");
	if (st.st_size > HF_SETTINGS_MAX)
		return FAIL(err, -E2BIG, "read", path, "%lld bytes", (long long)st.st_size);
	if (hf_buf_reserve(text, (size_t)st.st_size + 4096) < 0)
		return hf_fail_sys(err, ENOMEM, "malloc", path);
	n = hf_read_all(fd, text->s, (size_t)st.st_size + 4096);
	if (n < 0)
		return hf_fail_sys(err, (int)-n, "read", path);
	text->len = (size_t)n;
	text->s[text->len] = '\0';
	return 0;
}

static int read_path(const char *path, struct hf_buf *text, struct hf_err *err)
{
	AUTO_FD fd = hf_open_at(AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0);

	if (fd == -ENOENT || fd == -ENOTDIR)
		return read_text(-1, path, text, err);
	return fd < 0 ? hf_fail_sys(err, -fd, "open", path) : read_text(fd, path, text, err);
}

int hf_hook_settings(const struct hf_settings_opts *opts, struct hf_settings_report *ret_report, struct hf_err *err)
{
	struct memory *memory;
	int r;

	*ret_report = (struct hf_settings_report){ 0 };
	r = begin(opts, ret_report, err);
	memory = ret_report->memory;
	if (r == 0)
		r = read_path(ret_report->path, &memory->text, err);
	if (r == 0 && memory->text.len > 0)
		r = hf_settings_check(opts->client, &memory->text, 0, ret_report->path, err);
	if (r == 0)
		r = judge(opts, ret_report, err);
	return r;
}

/* Has another file that the client reads here our hooks? Copilot also reads the project's settings of Claude. */
static int find_other(const struct hf_settings_opts *opts, const struct hf_place *place, struct hf_found *ret)
{
	for (const struct hf_place *other = NULL; (other = hf_place_next(other));) {
		const struct hf_settings_want want = want_of(opts);
		AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;
		AUTO(hf_found_done) struct hf_found found = { 0 };
		int same, is_copy = opts->client == HF_CLIENT_COPILOT && other->client == HF_CLIENT_CLAUDE &&
				    other->scope == HF_SCOPE_PROJECT;

		if (other == place || (other->client != opts->client && !is_copy))
			continue;
		if (hf_place_find(other, opts, &found, NULL) < 0 || read_path(found.path, &text, NULL) < 0 || text.len == 0 ||
		    hf_settings_check(other->client, &text, 0, found.path, NULL) < 0 ||
		    hf_settings_count(&want, &text, &same, found.path, NULL) <= 0)
			continue;
		*ret = found;
		found = (struct hf_found){ 0 };
		return 1;
	}
	return 0;
}

/* -- changing -------------------------------------------------------------------------------------------- */

struct change {
	const struct hf_settings_opts *opts;
	struct hf_settings_report *report;
	int install;
	int removed; /* nothing of the file is left */
};

/* The new text. 1: it is another; 0: it is the same. */
static int edit(struct change *change, int exists, struct hf_err *err)
{
	struct memory *memory = change->report->memory;
	const struct hf_settings_want want = want_of(change->opts);
	const char *path = change->report->path;
	int r = 0, fixed = 0;

	change->removed = 0;
	if (!exists)
		return !change->install ? 0 : hf_settings_make(&want, &memory->text, err) < 0 ? -ENOMEM : 1;
	if (memory->text.len == 0 && !change->install)
		return 0;
	fixed = hf_settings_check(change->opts->client, &memory->text, change->install && change->opts->fix, path, err);
	if (fixed < 0)
		return fixed;
	r = change->install ? hf_settings_put(&want, &memory->text, path, err)
			    : hf_settings_take(change->opts->client, &memory->text, &change->removed, path, err);
	change->report->fixed = fixed;
	return r < 0 ? r : r > 0 || fixed;
}

/* A file that nobody may write is one that its user wants as it is. */
static int check_mode(int fd, const char *path, struct hf_err *err)
{
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && !(st.st_mode & 0222))
		return FAIL(err, -EACCES, "write", path, "it is read-only (mode %04o)", (unsigned)st.st_mode & 07777);
	return 0;
}

static int let_owner(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	return (st.st_mode & 0600) == 0600 || hf_sys.fchmod(fd, (st.st_mode & 07777) | 0600) == 0 ? 0 : -errno;
}

static int make(void *arg, struct hf_file *file, struct hf_err *err)
{
	struct change *change = arg;
	struct memory *memory = change->report->memory;
	int in, out, r = hf_file_read(file, &in, err);

	if (r == 0)
		r = read_text(in, change->report->path, &memory->text, err);
	if (r == 0)
		r = edit(change, in >= 0, err);
	if (r > 0 && in >= 0 && check_mode(in, change->report->path, err) < 0)
		return -EACCES;
	if (r <= 0 || change->opts->dry_run)
		return r;
	if (change->removed) {
		struct stat st;

		/* Under the lock; a version that an editor put there a moment ago is not the one that was read. */
		if (fstat(in, &st) < 0 || !hf_is_named(file->dirfd, file->leaf, &st))
			return FAIL(err, HF_E_CHANGED, "remove", change->report->path, "another process saved it");
		return hf_sys.unlinkat(file->dirfd, file->leaf, 0) < 0 ? FAIL_SYS(err, "unlinkat", change->report->path) : 0;
	}
	r = hf_file_write(file, &out, err);
	if (r < 0)
		return r;
	r = hf_write_all(out, memory->text.s, memory->text.len);
	/* A new file is for the client, too, whatever the umask. */
	if (r == 0 && in < 0)
		r = let_owner(out);
	return r < 0 ? hf_fail_sys(err, -r, "write", change->report->path) : 1;
}

/* The directories between root and file, readable as the user's umask says, and by the user in any case. */
static int make_directories(const struct hf_found *found, struct hf_err *err)
{
	for (char *slash = found->path + found->root_len; (slash = strchr(slash + 1, '/'));) {
		int r;

		*slash = '\0';
		r = hf_mkdir_at(AT_FDCWD, found->path, 0755);
		*slash = '/';
		if (r < 0 && r != -EEXIST)
			return hf_fail_sys(err, -r, "mkdir", found->path);
	}
	return 0;
}

/* One event for a file that is left as it is (L8). Nothing of what it holds is in it. */
static void tell_refused(struct hf_journal *journal, const char *path, int r)
{
	struct hf_field fields[] = { HF_FIELD_TEXT("path", path),
				     HF_FIELD_TEXT("cause", r == -EACCES ? "it is read-only"
									  : "the client cannot read it, or it cannot be edited") };

	if (journal && (r == HF_E_FORMAT || r == -EACCES))
		(void)hf_journal_append(journal, HF_EV_FILE_ABANDONED, NULL, fields, 2, 0, NULL);
}

static int change_file(struct hf_locks *locks, struct hf_journal *journal, struct change *change, struct hf_err *err)
{
	const struct hf_settings_opts *opts = change->opts;
	struct hf_settings_report *report = change->report;
	struct memory *memory = report->memory;
	struct hf_file_opts file_opts = { .size = sizeof(file_opts),
					  .flags = HF_FILE_CREATE | HF_FILE_FOLLOW,
					  .root = memory->found.root,
					  .backups = change->install && opts->fix ? 1 : 0,
					  .journal = journal };
	struct hf_file *file = NULL;
	int r = change->install && !opts->dry_run ? make_directories(&memory->found, err) : 0;

	if (r == 0)
		r = hf_file_open(locks, report->path, &file_opts, &file, err);
	if (r == -ENOENT && (opts->dry_run || !change->install)) {
		r = edit(change, 0, err);
	} else if (r == 0 && opts->dry_run) {
		r = make(change, file, err);
	} else if (r == 0) {
		r = hf_file_lock(file, opts->wait_ns ? opts->wait_ns : HF_FILE_WAIT_NS, NULL, err);
		if (r == 0)
			r = hf_file_update(file, make, change, NULL, err);
		if (r >= 0 && !change->install)
			hf_sidecar_remove(file);
	}
	(void)hf_file_close(file, NULL);
	if (r < 0) {
		if (!opts->dry_run)
			tell_refused(journal, report->path, r);
		return r;
	}
	report->changed = r > 0 || change->removed;
	if (change->removed)
		hf_buf_reset(&memory->text);
	r = judge(opts, report, err);
	return r < 0 ? r : report->changed;
}

/*
 * A project does not need what its user has everywhere. The other way round the user's hooks are wanted in
 * other projects, and here a stop that comes twice counts once (hook.h).
 */
static int is_superfluous(const struct hf_settings_opts *opts, struct hf_settings_report *report)
{
	struct memory *memory = report->memory;

	if (!find_other(opts, hf_place_of(opts, NULL), &memory->other))
		return 0;
	report->other = memory->other.path;
	return opts->scope != HF_SCOPE_USER && read_path(report->path, &memory->text, NULL) == 0 &&
	       judge(opts, report, NULL) == 0 && report->state == HF_SETTINGS_ABSENT;
}

/* There is nothing to take out, so no lock is taken, and no lock file made. What cannot be read is no such answer. */
static int has_none(const struct hf_settings_opts *opts, struct hf_settings_report *report)
{
	struct memory *memory = report->memory;

	return read_path(report->path, &memory->text, NULL) == 0 &&
	       (memory->text.len == 0 || hf_settings_check(opts->client, &memory->text, 0, report->path, NULL) == 0) &&
	       judge(opts, report, NULL) == 0 && report->state == HF_SETTINGS_ABSENT;
}

static int run(struct hf_locks *locks, struct hf_journal *journal, const struct hf_settings_opts *opts, int install,
	       struct hf_settings_report *ret_report, struct hf_err *err)
{
	struct hf_settings_report report = { 0 };
	struct change change = { .opts = opts, .report = &report, .install = install };
	int r = begin(opts, &report, err);

	if (r == 0 && !(install ? is_superfluous(opts, &report) : has_none(opts, &report)))
		r = change_file(locks, journal, &change, err);
	if (r < 0 || !ret_report)
		hf_settings_report_done(&report);
	else
		*ret_report = report;
	return r;
}

int hf_hook_install(struct hf_locks *locks, struct hf_journal *journal, const struct hf_settings_opts *opts,
		    struct hf_settings_report *ret_report, struct hf_err *err)
{
	return run(locks, journal, opts, 1, ret_report, err);
}

int hf_hook_uninstall(struct hf_locks *locks, struct hf_journal *journal, const struct hf_settings_opts *opts,
		      struct hf_settings_report *ret_report, struct hf_err *err)
{
	return run(locks, journal, opts, 0, ret_report, err);
}
