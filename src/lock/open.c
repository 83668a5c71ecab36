/* lock/open.c - opening a store by its URL, and the handles of the kinds. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/context.h"
#include "hf/proc/here.h"
#include "holdfast/name.h"

/* Every store there is. The first is the default. */
static const struct {
	const char *scheme;
	int (*open)(const struct hf_store_args *args, struct hf_store **ret_store, struct hf_err *err);
	int (*expect)(const char *url, int64_t ttl_ns); /* NULL: it has nothing to do before */
} stores[] = {
	{ "local", hf_local_open, NULL },
	{ "etcd", hf_etcd_open, hf_etcd_expect },
	{ "etcds", hf_etcds_open, NULL },
};

#define N_STORES (sizeof(stores) / sizeof(stores[0]))

/* The one that a URL names; N_STORES: none. */
static size_t store_of(const char *url)
{
	size_t len = strcspn(url, ":"), which = 0;

	while (which < N_STORES && !(strlen(stores[which].scheme) == len && memcmp(stores[which].scheme, url, len) == 0))
		which++;
	return which;
}

static const char *const kind_words[HF_LOCK_KINDS] = {
	[HF_LOCK_KIND_NAME] = "name",
	[HF_LOCK_KIND_GROUP] = "group",
	[HF_LOCK_KIND_FILE] = "file",
	[HF_LOCK_KIND_PLAN] = "plan",
	[HF_LOCK_KIND_TARGET] = "target",
	[HF_LOCK_KIND_LAND] = "land",
};

const char *hf_lock_kind_word(enum hf_lock_kind kind)
{
	return (unsigned)kind < HF_LOCK_KINDS ? kind_words[kind] : NULL;
}

int hf_locks_open_over(struct hf_store *store, const struct hf_store_args *args,
		       struct hf_locks **ret_locks, struct hf_err *err)
{
	AUTO_FREE struct hf_context *context = calloc(1, sizeof(*context));
	int r;

	if (!context)
		return hf_fail_sys(err, ENOMEM, "memory", "locks");
	context->store = store;
	context->journal = args->journal;
	context->process = getpid();
	context->self = *args->self;
	if (!(store->caps & HF_STORE_ONE_HOST)) {
		r = hf_host_id(args->state, context->host, err);
		if (r < 0)
			return r;
	}
	context->patience_ns = HF_STORE_PATIENCE_NS;
	context->fences.state = args->state;
	context->fences.series = store->series;
	atomic_init(&context->fences.dirfd, -1);
	for (int i = 0; i < HF_LOCK_KINDS; i++)
		context->kinds[i] = (struct hf_locks){ context, (enum hf_lock_kind)i };
	*ret_locks = ptr_take(&context)->kinds;
	return 0;
}

int hf_locks_open_store(const char *url, struct hf_state *state, struct hf_journal *journal,
			struct hf_locks **ret_locks, struct hf_err *err)
{
	const char *colon = url ? strchr(url, ':') : NULL;
	size_t which = 0;
	struct hf_store_args args = { .state = state, .journal = journal };
	struct hf_store *store = NULL;
	struct hf_proc_id self;
	int r;

	if (!state || !ret_locks)
		return FAIL(err, -EINVAL, "arguments", "hf_locks_open", "NULL");
	if (url && !colon)
		return FAIL(err, -EINVAL, "store", url, "a store must be SCHEME:...; known schemes are local: and etcd://");
	which = url ? store_of(url) : 0;
	if (which == N_STORES)
		return FAIL(err, -EINVAL, "store", url,
			    "unknown store '%.*s:'; known schemes are local: and etcd://", (int)(colon - url), url);
	r = hf_proc_self(&self, err);
	if (r < 0)
		return r;
	args.self = &self;
	args.url = url ? colon + 1 : "";
	r = stores[which].open(&args, &store, err);
	if (r < 0)
		return r;
	r = hf_locks_open_over(store, &args, ret_locks, err);
	if (r < 0) {
		store->ops->free(store);
		return r;
	}
	if (which > 0) {
		(*ret_locks)->context->url = strdup(url);
		if (!(*ret_locks)->context->url) {
			hf_locks_free(*ret_locks);
			return hf_fail_sys(err, ENOMEM, "memory", "locks");
		}
	}
	return 0;
}

int hf_locks_expect(const char *url, int64_t ttl_ns)
{
	size_t which = url && strchr(url, ':') ? store_of(url) : N_STORES;

	return which < N_STORES && stores[which].expect ? stores[which].expect(strchr(url, ':') + 1, ttl_ns) : 0;
}

int hf_locks_open(struct hf_state *state, struct hf_journal *journal, struct hf_locks **ret_locks,
		  struct hf_err *err)
{
	return hf_locks_open_store(NULL, state, journal, ret_locks, err);
}

struct hf_locks *hf_locks_kind(struct hf_locks *locks, enum hf_lock_kind kind)
{
	return (unsigned)kind < HF_LOCK_KINDS ? &locks->context->kinds[kind] : NULL;
}

void hf_locks_free(struct hf_locks *locks)
{
	struct hf_context *context = locks ? locks->context : NULL;

	if (!context)
		return;
	hf_fences_done(&context->fences);
	context->store->ops->free(context->store);
	free(context->url);
	free(context);
}

int64_t hf_locks_lease(const struct hf_locks *locks)
{
	return locks->context->store->default_ttl_ns;
}

void hf_locks_set_patience(struct hf_locks *locks, int64_t ns)
{
	struct hf_context *context = locks->context;

	context->patience_ns = ns > 0 ? ns : HF_STORE_PATIENCE_NS;
	context->store->ops->set_patience(context->store, context->patience_ns);
}

const struct hf_proc_id *hf_locks_self(const struct hf_locks *locks)
{
	return &locks->context->self;
}

struct hf_store *hf_locks_store(struct hf_locks *locks)
{
	return locks->context->store;
}

int hf_locks_check(struct hf_locks *locks, const char *name, struct hf_err *err)
{
	char key[HF_NAME_KEY_MAX];
	int r;

	if (!locks)
		return FAIL(err, -EINVAL, "arguments", "lock", "NULL");
	if (locks->context->process != getpid())
		return FAIL(err, HF_E_FORKED, "lock", name ? name : "lock",
			    "open the locks again in this process");
	r = hf_name_key(name, name ? strlen(name) : 0, key, err);
	return r < 0 ? r : 0;
}

void hf_lock_event(struct hf_journal *journal, enum hf_event event, const struct hf_lock_ref *lock,
		   const struct hf_field *fields, size_t n)
{
	struct hf_field all[HF_EVENT_FIELDS_MAX];

	if (!journal)
		return;
	memcpy(all, fields, n * sizeof(*fields));
	if (lock->kind != HF_LOCK_KIND_NAME)
		all[n++] = (struct hf_field)HF_FIELD_TEXT("kind", hf_lock_kind_word(lock->kind));
	(void)hf_journal_append(journal, event, lock->name, all, n, 0, NULL);
}
