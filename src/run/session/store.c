/* run/session/store.c - sessions on disk: opening them, and the file of a record. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/exec/marks.h"
#include "hf/journal/put_away.h"
#include "hf/run/session/store.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/replace.h"
#include "hf/sys/state/state.h"

#define RECORD     "session.jsonl"
#define RECORD_NEW ".session.jsonl.new"
#define PUT_AWAY   ".session.jsonl.damaged" /* stands where the record is missing because it was put away */

/*
 * The file has this size from its birth, lines in front and zeros behind them: a line written
 * over zeros changes no metadata, which makes its sync a third cheaper. Full, it is made anew.
 */
#define RECORD_BYTES (64 * 1024)
#define PART_BYTES   (8 * 1024)

int hf_sessions_open(struct hf_state *state, struct hf_journal *journal,
		     struct hf_sessions **ret_sessions, struct hf_err *err)
{
	AUTO_FREE struct hf_sessions *sessions = NULL;
	struct stat st;
	int r;

	if (!state || !ret_sessions)
		return FAIL(err, -EINVAL, "arguments", "hf_sessions_open", "NULL");
	sessions = calloc(1, sizeof(*sessions));
	if (!sessions)
		return hf_fail_sys(err, ENOMEM, "memory", "sessions");
	sessions->state = state;
	sessions->journal = journal;
	sessions->process = getpid();
	sessions->judge_flags = hf_state_is_shared(state) ? HF_PROC_SHARED : 0;
	r = hf_stat_at(hf_state_dirfd(state), "", &st);
	if (r < 0)
		return hf_fail_sys(err, -r, "statx", hf_state_path(state));
	sessions->dir_inode = (uint64_t)st.st_ino;
	sessions->dir_device = (uint64_t)st.st_dev;
	sessions->dirfd = -1;
	r = hf_state_subdir(state, "sessions", 1, &sessions->dirfd, err);
	/* Read-only, and there has been no session: none is shown, and none can be started. */
	if (r < 0 && r != -EROFS)
		return r;
	r = hf_locks_open(state, journal, &sessions->locks, err);
	if (r < 0) {
		hf_auto_close(&sessions->dirfd);
		return r;
	}
	*ret_sessions = ptr_take(&sessions);
	return 0;
}

void hf_sessions_free(struct hf_sessions *sessions)
{
	if (!sessions)
		return;
	hf_locks_free(sessions->locks);
	hf_auto_close(&sessions->dirfd);
	free(sessions);
}

void hf_session_clean_text(char *out, size_t cap, const char *text)
{
	size_t len = strlen(text), at = 0, n = 0;

	while (at < len) {
		size_t size = hf_utf8_char((const unsigned char *)text + at, len - at);
		int shown = size > 0 && (unsigned char)text[at] >= 0x20 && text[at] != 0x7f;

		if (n + (shown ? size : 1) >= cap)
			break;
		if (shown)
			memcpy(out + n, text + at, size);
		else
			out[n] = '?';
		n += shown ? size : 1;
		at += size > 0 ? size : 1;
	}
	out[n] = '\0';
}

void hf_session_event(const struct hf_sessions *sessions, enum hf_event event, const char *name,
		      const struct hf_field *fields, size_t n)
{
	if (sessions->journal)
		(void)hf_journal_append(sessions->journal, event, name, fields, n, 0, NULL);
}

static int check_call(const struct hf_sessions *sessions, const char *name,
		      char key[HF_NAME_KEY_MAX], struct hf_err *err)
{
	int r;

	if (!sessions)
		return FAIL(err, -EINVAL, "arguments", "session", "NULL");
	if (sessions->process != getpid())
		return FAIL(err, HF_E_FORKED, "session", name ? name : "session",
			    "open the sessions anew in this process");
	r = hf_name_key(name, name ? strlen(name) : 0, key, err);
	return r < 0 ? r : 0;
}

int hf_session_dir(struct hf_sessions *sessions, const char *name, int create, int *ret_fd,
		   struct hf_err *err)
{
	char key[HF_NAME_KEY_MAX];
	int r = check_call(sessions, name, key, err);

	if (r == 0)
		r = sessions->dirfd < 0 ? (create ? hf_fail_sys(err, EROFS, "mkdir", "sessions") : -ENOENT)
					: hf_private_subdir(sessions->dirfd, key, key, create, ret_fd, err);
	if (r == -ENOENT)
		return FAIL(err, HF_E_NO_SESSION, "session", name, "nothing was ever run under that name");
	return r;
}

void hf_session_set_marks(const struct hf_sessions *sessions, struct hf_session_record *record)
{
	uint64_t above = hf_limit_own();

	record->mark = hf_limit_mark_make(
		above, hf_limit_mark_name(sessions->dir_device, sessions->dir_inode, record->name),
		record->token);
	record->around = hf_limit_mark_in(above);
}

/* -- the record ---------------------------------------------------------------- */

int hf_session_put_away(struct hf_sessions *sessions, int dirfd, const char *name, const char *entry, const char *why,
			struct hf_err *err)
{
	char key[HF_NAME_KEY_MAX], label[HF_NAME_KEY_MAX + 16], file[HF_NAME_KEY_MAX + 48];
	const struct hf_put_away what = { .state = sessions->state,
					  .journal = sessions->journal,
					  .subject = name,
					  .shown = file,
					  .label = label,
					  .reason = why };
	int r = check_call(sessions, name, key, err);

	if (r < 0)
		return r;
	(void)snprintf(label, sizeof(label), "sessions.%s", key);
	(void)snprintf(file, sizeof(file), "sessions/%s/%s", key, entry);
	return hf_put_away(&what, dirfd, entry, err);
}

static int quarantine(struct hf_sessions *sessions, int dirfd, const char *name, const char *why,
		      struct hf_err *err)
{
	AUTO_FD note = -1;
	int r = hf_session_put_away(sessions, dirfd, name, RECORD, why, err);

	if (r < 0)
		return r;
	/* For the next look, while its keeper lives; without it that one says "starting". */
	(void)hf_open_private(dirfd, PUT_AWAY, O_WRONLY | O_CREAT, PUT_AWAY, &note, NULL, NULL);
	return FAIL(err, HF_E_FORMAT, "session", name, "its record was put away: %s", why);
}

/*
 * The last whole line of the `len` bytes of `text`. A torn one behind it does not count,
 * nor does one that was torn and closed with '!' (see append_line).
 */
static const char *last_line(const char *text, size_t len, size_t *ret_len)
{
	const char *end = memrchr(text, '\n', len);

	while (end) {
		const char *before = memrchr(text, '\n', (size_t)(end - text));
		const char *line = before ? before + 1 : text;

		*ret_len = (size_t)(end - line);
		if (end == line || end[-1] != '!')
			return line;
		end = before;
	}
	return NULL;
}

/*
 * Reads the lines of the file, which end at the first zero. A few pages are read of what is
 * nearly always a nearly empty file. 0 or -errno.
 */
static int read_lines(int fd, struct hf_buf *out)
{
	char part[PART_BYTES];

	for (off_t at = 0; at < RECORD_BYTES; at += PART_BYTES) {
		ssize_t n = hf_pread_all(fd, part, sizeof(part), at);
		size_t len = n > 0 ? strnlen(part, (size_t)n) : 0;

		if (n < 0)
			return (int)n;
		hf_buf_add(out, part, len);
		if (len < sizeof(part))
			break;
	}
	return out->err;
}

static int read_record(int dirfd, const char *name, struct hf_session_record *ret,
		       const char **ret_why, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;
	AUTO_FD fd = -1;
	const char *line;
	struct stat st;
	size_t len = 0;
	int r;

	*ret_why = "not a regular file of this user's";
	r = hf_open_private(dirfd, RECORD, O_RDONLY, name, &fd, &st, err);
	if (r < 0)
		return r;
	*ret_why = "it is too large";
	if (st.st_size > RECORD_BYTES)
		return HF_E_FORMAT;
	r = read_lines(fd, &text);
	if (r < 0)
		return hf_fail_sys(err, -r, "pread", name);
	line = text.len > 0 ? last_line(text.s, text.len, &len) : NULL;
	/* Empty, or only a torn first line: the intent was never on disk, nothing was started. */
	if (!line)
		return HF_E_NO_SESSION;
	r = hf_session_decode(line, len, ret, ret_why);
	if (r == 0 && strcmp(ret->name, name) != 0) {
		*ret_why = "it is the record of another session";
		r = HF_E_FORMAT;
	}
	return r;
}

static int is_damage(int r)
{
	return r == HF_E_FORMAT || r == HF_E_UNTRUSTED || r == -ELOOP;
}

struct doubt {
	struct hf_sessions *sessions;
	int dirfd;
	const char *name;
	struct hf_session_record *ret;
	uint64_t token; /* of the holder of the name, which may write; 0: there is none */
	struct hf_err *err;
};

static void note_token(void *arg, const struct hf_lock_info *info)
{
	struct doubt *doubt = arg;

	if (info->n_holders > 0)
		doubt->token = info->holders[0].token;
}

/* Reads it again, where nobody writes meanwhile, and puts it away if it is still damaged. */
static int read_or_put_away(void *arg)
{
	const struct doubt *doubt = arg;
	const char *why;
	int r = read_record(doubt->dirfd, doubt->name, doubt->ret, &why, doubt->err);

	return is_damage(r) ? quarantine(doubt->sessions, doubt->dirfd, doubt->name, why, doubt->err) : r;
}

/*
 * The record is damaged. Its keeper may be about to write it anew, and that one must not be moved
 * away: so it is judged under the guard under which the keeper writes.
 */
static int settle_doubt(struct doubt *doubt)
{
	int r = hf_lock_look(doubt->sessions->locks, doubt->name, note_token, doubt, NULL);

	r = r == 0 && doubt->token != 0 ? hf_lock_guarded(doubt->sessions->locks, doubt->name, doubt->token,
							  read_or_put_away, doubt, doubt->err)
					: HF_E_STALE;
	/* Nobody holds the name, or not any more: then nobody writes. */
	return r == HF_E_STALE ? read_or_put_away(doubt) : r;
}

int hf_session_load(struct hf_sessions *sessions, const char *name, struct hf_session_record *ret,
		    struct hf_err *err)
{
	AUTO_FD dirfd = -1;
	const char *why;
	int r = hf_session_dir(sessions, name, 0, &dirfd, err);

	if (r < 0)
		return r;
	r = read_record(dirfd, name, ret, &why, err);
	if (is_damage(r)) {
		struct doubt doubt = { sessions, dirfd, name, ret, 0, err };

		r = settle_doubt(&doubt);
	}
	if (r == -ENOENT || r == HF_E_NO_SESSION)
		return FAIL(err, HF_E_NO_SESSION, "session", name, "it has no record");
	return r;
}

int hf_session_was_put_away(struct hf_sessions *sessions, const char *name)
{
	AUTO_FD dirfd = -1;
	struct stat st;

	return hf_session_dir(sessions, name, 0, &dirfd, NULL) == 0 && hf_stat_at(dirfd, PUT_AWAY, &st) == 0;
}

struct save {
	int dirfd;
	const char *name;
	const struct hf_buf *line;
	struct hf_session_tail *tail; /* of the line that this writer wrote before */
	int is_note; /* append or nothing: no sync */
	int *ret_fd; /* to be synced; stays -1 when it is on disk already */
	struct hf_err *err;
};

/* The file anew with this line only. */
static int rewrite(const struct save *save)
{
	AUTO_FREE char *text = calloc(1, RECORD_BYTES);
	int r;

	if (!text)
		return -ENOMEM;
	memcpy(text, save->line->s, save->line->len);
	r = hf_replace_file(save->dirfd, RECORD, RECORD_NEW, text, RECORD_BYTES, HF_REPLACE_SYNC);
	if (r < 0)
		return r;
	(void)hf_sys.unlinkat(save->dirfd, PUT_AWAY, 0);
	return 0;
}

/* Are they all zero? */
static int is_blank(const char *text, size_t len)
{
	return len == 0 || (text[0] == '\0' && memcmp(text, text + 1, len - 1) == 0);
}

/*
 * Where the next line goes, or -1: the file has to be made anew. It must have its size, room,
 * and nothing but zeros behind its lines; a power cut may leave parts of a line there. *ret_torn:
 * the last line lacks its newline.
 *
 * Read part by part: memory for all of it, new for each save, would be most of what a save costs.
 */
static off_t find_end(int fd, const struct stat *st, size_t need, int *ret_torn)
{
	char part[PART_BYTES];
	off_t end = -1;

	*ret_torn = 0;
	if (st->st_size != RECORD_BYTES)
		return -1;
	for (off_t at = 0; at < RECORD_BYTES; at += PART_BYTES) {
		size_t len = 0;

		if (hf_pread_all(fd, part, sizeof(part), at) != sizeof(part))
			return -1;
		if (end < 0) {
			len = strnlen(part, sizeof(part));
			if (len > 0)
				*ret_torn = part[len - 1] != '\n';
			if (len < sizeof(part))
				end = at + (off_t)len;
		}
		if (!is_blank(part + len, sizeof(part) - len))
			return -1;
	}
	return end >= 0 && (size_t)end + need <= RECORD_BYTES ? end : -1;
}

/*
 * The same for a writer that has found the end before and has written all that came since: the lock
 * is still its own. Only the bytes that it is about to write over are looked at.
 */
static off_t find_end_again(int fd, const struct stat *st, size_t need, const struct hf_session_tail *tail)
{
	char part[PART_BYTES];
	size_t len = need + 1;

	if (tail->inode != (uint64_t)st->st_ino || tail->end <= 0 || st->st_size != RECORD_BYTES || len > sizeof(part) ||
	    (size_t)tail->end + need > RECORD_BYTES || hf_pread_all(fd, part, len, tail->end - 1) != (ssize_t)len ||
	    part[0] != '\n' || !is_blank(part + 1, need))
		return -1;
	return tail->end;
}

/* A save leaves so many times its own length free, for the notes that come before the next one. */
#define NOTES_ROOM 4

static int append_line(void *arg)
{
	const struct save *save = arg;
	size_t need = (save->line->len + 2) * (save->is_note ? 1 : 1 + NOTES_ROOM), done;
	AUTO_FD fd = -1;
	struct stat st;
	int torn = 0, r = hf_open_private(save->dirfd, RECORD, O_RDWR, save->name, &fd, &st, NULL);
	off_t end = r < 0 ? -1 : find_end_again(fd, &st, need, save->tail);

	if (r == 0 && end < 0)
		end = find_end(fd, &st, need, &torn);
	save->tail->inode = 0;
	if (end < 0 && save->is_note) {
		r = r < 0 ? r : -ENOSPC;
	} else if (end < 0) {
		r = rewrite(save);
	} else {
		/* A line that lacked only its newline was never acknowledged: it must not
		 * become valid by getting one. */
		r = torn ? hf_pwrite_all(fd, "!\n", 2, end, &done) : 0;
		end += 2 * torn;
		if (r == 0)
			r = hf_pwrite_all(fd, save->line->s, save->line->len, end, &done);
		if (r == 0) {
			*save->tail = (struct hf_session_tail){ (uint64_t)st.st_ino, end + (off_t)save->line->len };
			*save->ret_fd = fd_take(&fd);
		}
	}
	return r < 0 ? hf_fail_sys(save->err, -r, "write", save->name) : 0;
}

/* *ret_fd is the caller's to sync; -1: it is on disk. */
static int write_line(struct hf_sessions *sessions, struct hf_session_record *record,
		      uint64_t token, int is_note, int *ret_fd, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf line = HF_BUF_INIT;
	AUTO_FD dirfd = -1;
	struct save save = { .name = record->name,
			     .line = &line,
			     .tail = &record->tail,
			     .is_note = is_note,
			     .ret_fd = ret_fd,
			     .err = err };
	int r;

	*ret_fd = -1;
	hf_session_encode(record, &line);
	if (line.err || line.len > HF_SESSION_LINE_MAX)
		return hf_fail_sys(err, line.err ? -line.err : E2BIG, "record", record->name);
	r = hf_session_dir(sessions, record->name, 1, &dirfd, err);
	if (r < 0)
		return r;
	save.dirfd = dirfd;
	/* Under the guard: a keeper that lost the lock writes nothing (L5). */
	return hf_lock_guarded(sessions->locks, record->name, token, append_line, &save, err);
}

int hf_session_save(struct hf_sessions *sessions, struct hf_session_record *record,
		    uint64_t token, struct hf_err *err)
{
	AUTO_FD fd = -1;
	int r = write_line(sessions, record, token, 0, &fd, err);

	/* Not under the guard: the disk may take its time. */
	if (r == 0 && fd >= 0 && hf_sys.fdatasync(fd) < 0)
		r = FAIL_SYS(err, "fdatasync", record->name);
	return r;
}

int hf_session_note(struct hf_sessions *sessions, struct hf_session_record *record,
		    uint64_t token, struct hf_err *err)
{
	AUTO_FD fd = -1;

	return write_line(sessions, record, token, 1, &fd, err);
}
