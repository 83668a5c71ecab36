/*
 * lock/etcd/lease.c - leases: the time that a holder or a waiter may be silent.
 *
 * The clock of a lease is read before the request is sent (CLOCK_BOOTTIME), and before the first try if there were
 * several: the server's cannot have begun earlier, so ours never ends later.
 */
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/etcd/etcd.h"

/* 62 random bits: never 0, and never negative. */
static int64_t new_id(void)
{
	uint64_t id = 0;

	if (getrandom(&id, sizeof(id), 0) != sizeof(id))
		id = (uint64_t)hf_wall_now().ns ^ (uint64_t)hf_boot_now().ns << 20;
	return (int64_t)(id >> 2 | 1);
}

int hf_lease_grant(struct hf_etcd *etcd, int64_t ttl_ns, struct hf_lease *ret, struct hf_err *err)
{
	AUTO(hf_answer_done) struct hf_answer answer = HF_ANSWER_INIT;
	AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT;
	int64_t seconds = (ttl_ns + HF_SEC - 1) / HF_SEC;
	struct hf_lease lease = { .id = new_id(), .since = hf_boot_now() };
	int r;

	hf_buf_add_format(&body, "{\"TTL\":\"%lld\",\"ID\":\"%lld\"}", (long long)seconds, (long long)lease.id);
	r = hf_etcd_call(etcd, "/v3/lease/grant", &body, &answer, err);
	if (r < 0)
		return r;
	/* Ours, from a try whose answer was lost. */
	if (answer.code == HF_GRPC_EXISTS && answer.repeated) {
		lease.ttl_ns = seconds * HF_SEC;
	} else if (answer.code != HF_GRPC_OK) {
		return hf_etcd_refused(&answer, "lease", "etcd", err);
	} else {
		lease.ttl_ns = hf_json_number(answer.json, "TTL") * HF_SEC;
	}
	if (lease.ttl_ns <= 0)
		return FAIL(err, HF_E_STORE, "lease", "etcd", "the server granted a lease without a length");
	*ret = lease;
	return 0;
}

int hf_lease_prepare(struct hf_etcd *etcd, int64_t ttl_ns)
{
	AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT;
	int64_t seconds = (ttl_ns + HF_SEC - 1) / HF_SEC;
	struct hf_lease lease = { .id = new_id(), .ttl_ns = seconds * HF_SEC, .since = hf_boot_now() };

	/* One that has to log in first would only be refused. */
	if (!etcd->module->tell || etcd->config.user[0])
		return 0;
	hf_buf_add_format(&body, "{\"TTL\":\"%lld\",\"ID\":\"%lld\"}", (long long)seconds, (long long)lease.id);
	if (hf_etcd_try_tell(etcd, "/v3/lease/grant", &body) < 0)
		return 0;
	etcd->prepared = lease; /* one that nobody has used ends by itself */
	return 1;
}

int hf_lease_prepared(struct hf_etcd *etcd, int64_t ttl_ns, struct hf_lease *ret)
{
	struct hf_lease lease;

	(void)pthread_mutex_lock(&etcd->mutex);
	lease = etcd->prepared;
	etcd->prepared.id = 0;
	(void)pthread_mutex_unlock(&etcd->mutex);
	if (lease.id && lease.ttl_ns == (ttl_ns + HF_SEC - 1) / HF_SEC * HF_SEC &&
	    hf_boot_now().ns - lease.since.ns < HF_LEASE_FRESH_NS) {
		*ret = lease;
		return 1;
	}
	hf_lease_let_go(etcd, lease.id);
	return 0;
}

int hf_lease_keep(struct hf_etcd *etcd, int64_t id, int64_t *ret_ttl_ns, uint64_t *ret_term, struct hf_err *err)
{
	AUTO(hf_answer_done) struct hf_answer answer = HF_ANSWER_INIT;
	AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT;
	int64_t ttl;
	int r;

	hf_buf_add_format(&body, "{\"ID\":\"%lld\"}", (long long)id);
	r = hf_etcd_call(etcd, "/v3/lease/keepalive", &body, &answer, err);
	if (r < 0)
		return r;
	if (answer.code != HF_GRPC_OK && answer.code != HF_GRPC_NOT_FOUND)
		return hf_etcd_refused(&answer, "keepalive", "etcd", err);
	ttl = answer.code == HF_GRPC_OK ? hf_json_number(answer.json, "TTL") : 0;
	/* Of a lease that is gone the answer is 200, without a time. */
	if (ttl <= 0)
		return FAIL(err, HF_E_STALE, "renew", "lease", "it has ended");
	*ret_ttl_ns = ttl * HF_SEC;
	*ret_term = answer.term;
	return 0;
}

void hf_lease_revoke(struct hf_etcd *etcd, int64_t id)
{
	AUTO(hf_answer_done) struct hf_answer answer = HF_ANSWER_INIT;
	AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT;

	if (id == 0)
		return;
	hf_buf_add_format(&body, "{\"ID\":\"%lld\"}", (long long)id);
	(void)hf_etcd_call(etcd, "/v3/lease/revoke", &body, &answer, NULL);
}

void hf_lease_let_go(struct hf_etcd *etcd, int64_t id)
{
	AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT;

	if (id == 0)
		return;
	hf_buf_add_format(&body, "{\"ID\":\"%lld\"}", (long long)id);
	hf_etcd_tell(etcd, "/v3/lease/revoke", &body);
}

int64_t hf_lease_left(struct hf_etcd *etcd, int64_t id)
{
	AUTO(hf_answer_done) struct hf_answer answer = HF_ANSWER_INIT;
	AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT;
	int64_t left;

	hf_buf_add_format(&body, "{\"ID\":\"%lld\"}", (long long)id);
	if (hf_etcd_call(etcd, "/v3/lease/timetolive", &body, &answer, NULL) < 0)
		return -1;
	if (answer.code != HF_GRPC_OK)
		return answer.code == HF_GRPC_NOT_FOUND ? 0 : -1;
	left = hf_json_number(answer.json, "TTL");
	return left > 0 ? left * HF_SEC : 0;
}
