/* view/doctor/store.c - doctor for a cluster of etcd: each server, and what they say together. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/lock/board.h"
#include "hf/lock/etcd/record/record.h"
#include "hf/lock/etcd/wire/pin.h"
#include "hf/view/doctor/certificate.h"
#include "hf/view/doctor/store.h"

#define READS       5
#define CLOCK_S     5
#define DAYS_WARN   30
#define DAY_S       86400
#define QUIET_NS    (INT64_C(7) * 86400 * HF_SEC)
#define QUOTA_BYTES (INT64_C(2) << 30) /* etcd's own default */

struct exam {
	struct hf_etcd *etcd;
	hf_checkup_fn *fn;
	void *arg;
	unsigned answered;
	int64_t clock_s, db_bytes; /* the largest */
};

static void tell(const struct exam *e, const char *name, enum hf_finding found, const char *text, const char *instead)
{
	e->fn(e->arg, &(struct hf_checkup){ .name = name, .found = found, .text = text, .instead = instead });
}

/* 3.4.31 and 3.5.13 mend a leader that stalls and then ends leases which were renewed at the next one. */
static enum hf_finding judge_version(const char *version)
{
	unsigned part[3] = { 0 };
	const char *at = version;

	for (int i = 0; i < 3; i++) {
		size_t len = strspn(at, "0123456789");
		uint64_t n = 0;

		(void)hf_parse_u64(at, len, 9999, &n);
		part[i] = (unsigned)n;
		at += len + (at[len] == '.');
	}
	if (part[0] < 3 || (part[0] == 3 && part[1] < 4))
		return HF_FOUND_FAIL;
	return part[0] == 3 && ((part[1] == 4 && part[2] < 31) || (part[1] == 5 && part[2] < 13)) ? HF_FOUND_ABSENT : HF_FOUND_OK;
}

static void note_clock(struct exam *e, const struct hf_answer *answer)
{
	int64_t ahead = answer->date ? hf_wall_now().ns / HF_SEC - answer->date : 0;

	if (llabs(ahead) > llabs(e->clock_s))
		e->clock_s = ahead;
}

static void check_member(struct exam *e, unsigned i)
{
	AUTO(hf_answer_done) struct hf_answer answer = HF_ANSWER_INIT;
	AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT;
	const char *where = e->etcd->config.endpoints[i], *version, *leader, *member, *instead = NULL;
	struct hf_err err = HF_ERR_INIT;
	struct hf_mono begun = hf_mono_now();
	char text[HF_DOCTOR_TEXT_MAX];
	enum hf_finding found;
	int64_t size;
	int r;

	hf_buf_add_text(&body, "{}");
	r = hf_etcd_call_at(e->etcd, i, "/v3/maintenance/status", &body, &answer, &err);
	if (r == HF_E_UNTRUSTED) {
		(void)snprintf(text, sizeof(text), "%.200s: %.250s", where, err.detail);
		tell(e, "member", HF_FOUND_FAIL, text, "'holdfast doctor --accept-cluster', if it was created again or restored on purpose");
		return;
	}
	if (r != 0 || answer.code != HF_GRPC_OK) {
		(void)snprintf(text, sizeof(text), "%.200s: %.250s", where, r != 0 ? err.detail : answer.text);
		tell(e, "member", HF_FOUND_WARN, text, r != 0 ? "start it, check that its port is reachable and the certificates are right, or remove it from the URL"
							      : "give the user its rights (HOLDFAST_ETCD_USER, HOLDFAST_ETCD_PASSWORD_FILE)");
		return;
	}
	e->answered++;
	note_clock(e, &answer);
	version = json_string_value(json_object_get(answer.json, "version"));
	leader = json_string_value(json_object_get(answer.json, "leader"));
	member = json_string_value(json_object_get(json_object_get(answer.json, "header"), "member_id"));
	size = hf_json_number(answer.json, "dbSize");
	e->db_bytes = size > e->db_bytes ? size : e->db_bytes;
	found = judge_version(version ? version : "");
	if (found != HF_FOUND_OK)
		instead = "a leader that stalls may end leases early; the holder sees it and ends its work: etcd 3.4.31, 3.5.13 or newer does not";
	if (!leader || strcmp(leader, "0") == 0) {
		found = HF_FOUND_WARN;
		instead = "it knows no leader: check that a majority of the members is running and connected";
	}
	(void)snprintf(text, sizeof(text), "%.200s: etcd %.20s, %s, term %llu, %lld MB, answered in %lld ms", where, version ? version : "?",
		       leader && member && strcmp(leader, member) == 0 ? "leads" : "follows", (unsigned long long)answer.term,
		       (long long)(size >> 20), (long long)((hf_mono_now().ns - begun.ns) / HF_MSEC));
	tell(e, "member", found, text, instead);
}

static void check_clock(const struct exam *e)
{
	char text[HF_DOCTOR_TEXT_MAX];

	(void)snprintf(text, sizeof(text), "%lld s %s the members'", llabs(e->clock_s), e->clock_s < 0 ? "behind" : "ahead of");
	if (llabs(e->clock_s) <= CLOCK_S)
		(void)snprintf(text, sizeof(text), "as the members', to %d s", CLOCK_S);
	tell(e, "clock", llabs(e->clock_s) > CLOCK_S ? HF_FOUND_WARN : HF_FOUND_OK, text,
	     "set the clocks by NTP: tokens follow them, and one clock that is far ahead raises all tokens");
}

static int by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Reads that need a majority, against what a lease leaves for them. */
static int check_quorum(const struct exam *e)
{
	const struct hf_etcd_config *config = &e->etcd->config;
	int64_t took[READS], least = 6 * config->call_ns;
	struct hf_err err = HF_ERR_INIT;
	char text[HF_DOCTOR_TEXT_MAX], key[HF_ETCD_KEY_MAX];
	int slow;

	(void)snprintf(key, sizeof(key), "%sdoctor", config->prefix);
	for (int i = 0; i < READS; i++) {
		AUTO(hf_answer_done) struct hf_answer answer = HF_ANSWER_INIT;
		AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT;
		struct hf_mono begun = hf_mono_now();
		int r;

		hf_buf_add_range(&body, &(struct hf_range){ .key = key });
		r = hf_etcd_call(e->etcd, "/v3/kv/range", &body, &answer, &err);
		if (r == 0 && answer.code != HF_GRPC_OK)
			r = hf_etcd_refused(&answer, "read", "etcd", &err);
		if (r < 0) {
			tell(e, "quorum", HF_FOUND_FAIL, err.detail, "no lock can be taken or kept: bring a majority of the members up; if it was refused, see 'rights'");
			return r;
		}
		took[i] = hf_mono_now().ns - begun.ns;
	}
	qsort(took, READS, sizeof(took[0]), by_size);
	slow = took[READS / 2] > config->call_ns / 4;
	(void)snprintf(text, sizeof(text), "a read takes %.1f ms; a lease lasts %lld s, is renewed every %lld s, and a call may take %lld ms",
		       (double)took[READS / 2] / (double)HF_MSEC, (long long)(config->ttl_ns / HF_SEC), (long long)(config->ttl_ns / 3 / HF_SEC),
		       (long long)(config->call_ns / HF_MSEC));
	tell(e, "quorum", slow || config->ttl_ns < least ? HF_FOUND_WARN : HF_FOUND_OK, text,
	     slow ? "it is slow: check the members' disks and the network, or raise call-timeout and ttl in the URL"
		  : "choose ttl at least six times call-timeout, so that a renewal can fail once");
	return 0;
}

static void check_space(const struct exam *e)
{
	AUTO(hf_answer_done) struct hf_answer answer = HF_ANSWER_INIT;
	AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT;
	char text[HF_DOCTOR_TEXT_MAX];
	int full;

	hf_buf_add_text(&body, "{\"action\":\"GET\"}");
	if (hf_etcd_call(e->etcd, "/v3/maintenance/alarm", &body, &answer, NULL) < 0 || answer.code != HF_GRPC_OK)
		return;
	full = json_array_size(json_object_get(answer.json, "alarms")) > 0;
	(void)snprintf(text, sizeof(text), "%s, %lld MB of data", full ? "a member has raised an alarm and accepts no more writes" : "no alarm",
		       (long long)(e->db_bytes >> 20));
	tell(e, "space", full ? HF_FOUND_FAIL : e->db_bytes > QUOTA_BYTES / 4 * 3 ? HF_FOUND_WARN : HF_FOUND_OK, text,
	     "etcdctl compact, defrag, then 'etcdctl alarm disarm'; run etcd with --auto-compaction-retention. Holders can still renew and release");
}

/* Rights are asked for both branches of a transaction, also the one that is not taken. */
static void check_rights(const struct exam *e)
{
	AUTO(hf_answer_done) struct hf_answer answer = HF_ANSWER_INIT;
	AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT;
	char key[HF_ETCD_KEY_MAX], text[HF_DOCTOR_TEXT_MAX];
	struct hf_err err = HF_ERR_INIT;
	struct hf_txn txn;
	int r, ok;

	(void)snprintf(key, sizeof(key), "%sdoctor", e->etcd->config.prefix);
	hf_txn_begin(&txn, &body);
	hf_txn_compare(&txn, "CREATE", key, INT64_MAX);
	hf_txn_then(&txn);
	hf_txn_put(&txn, key, "", 0);
	hf_txn_end(&txn);
	r = hf_etcd_call(e->etcd, "/v3/kv/txn", &body, &answer, &err);
	ok = r == 0 && answer.code == HF_GRPC_OK;
	if (ok)
		(void)snprintf(text, sizeof(text), "may write below %.100s%s%.100s", e->etcd->config.prefix, e->etcd->config.user[0] ? " as " : "",
			       e->etcd->config.user);
	else
		(void)snprintf(text, sizeof(text), "below %.100s: %.250s", e->etcd->config.prefix, r < 0 ? err.detail : answer.text);
	tell(e, "rights", ok ? HF_FOUND_OK : HF_FOUND_FAIL, text,
	     "grant the user's role READWRITE on the prefix; with users in etcd, our certificate must have no CommonName (examples/fleet/tls.sh)");
}

static void check_certificate(const struct exam *e, const char *file, int ours)
{
	struct hf_certificate certificate;
	char text[HF_DOCTOR_TEXT_MAX];
	enum hf_finding found = HF_FOUND_OK;
	const char *instead = "renew it in time (examples/fleet/tls.sh)";
	int r = file[0] ? hf_certificate_read(file, &certificate) : -ENODATA;

	if (r == -ENODATA)
		return;
	if (r < 0) {
		(void)snprintf(text, sizeof(text), "%.250s: %s", file, r == -ENOENT ? "not checked: openssl is not installed" :
							r == -EINVAL ? "cannot read a certificate" : strerrordesc_np(-r));
		tell(e, "certificate", r == -ENOENT ? HF_FOUND_ABSENT : HF_FOUND_WARN, text, r == -ENOENT ? "install openssl" : "name a file in PEM");
		return;
	}
	if (certificate.days_left < 0) {
		(void)snprintf(text, sizeof(text), "%.250s has ended", file);
		found = HF_FOUND_FAIL;
	} else {
		(void)snprintf(text, sizeof(text), "%.250s is valid for %lld more days", file, (long long)certificate.days_left);
		found = certificate.days_left < DAYS_WARN ? HF_FOUND_WARN : HF_FOUND_OK;
	}
	if (ours && found != HF_FOUND_FAIL && certificate.named && e->etcd->config.user[0]) {
		found = HF_FOUND_WARN;
		instead = "it has a CommonName, which etcd refuses together with users: make one without it (examples/fleet/tls.sh)";
	}
	tell(e, "certificate", found, text, instead);
}

static void write_date(int64_t at, char out[16])
{
	time_t seconds = (time_t)at;
	struct tm day;

	if (!gmtime_r(&seconds, &day) || strftime(out, 16, "%Y-%m-%d", &day) == 0)
		hf_copy_text(out, 16, "?");
}

/* What is said of it behind the server's name, and whether it is as it should be. */
static enum hf_finding judge_server_certificate(const struct hf_http_certificate *of, char *text, size_t cap)
{
	int64_t now = hf_wall_now().ns / HF_SEC, days = (of->ends - now) / DAY_S;
	char date[16];

	if (of->ends != 0 && of->ends <= now) {
		write_date(of->ends, date);
		(void)snprintf(text, cap, "expired on %s and is refused", date);
	} else if (of->begins > now) {
		write_date(of->begins, date);
		(void)snprintf(text, cap, "begins on %s and is refused; or the clock here is wrong", date);
	} else if (!of->is_accepted) {
		(void)snprintf(text, cap, "is refused: %.150s; it was made for %.90s", of->error, of->names[0] ? of->names : "no name");
	} else if (of->ends == 0) {
		(void)snprintf(text, cap, "has no end of validity");
		return HF_FOUND_ABSENT;
	} else {
		(void)snprintf(text, cap, "is valid for %lld more days", (long long)days);
		return days < DAYS_WARN ? HF_FOUND_WARN : HF_FOUND_OK;
	}
	return HF_FOUND_WARN;
}

/* A server whose certificate is refused is not used; the others are. So it is a warning, like a server that does not answer. */
static void check_server_certificate(const struct exam *e, unsigned i)
{
	const struct hf_http_module *module = e->etcd->module;
	const char *where = e->etcd->config.endpoints[i];
	struct hf_http_certificate certificate;
	char text[HF_DOCTOR_TEXT_MAX], what[280];
	enum hf_finding found;

	if (!module->certificate)
		return;
	if (module->certificate(e->etcd->http, where, e->etcd->config.call_ns, &certificate) < 0) {
		(void)snprintf(text, sizeof(text), "cannot get the certificate of %.200s: %.200s", where, certificate.error);
		tell(e, "certificate", HF_FOUND_ABSENT, text, "start the server, or check that its port is reachable");
		return;
	}
	found = judge_server_certificate(&certificate, what, sizeof(what));
	(void)snprintf(text, sizeof(text), "the certificate of %.200s %s", where, what);
	tell(e, "certificate", found, text,
	     "renew the server's certificate (examples/fleet/tls.sh): for the names and addresses of the URL, signed by HOLDFAST_ETCD_CACERT; "
	     "etcd reads it at the next connection");
}

/* The store could be opened, so there is an id. */
static void check_host(const struct exam *e, const struct hf_state *state)
{
	char id[HF_HOST_ID_LEN + 1], text[HF_DOCTOR_TEXT_MAX];
	int r = hf_host_id(state, id, NULL);

	if (r < 0)
		return;
	(void)snprintf(text, sizeof(text), r == 0 ? "known to the store by /etc/machine-id, %s"
						  : "no id in /etc/machine-id; known to the store by %s", id);
	tell(e, "host", r == 0 ? HF_FOUND_OK : HF_FOUND_ABSENT, text,
	     "an id that Holdfast made for this state directory (stores/host-id)");
}

static void clean(const struct exam *e, struct hf_locks *locks)
{
	struct hf_err err = HF_ERR_INIT;
	char text[HF_DOCTOR_TEXT_MAX];
	int n = hf_board_clean(locks, QUIET_NS, &err);

	if (n < 0)
		hf_copy_text(text, sizeof(text), err.detail);
	else
		(void)snprintf(text, sizeof(text), "removed %d names that were not used for a week", n);
	tell(e, "names", n < 0 ? HF_FOUND_WARN : HF_FOUND_OK, text, NULL);
}

int hf_doctor_store(const char *url, struct hf_state *state, unsigned flags, hf_checkup_fn *fn, void *arg)
{
	struct exam e = { .fn = fn, .arg = arg };
	struct hf_err err = HF_ERR_INIT;
	struct hf_locks *locks = NULL;
	char text[HF_ERR_TEXT_MAX];
	int r = hf_locks_open_store(url, state, NULL, &locks, &err);

	if (r == 0 && !hf_board_is_there(locks)) {
		hf_locks_free(locks);
		return 0;
	}
	if (r < 0) {
		(void)hf_err_format(&err, text, sizeof(text));
		tell(&e, "store", HF_FOUND_FAIL, text, NULL);
		return hf_err_exit_status(r);
	}
	e.etcd = hf_etcd_of(hf_locks_store(locks));
	check_host(&e, state);
	if (flags & HF_DOCTOR_ACCEPT)
		hf_pin_forget(e.etcd);
	check_certificate(&e, e.etcd->config.ca_file, 0);
	check_certificate(&e, e.etcd->config.cert_file, 1);
	for (unsigned i = 0; i < e.etcd->config.n_endpoints; i++) {
		check_server_certificate(&e, i);
		check_member(&e, i);
	}
	if (e.answered > 0) {
		check_clock(&e);
		if (check_quorum(&e) == 0)
			check_space(&e);
		check_rights(&e);
	} else {
		tell(&e, "quorum", HF_FOUND_FAIL, "no server of the store answers", "no lock can be taken or kept until a majority answers");
	}
	if (flags & HF_DOCTOR_CLEAN && e.answered > 0)
		clean(&e, locks);
	hf_locks_free(locks);
	return 0;
}
