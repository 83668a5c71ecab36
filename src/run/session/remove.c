/*
 * run/session/remove.c - forgetting sessions that have ended, with their logs: one, those that are old, and now and then by itself.
 *
 * A session is taken away under the guard of its lock, when nobody holds the name or waits for it: its directory is renamed, as a
 * whole, to ".removed.TOKEN", which is no name of a session. What is in it is deleted afterwards, when others can use the name
 * again; what a crash leaves of that is deleted by the next pruning.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/buf.h"
#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/lock/store.h"
#include "hf/run/session/log/log.h"
#include "hf/run/session/notes/recent.h"
#include "hf/run/session/record/input.h"
#include "hf/run/session/remove.h"
#include "hf/run/stage.h"
#include "hf/sys/calls.h"
#include "hf/sys/fd/poll.h"
#include "hf/sys/io.h"

#define REMOVED ".removed."
#define PRUNED  ".pruned"

/* How often a run prunes when it has ended, and for how long then. */
#define AUTO_EVERY_NS (3600 * HF_SEC)
#define AUTO_LIMIT_NS (200 * HF_MSEC)
#define AUTO_OLDER_NS (INT64_C(30) * 86400 * HF_SEC)
#define AUTO_BYTES    (UINT64_C(4) << 30)

/* Locks that nobody took for so long are forgotten with old sessions. */
#define IDLE_LOCK_NS (3600 * HF_SEC)

/* -- one ------------------------------------------------------------------------------- */

/* What is in a directory that is no session's any more: files, whatever they are called. */
static void delete_removed(const struct hf_sessions *sessions, const char *entry_name)
{
	AUTO_DIR dir = NULL;
	struct dirent *entry;
	AUTO_FD fd = hf_open_at(sessions->dirfd, entry_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	if (fd >= 0 && hf_open_dir(fd, ".", &dir) == 0)
		while ((entry = readdir(dir)))
			if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
				(void)hf_sys.unlinkat(fd, entry->d_name, 0);
	(void)hf_sys.unlinkat(sessions->dirfd, entry_name, AT_REMOVEDIR);
}

struct removal {
	struct hf_sessions *sessions;
	const char *name;
	uint64_t token;
	char moved[64];
	struct hf_err *err;
};

int hf_session_holds_work(struct hf_sessions *sessions, const char *name)
{
	return hf_stage_holds_work && hf_stage_holds_work(sessions->state, name);
}

/* Nobody holds the name, and nobody can take it before this returns. */
static int take_away(void *arg)
{
	struct removal *removal = arg;
	char key[HF_NAME_KEY_MAX], word[HF_SHELL_WORD_MAX];
	struct hf_session_record record;
	int r = hf_session_load(removal->sessions, removal->name, &record, removal->err);

	/* One without a record, or with a damaged one that was put away, has only its log. */
	if (r == 0) {
		r = hf_session_check_run(&record, removal->token, "rm", removal->err);
		if (r == 0 && record.phase != HF_PHASE_ENDED)
			r = FAIL(removal->err, HF_E_BUSY, "rm", removal->name,
				 "its supervisor and keeper died; 'holdfast reap %s' cleans up", hf_shell_word(removal->name, word));
	} else if (r == HF_E_NO_SESSION || r == HF_E_FORMAT) {
		AUTO_FD dirfd = -1;

		r = hf_session_dir(removal->sessions, removal->name, 0, &dirfd, removal->err);
		record.token = (uint64_t)hf_wall_now().ns;
	}
	if (r >= 0 && hf_session_holds_work(removal->sessions, removal->name))
		r = FAIL(removal->err, HF_E_DIRTY, "unlanded", removal->name, "it left work that has not landed, or is not committed");
	if (r >= 0)
		r = hf_name_key(removal->name, strlen(removal->name), key, removal->err);
	if (r < 0)
		return r;
	(void)snprintf(removal->moved, sizeof(removal->moved), REMOVED "%" PRIu64, record.token);
	if (hf_sys.renameat2(removal->sessions->dirfd, key, removal->sessions->dirfd, removal->moved, 0) < 0)
		return FAIL_SYS(removal->err, "rename", removal->name);
	hf_recent_remove(removal->sessions, removal->name);
	return 0;
}

static int remove_one(struct hf_sessions *sessions, const char *name, uint64_t token, struct hf_err *err)
{
	struct removal removal = { .sessions = sessions, .name = name, .token = token, .err = err };
	const struct hf_forget how = { .action = take_away, .arg = &removal };
	AUTO_FD dirfd = -1;
	char word[HF_SHELL_WORD_MAX];
	int r = hf_session_dir(sessions, name, 0, &dirfd, err);

	if (r < 0)
		return r;
	r = hf_lock_forget_as(sessions->locks, name, &how, err);
	if (r == HF_E_BUSY && !removal.moved[0] && err && strcmp(err->op, "forget") == 0)
		(void)FAIL(err, HF_E_BUSY, "rm", name, "it is running, or another process has or waits for the name; 'holdfast stop %s' ends it", hf_shell_word(name, word));
	if (removal.moved[0])
		delete_removed(sessions, removal.moved);
	return r < 0 ? r : 0;
}

int hf_session_remove(struct hf_sessions *sessions, const char *name, uint64_t token, struct hf_err *err)
{
	return hf_err_wrap(err, remove_one(sessions, name, token, err), "session", name);
}

/* -- many ------------------------------------------------------------------------------ */

struct ended {
	char *name;
	uint64_t token;
	int64_t ended_ns;
	int64_t bytes;
};

struct all_ended {
	struct hf_sessions *sessions;
	struct ended *list;
	size_t n, room;
};

static void all_ended_done(struct all_ended *all)
{
	for (size_t i = 0; i < all->n; i++)
		free(all->list[i].name);
	free(all->list);
}

static int note_ended(void *arg, const char *name)
{
	struct all_ended *all = arg;
	struct hf_log_figures log = { 0 };
	struct hf_session_record record;
	AUTO_FD dirfd = -1;
	struct ended *one;

	if (hf_session_load(all->sessions, name, &record, NULL) < 0 || record.phase != HF_PHASE_ENDED)
		return 0;
	if (all->n == all->room) {
		struct ended *more = reallocarray(all->list, all->room * 2 + 64, sizeof(*more));

		if (!more)
			return -ENOMEM;
		all->list = more;
		all->room = all->room * 2 + 64;
	}
	one = &all->list[all->n];
	if (hf_log_measure(all->sessions, name, record.log, &log) < 0)
		log.bytes = 0;
	if (hf_session_dir(all->sessions, name, 0, &dirfd, NULL) == 0)
		log.bytes += hf_input_measure(dirfd);
	/* Where nobody saw its end, its start has to do. */
	*one = (struct ended){ strdup(name), record.token, record.ended.ns ? record.ended.ns : record.started.ns, log.bytes };
	if (!one->name)
		return -ENOMEM;
	all->n++;
	return 0;
}

static int newest_first(const void *a, const void *b)
{
	const struct ended *x = a, *y = b;

	return x->ended_ns > y->ended_ns ? -1 : x->ended_ns < y->ended_ns;
}

/* What a crash left of earlier removals. */
static void delete_leftovers(const struct hf_sessions *sessions)
{
	AUTO_DIR dir = NULL;
	struct dirent *entry;

	if (hf_open_dir(sessions->dirfd, ".", &dir) == 0)
		while ((entry = readdir(dir)))
			if (strncmp(entry->d_name, REMOVED, strlen(REMOVED)) == 0)
				delete_removed(sessions, entry->d_name);
}

static void forget_locks(struct hf_sessions *sessions, int64_t limit_ns)
{
	for (int kind = 0; kind < HF_LOCK_KINDS; kind++)
		(void)!hf_locks_forget_idle(hf_locks_kind(sessions->locks, (enum hf_lock_kind)kind), IDLE_LOCK_NS, limit_ns, NULL);
}

static int prune(struct hf_sessions *sessions, const struct hf_prune_opts *opts, int64_t limit_ns, struct hf_err *err)
{
	struct hf_mono deadline = hf_mono_limit(limit_ns);
	AUTO(all_ended_done) struct all_ended all = { .sessions = sessions };
	int64_t before = hf_wall_now().ns - opts->older_ns, bytes = 0;
	int removed = 0, r;

	if (sessions->dirfd < 0)
		return 0;
	r = hf_session_each(sessions, 0, note_ended, &all, err);
	if (r < 0)
		return r;
	if (all.n > 0)
		qsort(all.list, all.n, sizeof(*all.list), newest_first);
	for (size_t i = 0; i < all.n; i++)
		bytes += all.list[i].bytes;
	/* The oldest first, so that what is kept is the newest. */
	for (size_t i = all.n; i > opts->keep && hf_mono_left(deadline) > 0; i--) {
		const struct ended *one = &all.list[i - 1];
		int is_old = opts->older_ns >= 0 && one->ended_ns < before;
		int is_too_much = opts->max_bytes > 0 && bytes > 0 && (uint64_t)bytes > opts->max_bytes && one->bytes > 0;

		if (!is_old && !is_too_much)
			continue;
		if (hf_session_holds_work(sessions, one->name)) {
			if (opts->kept)
				opts->kept(opts->arg, one->name);
			continue;
		}
		if (!opts->dry_run && hf_session_remove(sessions, one->name, one->token, NULL) < 0)
			continue;
		bytes -= one->bytes;
		removed++;
		if (opts->removed)
			opts->removed(opts->arg, one->name, one->bytes);
	}
	if (!opts->dry_run) {
		delete_leftovers(sessions);
		forget_locks(sessions, hf_mono_left(deadline));
	}
	return removed;
}

int hf_sessions_prune(struct hf_sessions *sessions, const struct hf_prune_opts *opts, struct hf_err *err)
{
	if (!sessions || !opts || opts->size < sizeof(*opts))
		return FAIL(err, -EINVAL, "arguments", "hf_sessions_prune", "size is not set");
	return prune(sessions, opts, -1, err);
}

/* -- by itself -------------------------------------------------------------------------- */

/* "30d", "30d,4G", "off". 0: it is not to be done. What cannot be read is as if it were not set. */
static int auto_options(struct hf_prune_opts *ret)
{
	const char *text = getenv("HOLDFAST_PRUNE");
	size_t len = text ? strcspn(text, ",") : 0;
	struct hf_prune_opts opts = { .size = sizeof(opts), .older_ns = AUTO_OLDER_NS, .max_bytes = AUTO_BYTES };

	if (text && strcmp(text, "off") == 0)
		return 0;
	*ret = opts;
	if (!text || hf_parse_duration(text, len, &opts.older_ns) < 0)
		return 1;
	if (text[len] == ',' && hf_parse_size(text + len + 1, strlen(text + len + 1), &opts.max_bytes) < 0)
		return 1;
	*ret = opts;
	return 1;
}

/* 1 when it has not been done for an hour; then it is written down that it is done now. */
static int is_due(const struct hf_sessions *sessions)
{
	int64_t now = hf_wall_now().ns;
	char line[24] = "";
	uint64_t last = 0;
	AUTO_FD fd = -1;
	size_t done;

	if (hf_open_private(sessions->dirfd, PRUNED, O_RDWR | O_CREAT, PRUNED, &fd, NULL, NULL) < 0)
		return 0;
	/* A clock that was set back makes it due. */
	if (hf_pread_all(fd, line, 20, 0) == 20 && hf_parse_u64(line, 20, INT64_MAX, &last) == 0 && (int64_t)last <= now &&
	    now - (int64_t)last < AUTO_EVERY_NS)
		return 0;
	(void)snprintf(line, sizeof(line), "%020" PRId64 "\n", now);
	(void)hf_pwrite_all(fd, line, 21, 0, &done);
	/* The very first time there is nothing to forget. */
	return last != 0;
}

void hf_sessions_prune_now_and_then(struct hf_sessions *sessions)
{
	struct hf_prune_opts opts;

	if (auto_options(&opts) && is_due(sessions))
		(void)!prune(sessions, &opts, AUTO_LIMIT_NS, NULL);
}
