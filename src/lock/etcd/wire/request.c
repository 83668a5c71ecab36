/* lock/etcd/wire/request.c - writing requests: ranges, transactions. */
#include <string.h>

#include "hf/lock/etcd/wire/request.h"

static void add_bytes(struct hf_buf *b, const char *key, const char *text)
{
	hf_buf_add_format(b, "\"%s\":\"", key);
	hf_buf_add_base64(b, text, strlen(text));
	hf_buf_add_char(b, '"');
}

static void add_number(struct hf_buf *b, const char *key, int64_t number)
{
	if (number != 0)
		hf_buf_add_format(b, ",\"%s\":\"%lld\"", key, (long long)number);
}

void hf_buf_add_range(struct hf_buf *b, const struct hf_range *range)
{
	hf_buf_add_char(b, '{');
	add_bytes(b, "key", range->key);
	if (range->end) {
		hf_buf_add_char(b, ',');
		add_bytes(b, "range_end", range->end);
	}
	add_number(b, "limit", range->limit);
	add_number(b, "revision", range->revision);
	add_number(b, "max_create_revision", range->max_create);
	if (range->sorted || range->descend)
		hf_buf_add_format(b, ",\"sort_target\":\"CREATE\",\"sort_order\":\"%s\"",
				  range->descend ? "DESCEND" : "ASCEND");
	hf_buf_add_char(b, '}');
}

/* The comma before an element that is not the first. */
static struct hf_buf *next(struct hf_txn *txn)
{
	if (txn->n++ > 0)
		hf_buf_add_char(txn->body, ',');
	return txn->body;
}

void hf_txn_begin(struct hf_txn *txn, struct hf_buf *body)
{
	*txn = (struct hf_txn){ .body = body };
	hf_buf_add_text(body, "{\"compare\":[");
}

void hf_txn_compare(struct hf_txn *txn, const char *what, const char *key, int64_t revision)
{
	struct hf_buf *b = next(txn);

	hf_buf_add_format(b, "{\"target\":\"%s\",", what);
	add_bytes(b, "key", key);
	hf_buf_add_format(b, ",\"%s\":\"%lld\"}", strcmp(what, "MOD") == 0 ? "mod_revision" : "create_revision",
			  (long long)revision);
}

void hf_txn_compare_less(struct hf_txn *txn, const char *key, const char *value)
{
	struct hf_buf *b = next(txn);

	hf_buf_add_text(b, "{\"target\":\"VALUE\",\"result\":\"LESS\",");
	add_bytes(b, "key", key);
	hf_buf_add_char(b, ',');
	add_bytes(b, "value", value);
	hf_buf_add_char(b, '}');
}

void hf_txn_compare_empty(struct hf_txn *txn, const char *key, const char *end)
{
	struct hf_buf *b = next(txn);

	hf_buf_add_text(b, "{\"target\":\"CREATE\",");
	add_bytes(b, "key", key);
	hf_buf_add_char(b, ',');
	add_bytes(b, "range_end", end);
	hf_buf_add_text(b, ",\"create_revision\":\"0\"}");
}

void hf_txn_then(struct hf_txn *txn)
{
	hf_buf_add_text(txn->body, "],\"success\":[");
	txn->n = 0;
}

void hf_txn_else(struct hf_txn *txn)
{
	hf_buf_add_text(txn->body, "],\"failure\":[");
	txn->n = 0;
}

static void add_put(struct hf_txn *txn, const char *key, const char *value)
{
	struct hf_buf *b = next(txn);

	hf_buf_add_text(b, "{\"request_put\":{");
	add_bytes(b, "key", key);
	hf_buf_add_char(b, ',');
	add_bytes(b, "value", value);
}

void hf_txn_put(struct hf_txn *txn, const char *key, const char *value, int64_t lease)
{
	add_put(txn, key, value);
	add_number(txn->body, "lease", lease);
	hf_buf_add_text(txn->body, "}}");
}

void hf_txn_put_again(struct hf_txn *txn, const char *key, const char *value)
{
	add_put(txn, key, value);
	hf_buf_add_text(txn->body, ",\"ignore_lease\":true}}");
}

void hf_txn_delete(struct hf_txn *txn, const char *key)
{
	struct hf_buf *b = next(txn);

	hf_buf_add_text(b, "{\"request_delete_range\":{");
	add_bytes(b, "key", key);
	hf_buf_add_text(b, "}}");
}

void hf_txn_range(struct hf_txn *txn, const struct hf_range *range)
{
	struct hf_buf *b = next(txn);

	hf_buf_add_text(b, "{\"request_range\":");
	hf_buf_add_range(b, range);
	hf_buf_add_char(b, '}');
}

void hf_txn_end(struct hf_txn *txn)
{
	hf_buf_add_text(txn->body, "]}");
}
