/*
 * unit/lock/test_lock_etcd.c - the etcd store without a cluster: URLs, base64, and each call with its request or its answer lost.
 *
 * The cluster is a table in this program, behind the seam of lock/etcd/http.h: it answers with what a test recorded.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helper/proc_helper.h"
#include "helper/test.h"
#include "hf/base/cleanup.h"
#include "hf/lock/etcd/attempt.h"
#include "hf/lock/etcd/wire/config.h"
#include "hf/lock/etcd/wire/request.h"

/* -- URLs ---------------------------------------------------------------------------------- */

static void url_names_servers_prefix_and_times(void **state)
{
	struct hf_etcd_config config;

	(void)state;
	ASSERT_OK(hf_etcd_configure("//h1", 0, &config, ERR));
	assert_string_equal(config.endpoints[0], "http://h1:2379");
	assert_string_equal(config.prefix, "/holdfast/1/");
	assert_true(config.ttl_ns == 30 * HF_SEC && config.call_ns == 2 * HF_SEC);
	ASSERT_OK(hf_etcd_configure("//h1:1,[::1],[::1]:7,10.0.0.1/team/a/?ttl=5s&call-timeout=500ms", 1, &config, ERR));
	assert_int_equal(config.n_endpoints, 4);
	assert_string_equal(config.endpoints[0], "https://h1:1");
	assert_string_equal(config.endpoints[1], "https://[::1]:2379");
	assert_string_equal(config.endpoints[2], "https://[::1]:7");
	assert_string_equal(config.prefix, "/team/a/1/");
	assert_true(config.ttl_ns == 5 * HF_SEC && config.call_ns == 500 * HF_MSEC);
}

static void url_that_is_none_is_refused_and_its_password_not_repeated(void **state)
{
	static const char *const urls[] = { "", "/", "//", "//h1,", "//,h1", "//h 1", "//h1/a b", "//h1?ttl", "//h1?ttl=1ms", "//h1?ttl=5s", "//h1?ttl=29s&call-timeout=10s",
					    "//h1?colour=red", "//h1/p%41", "//user:secret@h1", "//h1;reboot" };
	struct hf_etcd_config config;

	(void)state;
	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		ASSERT_ERR(hf_etcd_configure(urls[i], 0, &config, ERR), -EINVAL);
		assert_null(strstr(ERR->detail, "secret"));
	}
}

static void password_comes_from_a_private_file(void **state)
{
	struct hf_etcd_config config;
	FILE *out = fopen(hf_test_path("password"), "we");

	(void)state;
	assert_non_null(out);
	fputs("pass word\n", out);
	fclose(out);
	assert_int_equal(chmod(hf_test_path("password"), 0600), 0);
	setenv("HOLDFAST_ETCD_USER", "me", 1);
	ASSERT_ERR(hf_etcd_configure("//h1", 0, &config, ERR), -EINVAL);
	setenv("HOLDFAST_ETCD_PASSWORD_FILE", hf_test_path("password"), 1);
	ASSERT_OK(hf_etcd_configure("//h1", 0, &config, ERR));
	assert_string_equal(config.password, "pass word");
	assert_int_equal(chmod(hf_test_path("password"), 0644), 0);
	ASSERT_ERR(hf_etcd_configure("//h1", 0, &config, ERR), HF_E_UNTRUSTED);
	unsetenv("HOLDFAST_ETCD_USER");
	unsetenv("HOLDFAST_ETCD_PASSWORD_FILE");
}

/* -- base64 -------------------------------------------------------------------------------- */

static void base64_of_every_length_comes_back_and_nothing_else_is_read(void **state)
{
	static const char *const wrong[] = { "A", "AA", "AAA", "A===", "AB==", "AAB=", "AA=A", "!AAA", "AAAA=", "AA==AAAA" };
	unsigned char bytes[70];

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 37);
	for (size_t len = 0; len <= sizeof(bytes); len++) {
		AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT, back = HF_BUF_INIT;

		hf_buf_add_base64(&text, bytes, len);
		assert_int_equal(text.len % 4, 0);
		ASSERT_OK(hf_base64_read(text.s, text.len, &back));
		assert_int_equal(back.len, len);
		assert_memory_equal(back.s, bytes, len);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		AUTO(hf_buf_done) struct hf_buf back = HF_BUF_INIT;

		assert_int_equal(hf_base64_read(wrong[i], strlen(wrong[i]), &back), -EINVAL);
	}
}

/* -- a cluster that answers what it is told ---------------------------------------------------- */

static struct {
	enum hf_http_result result;
	long status;
	const char *body;
} script[8];
static int n_script, asked;
static int64_t limits[8];
static struct hf_etcd etcd;

static enum hf_http_result fake_post(struct hf_http *http, const struct hf_http_request *request, struct hf_http_answer *ret)
{
	int i = asked < n_script ? asked : n_script - 1;

	(void)http;
	if (asked < 8)
		limits[asked] = request->timeout_ns;
	asked++;
	*ret = (struct hf_http_answer){ .status = script[i].status };
	if (script[i].result == HF_HTTP_DONE) {
		ret->body = strdup(script[i].body);
		ret->len = strlen(script[i].body);
	} else {
		snprintf(ret->error, sizeof(ret->error), "scripted");
	}
	return script[i].result;
}

static const struct hf_http_module fake = { .version = HF_HTTP_VERSION, .post = fake_post };

static void begin_script(void)
{
	memset(&etcd, 0, sizeof(etcd));
	ASSERT_OK(hf_etcd_configure("//h1,h2?call-timeout=1s", 0, &etcd.config, ERR));
	etcd.module = &fake;
	etcd.state = hf_test_state();
	snprintf(etcd.series, sizeof(etcd.series), "etcd-test");
	pthread_mutex_init(&etcd.mutex, NULL);
	n_script = asked = 0;
}

static void say(enum hf_http_result result, long status, const char *body)
{
	script[n_script].result = result;
	script[n_script].status = status;
	script[n_script++].body = body;
}

#define HEADER(term) "\"header\":{\"cluster_id\":\"17661828994150871187\",\"revision\":\"5\",\"raft_term\":\"" #term "\"}"

static int call(struct hf_answer *answer)
{
	AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT;

	hf_buf_add_text(&body, "{}");
	return hf_etcd_call(&etcd, "/v3/kv/txn", &body, answer, ERR);
}

static void what_is_absent_in_an_answer_is_false_or_zero(void **state)
{
	AUTO(hf_answer_done) struct hf_answer answer = HF_ANSWER_INIT;

	(void)state;
	begin_script();
	say(HF_HTTP_DONE, 200, "{" HEADER(2) "}");
	ASSERT_OK(call(&answer));
	assert_int_equal(hf_answer_succeeded(&answer), 0);
	assert_true(answer.term == 2 && answer.revision == 5 && answer.code == 0 && !answer.repeated);
	assert_null(hf_answer_response(&answer, 0, "response_range"));
	assert_true(hf_json_number(answer.json, "TTL") == 0);
}

static void each_shape_of_error_is_read_and_only_a_refusal_is_an_answer(void **state)
{
	static const struct {
		long status;
		const char *body;
		int code;
	} table[] = {
		{ 404, "{\"error\":\"etcdserver: requested lease not found\",\"code\":5}", HF_GRPC_NOT_FOUND },
		{ 429, "{\"error\":\"etcdserver: mvcc: database space exceeded\",\"code\":8}", HF_GRPC_EXHAUSTED },
		{ 403, "{\"error\":\"etcdserver: permission denied\",\"code\":7}", HF_GRPC_DENIED },
		{ 400, "{\"error\":{\"grpc_code\":9,\"http_code\":400,\"message\":\"lease already exists\"}}", HF_GRPC_EXISTS },
		{ 400, "CommonName of client sending a request against gateway will be ignored\n", HF_GRPC_ARGUMENT },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		AUTO(hf_answer_done) struct hf_answer answer = HF_ANSWER_INIT;

		begin_script();
		say(HF_HTTP_DONE, table[i].status, table[i].body);
		ASSERT_OK(call(&answer));
		assert_int_equal(answer.code, table[i].code);
		assert_true(answer.text[0] != '\0' && !strchr(answer.text, '\n'));
		assert_int_equal(asked, 1);
	}
}

static void answer_that_is_lost_is_asked_for_again_and_never_taken_for_a_no(void **state)
{
	AUTO(hf_answer_done) struct hf_answer answer = HF_ANSWER_INIT;

	(void)state;
	begin_script();
	say(HF_HTTP_UNKNOWN, 0, NULL);
	say(HF_HTTP_DONE, 503, "{\"error\":{\"grpc_code\":14,\"message\":\"etcdserver: no leader\"}}");
	say(HF_HTTP_DONE, 200, "{" HEADER(2) ",\"succeeded\":true}");
	ASSERT_OK(call(&answer));
	assert_true(hf_answer_succeeded(&answer) && answer.repeated);
	assert_int_equal(asked, 3);
	/* No answer at all. */
	begin_script();
	say(HF_HTTP_UNKNOWN, 0, NULL);
	hf_answer_done(&answer);
	ASSERT_ERR(call(&answer), HF_E_STORE);
	assert_non_null(strstr(ERR->detail, "it is unknown whether it was done"));
	assert_int_equal(hf_err_exit_status(HF_E_STORE), 4);
	/* Nothing was ever sent. */
	begin_script();
	say(HF_HTTP_NOT_SENT, 0, NULL);
	hf_answer_done(&answer);
	ASSERT_ERR(call(&answer), HF_E_STORE);
	assert_null(strstr(ERR->detail, "unknown"));
}

/* A server that hangs must leave time to ask another server. */
static void call_to_one_server_takes_a_third_of_the_rest_of_the_lease(void **state)
{
	int64_t ttl;
	uint64_t term;

	(void)state;
	begin_script();
	say(HF_HTTP_UNKNOWN, 0, NULL);
	say(HF_HTTP_DONE, 200, "{\"result\":{" HEADER(2) ",\"ID\":\"7\",\"TTL\":\"20\"}}");
	ASSERT_OK(hf_lease_keep(&etcd, 7, &ttl, &term, ERR));
	assert_int_equal(asked, 2);
	assert_true(limits[0] == HF_SEC && limits[1] == HF_SEC);
	etcd.until.ns = hf_boot_now().ns + 9 * HF_SEC / 10;
	asked = 0;
	ASSERT_OK(hf_lease_keep(&etcd, 7, &ttl, &term, ERR));
	assert_int_equal(asked, 2);
	assert_true(limits[0] <= 3 * HF_SEC / 10 && limits[1] <= limits[0] && limits[1] > 0);
	/* A long rest keeps the usual limit. After the end it still asks two servers. */
	etcd.until.ns = hf_boot_now().ns + 60 * HF_SEC;
	asked = 0;
	ASSERT_OK(hf_lease_keep(&etcd, 7, &ttl, &term, ERR));
	assert_true(limits[0] == HF_SEC);
	etcd.until.ns = hf_boot_now().ns - HF_SEC;
	asked = 0;
	ASSERT_OK(hf_lease_keep(&etcd, 7, &ttl, &term, ERR));
	assert_int_equal(asked, 2);
	assert_true(limits[0] == 50 * HF_MSEC);
}

static void lease_that_was_granted_without_an_answer_counts_from_the_first_try(void **state)
{
	struct hf_boot before = hf_boot_now();
	struct hf_lease lease;

	(void)state;
	begin_script();
	say(HF_HTTP_UNKNOWN, 0, NULL);
	say(HF_HTTP_DONE, 400, "{\"error\":\"etcdserver: lease already exists\",\"code\":9}");
	ASSERT_OK(hf_lease_grant(&etcd, 3 * HF_SEC, &lease, ERR));
	assert_true(lease.ttl_ns == 3 * HF_SEC && lease.since.ns >= before.ns && lease.id > 0);
	/* Of another's id it is a refusal. */
	begin_script();
	say(HF_HTTP_DONE, 400, "{\"error\":\"etcdserver: lease already exists\",\"code\":9}");
	ASSERT_ERR(hf_lease_grant(&etcd, 3 * HF_SEC, &lease, ERR), HF_E_STORE);
	/* A server that gives more than was asked for is believed. */
	begin_script();
	say(HF_HTTP_DONE, 200, "{" HEADER(2) ",\"ID\":\"7\",\"TTL\":\"2\"}");
	ASSERT_OK(hf_lease_grant(&etcd, HF_SEC, &lease, ERR));
	assert_true(lease.ttl_ns == 2 * HF_SEC);
}

static void renewal_in_another_term_than_the_read_proves_nothing(void **state)
{
	struct hf_etcd_hold hold = { .lease = 7, .create = 5, .place = "0000000000000007" };
	struct hf_etcd_keys keys = { .queue = "/holdfast/1/q/name/x/" };
	const char *place = "{" HEADER(3) ",\"kvs\":[{\"key\":\"YQ==\",\"create_revision\":\"5\",\"mod_revision\":\"5\"}]}";
	struct hf_lease lease = { .id = 99 };

	(void)state;
	/* An old leader that was paused acknowledges in term 2 what the cluster of term 3 does not know. */
	begin_script();
	for (int i = 0; i < 3; i++) {
		say(HF_HTTP_DONE, 200, "{\"result\":{" HEADER(2) ",\"ID\":\"7\",\"TTL\":\"20\"}}");
		say(HF_HTTP_DONE, 200, place);
	}
	ASSERT_ERR(hf_etcd_prove(&etcd, &keys, &hold, &lease, ERR), HF_E_STORE);
	assert_true(lease.id == 99);
	begin_script();
	say(HF_HTTP_DONE, 200, "{\"result\":{" HEADER(3) ",\"ID\":\"7\",\"TTL\":\"20\"}}");
	say(HF_HTTP_DONE, 200, place);
	ASSERT_OK(hf_etcd_prove(&etcd, &keys, &hold, &lease, ERR));
	assert_true(lease.ttl_ns == 20 * HF_SEC);
	/* A lease that is gone is answered with 200; a place that is gone is lost. */
	begin_script();
	say(HF_HTTP_DONE, 200, "{\"result\":{" HEADER(3) ",\"ID\":\"7\"}}");
	ASSERT_ERR(hf_etcd_prove(&etcd, &keys, &hold, &lease, ERR), HF_E_STALE);
	begin_script();
	say(HF_HTTP_DONE, 200, "{\"result\":{" HEADER(3) ",\"ID\":\"7\",\"TTL\":\"20\"}}");
	say(HF_HTTP_DONE, 200, "{" HEADER(3) "}");
	ASSERT_ERR(hf_etcd_prove(&etcd, &keys, &hold, &lease, ERR), HF_E_STALE);
}

static void another_cluster_is_refused_until_the_first_is_forgotten(void **state)
{
	AUTO(hf_answer_done) struct hf_answer answer = HF_ANSWER_INIT;

	(void)state;
	begin_script();
	say(HF_HTTP_DONE, 200, "{" HEADER(2) "}");
	ASSERT_OK(call(&answer));
	assert_string_equal(etcd.cluster, "17661828994150871187");
	begin_script();
	say(HF_HTTP_DONE, 200, "{\"header\":{\"cluster_id\":\"4\"}}");
	hf_answer_done(&answer);
	ASSERT_ERR(call(&answer), HF_E_UNTRUSTED);
	assert_non_null(strstr(ERR->detail, "17661828994150871187"));
	assert_non_null(strstr(ERR->detail, "cluster id is 4"));
}

static void answer_that_is_no_json_or_too_large_is_an_error(void **state)
{
	AUTO(hf_answer_done) struct hf_answer answer = HF_ANSWER_INIT;

	(void)state;
	begin_script();
	say(HF_HTTP_DONE, 200, "<html>");
	ASSERT_ERR(call(&answer), HF_E_STORE);
	begin_script();
	say(HF_HTTP_TOO_LARGE, 0, NULL);
	hf_answer_done(&answer);
	ASSERT_ERR(call(&answer), HF_E_STORE);
	assert_int_equal(asked, 1);
}

/* -- taking a lock without having looked --------------------------------------------------------- */

/* What the cluster is told: each request, and what it answers. */
enum answer_kind { LEASE_GIVEN, TAKEN, NOT_FREE, LOST, LOST_BUT_TAKEN, GONE, REFUSED, NO_LEASE };
static struct {
	enum answer_kind answers[12];
	int n, at;
	char paths[12][40];
	char hold_value[2048]; /* of the holder that the last transaction put, in base64 */
} cluster;

static void note_hold(const char *body)
{
	json_t *json = json_loads(body, 0, NULL), *put;
	const char *value;

	put = json_object_get(json_array_get(json_object_get(json, "success"), 2), "request_put");
	value = json_string_value(json_object_get(put, "value"));
	if (value)
		snprintf(cluster.hold_value, sizeof(cluster.hold_value), "%s", value);
	json_decref(json);
}

static enum hf_http_result cluster_post(struct hf_http *http, const struct hf_http_request *request, struct hf_http_answer *ret)
{
	enum answer_kind kind = cluster.at < cluster.n ? cluster.answers[cluster.at] : REFUSED;
	char text[4096];

	(void)http;
	assert_true(cluster.at < 12);
	snprintf(cluster.paths[cluster.at++], 40, "%s", strstr(request->url, "/v3/"));
	if (strstr(request->url, "/txn"))
		note_hold(request->body);
	*ret = (struct hf_http_answer){ .status = 200 };
	switch (kind) {
	case LOST:
		snprintf(ret->error, sizeof(ret->error), "scripted");
		return HF_HTTP_UNKNOWN;
	case LEASE_GIVEN:
		snprintf(text, sizeof(text), "{" HEADER(2) ",\"TTL\":\"5\"}");
		break;
	case TAKEN:
		snprintf(text, sizeof(text), "{" HEADER(2) ",\"succeeded\":true}");
		break;
	case NOT_FREE:
		snprintf(text, sizeof(text), "{" HEADER(2) ",\"responses\":[{\"response_range\":{}}]}");
		break;
	case LOST_BUT_TAKEN:
		snprintf(text, sizeof(text), "{" HEADER(2) ",\"responses\":[{\"response_range\":{\"kvs\":[{\"key\":\"YQ==\","
			 "\"value\":\"%s\",\"create_revision\":\"4\",\"mod_revision\":\"4\"}]}}]}", cluster.hold_value);
		break;
	case REFUSED:
		ret->status = 400;
		snprintf(text, sizeof(text), "{\"error\":\"scripted\",\"code\":3}");
		break;
	case NO_LEASE:
		ret->status = 404;
		snprintf(text, sizeof(text), "{\"error\":\"etcdserver: requested lease not found\",\"code\":5}");
		break;
	case GONE:
		snprintf(text, sizeof(text), "{" HEADER(2) ",\"responses\":[{\"response_range\":{}},{\"response_range\":{}}]}");
		break;
	}
	ret->body = strdup(text);
	ret->len = strlen(text);
	return HF_HTTP_DONE;
}

static int cluster_tell(struct hf_http *http, const struct hf_http_request *request)
{
	(void)http;
	(void)request;
	return 0;
}

static const struct hf_http_module scripted = { .version = HF_HTTP_VERSION, .post = cluster_post };
static const struct hf_http_module telling = { .version = HF_HTTP_VERSION, .post = cluster_post, .tell = cluster_tell };

static void begin_cluster(const enum answer_kind *answers, int n)
{
	begin_script();
	etcd.module = &scripted;
	snprintf(etcd.host, sizeof(etcd.host), "h");
	memset(&cluster, 0, sizeof(cluster));
	memcpy(cluster.answers, answers, (size_t)n * sizeof(*answers));
	cluster.n = n;
}

static int acquire(uint64_t *ret_token)
{
	struct hf_lock_request request = { .lock = { HF_LOCK_KIND_NAME, "x" }, .ttl_ns = 5 * HF_SEC, .cancel_fd = -1 };

	ASSERT_OK(hf_proc_self(&etcd.self, ERR));
	request.owner.id = etcd.self;
	return hf_etcd_acquire(&etcd.base, &request, ret_token, NULL, ERR);
}

static void free_lock_is_two_requests_and_its_release_two(void **state)
{
	static const enum answer_kind answers[] = { LEASE_GIVEN, TAKEN, TAKEN, TAKEN };
	uint64_t token;

	(void)state;
	begin_cluster(answers, 4);
	ASSERT_OK(acquire(&token));
	assert_int_equal(cluster.at, 2);
	ASSERT_OK(hf_etcd_release(&etcd.base, &(struct hf_lock_ref){ HF_LOCK_KIND_NAME, "x" }, token, NULL, ERR));
	assert_string_equal(cluster.paths[2], "/v3/kv/txn");
	assert_string_equal(cluster.paths[3], "/v3/lease/revoke");
	assert_int_equal(cluster.at, 4);
}

static void lock_that_was_taken_without_an_answer_is_held_once_with_that_token(void **state)
{
	static const enum answer_kind answers[] = { LEASE_GIVEN, LOST, LOST_BUT_TAKEN };
	struct hf_etcd_hold hold;
	uint64_t token;

	(void)state;
	begin_cluster(answers, 3);
	ASSERT_OK(acquire(&token));
	assert_int_equal(cluster.at, 3);
	assert_true(hf_etcd_recall(&etcd, token, &hold) && hold.create == 4 && hold.mod == 4);
}

static void release_that_was_not_answered_is_repeated_and_is_done(void **state)
{
	static const enum answer_kind answers[] = { LEASE_GIVEN, TAKEN, LOST, GONE, TAKEN };
	uint64_t token;

	(void)state;
	begin_cluster(answers, 5);
	ASSERT_OK(acquire(&token));
	ASSERT_OK(hf_etcd_release(&etcd.base, &(struct hf_lock_ref){ HF_LOCK_KIND_NAME, "x" }, token, NULL, ERR));
	assert_int_equal(cluster.at, 5);
}

static void try_that_may_still_be_on_its_way_loses_its_lease_before_the_lock_counts_as_busy(void **state)
{
	static const enum answer_kind answers[] = { LEASE_GIVEN, LOST, NOT_FREE, TAKEN };
	uint64_t token;

	(void)state;
	begin_cluster(answers, 4);
	ASSERT_ERR(acquire(&token), HF_E_STORE);
	assert_string_equal(cluster.paths[3], "/v3/lease/revoke");
}

static void lease_that_was_only_told_is_used_and_one_that_may_come_later_is_ended(void **state)
{
	static const enum answer_kind answers[] = { TAKEN }, unknown[] = { LOST, NO_LEASE, TAKEN };
	uint64_t token;

	(void)state;
	begin_cluster(answers, 1);
	etcd.module = &telling;
	assert_int_equal(hf_lease_prepare(&etcd, 5 * HF_SEC), 1);
	ASSERT_OK(acquire(&token));
	assert_int_equal(cluster.at, 1);
	/* A try that may be on its way must not find a lease that comes later. */
	begin_cluster(unknown, 3);
	etcd.module = &telling;
	assert_int_equal(hf_lease_prepare(&etcd, 5 * HF_SEC), 1);
	ASSERT_ERR(acquire(&token), HF_E_STORE);
	assert_string_equal(cluster.paths[2], "/v3/lease/revoke");
}

/* -- what is stored -------------------------------------------------------------------------- */

static void place_that_cannot_be_read_counts_as_an_exclusive_holder_L4(void **state)
{
	static const char *const values[] = { "", "{", "[]", "{\"v\":2}", "{\"v\":1,\"state\":\"wait\"}",
					      "{\"v\":1,\"state\":\"wait\",\"mode\":\"xx\"}" };

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		AUTO(hf_kv_done) struct hf_kv kv = HF_KV_INIT;
		struct hf_place place;

		kv.create = 7;
		hf_buf_add_text(&kv.key, "/holdfast/1/q/name/x/0123456789abcdef");
		hf_buf_add_text(&kv.value, values[i]);
		hf_place_read(&kv, &place);
		assert_true(place.holds && !place.readable && place.mode == HF_LOCK_EXCLUSIVE && place.create == 7);
		assert_string_equal(place.id, "0123456789abcdef");
	}
}

static void range_of_one_name_never_reaches_into_another_L12(void **state)
{
	static const char *const names[] = { "a", "a/", "a0", "a/b", "a/../b", "a%2F", "\xff", "a\x01" };
	struct hf_etcd_keys keys[8];

	(void)state;
	begin_script();
	for (size_t i = 0; i < 8; i++)
		ASSERT_OK(hf_etcd_keys_of(&etcd, &(struct hf_lock_ref){ HF_LOCK_KIND_NAME, names[i] }, &keys[i], ERR));
	for (size_t i = 0; i < 8; i++)
		for (size_t k = 0; k < 8; k++) {
			char key[HF_ETCD_KEY_MAX];

			hf_etcd_place_key(&keys[k], "0123456789abcdef", key);
			assert_int_equal(strcmp(key, keys[i].queue) >= 0 && strcmp(key, keys[i].queue_end) < 0, i == k);
			hf_etcd_hold_key(&keys[k], 5, key);
			assert_int_equal(strcmp(key, keys[i].holds) >= 0 && strcmp(key, keys[i].holds_end) < 0, i == k);
		}
}

#define ETCD_TEST(fn) { #fn, fn, hf_test_setup, hf_test_teardown, NULL }

int main(void)
{
	const struct CMUnitTest tests[] = {
		ETCD_TEST(url_names_servers_prefix_and_times),
		ETCD_TEST(url_that_is_none_is_refused_and_its_password_not_repeated),
		ETCD_TEST(password_comes_from_a_private_file),
		ETCD_TEST(base64_of_every_length_comes_back_and_nothing_else_is_read),
		ETCD_TEST(what_is_absent_in_an_answer_is_false_or_zero),
		ETCD_TEST(each_shape_of_error_is_read_and_only_a_refusal_is_an_answer),
		ETCD_TEST(answer_that_is_lost_is_asked_for_again_and_never_taken_for_a_no),
		ETCD_TEST(call_to_one_server_takes_a_third_of_the_rest_of_the_lease),
		ETCD_TEST(lease_that_was_granted_without_an_answer_counts_from_the_first_try),
		ETCD_TEST(renewal_in_another_term_than_the_read_proves_nothing),
		ETCD_TEST(another_cluster_is_refused_until_the_first_is_forgotten),
		ETCD_TEST(answer_that_is_no_json_or_too_large_is_an_error),
		ETCD_TEST(free_lock_is_two_requests_and_its_release_two),
		ETCD_TEST(lock_that_was_taken_without_an_answer_is_held_once_with_that_token),
		ETCD_TEST(release_that_was_not_answered_is_repeated_and_is_done),
		ETCD_TEST(try_that_may_still_be_on_its_way_loses_its_lease_before_the_lock_counts_as_busy),
		ETCD_TEST(lease_that_was_only_told_is_used_and_one_that_may_come_later_is_ended),
		ETCD_TEST(place_that_cannot_be_read_counts_as_an_exclusive_holder_L4),
		ETCD_TEST(range_of_one_name_never_reaches_into_another_L12),
	};

	return hf_run_tests("lock-etcd", tests);
}
