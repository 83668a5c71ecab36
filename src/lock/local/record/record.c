/* lock/local/record/record.c - the bytes of a lock record and of a queue entry. */
#include <errno.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hf/lock/local/record/record.h"
#include "hf/proc/here.h"

#define MAGIC       "HFLOCK2\n"
#define HEADER_SIZE 128
#define PLACE_SIZE  32
#define HOLDER_SIZE 58
#define SUM_AT      8

_Static_assert(HEADER_SIZE + HF_LOCK_PLACES_MAX * PLACE_SIZE + HF_LOCK_SLOTS_MAX * HOLDER_SIZE <=
		       HF_LOCK_RECORD_MAX,
	       "a full record fits in one page");

/* Tokens and sequence numbers stay exact in JSON. */
#define NUMBER_MAX UINT64_C(9007199254740991)

static void put64(uint8_t *at, uint64_t value)
{
	for (int i = 0; i < 8; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

/* Ticks and milliseconds for thousands of years. */
static void put48(uint8_t *at, uint64_t value)
{
	for (int i = 0; i < 6; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

static void put32(uint8_t *at, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get64(const uint8_t *at)
{
	uint64_t value = 0;

	for (int i = 7; i >= 0; i--)
		value = value << 8 | at[i];
	return value;
}

static uint64_t get48(const uint8_t *at)
{
	uint64_t value = 0;

	for (int i = 5; i >= 0; i--)
		value = value << 8 | at[i];
	return value;
}

static uint32_t get32(const uint8_t *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
	       (uint32_t)at[3] << 24;
}

/* A boot id as its 16 bytes, and back. */
static void put_boot(uint8_t out[16], const char boot_id[HF_BOOT_ID_LEN + 1])
{
	size_t n = 0;

	for (size_t i = 0; i < HF_BOOT_ID_LEN; i++) {
		char c = boot_id[i];
		unsigned digit = c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a' + 10);

		if (c == '-')
			continue;
		if (n % 2 == 0)
			out[n / 2] = (uint8_t)(digit << 4);
		else
			out[n / 2] = (uint8_t)(out[n / 2] | digit);
		n++;
	}
}

static void get_boot(const uint8_t in[16], char boot_id[HF_BOOT_ID_LEN + 1])
{
	static const char digits[] = "0123456789abcdef";
	size_t at = 0;

	for (size_t i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			boot_id[at++] = '-';
		boot_id[at++] = digits[in[i] >> 4];
		boot_id[at++] = digits[in[i] & 15];
	}
	boot_id[at] = '\0';
}

static void put_place(uint8_t *at, const struct hf_proc_id *id)
{
	put_boot(at, id->boot_id);
	put64(at + 16, id->pid_ns);
	put64(at + 24, id->time_ns);
}

static void get_place(const uint8_t *at, struct hf_proc_id *id)
{
	get_boot(at, id->boot_id);
	id->pid_ns = get64(at + 16);
	id->time_ns = get64(at + 24);
}

/* pid, thread, pidfs inode, start: 24 bytes; then the place. */
#define PROCESS_SIZE (24 + PLACE_SIZE)

static void put_process(uint8_t *at, const struct hf_proc_id *id, int32_t thread)
{
	put32(at, (uint32_t)id->pid);
	put32(at + 4, (uint32_t)thread);
	put64(at + 8, id->pidfs_inode);
	put64(at + 16, id->start_ticks);
	put_place(at + 24, id);
}

static int get_process(const uint8_t *at, struct hf_proc_id *id, int32_t *thread)
{
	uint32_t pid = get32(at), number = get32(at + 4);

	if (pid < 1 || pid > INT32_MAX || number > INT32_MAX)
		return HF_E_FORMAT;
	id->pid = (int32_t)pid;
	*thread = (int32_t)number;
	id->pidfs_inode = get64(at + 8);
	id->start_ticks = get64(at + 16);
	get_place(at + 24, id);
	return 0;
}

#define GRANT_AT (32 + 2 * PROCESS_SIZE)

_Static_assert(GRANT_AT + 12 <= HF_LOCK_ENTRY_SIZE, "an entry fits");

void hf_lock_entry_encode(const struct hf_lock_entry *entry, uint8_t out[HF_LOCK_ENTRY_SIZE])
{
	memset(out, 0, HF_LOCK_ENTRY_SIZE);
	put64(out + 8, entry->ticket);
	put64(out + 16, (uint64_t)entry->since_ns);
	out[24] = (uint8_t)entry->state;
	out[25] = (uint8_t)entry->mode;
	out[26] = (uint8_t)entry->flags;
	put_process(out + 32, &entry->waiter, entry->waiter_thread);
	put_process(out + 32 + PROCESS_SIZE, &entry->owner, entry->owner_thread);
	put32(out + GRANT_AT, entry->ttl_ms);
	put32(out + GRANT_AT + 4, entry->slots);
	put32(out + GRANT_AT + 8, entry->priority);
	put64(out, XXH3_64bits(out + 8, HF_LOCK_ENTRY_SIZE - 8));
}

uint64_t hf_lock_entry_waiting(const uint8_t bytes[HF_LOCK_ENTRY_SIZE])
{
	return bytes[24] == HF_ENTRY_WAITING ? get64(bytes + 8) : 0;
}

int hf_lock_entry_decode(const uint8_t bytes[HF_LOCK_ENTRY_SIZE], uint64_t ticket,
			 struct hf_lock_entry *ret)
{
	struct hf_lock_entry entry = { 0 };

	if (get64(bytes) != XXH3_64bits(bytes + 8, HF_LOCK_ENTRY_SIZE - 8) ||
	    get64(bytes + 8) != ticket || bytes[24] < HF_ENTRY_WAITING ||
	    bytes[24] > HF_ENTRY_GONE || bytes[25] > HF_LOCK_SLOTS ||
	    bytes[26] > 3 || get32(bytes + GRANT_AT + 4) > HF_LOCK_SLOTS_MAX ||
	    get32(bytes + GRANT_AT + 8) > HF_LOCK_PRIORITY_MAX)
		return HF_E_FORMAT;
	entry.ticket = ticket;
	entry.since_ns = (int64_t)get64(bytes + 16);
	entry.state = (enum hf_lock_entry_state)bytes[24];
	entry.mode = (enum hf_lock_mode)bytes[25];
	entry.flags = bytes[26];
	entry.ttl_ms = get32(bytes + GRANT_AT);
	entry.slots = get32(bytes + GRANT_AT + 4);
	entry.priority = get32(bytes + GRANT_AT + 8);
	if (get_process(bytes + 32, &entry.waiter, &entry.waiter_thread) < 0 ||
	    get_process(bytes + 32 + PROCESS_SIZE, &entry.owner, &entry.owner_thread) < 0)
		return HF_E_FORMAT;
	*ret = entry;
	return 0;
}

/* The place's index, added if it is new; -1 when there is no room. */
static int find_place(uint8_t *places, uint32_t *n, const struct hf_proc_id *id)
{
	uint8_t place[PLACE_SIZE];

	put_place(place, id);
	for (uint32_t i = 0; i < *n; i++)
		if (memcmp(places + i * PLACE_SIZE, place, PLACE_SIZE) == 0)
			return (int)i;
	if (*n == HF_LOCK_PLACES_MAX)
		return -1;
	memcpy(places + *n * PLACE_SIZE, place, PLACE_SIZE);
	return (int)(*n)++;
}

static void put_holder(uint8_t *at, const struct hf_lock_holder *h, int place)
{
	put32(at, (uint32_t)h->id.pid);
	put32(at + 4, (uint32_t)h->thread);
	at[8] = (uint8_t)place;
	at[9] = (uint8_t)h->flags;
	at[10] = (uint8_t)h->count;
	at[11] = (uint8_t)(h->count >> 8);
	put32(at + 12, h->ttl_ms);
	put64(at + 16, h->id.pidfs_inode);
	put48(at + 24, h->id.start_ticks);
	put48(at + 30, (uint64_t)(h->lease_end_ns / HF_MSEC));
	put48(at + 36, h->since_ms > 0 ? (uint64_t)h->since_ms : 0);
	put64(at + 42, h->token);
	put64(at + 50, h->ticket);
}

int hf_lock_record_encode(const struct hf_lock_record *record, uint8_t out[HF_LOCK_RECORD_MAX])
{
	uint8_t places[HF_LOCK_PLACES_MAX * PLACE_SIZE];
	uint8_t index[HF_LOCK_SLOTS_MAX];
	uint32_t n_places = 0;
	uint8_t *at;
	size_t len;
	int front;

	for (uint32_t i = 0; i < record->n_holders; i++) {
		int place = find_place(places, &n_places, &record->holders[i].id);

		if (place < 0)
			return -E2BIG;
		index[i] = (uint8_t)place;
	}
	len = HEADER_SIZE + n_places * PLACE_SIZE + record->n_holders * HOLDER_SIZE;
	front = record->has_front && record->front.ticket == record->first &&
		record->first < record->next && len + HF_LOCK_ENTRY_SIZE <= HF_LOCK_RECORD_MAX;
	len += front ? HF_LOCK_ENTRY_SIZE : 0;
	memset(out, 0, HEADER_SIZE);
	memcpy(out, MAGIC, 8);
	put64(out + 16, len);
	put64(out + 24, record->token);
	put64(out + 32, record->first);
	put64(out + 40, record->next);
	put32(out + 48, record->slots);
	put32(out + 52, n_places);
	put32(out + 56, record->n_holders);
	put32(out + 60, (uint32_t)front);
	put32(out + 64, (uint32_t)record->ranked);
	memcpy(out + HEADER_SIZE, places, n_places * PLACE_SIZE);
	at = out + HEADER_SIZE + n_places * PLACE_SIZE;
	for (uint32_t i = 0; i < record->n_holders; i++, at += HOLDER_SIZE)
		put_holder(at, &record->holders[i], index[i]);
	if (front)
		hf_lock_entry_encode(&record->front, at);
	put64(out + SUM_AT, XXH3_64bits(out + 16, len - 16));
	return (int)len;
}

static const char *decode_holder(const uint8_t *at, const uint8_t *places, uint32_t n_places,
				 struct hf_lock_holder *h)
{
	uint32_t pid = get32(at), thread = get32(at + 4);

	if (at[8] >= n_places)
		return "a holder names a place that is not there";
	get_place(places + at[8] * PLACE_SIZE, &h->id);
	if (pid < 1 || pid > INT32_MAX || thread > INT32_MAX)
		return "a holder's pid is not one";
	h->id.pid = (int32_t)pid;
	h->thread = (int32_t)thread;
	h->flags = at[9];
	h->count = (unsigned)at[10] | (unsigned)at[11] << 8;
	h->ttl_ms = get32(at + 12);
	h->id.pidfs_inode = get64(at + 16);
	h->id.start_ticks = get48(at + 24);
	h->since_ms = (int64_t)get48(at + 36);
	h->token = get64(at + 42);
	h->ticket = get64(at + 50);
	if (h->count < 1 || h->flags > 7 || get48(at + 30) > INT64_MAX / HF_MSEC)
		return "a holder's fields are out of range";
	h->lease_end_ns = (int64_t)get48(at + 30) * HF_MSEC;
	return NULL;
}

/* One hold of two owners, with one token: this one and the one before it. */
static int is_second_owner(const struct hf_lock_record *r, uint32_t i)
{
	return i > 0 && r->holders[i - 1].token == r->holders[i].token &&
	       !(r->holders[i - 1].flags & HF_HOLDER_JOINT) && r->holders[i].flags & HF_HOLDER_JOINT;
}

uint32_t hf_record_holds(const struct hf_lock_record *r)
{
	uint32_t holds = 0;

	for (uint32_t i = 0; i < r->n_holders; i++)
		holds += !is_second_owner(r, i);
	return holds;
}

static const char *check_sense(const struct hf_lock_record *r)
{
	uint32_t holds;

	/* The last number itself is refused: there would be no next token to give. */
	if (r->token >= NUMBER_MAX || r->first > r->next || r->next > NUMBER_MAX ||
	    r->slots > HF_LOCK_SLOTS_MAX)
		return "a number is out of range";
	holds = hf_record_holds(r);
	if (r->slots > 0 && holds > r->slots)
		return "more holders than slots";
	for (uint32_t i = 0; i < r->n_holders; i++) {
		const struct hf_lock_holder *h = &r->holders[i];

		if (h->token == 0 || h->token > r->token)
			return "a holder's token was never given";
		if (h->flags & HF_HOLDER_JOINT && h->flags & HF_HOLDER_SHARED)
			return "a shared hold has one owner";
		for (uint32_t k = 0; k < i; k++)
			if (r->holders[k].token == h->token && !(k + 1 == i && is_second_owner(r, i)))
				return "two holders have one token";
		if (r->slots == 0 && holds > 1 && !(h->flags & HF_HOLDER_SHARED))
			return "an exclusive holder is not alone";
	}
	return NULL;
}

int hf_lock_record_decode(const uint8_t *bytes, size_t len, struct hf_lock_record *ret,
			  const char **ret_why)
{
	struct hf_lock_record *record = ret;
	uint32_t n_places, n_front;
	const uint8_t *at;

	*ret_why = NULL;
	if (len < HEADER_SIZE || len > HF_LOCK_RECORD_MAX || memcmp(bytes, MAGIC, 8) != 0)
		*ret_why = "not a lock record";
	else if (get64(bytes + 16) > len || get64(bytes + 16) < HEADER_SIZE)
		*ret_why = "truncated";
	else if (get64(bytes + SUM_AT) != XXH3_64bits(bytes + 16, get64(bytes + 16) - 16))
		*ret_why = "its checksum is wrong";
	if (*ret_why)
		return HF_E_FORMAT;
	len = get64(bytes + 16);
	record->token = get64(bytes + 24);
	record->first = get64(bytes + 32);
	record->next = get64(bytes + 40);
	record->slots = get32(bytes + 48);
	n_places = get32(bytes + 52);
	record->n_holders = get32(bytes + 56);
	n_front = get32(bytes + 60);
	record->has_front = n_front > 0;
	record->ranked = get32(bytes + 64) != 0;
	if (n_places > HF_LOCK_PLACES_MAX || record->n_holders > HF_LOCK_SLOTS_MAX || n_front > 1 ||
	    len != HEADER_SIZE + n_places * PLACE_SIZE + record->n_holders * HOLDER_SIZE +
			    n_front * HF_LOCK_ENTRY_SIZE) {
		*ret_why = "its counts do not fit its size";
		return HF_E_FORMAT;
	}
	at = bytes + HEADER_SIZE + n_places * PLACE_SIZE;
	for (uint32_t i = 0; i < record->n_holders && !*ret_why; i++, at += HOLDER_SIZE)
		*ret_why = decode_holder(at, bytes + HEADER_SIZE, n_places, &record->holders[i]);
	if (!*ret_why && n_front > 0 &&
	    (hf_lock_entry_decode(at, record->first, &record->front) < 0 ||
	     record->front.state != HF_ENTRY_WAITING || record->first >= record->next))
		*ret_why = "its first waiter does not wait";
	if (!*ret_why)
		*ret_why = check_sense(record);
	return *ret_why ? HF_E_FORMAT : 0;
}
