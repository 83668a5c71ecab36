/*
 * lock/etcd/wire/call.c - one call to the cluster, and what became of it.
 *
 * Without a quorum the gateway answers after 7 s; our own limit is shorter, and the next server is
 * asked. A refusal (not found, denied, no space) is an answer. Everything else leaves it open whether the call was
 * done, and says so: it is never taken for a no.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/lock/etcd/etcd.h"
#include "hf/lock/etcd/wire/pin.h"
#include "hf/sys/io.h"

#define TRIES_MAX      (2 * HF_ETCD_ENDPOINTS_MAX)
#define ROUND_PAUSE_NS (50 * HF_MSEC)
#define TRY_MIN_NS     (50 * HF_MSEC)

void hf_answer_done(struct hf_answer *answer)
{
	json_decref(answer->json);
	*answer = (struct hf_answer)HF_ANSWER_INIT;
}

int64_t hf_json_number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	int64_t number = 0;

	if (json_is_integer(value))
		return json_integer_value(value);
	if (json_is_string(value))
		(void)hf_parse_i64(json_string_value(value), json_string_length(value), &number);
	return number;
}

int hf_answer_succeeded(const struct hf_answer *answer)
{
	return json_is_true(json_object_get(answer->json, "succeeded"));
}

json_t *hf_answer_response(const struct hf_answer *answer, size_t n, const char *kind)
{
	return json_object_get(json_array_get(json_object_get(answer->json, "responses"), n), kind);
}

int hf_etcd_refused(const struct hf_answer *answer, const char *op, const char *subject, struct hf_err *err)
{
	if (answer->code == HF_GRPC_EXHAUSTED)
		return FAIL(err, -ENOSPC, op, subject, "etcd accepts no more data: %.120s; not done", answer->text);
	if (answer->code == HF_GRPC_DENIED || answer->code == HF_GRPC_UNAUTHENTICATED)
		return FAIL(err, -EACCES, op, subject, "etcd reports: %.150s", answer->text);
	return FAIL(err, HF_E_STORE, op, subject, "etcd reports: %.150s; not done", answer->text);
}

/* -- reading an answer ---------------------------------------------------------------- */

static void read_header(const json_t *body, struct hf_answer *ret, char cluster[HF_ETCD_CLUSTER_MAX])
{
	const json_t *header = json_object_get(body, "header");
	const json_t *id = json_object_get(header, "cluster_id");

	ret->revision = hf_json_number(header, "revision");
	ret->term = (uint64_t)hf_json_number(header, "raft_term");
	/* Above 2^63 it is no number that jansson has: text. */
	hf_copy_text(cluster, HF_ETCD_CLUSTER_MAX, json_is_string(id) ? json_string_value(id) : "");
}

/* {"error":"text","code":N}, {"error":{"grpc_code":N,"message":"text"}}, or plain text. */
static void read_refusal(const struct hf_http_answer *from, const json_t *json, struct hf_answer *ret)
{
	const json_t *error = json_object_get(json, "error");
	const json_t *text = json_is_object(error) ? json_object_get(error, "message") : error;

	ret->code = (int)(json_is_object(error) ? hf_json_number(error, "grpc_code") : hf_json_number(json, "code"));
	if (ret->code == 0)
		ret->code = from->status == 401 ? HF_GRPC_UNAUTHENTICATED
			    : from->status == 403 ? HF_GRPC_DENIED
			    : from->status == 429 ? HF_GRPC_EXHAUSTED
			    : from->status == 400 ? HF_GRPC_ARGUMENT
			    : from->status < 500 && from->status >= 400 ? HF_GRPC_NOT_FOUND
									: HF_GRPC_UNKNOWN;
	if (json_is_string(text))
		hf_copy_text(ret->text, sizeof(ret->text), json_string_value(text));
	else
		(void)snprintf(ret->text, sizeof(ret->text), "%.120s (HTTP %ld)", from->body, from->status);
	ret->text[strcspn(ret->text, "\r\n")] = '\0';
}

static int leaves_it_open(int code)
{
	return code == HF_GRPC_UNKNOWN || code == HF_GRPC_LATE || code == HF_GRPC_UNAVAILABLE;
}

/* Nobody has logged in yet, or what was given is forgotten: members keep it in memory for minutes. */
static int wants_login(const struct hf_etcd *etcd, const struct hf_answer *answer)
{
	return etcd->config.user[0] && (answer->code == HF_GRPC_UNAUTHENTICATED ||
					(answer->code == HF_GRPC_ARGUMENT && strstr(answer->text, "user name is empty")));
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* How long one server may take. */
static int64_t try_limit(const struct hf_etcd *etcd)
{
	int64_t third = (etcd->until.ns - hf_boot_now().ns) / 3;

	return etcd->until.ns == 0 || third > etcd->config.call_ns ? etcd->config.call_ns : third > TRY_MIN_NS ? third : TRY_MIN_NS;
}

/*
 * 0: an answer. 1: none from here, and it was not done. 2: none, and it is open whether it was done.
 * Negative: no other server could help.
 */
static int try_once(struct hf_etcd *etcd, unsigned endpoint, const char *path, const char *body, struct hf_answer *ret,
		    struct hf_err *err)
{
	char url[HF_ETCD_HOST_MAX + 64], token[HF_ETCD_TOKEN_MAX], cluster[HF_ETCD_CLUSTER_MAX];
	struct hf_http_request request = { .url = url, .body = body, .timeout_ns = try_limit(etcd) };
	struct hf_http_answer got;
	enum hf_http_result result;
	json_t *json, *inner;
	int r = 0;

	(void)pthread_mutex_lock(&etcd->mutex);
	memcpy(token, etcd->token, sizeof(token));
	(void)pthread_mutex_unlock(&etcd->mutex);
	request.token = token[0] ? token : NULL;
	(void)snprintf(url, sizeof(url), "%s%s", etcd->config.endpoints[endpoint], path);
	result = etcd->module->post(etcd->http, &request, &got);
	if (result == HF_HTTP_TOO_LARGE)
		return FAIL(err, HF_E_STORE, "etcd", etcd->config.endpoints[endpoint], "its answer is too large");
	if (result != HF_HTTP_DONE) {
		(void)FAIL(err, HF_E_STORE, "etcd", etcd->config.endpoints[endpoint], "%.200s", got.error);
		return result == HF_HTTP_NOT_SENT ? 1 : 2;
	}
	ret->date = got.date;
	json = json_loadb(got.body, got.len, JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, NULL);
	/* A stream's answer, as that of keepalive, has one more shell. */
	inner = json_object_get(json, "result");
	if (got.status == 200 && json_is_object(json) && !json_object_get(json, "error")) {
		ret->json = json_incref(inner ? inner : json);
		ret->code = HF_GRPC_OK;
		read_header(ret->json, ret, cluster);
		r = hf_pin_check(etcd, cluster, err);
	} else if (got.status == 200 && !json_is_object(json)) {
		(void)FAIL(err, HF_E_STORE, "etcd", etcd->config.endpoints[endpoint], "its answer is not JSON");
		r = 2;
	} else {
		read_refusal(&got, json, ret);
		if (leaves_it_open(ret->code)) {
			(void)FAIL(err, HF_E_STORE, "etcd", etcd->config.endpoints[endpoint], "%.200s", ret->text);
			r = 2;
		}
	}
	json_decref(json);
	free(got.body);
	return r;
}

/* -- user and password ------------------------------------------------------------------ */

static int log_in(struct hf_etcd *etcd, unsigned endpoint, struct hf_err *err)
{
	AUTO(hf_answer_done) struct hf_answer answer = HF_ANSWER_INIT;
	AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT;
	const char *token;
	int r;

	hf_buf_add_text(&body, "{\"name\":");
	(void)hf_buf_add_json(&body, etcd->config.user, strlen(etcd->config.user), HF_ETCD_SECRET_MAX);
	hf_buf_add_text(&body, ",\"password\":");
	(void)hf_buf_add_json(&body, etcd->config.password, strlen(etcd->config.password), HF_ETCD_SECRET_MAX);
	hf_buf_add_char(&body, '}');
	(void)pthread_mutex_lock(&etcd->mutex);
	etcd->token[0] = '\0';
	(void)pthread_mutex_unlock(&etcd->mutex);
	r = body.err < 0 ? hf_fail_sys(err, -body.err, "memory", "etcd")
			 : try_once(etcd, endpoint, "/v3/auth/authenticate", body.s, &answer, err);
	if (body.cap > 0)
		explicit_bzero(body.s, body.len);
	if (r != 0)
		return r;
	token = json_string_value(json_object_get(answer.json, "token"));
	if (answer.code != HF_GRPC_OK || !token || strlen(token) >= HF_ETCD_TOKEN_MAX)
		return FAIL(err, -EACCES, "log in", etcd->config.user, "etcd reports: %.150s",
			    answer.text[0] ? answer.text : "no token");
	(void)pthread_mutex_lock(&etcd->mutex);
	hf_copy_text(etcd->token, sizeof(etcd->token), token);
	(void)pthread_mutex_unlock(&etcd->mutex);
	return 0;
}

/* -- the call ---------------------------------------------------------------------------- */

int hf_etcd_call_at(struct hf_etcd *etcd, unsigned endpoint, const char *path, const struct hf_buf *body,
		    struct hf_answer *ret, struct hf_err *err)
{
	int r;

	for (int again = 0;; again++) {
		int repeated = ret->repeated;

		hf_answer_done(ret);
		ret->repeated = repeated;
		r = try_once(etcd, endpoint, path, body->s, ret, err);
		if (r != 0 || again > 0 || !wants_login(etcd, ret))
			return r;
		r = log_in(etcd, endpoint, err);
		if (r != 0)
			return r;
	}
}

int hf_etcd_call(struct hf_etcd *etcd, const char *path, const struct hf_buf *body, struct hf_answer *ret,
		 struct hf_err *err)
{
	int64_t limit = 2 * etcd->config.call_ns;
	struct hf_mono end = hf_mono_in(etcd->until.ns ? least(limit, etcd->until.ns - hf_boot_now().ns) : limit);
	struct hf_err why = HF_ERR_INIT, last;
	unsigned first, n = etcd->config.n_endpoints;
	int r = 1;

	if (body->err < 0)
		return hf_fail_sys(err, -body->err, "memory", "etcd");
	(void)pthread_mutex_lock(&etcd->mutex);
	first = etcd->endpoint;
	(void)pthread_mutex_unlock(&etcd->mutex);
	for (unsigned i = 0; i < TRIES_MAX && (i < 2 || hf_mono_left(end) > 0); i++) {
		unsigned endpoint = (first + i) % n;

		if (i > 0 && i % n == 0)
			hf_pause(ROUND_PAUSE_NS);
		r = hf_etcd_call_at(etcd, endpoint, path, body, ret, &why);
		if (r <= 0) {
			(void)pthread_mutex_lock(&etcd->mutex);
			etcd->endpoint = endpoint;
			(void)pthread_mutex_unlock(&etcd->mutex);
			break;
		}
		ret->repeated |= r == 2;
	}
	if (r == 0)
		return 0;
	last = why;
	if (r > 0)
		(void)FAIL(&why, HF_E_STORE, last.op, last.subject, "%.150s%s", last.detail,
			   ret->repeated ? "; it is unknown whether it was done" : "");
	if (err)
		*err = why;
	return why.code;
}

int hf_etcd_try_tell(struct hf_etcd *etcd, const char *path, const struct hf_buf *body)
{
	char url[HF_ETCD_HOST_MAX + 64], token[HF_ETCD_TOKEN_MAX];
	struct hf_http_request request = { .url = url, .body = body->s, .timeout_ns = etcd->config.call_ns };

	(void)pthread_mutex_lock(&etcd->mutex);
	memcpy(token, etcd->token, sizeof(token));
	(void)snprintf(url, sizeof(url), "%s%s", etcd->config.endpoints[etcd->endpoint % etcd->config.n_endpoints], path);
	(void)pthread_mutex_unlock(&etcd->mutex);
	request.token = token[0] ? token : NULL;
	return body->err == 0 && etcd->module->tell && etcd->module->tell(etcd->http, &request) == 0 ? 0 : -1;
}

void hf_etcd_tell(struct hf_etcd *etcd, const char *path, const struct hf_buf *body)
{
	AUTO(hf_answer_done) struct hf_answer answer = HF_ANSWER_INIT;

	if (hf_etcd_try_tell(etcd, path, body) < 0)
		(void)hf_etcd_call(etcd, path, body, &answer, NULL);
}
