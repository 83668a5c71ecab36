/* lock/etcd/store.c - opening a cluster, and its table of verbs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/etcd/http/plain.h"
#include "hf/lock/etcd/record/record.h"
#include "hf/lock/holder.h"

/* The shortest lease that etcd gives with the usual election timeouts; it raises a shorter one. */
#define MIN_TTL_NS HF_SEC

static int64_t margin(int64_t ttl_ns)
{
	int64_t tenth = ttl_ns / 10;
	int64_t least = HF_SEC / 2;

	/* Of a lease of one or two seconds, as tests have them, half a second would leave too little. */
	if (least > ttl_ns / 4)
		least = ttl_ns / 4;
	return tenth > least ? tenth : least;
}

static void etcd_free(struct hf_store *store)
{
	struct hf_etcd *etcd = hf_etcd_of(store);
	int forked = etcd->self.pid != getpid();

	if (etcd->http && !forked)
		hf_lease_let_go(etcd, etcd->prepared.id);
	if (etcd->http)
		etcd->module->free(etcd->http, forked);
	if (!forked)
		(void)pthread_mutex_destroy(&etcd->mutex);
	explicit_bzero(etcd->config.password, sizeof(etcd->config.password));
	explicit_bzero(etcd->token, sizeof(etcd->token));
	free(etcd);
}

static enum hf_liveness etcd_judge(struct hf_store *store, const struct hf_owner *owner, char evidence[HF_EVIDENCE_MAX])
{
	return hf_holder_liveness(hf_etcd_judge(hf_etcd_of(store), owner, NULL, evidence));
}

/* A call has its own limit (call-timeout). */
static void set_patience(struct hf_store *store, int64_t ns)
{
	(void)store;
	(void)ns;
}

static void rest(struct hf_store *store)
{
	struct hf_etcd *etcd = hf_etcd_of(store);

	if (etcd->module->rest)
		etcd->module->rest(etcd->http);
}

static const struct hf_store_ops ops = {
	.rest = rest,
	.acquire = hf_etcd_acquire,
	.renew = hf_etcd_renew,
	.release = hf_etcd_release,
	.add_owner = hf_etcd_add_owner,
	.check = hf_etcd_check,
	.judge = etcd_judge,
	.take_away = hf_etcd_take_away,
	.look = hf_etcd_look,
	.list = hf_etcd_list,
	.list_waited = hf_etcd_list_waited,
	.set_patience = set_patience,
	.free = etcd_free,
};

static int connect_to(struct hf_etcd *etcd, int tls, struct hf_err *err)
{
	const struct hf_http_options options = { .ca_file = etcd->config.ca_file, .cert_file = etcd->config.cert_file,
						 .key_file = etcd->config.key_file,
						 .connect_timeout_ns = etcd->config.connect_ns };
	int r = 0;

	etcd->module = &hf_http_plain;
	if (tls)
		r = hf_http_load(&etcd->module, err);
	if (r < 0)
		return r;
	r = etcd->module->open(&options, &etcd->http);
	return r < 0 ? hf_fail_sys(err, -r, "open", "etcd") : 0;
}

/* The machines spread over the servers: a server that hangs delays only some of them. */
static void set_first_server(struct hf_etcd *etcd)
{
	if (gethostname(etcd->host_name, sizeof(etcd->host_name)) < 0)
		etcd->host_name[0] = '\0';
	etcd->host_name[sizeof(etcd->host_name) - 1] = '\0';
	etcd->endpoint = (unsigned)(XXH3_64bits(etcd->host_name, strlen(etcd->host_name)) % etcd->config.n_endpoints);
}

/* A cluster whose URL is read, before anything of this machine is known. */
static int new_cluster(const char *url, int tls, struct hf_etcd **ret, struct hf_err *err)
{
	struct hf_etcd *etcd = calloc(1, sizeof(*etcd));
	int r;

	if (!etcd)
		return hf_fail_sys(err, ENOMEM, "memory", "etcd");
	etcd->base = (struct hf_store){ .ops = &ops,
					.caps = HF_STORE_SEES_DEATH | HF_STORE_HAS_SLOTS | HF_STORE_NEEDS_LEASE,
					.min_ttl_ns = MIN_TTL_NS,
					.margin = margin,
					.board = &hf_etcd_board,
					.series = etcd->series };
	etcd->self.pid = getpid(); /* whose it is */
	(void)pthread_mutex_init(&etcd->mutex, NULL);
	r = hf_etcd_configure(url, tls, &etcd->config, err);
	if (r == 0) {
		etcd->base.default_ttl_ns = etcd->config.ttl_ns;
		if (etcd->base.min_ttl_ns < HF_ETCD_TTL_CALLS * etcd->config.call_ns)
			etcd->base.min_ttl_ns = HF_ETCD_TTL_CALLS * etcd->config.call_ns;
		set_first_server(etcd);
		(void)snprintf(etcd->series, sizeof(etcd->series), "etcd-%016llx",
			       (unsigned long long)XXH3_64bits(etcd->config.prefix, strlen(etcd->config.prefix)));
		r = connect_to(etcd, tls, err);
	}
	if (r < 0) {
		etcd_free(&etcd->base);
		return r;
	}
	*ret = etcd;
	return 0;
}

/* -- one that will be opened ---------------------------------------------------------------------- */

static struct {
	pthread_mutex_t mutex;
	struct hf_etcd *etcd; /* NULL: none */
	char *url;
} expected = { .mutex = PTHREAD_MUTEX_INITIALIZER };

int hf_etcd_expect(const char *url, int64_t ttl_ns)
{
	struct hf_etcd *etcd = NULL;
	char *copy = strdup(url);
	int asked = 0;

	/* What is wrong with the URL is said when it is opened. */
	if (!copy || new_cluster(url, 0, &etcd, NULL) < 0) {
		free(copy);
		return 0;
	}
	if (hf_lease_prepare(etcd, ttl_ns > 0 ? ttl_ns : etcd->config.ttl_ns)) {
		(void)pthread_mutex_lock(&expected.mutex);
		if (!expected.etcd) {
			expected.etcd = etcd;
			expected.url = copy;
			etcd = NULL;
			copy = NULL;
			asked = 1;
		}
		(void)pthread_mutex_unlock(&expected.mutex);
	}
	if (etcd)
		etcd_free(&etcd->base);
	free(copy);
	return asked;
}

/* NULL: that one was not expected, or by the process that we were forked from. */
static struct hf_etcd *take_expected(const char *url)
{
	struct hf_etcd *etcd = NULL;

	(void)pthread_mutex_lock(&expected.mutex);
	if (expected.etcd && expected.etcd->self.pid == getpid() && strcmp(expected.url, url) == 0) {
		etcd = expected.etcd;
		expected.etcd = NULL;
		free(expected.url);
		expected.url = NULL;
	}
	(void)pthread_mutex_unlock(&expected.mutex);
	return etcd;
}

/* -- opening -------------------------------------------------------------------------------------- */

static int open_cluster(const struct hf_store_args *args, int tls, struct hf_store **ret_store, struct hf_err *err)
{
	struct hf_etcd *etcd = tls ? NULL : take_expected(args->url);
	int r = etcd ? 0 : new_cluster(args->url, tls, &etcd, err);

	if (r < 0)
		return r;
	etcd->state = args->state;
	etcd->journal = args->journal;
	etcd->self = *args->self;
	etcd->here = (struct hf_here){ .pid_ns = args->self->pid_ns, .time_ns = args->self->time_ns };
	memcpy(etcd->here.boot_id, args->self->boot_id, sizeof(etcd->here.boot_id));
	r = hf_host_id(etcd->state, etcd->host, err);
	if (r < 0) {
		etcd_free(&etcd->base);
		return r;
	}
	*ret_store = &etcd->base;
	return 0;
}

int hf_etcd_open(const struct hf_store_args *args, struct hf_store **ret_store, struct hf_err *err)
{
	return open_cluster(args, 0, ret_store, err);
}

int hf_etcds_open(const struct hf_store_args *args, struct hf_store **ret_store, struct hf_err *err)
{
	return open_cluster(args, 1, ret_store, err);
}
