/* hook/settings/settings_check.c - can a client read its settings, and can they be put right? */
#include <errno.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/hook/settings/settings.h"
#include "hf/hook/settings/spans.h"

static size_t line_of(const char *text, size_t at)
{
	size_t line = 1;

	while (at > 0)
		line += text[--at] == '\n';
	return line;
}

/* Takes back the blanks in front of a comment that ends its line. Returns 1 when the line has nothing else. */
static int trim_line(struct hf_buf *out)
{
	while (out->len > 0 && (out->s[out->len - 1] == ' ' || out->s[out->len - 1] == '\t'))
		out->len--;
	return out->len == 0 || out->s[out->len - 1] == '\n';
}

static size_t skip_comment(const char *text, size_t len, size_t at, struct hf_buf *out)
{
	at = hf_span_comment(text, len, at);
	if ((at == len || text[at] == '\n' || text[at] == '\r') && trim_line(out)) {
		if (at < len && text[at] == '\r')
			at++;
		if (at < len && text[at] == '\n')
			at++;
	} else if (at < len && text[at] != '\n' && text[at] != '\r') {
		hf_buf_add_char(out, ' '); /* it parted what stands around it */
	}
	return at;
}

static int is_last_comma(const char *text, size_t len, size_t at)
{
	size_t next = hf_span_skip(text, len, at + 1);

	return next < len && (text[next] == '}' || text[next] == ']');
}

size_t hf_settings_strip(const char *text, size_t len, unsigned what, struct hf_buf *out)
{
	size_t first = 0, at = 0;

	while (at < len) {
		size_t from = at;

		if (text[at] == '"') {
			at = hf_span_string(text, len, at);
			hf_buf_add(out, text + from, at - from);
			continue;
		}
		if (hf_span_comment(text, len, at) > at) {
			if (what & HF_STRIP_COMMENTS) {
				at = skip_comment(text, len, at, out);
				first = first ? first : line_of(text, from);
			} else {
				at = hf_span_comment(text, len, at);
				hf_buf_add(out, text + from, at - from);
			}
			continue;
		}
		if (text[at] == ',' && (what & HF_STRIP_COMMAS) && is_last_comma(text, len, at))
			first = first ? first : line_of(text, at);
		else
			hf_buf_add_char(out, text[at]);
		at++;
	}
	return first;
}

/* Is it one JSON object? With a place and a cause in *ret_why when it is not. */
static int is_object(const char *text, size_t len, json_error_t *ret_why)
{
	size_t bom = len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
	json_t *root = json_loadb(text + bom, len - bom, HF_SETTINGS_JSON, ret_why);
	int is = json_is_object(root);

	if (root && !is)
		hf_copy_text(ret_why->text, sizeof(ret_why->text), "it is not an object");
	json_decref(root);
	return is;
}

/* What can be put right, and what happens if it is not. */
static int refuse(enum hf_client client, const char *path, size_t line, const char *what, struct hf_err *err)
{
	if (client == HF_CLIENT_CLAUDE)
		return FAIL(err, HF_E_FORMAT, "settings", path,
			    "line %zu: %s: claude silently ignores the whole file, with every setting and hook in it; "
			    "--fix removes it", line, what);
	return FAIL(err, HF_E_FORMAT, "settings", path, "line %zu: %s, which %s does not accept; --fix removes it", line,
		    what, hf_client_word(client));
}

int hf_settings_check(enum hf_client client, struct hf_buf *text, int fix, const char *path, struct hf_err *err)
{
	unsigned own = hf_settings_takes_comments(client) ? HF_STRIP_COMMENTS : 0;
	AUTO(hf_buf_done) struct hf_buf read = HF_BUF_INIT, fixed = HF_BUF_INIT, both = HF_BUF_INIT;
	size_t comment, comma;
	json_error_t why;

	if (text->len > HF_SETTINGS_MAX)
		return FAIL(err, -E2BIG, "settings", path, "%zu bytes", text->len);
	(void)hf_settings_strip(text->s, text->len, own, &read);
	if (read.err)
		return hf_fail_sys(err, -read.err, "read", path);
	if (is_object(read.s, read.len, &why))
		return 0;
	if (hf_span_skip(text->s, text->len, 0) == text->len) {
		if (!fix)
			return FAIL(err, HF_E_FORMAT, "settings", path, "it is empty; --fix makes it {}");
		hf_buf_reset(text);
		hf_buf_add_text(text, "{}\n");
		return text->err ? hf_fail_sys(err, -text->err, "read", path) : 1;
	}
	comment = own ? 0 : hf_settings_strip(text->s, text->len, HF_STRIP_COMMENTS, &both);
	hf_buf_reset(&both);
	comma = hf_settings_strip(text->s, text->len, HF_STRIP_COMMAS, &fixed);
	(void)hf_settings_strip(fixed.s, fixed.len, HF_STRIP_COMMENTS, &both);
	if (fixed.err || both.err)
		return hf_fail_sys(err, ENOMEM, "read", path);
	if ((!comment && !comma) || !is_object(both.s, both.len, &(json_error_t){ 0 }))
		return FAIL(err, HF_E_FORMAT, "settings", path, "line %d: %s", why.line > 0 ? why.line : 1, why.text);
	if (!fix)
		return refuse(client, path, comment ? comment : comma,
			      comment ? "a comment" : "a trailing comma", err);
	hf_buf_reset(text);
	hf_buf_add(text, own ? fixed.s : both.s, own ? fixed.len : both.len);
	return text->err ? hf_fail_sys(err, -text->err, "read", path) : 1;
}
