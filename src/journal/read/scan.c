/* journal/read/scan.c - walking the lines of all segments while others write and rotate. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/journal/line.h"
#include "hf/journal/read/scan.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/state/state.h"

#define CHUNK ((size_t)64 << 10)

/* A line can be of any length where the file is damaged; no more of it is kept. */
#define KEEP_MAX ((size_t)2 * HF_JOURNAL_LINE_MAX)

int hf_scan_open(const struct hf_state *state, struct hf_scan *ret, struct hf_err *err)
{
	struct hf_scan scan = { .state = state, .dirfd = -1, .fd = -1, .left_fd = -1, .buf = HF_BUF_INIT };
	int r;

	r = hf_state_subdir(state, "journal", 0, &scan.dirfd, err);
	if (r < 0 && r != -ENOENT)
		return r;
	*ret = scan;
	return 0;
}

void hf_scan_done(struct hf_scan *scan)
{
	hf_auto_close(&scan->fd);
	hf_auto_close(&scan->left_fd);
	hf_auto_close(&scan->dirfd);
	hf_buf_done(&scan->buf);
}

size_t hf_scan_pending(const struct hf_scan *scan)
{
	return scan->buf.len - scan->used;
}

/* The oldest sealed segment that is not done with; 0: there is none. */
static int next_sealed(const struct hf_scan *scan, uint64_t *ret_first)
{
	AUTO(hf_segment_list_done) struct hf_segment_list list = { 0 };
	int r = hf_segment_list(scan->dirfd, &list);

	if (r < 0)
		return r;
	*ret_first = 0;
	for (size_t i = 0; i < list.count; i++)
		if (list.items[i].first > scan->passed) {
			*ret_first = list.items[i].first;
			break;
		}
	return 0;
}

static void begin_file(struct hf_scan *scan)
{
	scan->offset = scan->line = scan->hole = 0;
	scan->used = scan->tail_len = 0;
	hf_buf_reset(&scan->buf);
}

static int open_segment(struct hf_scan *scan, const char *name, struct hf_err *err)
{
	struct stat st;
	int r = hf_open_private(scan->dirfd, name, O_RDONLY, name, &scan->fd, &st, err);

	if (r < 0)
		return r;
	hf_copy_text(scan->file, sizeof(scan->file), name);
	/* The file we just finished, under the name it got by rotation. */
	if (scan->left_fd >= 0 && st.st_ino == scan->left_ino && st.st_dev == scan->left_dev) {
		hf_auto_close(&scan->fd);
		return -EALREADY;
	}
	begin_file(scan);
	return 0;
}

/*
 * Opens the segment that comes next. Returns 1 opened, 0 none for now, 3 one that
 * is not readable was passed over (err says which), or -errno.
 */
static int advance(struct hf_scan *scan, struct hf_err *err)
{
	for (int i = 0; i < 1000; i++) {
		char name[HF_SEGMENT_NAME_MAX];
		uint64_t first, again;
		int r;

		r = next_sealed(scan, &first);
		if (r < 0)
			return hf_fail_sys(err, -r, "readdir", "journal");
		if (first > 0) {
			hf_segment_name(first, name);
			r = open_segment(scan, name, err);
			scan->passed = first;
			scan->first = first;
			if (r == 0)
				return 1;
			if (r == -ENOENT || r == -EALREADY)
				continue; /* removed meanwhile, or read already */
			hf_copy_text(scan->file, sizeof(scan->file), name);
			return HF_SCAN_FILE;
		}
		r = open_segment(scan, HF_SEGMENT_ACTIVE, err);
		if (r == -EALREADY)
			return 0;
		if (r < 0 && r != -ENOENT)
			return r;
		/* A rotation between the listing and the opening: the one it sealed is first. */
		r = next_sealed(scan, &again);
		if (r == 0 && again == 0) {
			scan->first = 0;
			return scan->fd >= 0;
		}
		hf_auto_close(&scan->fd);
		if (r < 0)
			return hf_fail_sys(err, -r, "readdir", "journal");
	}
	return FAIL(err, -EAGAIN, "rotation", "journal", "it rotates faster than the reader can follow");
}

/* How much of the `n` bytes and of what follows them at `at` is a hole; 0: they are to be read. */
static uint64_t hole_at(const struct hf_scan *scan, const char *bytes, size_t n, off_t at)
{
	struct stat st;
	off_t end;

	/* Only what could be the beginning of a large one is worth the calls. */
	if (n < CHUNK || !hf_is_zero(bytes, n) || hf_sys.fstat(scan->fd, &st) < 0)
		return 0;
	end = hf_hole_end(scan->fd, at, st.st_size);
	return end - at >= (off_t)n ? (uint64_t)(end - at) : 0;
}

/* Reads more. Returns bytes read, 0 at the end or at a hole (then scan->hole is set), -errno. */
static ssize_t fill(struct hf_scan *scan)
{
	char *to;
	off_t at;
	ssize_t n;

	/* The given part makes room first. */
	if (scan->used > 0) {
		memmove(scan->buf.s, scan->buf.s + scan->used, scan->buf.len - scan->used);
		scan->buf.len -= scan->used;
		scan->used = 0;
	}
	if (hf_buf_reserve(&scan->buf, CHUNK) < 0)
		return scan->buf.err;
	to = scan->buf.s + scan->buf.len;
	at = (off_t)(scan->offset + scan->buf.len);
	n = hf_pread_all(scan->fd, to, CHUNK, at);
	if (n <= 0)
		return n;
	scan->hole = hole_at(scan, to, (size_t)n, at);
	if (scan->hole > 0)
		return 0;
	scan->buf.len += (size_t)n;
	return n;
}

static void give(struct hf_scan *scan, size_t len, size_t taken, struct hf_scan_line *ret)
{
	ret->text = scan->buf.s + scan->used;
	ret->len = len;
	ret->offset = scan->offset;
	ret->line = ++scan->line;
	scan->used += taken;
	scan->offset += taken;
	scan->tail_len = taken < sizeof(scan->tail) ? taken : sizeof(scan->tail);
	memcpy(scan->tail, scan->buf.s + scan->used - scan->tail_len, scan->tail_len);
}

/* At a hole: first what stands before it, a line without end, and then the hole itself. */
static int give_hole(struct hf_scan *scan, struct hf_scan_line *ret)
{
	size_t before = hf_scan_pending(scan);

	if (before > 0) {
		give(scan, before, before, ret);
		return HF_SCAN_PIECE;
	}
	give(scan, scan->hole, 0, ret);
	scan->offset += scan->hole;
	scan->hole = 0;
	return HF_SCAN_HOLE;
}

/*
 * At the end of what the file has now: is it closed for good? A sealed or
 * deleted one is, but only if nothing came between our read and its sealing.
 */
static int is_closed(struct hf_scan *scan)
{
	struct stat st;

	if (hf_sys.fstat(scan->fd, &st) < 0)
		return -errno;
	return (hf_segment_sealed(&st) || st.st_nlink == 0) &&
	       (uint64_t)st.st_size <= scan->offset + hf_scan_pending(scan);
}

/* Done with this segment; an unfinished last line is torn for good. */
static int leave_segment(struct hf_scan *scan, struct hf_scan_line *ret)
{
	size_t rest = hf_scan_pending(scan);
	struct stat st;

	if (hf_sys.fstat(scan->fd, &st) < 0)
		return -errno;
	scan->left_dev = st.st_dev;
	scan->left_ino = st.st_ino;
	hf_auto_close(&scan->left_fd);
	scan->left_fd = fd_take(&scan->fd);
	if (rest == 0)
		return HF_SCAN_END;
	give(scan, rest, rest, ret);
	return HF_SCAN_TORN;
}

int hf_scan_next(struct hf_scan *scan, struct hf_scan_line *ret, struct hf_err *err)
{
	int r;

	if (scan->dirfd < 0) {
		r = hf_state_subdir(scan->state, "journal", 0, &scan->dirfd, err);
		if (r < 0)
			return r == -ENOENT ? HF_SCAN_END : r;
	}
	/*
	 * An unfinished line seen last time may have been taken back by its writer and
	 * another one written there: read it again from its beginning.
	 */
	if (scan->fd >= 0 && !memchr(scan->buf.s + scan->used, '\n', hf_scan_pending(scan))) {
		hf_buf_reset(&scan->buf);
		scan->used = 0;
	}
	for (;;) {
		const char *newline;
		ssize_t n;

		if (scan->fd < 0) {
			r = advance(scan, err);
			if (r != 1)
				return r;
		}
		newline = memchr(scan->buf.s + scan->used, '\n', hf_scan_pending(scan));
		if (newline) {
			size_t len = (size_t)(newline - (scan->buf.s + scan->used));

			give(scan, len, len + 1, ret);
			return HF_SCAN_LINE;
		}
		/* Garbage without end: hand it out in pieces rather than keep it all. */
		if (hf_scan_pending(scan) >= KEEP_MAX) {
			size_t len = hf_scan_pending(scan);

			give(scan, len, len, ret);
			return HF_SCAN_PIECE;
		}
		n = scan->hole > 0 ? 0 : fill(scan);
		if (n < 0)
			return hf_fail_sys(err, (int)-n, "pread", scan->file);
		if (n > 0)
			continue;
		if (scan->hole > 0)
			return give_hole(scan, ret);
		r = is_closed(scan);
		if (r < 0)
			return hf_fail_sys(err, -r, "fstat", scan->file);
		if (!r)
			return HF_SCAN_END;
		/* is_closed looked after our last read: read once more before leaving. */
		n = fill(scan);
		if (n < 0)
			return hf_fail_sys(err, (int)-n, "pread", scan->file);
		if (n > 0 || scan->hole > 0)
			continue;
		r = leave_segment(scan, ret);
		if (r < 0)
			return hf_fail_sys(err, -r, "fstat", scan->file);
		if (r == HF_SCAN_TORN)
			return r;
	}
}

/* 1 when another directory has the journal's name than the one that is read; the journal of 0 is gone, or the same. */
static int take_new_dir(struct hf_scan *scan, struct hf_err *err)
{
	struct stat now, before;
	AUTO_FD dirfd = -1;
	int r = hf_state_subdir(scan->state, "journal", 0, &dirfd, err);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (hf_sys.fstat(dirfd, &now) < 0 || hf_sys.fstat(scan->dirfd, &before) < 0)
		return FAIL_SYS(err, "fstat", "journal");
	if (now.st_ino == before.st_ino && now.st_dev == before.st_dev)
		return 0;
	hf_auto_close(&scan->dirfd);
	scan->dirfd = fd_take(&dirfd);
	scan->passed = 0;
	return 1;
}

/* 1 when the file that is read ends before what was read of it, or something else stands there. */
static int is_cut(const struct hf_scan *scan)
{
	char tail[sizeof(scan->tail)];
	ssize_t n;

	if (scan->offset == 0)
		return 0;
	n = hf_pread_all(scan->fd, tail, scan->tail_len, (off_t)(scan->offset - scan->tail_len));
	if (n < 0)
		return (int)n;
	return (size_t)n < scan->tail_len || memcmp(tail, scan->tail, scan->tail_len) != 0;
}

/* 1 when the active segment was moved away: a rotation seals it before it does that. */
static int is_moved(const struct hf_scan *scan)
{
	struct stat here, there;

	if (hf_sys.fstatat(scan->dirfd, HF_SEGMENT_ACTIVE, &there, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (hf_sys.fstat(scan->fd, &here) < 0)
		return -errno;
	return here.st_nlink > 0 && !hf_segment_sealed(&here) &&
	       (here.st_ino != there.st_ino || here.st_dev != there.st_dev);
}

int hf_scan_again(struct hf_scan *scan, struct hf_err *err)
{
	int r;

	if (scan->dirfd < 0)
		return 0;
	r = take_new_dir(scan, err);
	if (r < 0)
		return r;
	if (r > 0 || scan->fd < 0) {
		hf_auto_close(&scan->fd);
		return r;
	}
	r = is_cut(scan);
	if (r > 0)
		begin_file(scan);
	if (r == 0) {
		r = is_moved(scan);
		if (r > 0)
			hf_auto_close(&scan->fd);
	}
	return r < 0 ? hf_fail_sys(err, -r, "fstat", scan->file) : r;
}
