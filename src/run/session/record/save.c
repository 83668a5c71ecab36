/* run/session/record/save.c - writing a line of a session's record: over the zeros behind the last one, under the guard. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/journal/put_away.h"
#include "hf/run/session/record/record_file.h"
#include "hf/run/session/record/store.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/replace.h"
#include "hf/sys/state/state.h"

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
	AUTO_FREE char *text = calloc(1, HF_SESSION_RECORD_BYTES);
	int r;

	if (!text)
		return -ENOMEM;
	memcpy(text, save->line->s, save->line->len);
	r = hf_replace_file(save->dirfd, HF_SESSION_RECORD, HF_SESSION_RECORD_NEW, text, HF_SESSION_RECORD_BYTES, HF_REPLACE_SYNC);
	if (r < 0)
		return r;
	(void)hf_sys.unlinkat(save->dirfd, HF_SESSION_PUT_AWAY, 0);
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
	char part[HF_SESSION_PART_BYTES];
	off_t end = -1;

	*ret_torn = 0;
	if (st->st_size != HF_SESSION_RECORD_BYTES)
		return -1;
	for (off_t at = 0; at < HF_SESSION_RECORD_BYTES; at += HF_SESSION_PART_BYTES) {
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
	return end >= 0 && (size_t)end + need <= HF_SESSION_RECORD_BYTES ? end : -1;
}

/*
 * The same for a writer that has found the end before and has written all that came since: the lock
 * is still its own. Only the bytes that it is about to write over are looked at.
 */
static off_t find_end_again(int fd, const struct stat *st, size_t need, const struct hf_session_tail *tail)
{
	char part[HF_SESSION_PART_BYTES];
	size_t len = need + 1;

	if (tail->inode != (uint64_t)st->st_ino || tail->end <= 0 || st->st_size != HF_SESSION_RECORD_BYTES || len > sizeof(part) ||
	    (size_t)tail->end + need > HF_SESSION_RECORD_BYTES || hf_pread_all(fd, part, len, tail->end - 1) != (ssize_t)len ||
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
	int torn = 0, r = hf_open_private(save->dirfd, HF_SESSION_RECORD, O_RDWR, save->name, &fd, &st, NULL);
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
