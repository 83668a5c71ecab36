/* journal/write/counters.c - the highest sequence number and the count of losses. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "holdfast/clock.h"
#include "hf/journal/write/counters.h"
#include "hf/journal/line.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

#define FILE_NAME  "counters"
#define SEQ_LABEL  "seq "
#define LOST_LABEL "lost "
#define DIGITS     20
#define SEQ_LEN    (sizeof(SEQ_LABEL) - 1 + DIGITS + 1)
#define LOST_AT    SEQ_LEN
#define LOST_LEN   (sizeof(LOST_LABEL) - 1 + DIGITS + 1)
#define FILE_LEN   (SEQ_LEN + LOST_LEN)

_Static_assert(FILE_LEN == HF_COUNTERS_LEN, "one length");

#define LOST_WAIT_NS (5 * HF_MSEC)

static int put(int fd, const char *label, uint64_t value, off_t at)
{
	char text[48];
	size_t len = strlen(label), done;

	memcpy(text, label, len);
	for (size_t i = DIGITS; i > 0; i--, value /= 10)
		text[len + i - 1] = (char)('0' + value % 10);
	text[len + DIGITS] = '\n';
	return hf_pwrite_all(fd, text, len + DIGITS + 1, at, &done);
}

/* 0 where there is no such number. */
static uint64_t get(const char *text, size_t len, const char *label)
{
	size_t label_len = strlen(label);
	uint64_t value = 0;

	if (len != label_len + DIGITS + 1 || memcmp(text, label, label_len) != 0 ||
	    text[len - 1] != '\n' ||
	    hf_parse_u64(text + label_len, DIGITS, HF_SEQ_MAX, &value) < 0)
		return 0;
	return value;
}

int hf_counters_open(int dirfd, int create, int *ret_fd, struct hf_err *err)
{
	AUTO_FD fd = -1;
	struct stat st;
	int r;

	r = hf_open_private(dirfd, FILE_NAME, create ? O_RDWR | O_CREAT : O_RDONLY,
			    "journal/" FILE_NAME, &fd, &st, err);
	if (r < 0)
		return r;
	/*
	 * New: write `lost` first, so that its block exists before the disk can
	 * be full. Two creators write the same bytes, unless one has counted
	 * already: hence only where the file still is short, under its lock.
	 */
	if (create && (uint64_t)st.st_size < FILE_LEN)
		(void)hf_counters_add_lost(fd, 0);
	*ret_fd = fd_take(&fd);
	return 0;
}

int hf_counters_read(int fd, struct hf_counters *ret)
{
	char text[FILE_LEN] = { 0 };
	ssize_t n = hf_pread_all(fd, text, sizeof(text), 0);

	if (n < 0)
		return (int)n;
	ret->seq = get(text, SEQ_LEN, SEQ_LABEL);
	ret->lost = get(text + LOST_AT, LOST_LEN, LOST_LABEL);
	return 0;
}

int hf_counters_set_seq(int fd, uint64_t seq)
{
	return put(fd, SEQ_LABEL, seq, 0);
}

int hf_counters_add_lost(int fd, uint64_t more)
{
	struct hf_mono deadline = hf_mono_in(LOST_WAIT_NS);
	struct flock range = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOST_AT, .l_len = LOST_LEN
	};
	struct hf_counters now;
	int r;

	while (hf_sys.setlk(fd, &range) < 0) {
		if ((errno != EAGAIN && errno != EACCES && errno != EINTR) ||
		    hf_mono_left(deadline) == 0)
			return -errno;
		hf_pause(100 * HF_USEC);
	}
	r = hf_counters_read(fd, &now);
	if (r == 0)
		r = put(fd, LOST_LABEL, now.lost + more, LOST_AT);
	range.l_type = F_UNLCK;
	(void)hf_sys.setlk(fd, &range);
	return r;
}
