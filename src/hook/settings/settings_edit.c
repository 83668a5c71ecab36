/* hook/settings/settings_edit.c - putting our hooks into a text, and taking them out again. */
#include <errno.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/hook/settings/settings.h"
#include "hf/hook/settings/settings_text.h"
#include "hf/hook/settings/spans.h"

#define TAKEN_MAX 1000 /* Holdfast handlers in one text; each is found from the beginning again */

static int bad(const char *path, const char *why, struct hf_err *err)
{
	return FAIL(err, HF_E_FORMAT, "settings", path, "%s", why);
}

static int no_memory(const char *path, struct hf_err *err)
{
	return hf_fail_sys(err, ENOMEM, "edit", path);
}

static void free_json(json_t **value)
{
	json_decref(*value);
}

/* -- finding ours ------------------------------------------------------------------------------ */

/* Where a handler stands: its container and itself at each level, from the outermost. */
struct place {
	size_t open[4];
	struct hf_item item[4];
	int depth; /* of the handler: 2 in a list of handlers, 3 in a group */
};

static size_t root_of(const struct hf_buf *text)
{
	size_t bom = text->len >= 3 && memcmp(text->s, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

	return hf_span_skip(text->s, text->len, bom);
}

static json_t *load(const struct hf_buf *text, size_t from, size_t to)
{
	AUTO(hf_buf_done) struct hf_buf plain = HF_BUF_INIT;

	(void)hf_settings_strip(text->s + from, to - from, HF_STRIP_COMMENTS, &plain);
	return plain.err ? NULL : json_loadb(plain.s, plain.len, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
}

typedef int handler_fn(void *arg, const struct place *place, json_t *handler);

static int visit(const struct hf_buf *text, struct place *place, int depth, handler_fn *fn, void *arg)
{
	AUTO(free_json) json_t *handler = load(text, place->item[depth].at, place->item[depth].end);

	place->depth = depth;
	return handler && hf_settings_is_ours(handler) ? fn(arg, place, handler) : 0;
}

/* A group, or a handler that stands in the event's list itself. */
static int visit_entry(const struct hf_buf *text, struct place *place, handler_fn *fn, void *arg)
{
	size_t open = place->item[2].at;
	struct hf_item list;
	int r = 0;

	if (text->s[open] != '{')
		return 0;
	if (hf_item_find(text->s, text->len, open, "hooks", &list) <= 0)
		return visit(text, place, 2, fn, arg);
	if (text->s[list.at] != '[')
		return 0;
	place->open[3] = list.at;
	place->item[3] = (struct hf_item){ 0 };
	while (r == 0 && hf_item_next(text->s, text->len, list.at, &place->item[3]) > 0)
		r = visit(text, place, 3, fn, arg);
	return r;
}

/* Calls `fn` for each Holdfast handler until it returns more than 0. HF_E_FORMAT: it is written in no way that we edit. */
static int each_handler(const struct hf_buf *text, handler_fn *fn, void *arg, const char *path, struct hf_err *err)
{
	struct place place = { 0 };
	int r;

	place.open[0] = root_of(text);
	if (place.open[0] >= text->len || text->s[place.open[0]] != '{')
		return bad(path, "it is not an object", err);
	r = hf_item_find(text->s, text->len, place.open[0], "hooks", &place.item[0]);
	if (r <= 0)
		return r < 0 ? bad(path, "it has \"hooks\" twice", err) : 0;
	place.open[1] = place.item[0].at;
	if (text->s[place.open[1]] != '{')
		return bad(path, "its \"hooks\" are not an object", err);
	for (r = 0; r == 0 && hf_item_next(text->s, text->len, place.open[1], &place.item[1]) > 0;) {
		place.open[2] = place.item[1].at;
		if (text->s[place.open[2]] != '[')
			continue;
		place.item[2] = (struct hf_item){ 0 };
		while (r == 0 && hf_item_next(text->s, text->len, place.open[2], &place.item[2]) > 0)
			r = visit_entry(text, &place, fn, arg);
	}
	return r;
}

/* -- out ------------------------------------------------------------------------------------------ */

/* Is that all its container has? */
static int is_only(const struct hf_buf *text, size_t open, const struct hf_item *item)
{
	return item->after == open + 1 && hf_text_is_blank(text, open + 1, hf_item_begin(item)) && item->next < text->len &&
	       text->s[item->next] != ',' && hf_text_is_blank(text, item->end, item->next);
}

static int begins_line(const struct hf_buf *text, size_t open)
{
	return text->s[open + 1] == '\n' || text->s[open + 1] == '\r';
}

static int first_place(void *arg, const struct place *place, json_t *handler)
{
	(void)handler;
	*(struct place *)arg = *place;
	return 1;
}

/* Is nothing left? Copilot's file is ours alone, and says its version. */
static int is_empty(enum hf_client client, const struct hf_buf *text)
{
	size_t root = root_of(text), close;
	struct hf_item item = { 0 };

	if (hf_item_next(text->s, text->len, root, &item) > 0)
		return client == HF_CLIENT_COPILOT && hf_item_is(text->s, &item, "version") && is_only(text, root, &item) &&
		       hf_text_is_blank(text, item.next + 1, text->len);
	close = hf_span_skip(text->s, text->len, root + 1);
	return hf_text_is_blank(text, root + 1, close) && hf_text_is_blank(text, close + 1, text->len);
}

int hf_settings_take(enum hf_client client, struct hf_buf *text, int *ret_empty, const char *path, struct hf_err *err)
{
	struct place place = { 0 };
	int r, made = 0, n = 0;

	*ret_empty = 0;
	while ((r = each_handler(text, first_place, &place, path, err)) > 0) {
		int level = place.depth;

		if (++n > TAKEN_MAX)
			return bad(path, "it has too many Holdfast hooks", err);
		/* A group without handlers is none; the rest goes if it was made for our hooks. */
		if (level == 3 && is_only(text, place.open[3], &place.item[3]))
			level = 2;
		while (level > 0 && level < 3 && is_only(text, place.open[level], &place.item[level]) &&
		       begins_line(text, place.open[level]))
			level--;
		made = level == 0 && begins_line(text, place.open[0]);
		if (hf_text_take_item(text, place.open[level], &place.item[level]) < 0)
			return no_memory(path, err);
	}
	*ret_empty = r == 0 && made && is_empty(client, text);
	return r < 0 ? r : n;
}

/* -- in -------------------------------------------------------------------------------------------- */

/* What stands in an event's list. */
static json_t *entries_of(enum hf_client client, json_t *handlers)
{
	return hf_settings_has_groups(client) ? json_pack("[{sO}]", "hooks", handlers) : json_incref(handlers);
}

int hf_settings_make(const struct hf_settings_want *want, struct hf_buf *out, struct hf_err *err)
{
	const struct hf_text_style style = { "  ", "\n" };
	AUTO(free_json) json_t *events = hf_settings_handlers(want);
	AUTO(free_json) json_t *hooks = json_object();
	AUTO(free_json) json_t *root = NULL;
	const char *event;
	json_t *handlers;
	int r = events && hooks ? 0 : -ENOMEM;

	json_object_foreach(events, event, handlers)
		if (json_object_set_new(hooks, event, entries_of(want->client, handlers)) < 0)
			r = -ENOMEM;
	root = want->client == HF_CLIENT_COPILOT ? json_pack("{si sO}", "version", 1, "hooks", hooks)
						 : json_pack("{sO}", "hooks", hooks);
	if (r == 0)
		r = root ? hf_text_add_value(out, root, &style, 0) : -ENOMEM;
	hf_buf_add_text(out, style.eol);
	return r < 0 || out->err ? no_memory("settings", err) : 0;
}

static int put_event(const struct hf_settings_want *want, struct hf_buf *text, const char *event, json_t *handlers,
		     const struct hf_text_style *style, const char *path, struct hf_err *err)
{
	AUTO(free_json) json_t *entries = entries_of(want->client, handlers);
	AUTO(free_json) json_t *hooks = json_pack("{sO}", event, entries);
	size_t root = root_of(text), i;
	struct hf_item member;
	json_t *entry;
	int r;

	if (!entries || !hooks)
		return no_memory(path, err);
	r = hf_item_find(text->s, text->len, root, "hooks", &member);
	if (r == 0)
		return hf_text_put_first(text, root, "hooks", hooks, style, 1);
	if (r < 0 || text->s[member.at] != '{')
		return bad(path, r < 0 ? "it has \"hooks\" twice" : "its \"hooks\" are not an object", err);
	root = member.at;
	r = hf_item_find(text->s, text->len, root, event, &member);
	if (r == 0)
		return hf_text_put_first(text, root, event, entries, style, 2);
	if (r < 0 || text->s[member.at] != '[')
		return bad(path, r < 0 ? "it has an event twice in its hooks" : "an event in its hooks is not a list", err);
	for (i = json_array_size(entries), r = 0; r == 0 && i-- > 0;) {
		entry = json_array_get(entries, i);
		r = hf_text_put_first(text, member.at, NULL, entry, style, 3);
	}
	return r;
}

int hf_settings_put(const struct hf_settings_want *want, struct hf_buf *text, const char *path, struct hf_err *err)
{
	AUTO(free_json) json_t *events = hf_settings_handlers(want);
	const char *names[16], *event;
	json_t *handlers;
	struct hf_text_style style;
	int same, empty = 0, r, n = 0;

	if (!events)
		return no_memory(path, err);
	r = hf_settings_count(want, text, &same, path, err);
	if (r < 0 || same)
		return r < 0 ? r : 0;
	if (r > 0)
		r = hf_settings_take(want->client, text, &empty, path, err);
	if (r < 0)
		return r;
	if (empty) {
		hf_buf_reset(text);
		return hf_settings_make(want, text, err) < 0 ? -ENOMEM : 1;
	}
	style = hf_text_style_of(text, root_of(text));
	json_object_foreach(events, event, handlers)
		names[n++] = event;
	/* Each goes to the beginning: the last one first. */
	while (n-- > 0) {
		r = put_event(want, text, names[n], json_object_get(events, names[n]), &style, path, err);
		if (r < 0)
			return r == -ENOMEM ? no_memory(path, err) : r;
	}
	return 1;
}

/* -- looking ---------------------------------------------------------------------------------------- */

struct count {
	const struct hf_buf *text;
	json_t *left; /* what is wanted and was not seen */
	int n, others;
};

static int count_handler(void *arg, const struct place *place, json_t *handler)
{
	struct count *count = arg;
	json_t *event = load(count->text, place->item[1].key_at, place->item[1].key_end);
	json_t *list = json_object_get(count->left, event ? json_string_value(event) : "");
	int found = 0;

	count->n++;
	for (size_t i = 0; i < json_array_size(list) && !found; i++)
		found = json_equal(json_array_get(list, i), handler) && json_array_remove(list, i) == 0;
	count->others += !found;
	json_decref(event);
	return 0;
}

int hf_settings_count(const struct hf_settings_want *want, const struct hf_buf *text, int *ret_same,
		      const char *path, struct hf_err *err)
{
	AUTO(free_json) json_t *left = hf_settings_handlers(want);
	struct count count = { .text = text, .left = left };
	const char *event;
	json_t *list;
	int r;

	if (!left)
		return no_memory(path, err);
	r = each_handler(text, count_handler, &count, path, err);
	if (r < 0)
		return r;
	json_object_foreach(left, event, list)
		count.others += (int)json_array_size(list);
	*ret_same = count.others == 0;
	return count.n;
}
