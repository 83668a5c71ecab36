/*
 * tests/fuzz/fuzz_markers.c - any bytes as a file with blocks in it.
 *
 * The first byte chooses: 1 Markdown, 2 foreign markers, and the size of the pieces. What must
 * hold: the answer does not depend on the pieces; a block that is found lies in the file, can be
 * taken out and is then gone; one that is put where there was none is found.
 */
#include <string.h>

#include "fuzz.h"
#include "hf/file/block/markers.h"

#define S_OWN     "<!-- holdfast:x:start -->"
#define E_OWN     "<!-- holdfast:x:end -->"
#define S_FOREIGN "%% begin"
#define E_FOREIGN "%% end"

static struct hf_scan_spec spec;

static int scan(const char *text, size_t len, size_t piece, struct hf_found *ret)
{
	struct hf_err err = HF_ERR_INIT;
	struct hf_scan state;
	int r;

	hf_scan_begin(&state, &spec);
	for (size_t at = 0; at < len; at += piece)
		hf_scan_feed(&state, text + at, len - at < piece ? len - at : piece);
	r = hf_scan_end(&state, ret, "F", &err);
	MUST(r == 0 || r == 1 || (r == HF_E_MARKERS && err.detail[0] && strstr(err.detail, "line")));
	MUST(r == 1 ? ret->has_block : !ret->has_block);
	return r;
}

static void block_lies_in_the_file(const char *text, size_t len, const struct hf_found *f)
{
	MUST(f->start_at < f->text_at && f->text_at <= f->end_at && f->end_at < f->behind_at);
	MUST(f->behind_at <= len && f->start_line < f->end_line && f->start_line > 0);
	MUST(text[f->text_at - 1] == '\n');
	MUST(f->start_at == 0 || (f->has_bom && f->start_at == 3) || text[f->start_at - 1] == '\n');
	MUST(f->end_has_newline ? text[f->behind_at - 1] == '\n' : f->behind_at == len);
	MUST(f->newline_before <= f->start_at);
}

static void taken_out_it_is_gone(const char *text, size_t len, const struct hf_found *f)
{
	size_t rest = len - f->behind_at;
	char *without = malloc(f->start_at + rest + 1);
	struct hf_found found;

	MUST(without != NULL);
	memcpy(without, text, f->start_at);
	memcpy(without + f->start_at, text + f->behind_at, rest);
	MUST(scan(without, f->start_at + rest, 4096, &found) == 0);
	free(without);
}

static void put_in_it_is_found(const char *text, size_t len, const struct hf_found *f)
{
	const char *start = spec.start ? spec.start : S_OWN, *end = spec.end ? spec.end : E_OWN;
	size_t cap = len + 200;
	char *with = malloc(cap);
	struct hf_found found;
	int n;

	MUST(with != NULL);
	memcpy(with, text, len);
	n = snprintf(with + len, cap - len, "%s%s\ntext\n%s", f->ends_with_newline ? "" : "\n", start,
		     end);
	MUST(scan(with, len + (size_t)n, 4096, &found) == 1);
	MUST(found.text_at + 5 == found.end_at);
	free(with);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + 1;
	struct hf_found whole, pieces;
	size_t newlines = 0;
	int r;

	if (size == 0)
		return 0;
	size--;
	spec = (struct hf_scan_spec){ .id = "x", .fences = data[0] & 1 };
	if (data[0] & 2) {
		spec.start = S_FOREIGN;
		spec.end = E_FOREIGN;
	}
	r = scan(text, size, size + 1, &whole);
	MUST(scan(text, size, (data[0] >> 2) + 1, &pieces) == r);
	MUST(memcmp(&whole, &pieces, sizeof(whole)) == 0);
	for (size_t i = 0; i < size; i++)
		newlines += text[i] == '\n';
	MUST(whole.n_lf + whole.n_crlf == newlines && whole.size == size);
	if (r == 1) {
		block_lies_in_the_file(text, size, &whole);
		taken_out_it_is_gone(text, size, &whole);
	}
	if (r == 0 && whole.open_fence == 0)
		put_in_it_is_found(text, size, &whole);
	return 0;
}
