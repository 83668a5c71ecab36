/*
 * tests/fuzz/fuzz_lock.c - any bytes as a lock record or as an entry of the queue.
 *
 * The first byte selects: bit 0, record or entry; bit 1, magic, length and checksum are put
 * right first, because no fuzzer finds them by trying.
 */
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "fuzz.h"
#include "hf/lock/local/record/record.h"

static void put64(uint8_t *at, uint64_t value)
{
	for (int i = 0; i < 8; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

static void id_is_one(const struct hf_proc_id *id)
{
	MUST(id->pid > 0 && strlen(id->boot_id) == HF_BOOT_ID_LEN);
}

/* What the lock's code relies on without asking again. */
static void record_makes_sense(const struct hf_lock_record *r)
{
	MUST(r->n_holders <= HF_LOCK_SLOTS_MAX && r->slots <= HF_LOCK_SLOTS_MAX);
	MUST(r->first <= r->next && r->token < UINT64_C(1) << 53);
	MUST(r->slots == 0 || hf_record_holds(r) <= r->slots);
	if (r->has_front) {
		MUST(r->front.ticket == r->first && r->first < r->next);
		MUST(r->front.state == HF_ENTRY_WAITING);
		id_is_one(&r->front.waiter);
		id_is_one(&r->front.owner);
	}
	for (uint32_t i = 0; i < r->n_holders; i++) {
		const struct hf_lock_holder *h = &r->holders[i];

		id_is_one(&h->id);
		MUST(h->thread >= 0 && h->count >= 1 && h->flags <= 7 && h->lease_end_ns >= 0);
		MUST(h->token > 0 && h->token <= r->token);
		MUST(r->slots > 0 || hf_record_holds(r) == 1 || h->flags & HF_HOLDER_SHARED);
		for (uint32_t k = 0; k < i; k++)
			MUST(r->holders[k].token != h->token || (k + 1 == i && h->flags & HF_HOLDER_JOINT));
	}
}

static void decode_record(const uint8_t *bytes, size_t len)
{
	static struct hf_lock_record record, again;
	uint8_t out[HF_LOCK_RECORD_MAX], twice[HF_LOCK_RECORD_MAX];
	const char *why = NULL;
	int n, r = hf_lock_record_decode(bytes, len, &record, &why);

	MUST(r == 0 ? !why : r == HF_E_FORMAT && why);
	if (r < 0)
		return;
	record_makes_sense(&record);
	/* Unused places and reserved bytes are dropped; from then on the bytes are fixed. */
	n = hf_lock_record_encode(&record, out);
	MUST(n > 0 && (size_t)n <= len);
	MUST(hf_lock_record_decode(out, (size_t)n, &again, &why) == 0);
	MUST(hf_lock_record_encode(&again, twice) == n && memcmp(out, twice, (size_t)n) == 0);
	MUST(again.token == record.token && again.n_holders == record.n_holders);
	MUST(again.has_front == record.has_front);
}

static void decode_entry(const uint8_t *bytes)
{
	uint8_t out[HF_LOCK_ENTRY_SIZE];
	struct hf_lock_entry entry = { .slots = 77 }, again;
	uint64_t ticket = 0;

	for (int i = 7; i >= 0; i--)
		ticket = ticket << 8 | bytes[8 + i];
	if (hf_lock_entry_decode(bytes, ticket, &entry) < 0) {
		MUST(entry.slots == 77);
		return;
	}
	MUST(hf_lock_entry_decode(bytes, ticket + 1, &again) == HF_E_FORMAT);
	id_is_one(&entry.waiter);
	id_is_one(&entry.owner);
	MUST(entry.state == HF_ENTRY_WAITING || entry.state == HF_ENTRY_GONE);
	MUST((unsigned)entry.mode <= HF_LOCK_SLOTS && entry.slots <= HF_LOCK_SLOTS_MAX);
	MUST(entry.flags <= 3 && entry.waiter_thread >= 0 && entry.owner_thread >= 0);
	hf_lock_entry_encode(&entry, out);
	MUST(hf_lock_entry_decode(out, ticket, &again) == 0);
	MUST(again.ticket == ticket && again.since_ns == entry.since_ns);
}

static void fuzz_record(const uint8_t *data, size_t size, int put_right)
{
	/* Of exactly that size, so that a sanitizer sees a step beyond it. */
	uint8_t *bytes = malloc(size ? size : 1);

	MUST(bytes);
	memcpy(bytes, data, size);
	if (put_right && size >= 128 && size <= HF_LOCK_RECORD_MAX) {
		memcpy(bytes, "HFLOCK2\n", 8);
		put64(bytes + 16, size);
		/* The entry of the first waiter has a checksum of its own. */
		if (bytes[60] && size >= 128 + HF_LOCK_ENTRY_SIZE)
			put64(bytes + size - HF_LOCK_ENTRY_SIZE,
			      XXH3_64bits(bytes + size - HF_LOCK_ENTRY_SIZE + 8,
					  HF_LOCK_ENTRY_SIZE - 8));
		put64(bytes + 8, XXH3_64bits(bytes + 16, size - 16));
	}
	decode_record(bytes, size);
	free(bytes);
}

static void fuzz_entry(const uint8_t *data, size_t size, int put_right)
{
	uint8_t bytes[HF_LOCK_ENTRY_SIZE] = { 0 };

	memcpy(bytes, data, size < sizeof(bytes) ? size : sizeof(bytes));
	if (put_right)
		put64(bytes, XXH3_64bits(bytes + 8, sizeof(bytes) - 8));
	decode_entry(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	if (data[0] & 1)
		fuzz_entry(data + 1, size - 1, data[0] & 2);
	else
		fuzz_record(data + 1, size - 1, data[0] & 2);
	return 0;
}
