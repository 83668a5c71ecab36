/*
 * unit/lock/test_etcd_waits.c - time and waiting in the etcd store, without a cluster: leases, renewals, watches that say nothing.
 *
 * The cluster is a table in this program, behind the seam of lock/etcd/http.h: one lock, which another host holds, and our place behind it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "helper/test.h"
#include "hf/base/cleanup.h"
#include "hf/lock/etcd/attempt.h"
#include "hf/lock/etcd/wire/watch.h"
#include "hf/sys/io.h"

#define HEADER "\"header\":{\"cluster_id\":\"1\",\"revision\":\"9\",\"raft_term\":\"2\"}"

#define OTHER_HOST "00000000000000000000000000000002"

static struct hf_etcd etcd;
static struct {
	struct hf_boot came;    /* when the last request came */
	int64_t delay_ns;
	int n_keepalives, n_reads, n_txns, n_grants, n_streams;
	int waits;              /* our place is in the queue */
	int holder_left;        /* the holder and its place are gone */
	int leave_unseen;       /* the holder leaves after that many more looks, and the watch says nothing */
	const char *stream;     /* what a watch says */
	char hold[4096], place[4096], mine[4096]; /* values, in base64 */
} cluster;

static void add_kv(struct hf_buf *out, const char *key, const char *value, int create)
{
	hf_buf_add_text(out, "{\"key\":\"");
	hf_buf_add_base64(out, key, strlen(key));
	hf_buf_add_format(out, "\",\"value\":\"%s\",\"create_revision\":\"%d\",\"mod_revision\":\"%d\"}", value, create, create);
}

#define PLACE "/holdfast/1/q/name/x/00000000000000aa"
#define HOLD  "/holdfast/1/h/name/x/00000000000000000005"

static void remember_mine(const char *body)
{
	json_t *json = json_loads(body, 0, NULL);
	json_t *put = json_object_get(json_array_get(json_object_get(json, "success"), 0), "request_put");
	const char *value = json_string_value(json_object_get(put, "value"));

	if (value) {
		snprintf(cluster.mine, sizeof(cluster.mine), "%s", value);
		cluster.waits = 1;
	}
	json_decref(json);
}

static void add_range(struct hf_buf *out, const json_t *range)
{
	AUTO(hf_buf_done) struct hf_buf key = HF_BUF_INIT;
	const char *text = json_string_value(json_object_get(range, "key"));
	int first = 1, many = json_object_get(range, "range_end") != NULL;

	ASSERT_OK(hf_base64_read(text, strlen(text), &key));
	hf_buf_add_text(out, "{\"response_range\":{\"kvs\":[");
	if (strstr(key.s, "/h/") && !cluster.holder_left)
		add_kv(out, HOLD, cluster.hold, 5);
	if (strstr(key.s, "/q/") && !cluster.holder_left && (many || strcmp(key.s, PLACE) == 0)) {
		add_kv(out, PLACE, cluster.place, 5);
		first = 0;
	}
	if (strstr(key.s, "/q/") && cluster.waits && !json_object_get(range, "max_create_revision") && strcmp(key.s, PLACE) != 0) {
		hf_buf_add_text(out, first ? "" : ",");
		add_kv(out, many ? "/holdfast/1/q/name/x/00000000000000bb" : key.s, cluster.mine, 9);
	}
	hf_buf_add_text(out, "]}}");
}

/* A transaction of reads; others succeed, but for one that wants the lock while it is held. */
static void answer_txn(const char *body, struct hf_buf *out)
{
	json_t *json = json_loads(body, 0, NULL), *list = json_object_get(json, "success"), *failure = json_object_get(json, "failure");
	int reads = json_object_get(json_array_get(list, 0), "request_range") != NULL;
	int wants = json_array_size(list) >= 3 && !reads;

	hf_buf_add_text(out, "{" HEADER);
	if (!reads && !wants)
		remember_mine(body);
	if (!reads && (!wants || cluster.holder_left))
		hf_buf_add_text(out, ",\"succeeded\":true");
	else if (wants)
		list = failure;
	if (reads && cluster.leave_unseen > 0 && --cluster.leave_unseen == 0)
		cluster.holder_left = 1;
	hf_buf_add_text(out, ",\"responses\":[");
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *range = json_object_get(json_array_get(list, i), "request_range");

		hf_buf_add_text(out, i ? "," : "");
		if (range)
			add_range(out, range);
		else
			hf_buf_add_text(out, "{}");
	}
	hf_buf_add_text(out, "]}");
	json_decref(json);
}

static enum hf_http_result post(struct hf_http *http, const struct hf_http_request *request, struct hf_http_answer *ret)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;

	(void)http;
	cluster.came = hf_boot_now();
	hf_pause((long)cluster.delay_ns);
	if (strstr(request->url, "keepalive")) {
		cluster.n_keepalives++;
		hf_buf_add_text(&out, "{\"result\":{" HEADER ",\"TTL\":\"1\"}}");
	} else if (strstr(request->url, "grant")) {
		cluster.n_grants++;
		hf_buf_add_text(&out, "{" HEADER ",\"TTL\":\"1\"}");
	} else if (strstr(request->url, "/kv/range")) {
		cluster.n_reads++;
		hf_buf_add_text(&out, "{" HEADER ",\"kvs\":[");
		add_kv(&out, PLACE, cluster.place, 5);
		hf_buf_add_text(&out, "]}");
	} else if (strstr(request->url, "/kv/txn")) {
		cluster.n_txns++;
		answer_txn(request->body, &out);
	} else {
		hf_buf_add_text(&out, "{" HEADER "}");
	}
	*ret = (struct hf_http_answer){ .status = 200, .body = strdup(out.s), .len = out.len };
	return HF_HTTP_DONE;
}

static int open_stream(struct hf_http *http, const struct hf_http_request *request, struct hf_http_stream **ret)
{
	(void)http;
	(void)request;
	cluster.n_streams++;
	*ret = (struct hf_http_stream *)&cluster; /* one of any kind: it is never looked into */
	return 0;
}

static int await(struct hf_http_stream *stream, struct pollfd *fds, nfds_t n, int64_t ns)
{
	(void)stream;
	for (nfds_t i = 0; i < n; i++)
		fds[i].revents = 0;
	if (cluster.stream)
		return 1;
	hf_pause((long)(ns < HF_SEC ? ns : HF_SEC));
	return 0;
}

static const char *bytes(struct hf_http_stream *stream, size_t *ret_len)
{
	(void)stream;
	*ret_len = cluster.stream ? strlen(cluster.stream) : 0;
	return cluster.stream ? cluster.stream : "";
}

static void take(struct hf_http_stream *stream, size_t len)
{
	(void)stream;
	cluster.stream = strlen(cluster.stream) > len ? cluster.stream + len : NULL;
}

static void close_stream(struct hf_http_stream *stream)
{
	(void)stream;
}

static const struct hf_http_module fake = { .version = HF_HTTP_VERSION, .post = post, .stream = open_stream, .await = await,
					    .bytes = bytes, .take = take, .close = close_stream };

static void to_base64(char *text, char *out, size_t cap)
{
	AUTO(hf_buf_done) struct hf_buf b = HF_BUF_INIT;

	assert_non_null(text);
	hf_buf_add_base64(&b, text, strlen(text));
	snprintf(out, cap, "%s", b.s);
	free(text);
}

static void begin(void)
{
	struct hf_etcd_owner other = { .owner.host = OTHER_HOST, .name = "b" };
	struct hf_place place = { .id = "00000000000000aa", .holds = 1, .token = 5, .owner = other };
	struct hf_etcd_hold hold = { .token = 5, .lease = 7, .place = "00000000000000aa", .count = 1, .ttl_ns = 30 * HF_SEC,
				     .n_owners = 1, .owners = { other } };

	memset(&etcd, 0, sizeof(etcd));
	memset(&cluster, 0, sizeof(cluster));
	ASSERT_OK(hf_etcd_configure("//h1", 0, &etcd.config, ERR));
	ASSERT_OK(hf_proc_self(&etcd.self, ERR));
	place.owner.owner.id = hold.owners[0].owner.id = etcd.self;
	etcd.module = &fake;
	etcd.state = hf_test_state();
	snprintf(etcd.series, sizeof(etcd.series), "etcd-test");
	snprintf(etcd.host, sizeof(etcd.host), "00000000000000000000000000000001");
	pthread_mutex_init(&etcd.mutex, NULL);
	to_base64(hf_place_text(&place), cluster.place, sizeof(cluster.place));
	to_base64(hf_hold_text(&hold), cluster.hold, sizeof(cluster.hold));
}

static const struct hf_lock_ref lock = { HF_LOCK_KIND_NAME, "x" };

/* -- time ------------------------------------------------------------------------------------- */

static void lease_and_renewal_count_from_the_sending_however_late_the_answer_comes(void **state)
{
	struct hf_etcd_hold hold = { .lease = 7, .create = 5, .place = "00000000000000aa" };
	struct hf_lease lease;
	struct hf_etcd_keys keys;

	(void)state;
	begin();
	cluster.delay_ns = 20 * HF_MSEC;
	ASSERT_OK(hf_etcd_keys_of(&etcd, &lock, &keys, ERR));
	ASSERT_OK(hf_lease_grant(&etcd, HF_SEC, &lease, ERR));
	assert_true(lease.since.ns <= cluster.came.ns);
	ASSERT_OK(hf_etcd_prove(&etcd, &keys, &hold, &lease, ERR));
	/* The keepalive was sent before the read came. */
	assert_true(lease.since.ns + cluster.delay_ns <= cluster.came.ns);
}

static void renewal_of_a_known_hold_is_one_keepalive_and_one_read(void **state)
{
	struct hf_etcd_kept kept = { 0 };
	struct hf_lease lease;

	(void)state;
	begin();
	for (int i = 1; i <= 3; i++) {
		ASSERT_OK(hf_etcd_renew_proven(&etcd, &lock, 5, &kept, &lease, ERR));
		assert_int_equal(cluster.n_keepalives, i);
		assert_int_equal(cluster.n_reads, i);
		assert_int_equal(cluster.n_txns, 1);
	}
}

/* -- watches ------------------------------------------------------------------------------------ */

static void watch_that_is_refused_compacted_or_without_a_leader_has_ended(void **state)
{
	static const char *const ends[] = {
		"{\"result\":{" HEADER ",\"canceled\":true,\"compact_revision\":\"10\"}}\n",
		"{\"result\":{" HEADER ",\"watch_id\":\"-1\",\"created\":true,\"canceled\":true,\"cancel_reason\":\"no right\"}}\n",
		"{\"error\":{\"grpc_code\":14,\"http_code\":503,\"message\":\"etcdserver: no leader\"}}\n",
		"garbage\n",
	};
	struct hf_watch_aim aim = { .key = PLACE, .revision = 3, .only_deletes = 1 };

	(void)state;
	begin();
	for (size_t i = 0; i < COUNT(ends); i++) {
		struct hf_watch watch;

		ASSERT_OK(hf_watch_open(&etcd, &aim, &watch, ERR));
		cluster.stream = ends[i];
		assert_int_equal(hf_watch_wait(&watch, NULL, 0, HF_SEC), -1);
	}
}

static void only_the_end_of_an_exclusive_hold_makes_the_next_one_try_without_looking(void **state)
{
	static const struct {
		const char *value;
		int freed;
	} table[] = { { "hold", 1 }, { "wait", 0 }, { "share", 0 }, { "", 0 } };
	struct hf_watch_aim aim = { .key = PLACE, .revision = 3, .only_deletes = 1 };

	(void)state;
	begin();
	for (size_t i = 0; i < COUNT(table); i++) {
		struct hf_place place = { .holds = table[i].value[0] != 'w', .mode = table[i].value[0] == 's' ? HF_LOCK_SHARED : HF_LOCK_EXCLUSIVE };
		char value[2048] = "", line[4096];
		struct hf_watch watch;

		place.owner.owner.id = place.waiter.owner.id = etcd.self;
		snprintf(place.owner.owner.host, sizeof(place.owner.owner.host), OTHER_HOST);
		place.waiter = place.owner;
		if (table[i].value[0])
			to_base64(hf_place_text(&place), value, sizeof(value));
		/* What was there before is left out where it is compacted. */
		snprintf(line, sizeof(line), "{\"result\":{" HEADER ",\"events\":[{\"type\":\"DELETE\",\"kv\":{\"key\":\"YQ==\"}%s%s%s}]}}\n",
			 value[0] ? ",\"prev_kv\":{\"key\":\"YQ==\",\"value\":\"" : "", value, value[0] ? "\"}" : "");
		ASSERT_OK(hf_watch_open(&etcd, &aim, &watch, ERR));
		cluster.stream = line;
		assert_int_equal(hf_watch_wait(&watch, NULL, 0, HF_SEC), 1);
		assert_int_equal(watch.freed, table[i].freed);
	}
}

static void turn_is_found_within_a_third_of_the_lease_when_the_watch_says_nothing(void **state)
{
	struct hf_lock_request request = { .lock = lock, .ttl_ns = HF_SEC, .wait_ns = 60 * HF_SEC, .cancel_fd = -1 };
	struct hf_mono begun;
	uint64_t token = 0;

	(void)state;
	begin();
	request.owner.id = etcd.self;
	/* Read before it waits, read in the queue, one look; at the second one the holder is gone, unseen. */
	cluster.leave_unseen = 4;
	begun = hf_mono_now();
	ASSERT_OK(hf_etcd_acquire(&etcd.base, &request, &token, NULL, ERR));
	assert_true(token > 5 && cluster.holder_left);
	/* The looks kept the watch, and each came with a renewal. */
	assert_int_equal(cluster.n_streams, 1);
	assert_int_equal(cluster.n_keepalives, 2);
	assert_true(hf_mono_now().ns - begun.ns < 30 * HF_SEC);
}

/* -- owners ---------------------------------------------------------------------------------------- */

static void owner_of_another_boot_or_host_is_unknown_and_never_dead_L4(void **state)
{
	struct hf_owner owner = { .id.pid = 1 };
	char evidence[HF_EVIDENCE_MAX];
	int verdict;

	(void)state;
	begin();
	owner.id = etcd.self;
	snprintf(owner.host, sizeof(owner.host), "%s", etcd.host);
	/* A machine that was cloned has the same id; that it was booted again proves nothing about the other one. */
	memset(owner.id.boot_id, 'f', sizeof(owner.id.boot_id) - 1);
	verdict = hf_etcd_judge(&etcd, &owner, NULL, evidence);
	assert_true(verdict != HF_E_GONE && verdict != HF_E_RECYCLED);
	owner.id = etcd.self;
	snprintf(owner.host, sizeof(owner.host), OTHER_HOST);
	verdict = hf_etcd_judge(&etcd, &owner, NULL, evidence);
	assert_true(verdict != HF_E_GONE && verdict != HF_E_RECYCLED && verdict != 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HF_TEST(lease_and_renewal_count_from_the_sending_however_late_the_answer_comes),
		HF_TEST(renewal_of_a_known_hold_is_one_keepalive_and_one_read),
		HF_TEST(watch_that_is_refused_compacted_or_without_a_leader_has_ended),
		HF_TEST(only_the_end_of_an_exclusive_hold_makes_the_next_one_try_without_looking),
		HF_TEST(turn_is_found_within_a_third_of_the_lease_when_the_watch_says_nothing),
		HF_TEST(owner_of_another_boot_or_host_is_unknown_and_never_dead_L4),
	};

	return hf_run_tests("etcd-waits", tests);
}
