/* lock/etcd/record/scan.h - all locks at one revision. */
#ifndef LOCK_ETCD_RECORD_SCAN_H
#define LOCK_ETCD_RECORD_SCAN_H

#include "hf/lock/etcd/record/record.h"

/* One key of those below q/, h/, n/ or s/, with the lock that it belongs to. */
struct hf_etcd_scan_item {
	enum hf_lock_kind kind;
	char name[HF_NAME_MAX + 1];
	struct hf_place place;    /* q */
	struct hf_etcd_hold hold; /* h */
	uint64_t token;           /* n */
	unsigned slots;           /* n */
	int64_t mod;              /* n */
	char *text;               /* s */
};

struct hf_etcd_scan {
	struct hf_etcd_scan_item *items;
	size_t n;
	int64_t revision; /* of the first page; the others are read at the same */
};

void hf_etcd_scan_done(struct hf_etcd_scan *scan);

/* Reads the keys of `part` ('q', 'h', 'n' or 's'), of one kind or (-1) of all, at scan->revision (0: now). */
int hf_etcd_scan_read(struct hf_etcd *etcd, char part, int kind, struct hf_etcd_scan *ret, struct hf_err *err);

#endif
