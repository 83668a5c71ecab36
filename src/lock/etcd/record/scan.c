/* lock/etcd/record/scan.c - reading all keys of a part, page by page, at one revision. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/etcd/record/scan.h"

#define PAGE 500

void hf_etcd_scan_done(struct hf_etcd_scan *scan)
{
	for (size_t i = 0; i < scan->n; i++)
		free(scan->items[i].text);
	free(scan->items);
	scan->items = NULL;
	scan->n = 0;
}

static int kind_of(const char *word, size_t len)
{
	for (int kind = 0; kind < HF_LOCK_KINDS; kind++) {
		const char *known = hf_lock_kind_word((enum hf_lock_kind)kind);

		if (strlen(known) == len && memcmp(known, word, len) == 0)
			return kind;
	}
	return -1;
}

/* "KIND/KEY[/ID]": what is not of that form was not written by us. */
static int read_item(const struct hf_kv *kv, char part, size_t skip, struct hf_etcd_scan_item *ret)
{
	const char *kind = kv->key.s + skip, *name = strchr(kind, '/'), *end;
	json_t *json;
	int which, len;

	if (kv->key.len <= skip || !name)
		return 0;
	which = kind_of(kind, (size_t)(name - kind));
	end = name + 1 + strcspn(name + 1, "/");
	len = hf_name_unkey(name + 1, (size_t)(end - name - 1), ret->name, NULL);
	if (which < 0 || len < 0 || strlen(ret->name) != (size_t)len)
		return 0;
	ret->kind = (enum hf_lock_kind)which;
	if (part == 'q')
		hf_place_read(kv, &ret->place);
	if (part == 'h')
		return hf_hold_read(kv, &ret->hold) == 0;
	if (part == 'n') {
		json = json_loadb(kv->value.s, kv->value.len, 0, NULL);
		ret->token = (uint64_t)hf_json_number(json, "token");
		ret->slots = (unsigned)hf_json_number(json, "slots");
		ret->mod = kv->mod;
		json_decref(json);
	}
	if (part == 's') {
		ret->text = strdup(kv->value.s ? kv->value.s : "");
		return ret->text != NULL;
	}
	return 1;
}

/* One page, from `from` on, which is moved behind it. How many keys it had. */
static int read_page(struct hf_etcd *etcd, char part, size_t skip, char from[HF_ETCD_KEY_MAX + 1], const char *end,
		     struct hf_etcd_scan *ret, struct hf_err *err)
{
	AUTO(hf_answer_done) struct hf_answer answer = HF_ANSWER_INIT;
	AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT;
	AUTO(hf_kv_done) struct hf_kv kv = HF_KV_INIT;
	struct hf_etcd_scan_item *grown;
	size_t n;
	int r;

	hf_buf_add_range(&body, &(struct hf_range){ .key = from, .end = end, .limit = PAGE, .revision = ret->revision });
	r = hf_etcd_call(etcd, "/v3/kv/range", &body, &answer, err);
	if (r == 0 && answer.code != HF_GRPC_OK)
		r = hf_etcd_refused(&answer, "list", "etcd", err);
	if (r < 0)
		return r;
	if (ret->revision == 0)
		ret->revision = answer.revision;
	n = json_array_size(json_object_get(answer.json, "kvs"));
	grown = realloc(ret->items, (ret->n + n + 1) * sizeof(*grown));
	if (!grown)
		return hf_fail_sys(err, ENOMEM, "memory", "etcd");
	ret->items = grown;
	for (size_t i = 0; i < n; i++) {
		ret->items[ret->n] = (struct hf_etcd_scan_item){ 0 };
		if (!hf_kv_read(answer.json, i, &kv))
			continue;
		ret->n += (size_t)read_item(&kv, part, skip, &ret->items[ret->n]);
		/* The first key behind one is that with the smallest byte more that keys have. */
		(void)snprintf(from, HF_ETCD_KEY_MAX + 1, "%.*s\x01", HF_ETCD_KEY_MAX - 1, kv.key.s);
	}
	return (int)n;
}

int hf_etcd_scan_read(struct hf_etcd *etcd, char part, int kind, struct hf_etcd_scan *ret, struct hf_err *err)
{
	char from[HF_ETCD_KEY_MAX + 1], end[HF_ETCD_KEY_MAX];
	size_t skip = strlen(etcd->config.prefix) + 2;
	int r;

	if (kind < 0) {
		(void)snprintf(from, sizeof(from), "%s%c/", etcd->config.prefix, part);
		(void)snprintf(end, sizeof(end), "%s%c0", etcd->config.prefix, part);
	} else {
		const char *word = hf_lock_kind_word((enum hf_lock_kind)kind);

		(void)snprintf(from, sizeof(from), "%s%c/%s/", etcd->config.prefix, part, word);
		(void)snprintf(end, sizeof(end), "%s%c/%s0", etcd->config.prefix, part, word);
	}
	do {
		r = read_page(etcd, part, skip, from, end, ret, err);
	} while (r == PAGE);
	return r < 0 ? r : 0;
}
