/* unit/lock/test_lock_record.c - the bytes of a lock record and of a queue entry. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "helper/test.h"
#include "hf/lock/local/record/record.h"

#define ROUNDS 2000

/* Seeded, so that a failure comes again. */
static uint64_t seed;

static uint64_t random64(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static uint64_t below(uint64_t limit)
{
	return random64() % limit;
}

static void random_id(struct hf_proc_id *id, unsigned place)
{
	memset(id, 0, sizeof(*id));
	id->pid = (int32_t)(1 + below(INT32_MAX));
	id->pidfs_inode = below(4) ? random64() : 0;
	id->start_ticks = random64();
	/* Places differ in one part each. */
	id->pid_ns = 4026531836U + (place % 3 == 0 ? place : 0);
	id->time_ns = place % 3 == 1 ? place : 0;
	snprintf(id->boot_id, sizeof(id->boot_id), "%08x-0123-4567-89ab-cdef01234567",
		 place % 3 == 2 ? place : 0);
}

static void random_entry(struct hf_lock_entry *entry)
{
	memset(entry, 0, sizeof(*entry));
	entry->state = below(2) ? HF_ENTRY_WAITING : HF_ENTRY_GONE;
	entry->ticket = random64();
	entry->mode = (enum hf_lock_mode)below(3);
	random_id(&entry->waiter, (unsigned)below(20));
	random_id(&entry->owner, (unsigned)below(20));
	entry->waiter_thread = (int32_t)below(INT32_MAX);
	entry->owner_thread = (int32_t)below(INT32_MAX);
	entry->since_ns = (int64_t)(random64() >> 1);
	entry->flags = (unsigned)below(4);
	entry->ttl_ms = (uint32_t)random64();
	entry->slots = (uint32_t)below(HF_LOCK_SLOTS_MAX + 1);
}

static void random_record(struct hf_lock_record *record, uint32_t n, unsigned places)
{
	memset(record, 0, sizeof(*record));
	record->token = 1000 + below(UINT64_C(1) << 50);
	record->first = below(1000);
	record->next = record->first + below(1000);
	record->slots = n > 1 || below(2) ? HF_LOCK_SLOTS_MAX : 0;
	record->n_holders = n;
	for (uint32_t i = 0; i < n; i++) {
		struct hf_lock_holder *h = &record->holders[i];

		random_id(&h->id, i % places);
		h->id.start_ticks &= HF_LOCK_START_MAX;
		h->thread = (int32_t)below(INT32_MAX);
		h->flags = (unsigned)below(4);
		h->count = (unsigned)(1 + below(UINT16_MAX));
		h->ttl_ms = (uint32_t)random64();
		h->lease_end_ns = (int64_t)below(INT64_MAX / HF_MSEC) * HF_MSEC;
		h->since_ms = (int64_t)below(UINT64_C(1) << 48);
		h->token = record->token - i;
		h->ticket = random64();
	}
	record->has_front = record->first < record->next && below(2);
	if (record->has_front) {
		random_entry(&record->front);
		record->front.ticket = record->first;
		record->front.state = HF_ENTRY_WAITING;
	}
}

static void assert_same_id(const struct hf_proc_id *a, const struct hf_proc_id *b)
{
	assert_int_equal(a->pid, b->pid);
	assert_true(a->pidfs_inode == b->pidfs_inode && a->start_ticks == b->start_ticks);
	assert_true(a->time_ns == b->time_ns && a->pid_ns == b->pid_ns);
	assert_string_equal(a->boot_id, b->boot_id);
}

static void assert_same_holder(const struct hf_lock_holder *a, const struct hf_lock_holder *b)
{
	assert_same_id(&a->id, &b->id);
	assert_true(a->thread == b->thread && a->flags == b->flags && a->count == b->count);
	assert_true(a->ttl_ms == b->ttl_ms && a->lease_end_ns == b->lease_end_ns && a->since_ms == b->since_ms);
	assert_true(a->token == b->token && a->ticket == b->ticket);
}

static void round_trip(const struct hf_lock_record *record)
{
	static struct hf_lock_record again;
	uint8_t bytes[HF_LOCK_RECORD_MAX], twice[HF_LOCK_RECORD_MAX];
	const char *why = NULL;
	int n = hf_lock_record_encode(record, bytes);

	assert_in_range(n, 128, HF_LOCK_RECORD_MAX);
	memset(&again, 0xa5, sizeof(again));
	if (hf_lock_record_decode(bytes, (size_t)n, &again, &why) < 0) {
		print_error("%s\n", why);
		fail();
	}
	assert_true(again.token == record->token && again.first == record->first);
	assert_true(again.next == record->next && again.slots == record->slots);
	assert_int_equal(again.n_holders, record->n_holders);
	for (uint32_t i = 0; i < record->n_holders; i++)
		assert_same_holder(&again.holders[i], &record->holders[i]);
	/* The first waiter's entry is there if it fits. */
	assert_true(record->has_front ? again.has_front || n + HF_LOCK_ENTRY_SIZE > HF_LOCK_RECORD_MAX
				      : !again.has_front);
	if (again.has_front) {
		assert_same_id(&again.front.owner, &record->front.owner);
		assert_same_id(&again.front.waiter, &record->front.waiter);
		assert_true(again.front.ticket == record->first);
	}
	assert_int_equal(hf_lock_record_encode(&again, twice), n);
	assert_memory_equal(bytes, twice, (size_t)n);
}

static void any_record_is_read_back_as_it_was_written(void **state)
{
	static struct hf_lock_record record;

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		random_record(&record, (uint32_t)below(HF_LOCK_SLOTS_MAX + 1),
			      (unsigned)(1 + below(HF_LOCK_PLACES_MAX)));
		round_trip(&record);
	}
	random_record(&record, HF_LOCK_SLOTS_MAX, HF_LOCK_PLACES_MAX);
	round_trip(&record);
}

static void holders_of_nine_places_do_not_fit(void **state)
{
	static struct hf_lock_record record;
	uint8_t bytes[HF_LOCK_RECORD_MAX];

	(void)state;
	for (uint32_t n = HF_LOCK_PLACES_MAX + 1; n <= HF_LOCK_SLOTS_MAX; n++) {
		random_record(&record, n, HF_LOCK_PLACES_MAX + 1);
		assert_int_equal(hf_lock_record_encode(&record, bytes), -E2BIG);
	}
	random_record(&record, HF_LOCK_PLACES_MAX, HF_LOCK_PLACES_MAX + 1);
	assert_true(hf_lock_record_encode(&record, bytes) > 0);
}

static void cut_or_changed_record_is_refused_with_a_reason(void **state)
{
	static struct hf_lock_record record, into;
	uint8_t bytes[HF_LOCK_RECORD_MAX];
	const char *why;
	int n;

	(void)state;
	for (uint32_t holders = 0; holders <= HF_LOCK_SLOTS_MAX; holders += 32) {
		random_record(&record, holders, 5);
		n = hf_lock_record_encode(&record, bytes);
		assert_true(n > 0);
		for (int len = 0; len < n; len++) {
			why = NULL;
			assert_int_equal(hf_lock_record_decode(bytes, (size_t)len, &into, &why),
					 HF_E_FORMAT);
			assert_non_null(why);
		}
		for (int bit = 0; bit < 8 * n; bit++) {
			bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
			why = NULL;
			assert_int_equal(hf_lock_record_decode(bytes, (size_t)n, &into, &why),
					 HF_E_FORMAT);
			assert_non_null(why);
			bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
		assert_int_equal(hf_lock_record_decode(bytes, (size_t)n, &into, &why), 0);
	}
}

static void what_stands_behind_a_record_is_ignored(void **state)
{
	static struct hf_lock_record record, into;
	uint8_t bytes[HF_LOCK_RECORD_MAX];
	const char *why;
	int n;

	(void)state;
	memset(bytes, 0xff, sizeof(bytes));
	random_record(&record, 3, 2);
	n = hf_lock_record_encode(&record, bytes);
	assert_int_equal(hf_lock_record_decode(bytes, (size_t)n + 7, &into, &why), 0);
	assert_int_equal(hf_lock_record_decode(bytes, sizeof(bytes), &into, &why), 0);
	assert_int_equal(into.n_holders, 3);
}

/* Right in its bytes and its checksum, wrong in what it says. */
static void first_waiter_that_is_none_is_refused(void **state)
{
	static struct hf_lock_record record, into;
	uint8_t bytes[HF_LOCK_RECORD_MAX];
	const char *why = NULL;
	int n;

	(void)state;
	random_record(&record, 1, 1);
	record.next = record.first + 1;
	random_entry(&record.front);
	record.front.ticket = record.first;
	record.has_front = 1;
	record.front.state = HF_ENTRY_GONE;
	n = hf_lock_record_encode(&record, bytes);
	assert_int_equal(hf_lock_record_decode(bytes, (size_t)n, &into, &why), HF_E_FORMAT);
	assert_string_equal(why, "its first waiter does not wait");
	/* One that has had its turn is not written. */
	record.front.state = HF_ENTRY_WAITING;
	record.first++;
	record.next++;
	n = hf_lock_record_encode(&record, bytes);
	assert_int_equal(hf_lock_record_decode(bytes, (size_t)n, &into, &why), 0);
	assert_int_equal(into.has_front, 0);
}

static void any_entry_is_read_back_as_it_was_written(void **state)
{
	uint8_t bytes[HF_LOCK_ENTRY_SIZE], twice[HF_LOCK_ENTRY_SIZE];
	struct hf_lock_entry entry, again;

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		random_entry(&entry);
		hf_lock_entry_encode(&entry, bytes);
		memset(&again, 0xa5, sizeof(again));
		assert_int_equal(hf_lock_entry_decode(bytes, entry.ticket, &again), 0);
		assert_same_id(&entry.waiter, &again.waiter);
		assert_same_id(&entry.owner, &again.owner);
		assert_true(entry.state == again.state && entry.mode == again.mode);
		assert_true(entry.ticket == again.ticket && entry.since_ns == again.since_ns);
		assert_true(entry.flags == again.flags && entry.ttl_ms == again.ttl_ms);
		assert_true(entry.slots == again.slots);
		assert_true(entry.waiter_thread == again.waiter_thread);
		assert_true(entry.owner_thread == again.owner_thread);
		hf_lock_entry_encode(&again, twice);
		assert_memory_equal(bytes, twice, sizeof(bytes));
	}
}

static void changed_entry_or_one_of_another_ticket_is_refused(void **state)
{
	uint8_t bytes[HF_LOCK_ENTRY_SIZE];
	struct hf_lock_entry entry, into;

	(void)state;
	random_entry(&entry);
	hf_lock_entry_encode(&entry, bytes);
	assert_int_equal(hf_lock_entry_decode(bytes, entry.ticket + 1, &into), HF_E_FORMAT);
	for (int bit = 0; bit < 8 * HF_LOCK_ENTRY_SIZE; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(hf_lock_entry_decode(bytes, entry.ticket, &into), HF_E_FORMAT);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	assert_int_equal(hf_lock_entry_decode(bytes, entry.ticket, &into), 0);
	memset(bytes, 0, sizeof(bytes));
	assert_int_equal(hf_lock_entry_decode(bytes, 0, &into), HF_E_FORMAT);
}

static int seed_setup(void **state)
{
	seed = UINT64_C(0x9e3779b97f4a7c15);
	return hf_test_setup(state);
}

#define RECORD_TEST(fn) { #fn, fn, seed_setup, hf_test_teardown, NULL }

int main(void)
{
	const struct CMUnitTest tests[] = {
		RECORD_TEST(any_record_is_read_back_as_it_was_written),
		RECORD_TEST(holders_of_nine_places_do_not_fit),
		RECORD_TEST(cut_or_changed_record_is_refused_with_a_reason),
		RECORD_TEST(what_stands_behind_a_record_is_ignored),
		RECORD_TEST(first_waiter_that_is_none_is_refused),
		RECORD_TEST(any_entry_is_read_back_as_it_was_written),
		RECORD_TEST(changed_entry_or_one_of_another_ticket_is_refused),
	};

	return hf_run_tests("lock_record", tests);
}
