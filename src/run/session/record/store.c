/* run/session/record/store.c - sessions on disk: opening them, and the file of a record. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/escapes.h"
#include "hf/base/fail.h"
#include "hf/lock/room.h"
#include "hf/exec/marks.h"
#include "hf/journal/put_away.h"
#include "hf/run/session/record/record_file.h"
#include "hf/run/session/record/store.h"
#include "hf/sys/io.h"
#include "hf/sys/state/state.h"

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
	r = hf_room_open(state, journal, "sessions", &sessions->dirfd, &sessions->locks, err);
	if (r < 0)
		return r;
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

void hf_session_shown_command(char *const *argv, char out[HF_RUN_COMMAND_MAX + 1])
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;

	for (size_t i = 0; argv && argv[i] && text.len < HF_RUN_COMMAND_MAX + 4; i++) {
		if (i > 0)
			hf_buf_add_char(&text, ' ');
		hf_buf_add(&text, argv[i], strnlen(argv[i], HF_RUN_COMMAND_MAX + 4));
	}
	(void)hf_plain_text(out, HF_RUN_COMMAND_MAX + 1, text.s, text.len);
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
			    "open the sessions again in this process");
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
		return FAIL(err, HF_E_NO_SESSION, "session", name, "no session had this name, or it was forgotten (rm, prune, run --rm)");
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
	int r = hf_session_put_away(sessions, dirfd, name, HF_SESSION_RECORD, why, err);

	if (r < 0)
		return r;
	/* For the next look, while its keeper lives; without it that one says "starting". */
	(void)hf_open_private(dirfd, HF_SESSION_PUT_AWAY, O_WRONLY | O_CREAT, HF_SESSION_PUT_AWAY, &note, NULL, NULL);
	return FAIL(err, HF_E_FORMAT, "session", name, "its record was quarantined: %s", why);
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
	char part[HF_SESSION_PART_BYTES];

	for (off_t at = 0; at < HF_SESSION_RECORD_BYTES; at += HF_SESSION_PART_BYTES) {
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

/* The end of the lines, as much as has their last one nearly always; and where they end in the file. */
struct last_part {
	size_t len;
	off_t end;
	int is_all; /* from the beginning of the file */
	char text[2 * HF_SESSION_PART_BYTES];
};

/* The same without memory for all of it: new for each run, that would cost more than the reading. */
static int read_last_part(int fd, struct last_part *ret)
{
	ret->len = 0;
	ret->end = 0;
	ret->is_all = 1;
	for (off_t at = 0; at < HF_SESSION_RECORD_BYTES; at += HF_SESSION_PART_BYTES) {
		size_t len;
		ssize_t n;

		if (ret->len == sizeof(ret->text)) {
			memcpy(ret->text, ret->text + HF_SESSION_PART_BYTES, HF_SESSION_PART_BYTES);
			ret->len = HF_SESSION_PART_BYTES;
			ret->is_all = 0;
		}
		n = hf_pread_all(fd, ret->text + ret->len, HF_SESSION_PART_BYTES, at);
		if (n < 0)
			return (int)n;
		len = strnlen(ret->text + ret->len, (size_t)n);
		ret->len += len;
		ret->end += (off_t)len;
		if (len < HF_SESSION_PART_BYTES)
			break;
	}
	return 0;
}

static int decode_last(const char *text, size_t len, struct hf_session_record *ret, const char **ret_why)
{
	size_t line_len = 0;
	const char *line = len > 0 ? last_line(text, len, &line_len) : NULL;

	/* Empty, or only a torn first line: the intent was never on disk, nothing was started. */
	return line ? hf_session_decode(line, line_len, ret, ret_why) : HF_E_NO_SESSION;
}

static int decode_file(int fd, const struct stat *st, struct hf_session_record *ret, const char **ret_why)
{
	AUTO(hf_buf_done) struct hf_buf all = HF_BUF_INIT;
	struct last_part part;
	const char *line;
	size_t line_len;
	int r = read_last_part(fd, &part);

	if (r < 0)
		return r;
	line = last_line(part.text, part.len, &line_len);
	/* Torn ones only, or one that may begin before what was kept. */
	if (!part.is_all && (!line || line == part.text)) {
		r = read_lines(fd, &all);
		return r < 0 ? r : decode_last(all.s, all.len, ret, ret_why);
	}
	r = decode_last(part.text, part.len, ret, ret_why);
	/* A writer that has the lock since before this was read need not look for the end again. */
	if (r == 0 && part.text[part.len - 1] == '\n')
		ret->tail = (struct hf_session_tail){ (uint64_t)st->st_ino, part.end };
	return r;
}

static int read_record(int dirfd, const char *name, struct hf_session_record *ret,
		       const char **ret_why, struct hf_err *err)
{
	AUTO_FD fd = -1;
	struct stat st;
	int r;

	*ret_why = "not a regular file owned by this user";
	r = hf_open_private(dirfd, HF_SESSION_RECORD, O_RDONLY, name, &fd, &st, err);
	if (r < 0)
		return r;
	*ret_why = "it is too large";
	if (st.st_size > HF_SESSION_RECORD_BYTES)
		return HF_E_FORMAT;
	r = decode_file(fd, &st, ret, ret_why);
	if (r == 0 && strcmp(ret->name, name) != 0) {
		*ret_why = "the record belongs to another session";
		r = HF_E_FORMAT;
	}
	return r < 0 && r != HF_E_NO_SESSION && r != HF_E_FORMAT ? hf_fail_sys(err, -r, "pread", name) : r;
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

int hf_session_check_run(const struct hf_session_record *record, uint64_t token, const char *action, struct hf_err *err)
{
	return token == 0 || record->token == token
		       ? 0
		       : FAIL(err, HF_E_STALE, action, record->name, "another run has the name now: its token is %llu",
			      (unsigned long long)record->token);
}

int hf_session_was_put_away(struct hf_sessions *sessions, const char *name)
{
	AUTO_FD dirfd = -1;
	struct stat st;

	return hf_session_dir(sessions, name, 0, &dirfd, NULL) == 0 && hf_stat_at(dirfd, HF_SESSION_PUT_AWAY, &st) == 0;
}
