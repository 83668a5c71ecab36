/* file/block/markers.c - marker lines, fenced code, and what their order means. */
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hf/base/fail.h"
#include "hf/file/block/markers.h"
#include "hf/file/block/style.h"

/* A piece of a line. */
struct span {
	const char *s;
	size_t len;
};

static int is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static struct span trimmed(struct span span)
{
	while (span.len > 0 && is_blank(span.s[0])) {
		span.s++;
		span.len--;
	}
	while (span.len > 0 && (is_blank(span.s[span.len - 1]) || span.s[span.len - 1] == '\r'))
		span.len--;
	return span;
}

static int eat(struct span *span, const char *text)
{
	size_t len = strlen(text);

	if (span->len < len || memcmp(span->s, text, len) != 0)
		return 0;
	span->s += len;
	span->len -= len;
	return 1;
}

static int equals(struct span span, const char *text)
{
	return span.len == strlen(text) && memcmp(span.s, text, span.len) == 0;
}

/* -- markers ------------------------------------------------------------------- */

enum mark { NO_MARK, START, END };

/* "holdfast:ID:start" in that style's comment; the id is given back. */
static enum mark read_mark(struct span line, enum hf_block_style style, struct span *ret_id)
{
	enum mark mark;

	if (!eat(&line, hf_style_open(style)))
		return NO_MARK;
	line = trimmed(line);
	if (!eat(&line, "holdfast:"))
		return NO_MARK;
	ret_id->s = line.s;
	ret_id->len = hf_style_id_length(line.s, line.len);
	line.s += ret_id->len;
	line.len -= ret_id->len;
	if (ret_id->len == 0)
		return NO_MARK;
	mark = eat(&line, ":start") ? START : eat(&line, ":end") ? END : NO_MARK;
	return mark != NO_MARK && equals(trimmed(line), hf_style_close(style)) ? mark : NO_MARK;
}

static enum mark read_any(struct span line, struct span *ret_id)
{
	for (int style = HF_STYLE_HTML; hf_style_open((enum hf_block_style)style); style++) {
		enum mark mark = read_mark(line, (enum hf_block_style)style, ret_id);

		if (mark != NO_MARK)
			return mark;
	}
	return NO_MARK;
}

/* -- fenced code --------------------------------------------------------------- */

/* How far a line is indented; a tab is as good as four blanks here. */
static size_t indent(struct span line)
{
	size_t n = 0;

	for (size_t i = 0; i < line.len && is_blank(line.s[i]); i++)
		n += line.s[i] == '\t' ? 4 : 1;
	return n;
}

/* "- ", "3. " and the like: a fence may begin behind them. Counts them. */
static struct span behind_bullets(struct span line, unsigned *ret_bullets)
{
	for (*ret_bullets = 0;; ++*ret_bullets) {
		struct span rest = trimmed(line);
		size_t digits = 0;

		while (digits < rest.len && digits < 9 && rest.s[digits] >= '0' &&
		       rest.s[digits] <= '9')
			digits++;
		if (digits > 0 ? digits + 1 < rest.len &&
					 (rest.s[digits] == '.' || rest.s[digits] == ')') &&
					 is_blank(rest.s[digits + 1])
			       : rest.len > 1 && memchr("-+*", rest.s[0], 3) && is_blank(rest.s[1])) {
			line.s = rest.s + digits + 1;
			line.len = rest.len - digits - 1;
			continue;
		}
		return rest;
	}
}

/* Length of the run of ` or ~ at the front, if it is long enough for a fence. */
static size_t fence_run(struct span line)
{
	size_t n = 0;

	if (line.len == 0 || (line.s[0] != '`' && line.s[0] != '~'))
		return 0;
	while (n < line.len && line.s[n] == line.s[0])
		n++;
	return n >= 3 ? n : 0;
}

/*
 * Follows fenced code. Returns 1 when the line is a fence or inside of one. Four blanks in
 * front make it indented code, no fence, unless it may be part of a list's item.
 */
static int follow_fence(struct hf_scan *scan, struct span whole)
{
	unsigned bullets = 0;
	struct span line = scan->fence ? trimmed(whole) : behind_bullets(whole, &bullets);
	int deep = indent(whole) > 3 && !scan->in_list && bullets == 0;
	size_t run = deep ? 0 : fence_run(line);

	if (scan->fence) {
		if (run >= scan->fence_length && line.s[0] == scan->fence && run == line.len &&
		    scan->length <= scan->kept)
			scan->fence = 0;
		return 1;
	}
	/* A list goes on over blank and indented lines. */
	if (bullets > 0)
		scan->in_list = 1;
	else if (line.len > 0 && indent(whole) == 0)
		scan->in_list = 0;
	/* With backticks behind it, it is code within a line. */
	if (run == 0 || (line.s[0] == '`' && (scan->late_backtick ||
					      memchr(line.s + run, '`', line.len - run))))
		return 0;
	scan->fence = line.s[0];
	scan->fence_length = run;
	scan->fence_line = scan->number;
	return 1;
}

/* -- order --------------------------------------------------------------------- */

static void own_mark(struct hf_scan *scan, enum mark mark, uint64_t behind, int has_newline)
{
	struct hf_found *found = &scan->found;

	if (mark == START) {
		if (scan->n_starts < 2)
			scan->starts[scan->n_starts] = scan->number;
		if (scan->n_starts == 1 && scan->n_ends == 0)
			scan->two_starts_open = 1;
		scan->n_starts++;
		scan->open = 1;
		found->start_line = scan->number;
		found->start_at = scan->begins;
		found->text_at = behind;
		found->newline_before = scan->newline_before;
		return;
	}
	if (scan->n_ends < 2)
		scan->ends[scan->n_ends] = scan->number;
	scan->n_ends++;
	scan->open = 0;
	found->end_line = scan->number;
	found->end_at = scan->begins;
	found->behind_at = behind;
	found->end_has_newline = has_newline;
}

static void other_mark(struct hf_scan *scan, enum mark mark, struct span id)
{
	uint64_t hash = XXH3_64bits(id.s, id.len);

	if (scan->open && scan->inside_line == 0)
		scan->inside_line = scan->number;
	if (mark == START) {
		/* Deeper than anybody means it: the outermost is forgotten. */
		if (scan->depth == HF_SCAN_DEPTH) {
			memmove(&scan->others[0], &scan->others[1],
				(HF_SCAN_DEPTH - 1) * sizeof(scan->others[0]));
			scan->depth--;
		}
		scan->others[scan->depth].hash = hash;
		scan->others[scan->depth++].line = scan->number;
		return;
	}
	for (unsigned i = scan->depth; i-- > 0;) {
		if (scan->others[i].hash != hash)
			continue;
		if (scan->n_starts > 0 && scan->found.start_line > scan->others[i].line)
			scan->around_line = scan->others[i].line;
		scan->depth = i;
		return;
	}
}

static void take_line(struct hf_scan *scan, uint64_t behind, int has_newline)
{
	struct span whole = { scan->line, scan->kept };
	struct span line, id = { "", 0 };
	enum mark mark;
	int in_code, own;

	if (scan->number == 1 && scan->kept >= 3 && memcmp(scan->line, "\xef\xbb\xbf", 3) == 0) {
		scan->found.has_bom = 1;
		scan->begins += 3;
		whole.s += 3;
		whole.len -= 3;
	}
	in_code = scan->spec.fences && follow_fence(scan, whole);
	if (scan->length > scan->kept)
		return;
	line = trimmed(whole);
	if (scan->spec.start && equals(line, scan->spec.start))
		mark = START, own = 1;
	else if (scan->spec.start && equals(line, scan->spec.end))
		mark = END, own = 1;
	else {
		mark = read_any(line, &id);
		own = !scan->spec.start && id.len == strlen(scan->spec.id) &&
		      memcmp(id.s, scan->spec.id, id.len) == 0;
	}
	if (mark == NO_MARK)
		return;
	if (in_code) {
		if (own && scan->hidden_line == 0) {
			scan->hidden_line = scan->number;
			scan->hidden_fence = scan->fence_line;
		}
		return;
	}
	if (scan->found.first_marker == 0)
		scan->found.first_marker = scan->number;
	if (own)
		own_mark(scan, mark, behind, has_newline);
	else
		other_mark(scan, mark, id);
}

/* -- the stream ---------------------------------------------------------------- */

void hf_scan_begin(struct hf_scan *scan, const struct hf_scan_spec *spec)
{
	memset(scan, 0, sizeof(*scan));
	scan->spec = *spec;
	scan->number = 1;
}

static void add_to_line(struct hf_scan *scan, const char *bytes, size_t len)
{
	size_t room = sizeof(scan->line) - scan->kept;
	size_t keep = len < room ? len : room;

	memcpy(scan->line + scan->kept, bytes, keep);
	scan->kept += keep;
	scan->length += len;
	if (len > keep && !scan->late_backtick)
		scan->late_backtick = memchr(bytes + keep, '`', len - keep) != NULL;
	if (len > 0)
		scan->last = bytes[len - 1];
}

static void end_line(struct hf_scan *scan)
{
	int crlf = scan->length > 0 && scan->last == '\r';

	scan->found.size++;
	take_line(scan, scan->found.size, 1);
	scan->found.n_crlf += (uint64_t)crlf;
	scan->found.n_lf += (uint64_t)!crlf;
	scan->newline_before = crlf ? 2 : 1;
	scan->begins = scan->found.size;
	scan->kept = 0;
	scan->length = 0;
	scan->late_backtick = 0;
	scan->number++;
}

void hf_scan_feed(struct hf_scan *scan, const char *bytes, size_t len)
{
	if (memchr(bytes, '\0', len))
		scan->found.is_binary = 1;
	while (len > 0) {
		const char *newline = memchr(bytes, '\n', len);
		size_t part = newline ? (size_t)(newline - bytes) : len;

		add_to_line(scan, bytes, part);
		scan->found.size += part;
		if (!newline)
			return;
		end_line(scan);
		bytes += part + 1;
		len -= part + 1;
	}
}

static int explain(const struct hf_scan *scan, const char *shown, struct hf_err *err)
{
	const char *id = scan->spec.id;
	unsigned long long start = scan->starts[0], end = scan->ends[0];

	if (scan->two_starts_open)
		return FAIL(err, HF_E_MARKERS, "markers", shown,
			    "line %llu: block '%s' starts again inside itself (it starts in line %llu)",
			    (unsigned long long)scan->starts[1], id, start);
	if (scan->n_starts > 1)
		return FAIL(err, HF_E_MARKERS, "markers", shown,
			    "block '%s' exists twice: it starts in line %llu and in line %llu", id,
			    start, (unsigned long long)scan->starts[1]);
	if (scan->n_starts == 0)
		return FAIL(err, HF_E_MARKERS, "markers", shown,
			    "line %llu: block '%s' ends without a start", end, id);
	if (scan->n_ends == 0 && scan->hidden_line)
		return FAIL(err, HF_E_MARKERS, "markers", shown,
			    "line %llu: block '%s' starts and does not end; the marker in line %llu is in "
			    "the fenced code that begins in line %llu",
			    start, id, (unsigned long long)scan->hidden_line,
			    (unsigned long long)scan->hidden_fence);
	if (scan->n_ends == 0)
		return FAIL(err, HF_E_MARKERS, "markers", shown,
			    "line %llu: block '%s' starts and does not end", start, id);
	if (end < start)
		return FAIL(err, HF_E_MARKERS, "markers", shown,
			    "block '%s' ends in line %llu before it starts in line %llu", id, end,
			    start);
	if (scan->n_ends > 1)
		return FAIL(err, HF_E_MARKERS, "markers", shown,
			    "block '%s' ends twice, in line %llu and in line %llu", id, end,
			    (unsigned long long)scan->ends[1]);
	if (scan->inside_line)
		return FAIL(err, HF_E_MARKERS, "markers", shown,
			    "line %llu: a marker of another block inside '%s' (lines %llu to %llu)",
			    (unsigned long long)scan->inside_line, id, start, end);
	return FAIL(err, HF_E_MARKERS, "markers", shown,
		    "block '%s' (lines %llu to %llu) is inside another that starts in line %llu", id,
		    start, end, (unsigned long long)scan->around_line);
}

int hf_scan_end(struct hf_scan *scan, struct hf_found *ret, const char *shown,
		struct hf_err *err)
{
	struct hf_found *found = &scan->found;
	int good;

	if (scan->length > 0)
		take_line(scan, found->size, 0);
	if (scan->number == 1 &&
	    ((scan->kept >= 2 && (memcmp(scan->line, "\xff\xfe", 2) == 0 ||
				  memcmp(scan->line, "\xfe\xff", 2) == 0))))
		found->is_binary = 1;
	found->ends_with_newline = found->size == (found->has_bom ? 3U : 0U) || scan->length == 0;
	found->open_fence = scan->fence ? scan->fence_line : 0;
	good = scan->n_starts == scan->n_ends && scan->n_starts <= 1 &&
	       (scan->n_starts == 0 || scan->starts[0] < scan->ends[0]) &&
	       scan->inside_line == 0 && scan->around_line == 0;
	found->has_block = good && scan->n_starts == 1;
	*ret = *found;
	return good ? found->has_block : explain(scan, shown, err);
}
