/*
 * lock/etcd/wire/request.h - the bodies of requests to etcd's JSON gateway.
 *
 *     AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT;
 *     struct hf_txn txn;
 *     hf_txn_begin(&txn, &body);
 *     hf_txn_compare(&txn, "CREATE", key, 5);
 *     hf_txn_then(&txn);
 *     hf_txn_put(&txn, key, value, lease);
 *     hf_txn_else(&txn);
 *     hf_txn_range(&txn, &(struct hf_range){ .key = key });
 *     hf_txn_end(&txn);
 *
 * Keys and values go in base64, 64-bit numbers as strings. An error of memory sticks in the buffer.
 */
#ifndef LOCK_ETCD_WIRE_REQUEST_H
#define LOCK_ETCD_WIRE_REQUEST_H

#include <stddef.h>
#include <stdint.h>

#include "hf/base/buf.h"

struct hf_range {
	const char *key;
	const char *end;    /* NULL: the one key */
	int64_t limit;      /* 0: none */
	int64_t max_create; /* 0: none */
	int64_t revision;   /* 0: now */
	int descend;        /* by create revision; else ascending where sorted */
	int sorted;         /* by create revision */
};

/* {"key":…,…}, as in a range request and inside a transaction. */
void hf_buf_add_range(struct hf_buf *b, const struct hf_range *range);

struct hf_txn {
	struct hf_buf *body;
	int n; /* in the list that is being written */
};

void hf_txn_begin(struct hf_txn *txn, struct hf_buf *body);
/* `what`: CREATE or MOD; the revision of `key` is that number. */
void hf_txn_compare(struct hf_txn *txn, const char *what, const char *key, int64_t revision);
/* `key` is there, and its value is before `value` in the order of bytes. */
void hf_txn_compare_less(struct hf_txn *txn, const char *key, const char *value);
/* No key is in [key, end). */
void hf_txn_compare_empty(struct hf_txn *txn, const char *key, const char *end);
void hf_txn_then(struct hf_txn *txn);
void hf_txn_else(struct hf_txn *txn);
void hf_txn_put(struct hf_txn *txn, const char *key, const char *value, int64_t lease);
/* The lease stays what it is. */
void hf_txn_put_again(struct hf_txn *txn, const char *key, const char *value);
void hf_txn_delete(struct hf_txn *txn, const char *key);
void hf_txn_range(struct hf_txn *txn, const struct hf_range *range);
void hf_txn_end(struct hf_txn *txn);

#endif
