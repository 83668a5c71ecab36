/* hook/settings/settings_text.c - changing a JSON text without touching the rest of it: how it is written, a member put in, an item taken out. */
#include <errno.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/hook/settings/settings_text.h"

struct hf_text_style hf_text_style_of(const struct hf_buf *text, size_t root)
{
	const char *line = memchr(text->s, '\n', text->len);
	struct hf_text_style style = { "  ", line && line > text->s && line[-1] == '\r' ? "\r\n" : "\n" };
	struct hf_item item = { 0 };
	size_t n = 0;

	if (hf_item_next(text->s, text->len, root, &item) <= 0)
		return style;
	while (n < item.key_at && (text->s[item.key_at - n - 1] == ' ' || text->s[item.key_at - n - 1] == '\t'))
		n++;
	if (n > 0 && n < sizeof(style.unit) && n < item.key_at && text->s[item.key_at - n - 1] == '\n') {
		memcpy(style.unit, text->s + item.key_at - n, n);
		style.unit[n] = '\0';
	}
	return style;
}

static void add_indent(struct hf_buf *out, const struct hf_text_style *style, unsigned depth)
{
	while (depth-- > 0)
		hf_buf_add_text(out, style->unit);
}

int hf_text_add_value(struct hf_buf *out, json_t *value, const struct hf_text_style *style, unsigned depth)
{
	AUTO_FREE char *text = json_dumps(value, JSON_INDENT(1));

	if (!text)
		return -ENOMEM;
	for (const char *line = text; line;) {
		const char *end = strchrnul(line, '\n');
		size_t inner = strspn(line, " ");

		if (line != text) {
			hf_buf_add_text(out, style->eol);
			add_indent(out, style, depth + (unsigned)inner);
			line += inner;
		}
		hf_buf_add(out, line, (size_t)(end - line));
		line = *end ? end + 1 : NULL;
	}
	return out->err;
}

int hf_text_splice(struct hf_buf *text, size_t from, size_t to, const char *bytes, size_t len)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_buf old;

	hf_buf_add(&out, text->s, from);
	hf_buf_add(&out, bytes, len);
	hf_buf_add(&out, text->s + to, text->len - to);
	if (out.err)
		return out.err;
	old = *text;
	*text = out;
	out = old;
	return 0;
}

int hf_text_put_first(struct hf_buf *text, size_t open, const char *key, json_t *value, const struct hf_text_style *style,
		      unsigned depth)
{
	AUTO(hf_buf_done) struct hf_buf in = HF_BUF_INIT;
	struct hf_item item = { 0 };
	int has = hf_item_next(text->s, text->len, open, &item) > 0;
	int r;

	if (has) {
		hf_buf_add_text(&in, style->eol);
		add_indent(&in, style, depth);
	}
	if (key)
		hf_buf_add_format(&in, "\"%s\": ", key);
	r = hf_text_add_value(&in, value, style, depth);
	if (has)
		hf_buf_add_char(&in, ',');
	return r < 0 ? r : hf_text_splice(text, open + 1, open + 1, in.s, in.len);
}

size_t hf_item_begin(const struct hf_item *item)
{
	return item->key_end ? item->key_at : item->at;
}

int hf_text_is_blank(const struct hf_buf *text, size_t from, size_t to)
{
	while (from < to && strchr(" \t\r\n", text->s[from]) && text->s[from])
		from++;
	return from >= to;
}

int hf_text_take_item(struct hf_buf *text, size_t open, const struct hf_item *item)
{
	size_t from = hf_item_begin(item), to = item->end, comma = item->next;
	int is_first = item->after == open + 1, r = 0;

	if (is_first && hf_text_is_blank(text, open + 1, from))
		from = open + 1;
	if (is_first && comma < text->len && text->s[comma] == ',') {
		if (hf_text_is_blank(text, to, comma))
			to = comma + 1;
		else
			r = hf_text_splice(text, comma, comma + 1, "", 0);
	} else if (!is_first && hf_text_is_blank(text, item->after, from)) {
		from = item->after - 1;
	} else if (!is_first) {
		r = hf_text_splice(text, from, to, "", 0);
		from = item->after - 1;
		to = item->after;
	}
	return r < 0 ? r : hf_text_splice(text, from, to, "", 0);
}
