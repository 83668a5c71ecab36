/* lock/etcd/record/record.c - keys and values. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/lock/etcd/record/record.h"
#include "hf/proc/judge.h"

/* -- keys ------------------------------------------------------------------------------ */

int hf_etcd_keys_of(const struct hf_etcd *etcd, const struct hf_lock_ref *lock, struct hf_etcd_keys *ret, struct hf_err *err)
{
	const char *prefix = etcd->config.prefix, *kind = hf_lock_kind_word(lock->kind);
	char key[HF_NAME_KEY_MAX];
	int r = hf_name_key(lock->name, strlen(lock->name), key, err);

	if (r < 0)
		return r;
	/* '0' is the byte behind '/': the end of everything that begins with "NAME/". */
	(void)snprintf(ret->queue, HF_ETCD_KEY_MAX, "%sq/%s/%s/", prefix, kind, key);
	(void)snprintf(ret->queue_end, HF_ETCD_KEY_MAX, "%sq/%s/%s0", prefix, kind, key);
	(void)snprintf(ret->holds, HF_ETCD_KEY_MAX, "%sh/%s/%s/", prefix, kind, key);
	(void)snprintf(ret->holds_end, HF_ETCD_KEY_MAX, "%sh/%s/%s0", prefix, kind, key);
	(void)snprintf(ret->last, HF_ETCD_KEY_MAX, "%sn/%s/%s", prefix, kind, key);
	(void)snprintf(ret->facts, HF_ETCD_KEY_MAX, "%ss/%s/%s", prefix, kind, key);
	(void)snprintf(ret->broken, HF_ETCD_KEY_MAX, "%sb/%s/%s", prefix, kind, key);
	return 0;
}

void hf_etcd_place_key(const struct hf_etcd_keys *keys, const char *id, char out[HF_ETCD_KEY_MAX])
{
	(void)snprintf(out, HF_ETCD_KEY_MAX, "%.*s%.16s", HF_ETCD_KEY_MAX - 20, keys->queue, id);
}

void hf_etcd_hold_key(const struct hf_etcd_keys *keys, uint64_t token, char out[HF_ETCD_KEY_MAX])
{
	(void)snprintf(out, HF_ETCD_KEY_MAX, "%.*s%020llu", HF_ETCD_KEY_MAX - 24, keys->holds, (unsigned long long)token);
}

/* -- owners ---------------------------------------------------------------------------- */

struct hf_etcd_owner hf_etcd_owner_here(const struct hf_etcd *etcd, const struct hf_owner *owner)
{
	struct hf_etcd_owner ret = { .owner = *owner };

	memcpy(ret.owner.host, etcd->host, sizeof(ret.owner.host));
	hf_copy_text(ret.name, sizeof(ret.name), etcd->host_name);
	return ret;
}

int hf_etcd_owner_equal(const struct hf_owner *a, const struct hf_owner *b)
{
	return strcmp(a->host, b->host) == 0 && a->thread == b->thread && hf_proc_equal(&a->id, &b->id);
}

int hf_etcd_judge(const struct hf_etcd *etcd, const struct hf_owner *owner, int *ret_pidfd, char evidence[HF_EVIDENCE_MAX])
{
	if (strcmp(owner->host, etcd->host) == 0)
		/* A machine that was cloned has the same id: another boot proves nothing. */
		return hf_proc_judge_at(&owner->id, &etcd->here, HF_PROC_SHARED, ret_pidfd, evidence);
	(void)snprintf(evidence, HF_EVIDENCE_MAX, "pid %d on another host; only its lease shows whether it is alive", (int)owner->id.pid);
	return HF_E_UNKNOWN;
}

int hf_etcd_hold_is_dead(const struct hf_etcd *etcd, const struct hf_etcd_hold *hold, char evidence[HF_EVIDENCE_MAX])
{
	for (unsigned i = 0; i < hold->n_owners; i++) {
		int verdict = hf_etcd_judge(etcd, &hold->owners[i].owner, NULL, evidence);

		if (verdict != HF_E_GONE && verdict != HF_E_RECYCLED)
			return 0;
	}
	return hold->n_owners > 0;
}

static json_t *owner_json(const struct hf_etcd_owner *from)
{
	char text[HF_PROC_TEXT_MAX];

	(void)hf_proc_format(&from->owner.id, text);
	return json_pack("{s:s,s:s%,s:s,s:i}", "host", from->owner.host, "name", from->name, strlen(from->name), "id", text,
			 "thread", (int)from->owner.thread);
}

static int owner_read(const json_t *json, struct hf_etcd_owner *ret)
{
	const json_t *id = json_object_get(json, "id");
	const char *host = json_string_value(json_object_get(json, "host"));
	const char *name = json_string_value(json_object_get(json, "name"));

	*ret = (struct hf_etcd_owner){ 0 };
	if (!host || strlen(host) != HF_HOST_ID_LEN || !json_is_string(id) ||
	    hf_proc_parse(json_string_value(id), json_string_length(id), &ret->owner.id, NULL) < 0)
		return -EINVAL;
	hf_copy_text(ret->owner.host, sizeof(ret->owner.host), host);
	hf_copy_text(ret->name, sizeof(ret->name), name ? name : "");
	ret->owner.thread = (int32_t)hf_json_number(json, "thread");
	return 0;
}

/* -- modes ----------------------------------------------------------------------------- */

static const char *mode_word(enum hf_lock_mode mode)
{
	return mode == HF_LOCK_SHARED ? "s" : mode == HF_LOCK_SLOTS ? "n" : "x";
}

static int mode_read(const json_t *json, enum hf_lock_mode *ret_mode, unsigned *ret_slots)
{
	const char *word = json_string_value(json_object_get(json, "mode"));
	int64_t slots = hf_json_number(json, "slots");

	if (!word || word[0] == '\0' || word[1] != '\0' || !strchr("xsn", word[0]) || slots < 0 || slots > HF_LOCK_SLOTS_MAX)
		return -EINVAL;
	*ret_mode = word[0] == 's' ? HF_LOCK_SHARED : word[0] == 'n' ? HF_LOCK_SLOTS : HF_LOCK_EXCLUSIVE;
	*ret_slots = (unsigned)slots;
	return 0;
}

/* -- keys with values --------------------------------------------------------------------- */

void hf_kv_done(struct hf_kv *kv)
{
	hf_buf_done(&kv->key);
	hf_buf_done(&kv->value);
}

static int read_bytes(const json_t *json, const char *key, struct hf_buf *ret)
{
	const json_t *text = json_object_get(json, key);

	hf_buf_reset(ret);
	if (!text)
		return 0; /* an empty value is left out */
	return json_is_string(text) ? hf_base64_read(json_string_value(text), json_string_length(text), ret) : -EINVAL;
}

int hf_kv_of(const json_t *kv, struct hf_kv *ret)
{
	if (!json_is_object(kv) || read_bytes(kv, "key", &ret->key) < 0)
		return 0;
	if (read_bytes(kv, "value", &ret->value) < 0)
		hf_buf_reset(&ret->value);
	ret->create = hf_json_number(kv, "create_revision");
	ret->mod = hf_json_number(kv, "mod_revision");
	ret->lease = hf_json_number(kv, "lease");
	return 1;
}

int hf_kv_read(const json_t *range, size_t n, struct hf_kv *ret)
{
	return hf_kv_of(json_array_get(json_object_get(range, "kvs"), n), ret);
}

/* NULL unless it is an object of a version that this program knows. */
static json_t *load(const struct hf_buf *value)
{
	json_t *json = json_loadb(value->s, value->len, 0, NULL);

	if (json_is_object(json) && hf_json_number(json, "v") == 1)
		return json;
	json_decref(json);
	return NULL;
}

static void last_part(const struct hf_buf *key, char *out, size_t cap)
{
	const char *slash = strrchr(key->s, '/');

	hf_copy_text(out, cap, slash ? slash + 1 : "");
}

void hf_place_read(const struct hf_kv *kv, struct hf_place *ret)
{
	json_t *json = load(&kv->value);
	const char *state = json_string_value(json_object_get(json, "state"));
	const char *asked = json_string_value(json_object_get(json, "asked"));
	const json_t *waiter = json_object_get(json, "waiter");
	int64_t token = hf_json_number(json, "token");

	*ret = (struct hf_place){ .create = kv->create, .lease = kv->lease, .holds = 1 };
	last_part(&kv->key, ret->id, sizeof(ret->id));
	if (state && token >= 0 && mode_read(json, &ret->mode, &ret->slots) == 0 &&
	    owner_read(json_object_get(json, "owner"), &ret->owner) == 0 &&
	    (!waiter || owner_read(waiter, &ret->waiter) == 0)) {
		ret->holds = strcmp(state, "hold") == 0;
		if (!waiter)
			ret->waiter = ret->owner;
		ret->token = (uint64_t)token;
		ret->since_ms = hf_json_number(json, "since");
		hf_copy_text(ret->asked, sizeof(ret->asked), asked ? asked : "");
		ret->readable = 1;
	}
	json_decref(json);
}

int hf_hold_read(const struct hf_kv *kv, struct hf_etcd_hold *ret)
{
	json_t *json = load(&kv->value), *owners = json_object_get(json, "owners");
	const char *place = json_string_value(json_object_get(json, "place"));
	char token[32];
	int r = json && place && strlen(place) == HF_ETCD_ID_MAX - 1 ? 0 : -EINVAL;

	*ret = (struct hf_etcd_hold){ .mod = kv->mod };
	last_part(&kv->key, token, sizeof(token));
	if (hf_parse_u64(token, strlen(token), UINT64_MAX, &ret->token) < 0)
		r = -EINVAL;
	if (r == 0)
		r = mode_read(json, &ret->mode, &ret->slots);
	for (size_t i = 0; r == 0 && i < json_array_size(owners) && i < HF_ETCD_OWNERS; i++)
		if (owner_read(json_array_get(owners, i), &ret->owners[ret->n_owners]) == 0)
			ret->n_owners++;
	if (r == 0) {
		hf_copy_text(ret->place, sizeof(ret->place), place);
		ret->lease = hf_json_number(json, "lease");
		ret->count = (unsigned)hf_json_number(json, "count");
		ret->flags = (unsigned)hf_json_number(json, "flags");
		ret->ttl_ns = hf_json_number(json, "ttl") * HF_SEC;
		ret->since_ms = hf_json_number(json, "since");
	}
	json_decref(json);
	return r;
}

static char *text_of(json_t *json)
{
	char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

	json_decref(json);
	return text;
}

/* 64-bit numbers as texts, as etcd itself does. */
static json_t *number_json(int64_t number)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%lld", (long long)number);
	return json_string(text);
}

char *hf_place_text(const struct hf_place *place)
{
	/* Only of one that waits it matters which process does. */
	json_t *waiter = place->holds ? NULL : owner_json(&place->waiter);

	return text_of(json_pack("{s:i,s:s,s:s,s:i,s:o,s:o,s:o*,s:o,s:s}", "v", 1, "state", place->holds ? "hold" : "wait", "mode",
				 mode_word(place->mode), "slots", (int)place->slots, "token", number_json((int64_t)place->token),
				 "owner", owner_json(&place->owner), "waiter", waiter, "since", number_json(place->since_ms), "asked",
				 place->asked));
}

char *hf_hold_text(const struct hf_etcd_hold *hold)
{
	json_t *owners = json_array();

	for (unsigned i = 0; i < hold->n_owners; i++)
		if (json_array_append_new(owners, owner_json(&hold->owners[i])) < 0) {
			json_decref(owners);
			return NULL;
		}
	return text_of(json_pack("{s:i,s:s,s:i,s:o,s:s,s:o,s:i,s:i,s:o,s:o}", "v", 1, "mode", mode_word(hold->mode), "slots",
				 (int)hold->slots, "lease", number_json(hold->lease), "place", hold->place, "owners", owners,
				 "count", (int)hold->count, "flags", (int)hold->flags, "ttl", number_json(hold->ttl_ns / HF_SEC),
				 "since", number_json(hold->since_ms)));
}
