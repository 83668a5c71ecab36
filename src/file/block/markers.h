/*
 * file/block/markers.h - finding marker lines in a stream of bytes, without keeping the stream.
 *
 *     hf_scan_begin(&scan, &spec);
 *     while (more) hf_scan_feed(&scan, bytes, len);       in pieces of any size
 *     r = hf_scan_end(&scan, &found, shown, err);         1 there is a block, 0 there is none
 *
 * A line longer than HF_SCAN_LINE_MAX is no marker. Pure: no system calls, no memory beyond
 * the struct. The result does not depend on how the bytes are cut into pieces.
 */
#ifndef FILE_BLOCK_MARKERS_H
#define FILE_BLOCK_MARKERS_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/file.h"

#define HF_SCAN_LINE_MAX (HF_BLOCK_MARKER_MAX + 512) /* with its blanks */
#define HF_SCAN_DEPTH    16                          /* other blocks open at once */

struct hf_scan_spec {
	const char *id;
	const char *start; /* foreign markers, trimmed; NULL: those of `id` */
	const char *end;
	int fences; /* Markdown: lines in fenced code are text */
};

/* Lines count from 1, offsets from 0. */
struct hf_found {
	int has_block;
	uint64_t start_line, end_line;
	uint64_t start_at;    /* of the start marker's line (behind a BOM) */
	uint64_t text_at;     /* behind that line */
	uint64_t end_at;      /* of the end marker's line */
	uint64_t behind_at;   /* behind that line */
	unsigned newline_before; /* bytes of the line end before the start marker */
	int end_has_newline;
	uint64_t size;
	uint64_t n_lf, n_crlf;   /* lines that end so */
	int has_bom;
	int ends_with_newline;   /* or is empty (but for a BOM) */
	uint64_t open_fence;     /* line of a fence that is open at the end, or 0 */
	uint64_t first_marker;   /* line of the first marker of any block, or 0 */
	int is_binary;           /* NUL bytes, or UTF-16 */
};

struct hf_scan {
	struct hf_scan_spec spec;
	struct hf_found found;

	/* The line being read. */
	char line[HF_SCAN_LINE_MAX];
	size_t kept;       /* of `line` */
	uint64_t length;   /* the whole, kept or not */
	uint64_t number;   /* its number */
	uint64_t begins;   /* its offset */
	char last;         /* the byte before the one to come */
	int late_backtick; /* one was seen behind what is kept */
	unsigned newline_before;

	/* Fenced code: the character that opened it, 0 outside. */
	int in_list; /* of Markdown: what is indented belongs to an item */
	char fence;
	size_t fence_length;
	uint64_t fence_line;

	/* Markers of the block that is looked for. */
	unsigned n_starts, n_ends;
	uint64_t starts[2], ends[2]; /* lines of the first two */
	int two_starts_open;         /* the second start came before any end */
	int open;
	uint64_t hidden_line;        /* the first of them inside fenced code */
	uint64_t hidden_fence;

	/* Markers of other blocks. */
	struct {
		uint64_t hash, line;
	} others[HF_SCAN_DEPTH];
	unsigned depth;
	uint64_t inside_line; /* another's marker inside our block */
	uint64_t around_line; /* our block inside another that starts here */
};

void hf_scan_begin(struct hf_scan *scan, const struct hf_scan_spec *spec);
void hf_scan_feed(struct hf_scan *scan, const char *bytes, size_t len);

/* Returns 1, 0, or HF_E_MARKERS with the reason; *ret is filled in any case. */
int hf_scan_end(struct hf_scan *scan, struct hf_found *ret, const char *shown,
		struct hf_err *err);

#endif
