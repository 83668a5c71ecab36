/*
 * journal/read/scan.h - every line of every segment, oldest first, valid or not.
 *
 * The reader and the verifier both stand on this. It follows rotation: at the
 * end of a sealed segment it goes on with the next; at the end of the active
 * one it reports "no more for now" and can be asked again later.
 */
#ifndef JOURNAL_READ_SCAN_H
#define JOURNAL_READ_SCAN_H

#include <stdint.h>
#include <sys/stat.h>

#include "hf/base/buf.h"
#include "holdfast/err.h"
#include "holdfast/state.h"
#include "hf/journal/segment.h"

struct hf_scan {
	const struct hf_state *state;
	int dirfd; /* -1: there is no journal yet */
	int fd;    /* -1: between segments */
	char file[HF_SEGMENT_NAME_MAX];
	uint64_t first;    /* of the current segment's name; 0: the active one */
	uint64_t passed;   /* segments up to this `first` are done with */
	uint64_t offset;   /* of the next line in the file */
	uint64_t line;     /* number of the last line given */
	struct hf_buf buf; /* bytes read and not yet given */
	size_t used;       /* of them, given */
	uint64_t hole;     /* behind them are that many bytes of a hole */
	char tail[24];     /* the last bytes given, as far as there are so many: */
	size_t tail_len;   /* who cuts the file short and writes anew changes them */
	int left_fd;       /* the segment left last: open, so that its inode is not reused */
	dev_t left_dev;
	ino_t left_ino;
};

enum hf_scan_result {
	HF_SCAN_END = 0,  /* no more for now */
	HF_SCAN_LINE = 1, /* a whole line */
	HF_SCAN_TORN = 2, /* an unfinished line at the end of a segment that is closed */
	HF_SCAN_PIECE = 4, /* part of a line that is longer than any of ours */
	HF_SCAN_FILE = 3, /* a segment that cannot be opened or trusted: see err */
	HF_SCAN_HOLE = 5, /* bytes that the file system has no blocks for; there is no text */
};

struct hf_scan_line {
	const char *text; /* without newline; lives until the next call */
	size_t len;
	uint64_t offset;
	uint64_t line;
};

int hf_scan_open(const struct hf_state *state, struct hf_scan *ret, struct hf_err *err);
void hf_scan_done(struct hf_scan *scan);

/* Returns an enum hf_scan_result or -errno. `scan->file` names the segment. */
int hf_scan_next(struct hf_scan *scan, struct hf_scan_line *ret, struct hf_err *err);

/*
 * Was the active segment cut short, or the journal put away and made anew? Then reading begins again
 * with what stands there now: returns 1; 0 when nothing happened; -errno.
 */
int hf_scan_again(struct hf_scan *scan, struct hf_err *err);

/* Bytes of an unfinished line at the end of the active segment, after HF_SCAN_END. */
size_t hf_scan_pending(const struct hf_scan *scan);

#endif
