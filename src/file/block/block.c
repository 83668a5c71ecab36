/* file/block/block.c - writes the file anew around one block. The file is read twice and never held. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/buf.h"
#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/file/block/block.h"
#include "hf/file/content.h"
#include "hf/file/block/markers.h"
#include "hf/file/block/style.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

#define CHUNK ((size_t)64 << 10)

/* The block's arguments, checked. */
struct request {
	const char *id;
	const char *text; /* NULL: remove */
	size_t len;
	enum hf_block_style style;
	char start[HF_BLOCK_MARKER_MAX + 1]; /* foreign ones, trimmed; "": our own */
	char end[HF_BLOCK_MARKER_MAX + 1];
	int fences;
};

static int keep_marker(const struct hf_file *file, const char *given, char *out, struct hf_err *err)
{
	size_t len;

	given += strspn(given, " \t");
	len = strlen(given);
	while (len > 0 && (given[len - 1] == ' ' || given[len - 1] == '\t'))
		len--;
	if (len == 0 || len > HF_BLOCK_MARKER_MAX || memchr(given, '\n', len) ||
	    memchr(given, '\r', len))
		return FAIL(err, -EINVAL, "markers", file->path,
			    "a marker must be one line of 1 to %d bytes", HF_BLOCK_MARKER_MAX);
	memcpy(out, given, len);
	out[len] = '\0';
	return 0;
}

static int check_style(const struct hf_file *file, struct request *request, struct hf_err *err)
{
	if (request->style == HF_STYLE_AUTO)
		request->style = hf_style_of(file->leaf);
	/* In a file type without comments a block can only be removed, not made. */
	if (request->style == HF_STYLE_AUTO && !request->start[0] && request->text)
		return FAIL(err, -EINVAL, "markers", file->path,
			    "files of this type have no comments; use 'file edit', or --start and --end");
	if (request->style != HF_STYLE_AUTO && !hf_style_open(request->style))
		return FAIL(err, -EINVAL, "markers", file->path, "no such style");
	return 0;
}

static int check_request(const struct hf_file *file, const struct hf_block *block,
			 struct request *ret, struct hf_err *err)
{
	struct request request = { 0 };
	int r = 0;

	if (!block || block->size < sizeof(*block) || !block->start != !block->end)
		return FAIL(err, -EINVAL, "block", file->path,
			    "set the size, and give both markers or neither");
	if (!block->id || block->id[0] == '\0' ||
	    hf_style_id_length(block->id, strlen(block->id)) != strlen(block->id))
		return FAIL(err, -EINVAL, "block", file->path,
			    "an id must have 1 to %d letters, digits, '_', '-' or '.'", HF_BLOCK_ID_MAX);
	if (block->text && block->len > HF_BLOCK_TEXT_MAX)
		return FAIL(err, -EINVAL, "block", file->path, "a text must have at most %d MiB",
			    HF_BLOCK_TEXT_MAX >> 20);
	request.id = block->id;
	request.text = block->text;
	request.len = block->len;
	request.style = block->style;
	request.fences = hf_style_has_fences(file->leaf);
	if (block->start) {
		r = keep_marker(file, block->start, request.start, err);
		if (r == 0)
			r = keep_marker(file, block->end, request.end, err);
		if (r == 0 && strcmp(request.start, request.end) == 0)
			r = FAIL(err, -EINVAL, "markers", file->path, "start and end are the same");
	}
	if (r == 0)
		r = check_style(file, &request, err);
	if (r == 0)
		*ret = request;
	return r;
}

static struct hf_scan_spec spec_of(const struct request *request)
{
	return (struct hf_scan_spec){ .id = request->id,
				      .start = request->start[0] ? request->start : NULL,
				      .end = request->start[0] ? request->end : NULL,
				      .fences = request->fences };
}

/* A text that would change what the markers mean. */
static int check_text(const struct hf_file *file, const struct request *request, struct hf_err *err)
{
	struct hf_scan_spec spec = spec_of(request);
	struct hf_found found;
	struct hf_scan scan;

	if (!request->text)
		return 0;
	hf_scan_begin(&scan, &spec);
	hf_scan_feed(&scan, request->text, request->len);
	(void)hf_scan_end(&scan, &found, file->path, NULL);
	if (found.is_binary)
		return FAIL(err, HF_E_KIND, "text", file->path, "the text has NUL bytes or is UTF-16");
	if (found.first_marker)
		return FAIL(err, HF_E_MARKERS, "text", file->path,
			    "line %llu of the text is itself a marker",
			    (unsigned long long)found.first_marker);
	if (found.open_fence)
		return FAIL(err, HF_E_MARKERS, "text", file->path,
			    "line %llu of the text begins fenced code that does not end",
			    (unsigned long long)found.open_fence);
	return 0;
}

static int scan_file(const struct hf_file *file, const struct request *request,
		     struct hf_found *ret, struct hf_err *err)
{
	AUTO_FREE char *chunk = malloc(CHUNK);
	struct hf_scan_spec spec = spec_of(request);
	struct hf_scan scan;
	off_t at = 0;
	ssize_t n = 0;
	int r;

	if (!chunk)
		return hf_fail_sys(err, ENOMEM, "memory", file->path);
	hf_scan_begin(&scan, &spec);
	while (file->old_fd >= 0 && (n = hf_pread_all(file->old_fd, chunk, CHUNK, at)) > 0) {
		hf_scan_feed(&scan, chunk, (size_t)n);
		at += n;
	}
	if (n < 0)
		return hf_fail_sys(err, (int)-n, "pread", file->path);
	r = hf_scan_end(&scan, ret, file->path, err);
	if (ret->is_binary)
		return FAIL(err, HF_E_KIND, "markers", file->path,
			    "it is not text (NUL bytes or UTF-16)");
	return r;
}

/* The text as lines of this file: each ended, and with CR LF where most of them are. */
static void add_text(struct hf_buf *out, const struct request *request, const char *newline)
{
	const char *s = request->text, *end = s + request->len;

	if (newline[0] == '\n') {
		hf_buf_add(out, s, request->len);
	} else {
		while (s < end) {
			const char *at = memchr(s, '\n', (size_t)(end - s));
			size_t len = at ? (size_t)(at - s) : (size_t)(end - s);

			hf_buf_add(out, s, len);
			if (at)
				hf_buf_add_text(out, len > 0 && at[-1] == '\r' ? "\n" : "\r\n");
			s += len + (at != NULL);
		}
	}
	if (request->len > 0 && end[-1] != '\n')
		hf_buf_add_text(out, newline);
}

static void add_marker(struct hf_buf *out, const struct request *request, const char *which)
{
	if (request->start[0]) {
		hf_buf_add_text(out, which[0] == 's' ? request->start : request->end);
		return;
	}
	hf_buf_add_text(out, hf_style_open(request->style));
	hf_buf_add_text(out, " holdfast:");
	hf_buf_add_text(out, request->id);
	hf_buf_add_char(out, ':');
	hf_buf_add_text(out, which);
	if (hf_style_close(request->style)[0]) {
		hf_buf_add_char(out, ' ');
		hf_buf_add_text(out, hf_style_close(request->style));
	}
}

/* The new content: [0, upto) of the old, `middle`, and the old from `from` on. */
struct splice {
	uint64_t upto, from;
	struct hf_buf middle;
};

static void splice_done(struct splice *splice)
{
	hf_buf_done(&splice->middle);
}

static void plan_insert(const struct request *request, const struct hf_found *found,
			const char *newline, struct splice *ret)
{
	ret->upto = ret->from = found->size;
	if (!found->ends_with_newline)
		hf_buf_add_text(&ret->middle, newline);
	add_marker(&ret->middle, request, "start");
	hf_buf_add_text(&ret->middle, newline);
	add_text(&ret->middle, request, newline);
	add_marker(&ret->middle, request, "end");
	if (found->ends_with_newline)
		hf_buf_add_text(&ret->middle, newline);
}

static void plan_remove(const struct hf_found *found, struct splice *ret)
{
	ret->upto = found->start_at;
	ret->from = found->behind_at;
	/* A file without a final newline had none before the block was put in, either. */
	if (!found->end_has_newline && ret->upto >= found->newline_before)
		ret->upto -= found->newline_before;
}

/* Is what stands between the markers what shall stand there? 1, 0, -errno. */
static int is_same(const struct hf_file *file, const struct splice *splice)
{
	AUTO_FREE char *old = NULL;
	ssize_t n;

	if (splice->from - splice->upto != splice->middle.len)
		return 0;
	old = malloc(splice->middle.len + 1);
	if (!old)
		return -ENOMEM;
	n = hf_pread_all(file->old_fd, old, splice->middle.len, (off_t)splice->upto);
	return n < 0 ? (int)n
		     : (size_t)n == splice->middle.len &&
			       memcmp(old, splice->middle.s, splice->middle.len) == 0;
}

static int write_splice(struct hf_file *file, const struct splice *splice, uint64_t size,
			struct hf_err *err)
{
	int fd, r = hf_file_write(file, &fd, err);

	if (r < 0)
		return r;
	if (splice->upto > 0)
		r = hf_content_copy(file->old_fd, 0, (off_t)splice->upto, fd);
	if (r == 0)
		r = hf_write_all(fd, splice->middle.s, splice->middle.len);
	if (r == 0 && splice->from < size)
		r = hf_content_copy(file->old_fd, (off_t)splice->from, (off_t)(size - splice->from),
				    fd);
	return r < 0 ? hf_fail_sys(err, -r, "write", file->path) : 1;
}

/* What to write. Returns 1, 0 nothing to do, or an error. */
static int plan(const struct hf_file *file, const struct request *request,
		const struct hf_found *found, struct splice *ret, struct hf_err *err)
{
	const char *newline = found->n_crlf > found->n_lf ? "\r\n" : "\n";
	int r;

	if (!request->text) {
		if (found->has_block)
			plan_remove(found, ret);
		return found->has_block;
	}
	if (!found->has_block) {
		if (found->open_fence)
			return FAIL(err, HF_E_MARKERS, "markers", file->path,
				    "line %llu begins fenced code that does not end; a block after it "
				    "would be code",
				    (unsigned long long)found->open_fence);
		plan_insert(request, found, newline, ret);
		return 1;
	}
	ret->upto = found->text_at;
	ret->from = found->end_at;
	add_text(&ret->middle, request, newline);
	r = ret->middle.err ? ret->middle.err : is_same(file, ret);
	return r < 0 ? hf_fail_sys(err, -r, "pread", file->path) : !r;
}

int hf_block_write(struct hf_file *file, const struct hf_block *block, struct hf_err *err)
{
	AUTO(splice_done) struct splice splice = { .middle = HF_BUF_INIT };
	struct request request;
	struct hf_found found;
	int r = check_request(file, block, &request, err);

	if (r == 0)
		r = check_text(file, &request, err);
	if (r == 0)
		r = scan_file(file, &request, &found, err);
	if (r >= 0)
		r = plan(file, &request, &found, &splice, err);
	if (r <= 0)
		return r;
	if (splice.middle.err)
		return hf_fail_sys(err, -splice.middle.err, "memory", file->path);
	return write_splice(file, &splice, found.size, err);
}
