/* lock/etcd/wire/watch.c - watches over the gateway: one POST, and a line of JSON for each event. */
#include <stdio.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/etcd/wire/watch.h"

int hf_watch_open(struct hf_etcd *etcd, const struct hf_watch_aim *aim, struct hf_watch *ret, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT;
	char url[HF_ETCD_HOST_MAX + 16], token[HF_ETCD_TOKEN_MAX];
	struct hf_http_request request = { .url = url, .has_leader = 1 };
	int r;

	hf_buf_add_text(&body, "{\"create_request\":{\"key\":\"");
	hf_buf_add_base64(&body, aim->key, strlen(aim->key));
	if (aim->end[0]) {
		hf_buf_add_text(&body, "\",\"range_end\":\"");
		hf_buf_add_base64(&body, aim->end, strlen(aim->end));
	}
	hf_buf_add_format(&body, "\",\"start_revision\":\"%lld\"%s}}", (long long)aim->revision,
			  aim->only_deletes ? ",\"filters\":[\"NOPUT\"],\"prev_kv\":true" : "");
	if (body.err < 0)
		return hf_fail_sys(err, -body.err, "memory", "watch");
	(void)pthread_mutex_lock(&etcd->mutex);
	memcpy(token, etcd->token, sizeof(token));
	*ret = (struct hf_watch){ .etcd = etcd, .endpoint = etcd->endpoint };
	(void)pthread_mutex_unlock(&etcd->mutex);
	(void)snprintf(url, sizeof(url), "%s/v3/watch", etcd->config.endpoints[ret->endpoint % etcd->config.n_endpoints]);
	request.token = token[0] ? token : NULL;
	request.body = body.s;
	r = etcd->module->stream(etcd->http, &request, &ret->stream);
	return r < 0 ? hf_fail_sys(err, -r, "watch", "etcd") : 0;
}

void hf_watch_close(struct hf_watch *watch)
{
	if (watch->stream)
		watch->etcd->module->close(watch->stream);
	watch->stream = NULL;
}

int hf_watch_is_current(const struct hf_watch *watch)
{
	unsigned endpoint;

	(void)pthread_mutex_lock(&watch->etcd->mutex);
	endpoint = watch->etcd->endpoint;
	(void)pthread_mutex_unlock(&watch->etcd->mutex);
	return endpoint == watch->endpoint;
}

/* Did the event delete a place that held the lock alone? etcd tells what was there, unless that is compacted. */
static int frees(const json_t *event)
{
	AUTO(hf_kv_done) struct hf_kv kv = HF_KV_INIT;
	const char *type = json_string_value(json_object_get(event, "type"));
	struct hf_place place;

	if (!type || strcmp(type, "DELETE") != 0 || !hf_kv_of(json_object_get(event, "prev_kv"), &kv))
		return 0;
	hf_place_read(&kv, &place);
	return place.readable && place.holds && place.mode == HF_LOCK_EXCLUSIVE;
}

/* What one line says: 1 an event, -1 the end, 0 neither. */
static int read_line(struct hf_watch *watch, const char *line, size_t len)
{
	json_t *json = json_loadb(line, len, 0, NULL);
	const json_t *result = json_object_get(json, "result"), *events = json_object_get(result, "events");
	int r = 0;

	if (!json_is_object(result) || json_is_true(json_object_get(result, "canceled")))
		r = -1;
	else if (json_array_size(events) > 0)
		r = 1;
	for (size_t i = 0; i < json_array_size(events); i++)
		watch->freed |= frees(json_array_get(events, i));
	json_decref(json);
	return r;
}

static int read_lines(struct hf_watch *watch)
{
	const struct hf_http_module *module = watch->etcd->module;
	int r = 0;

	while (r == 0) {
		size_t len;
		const char *bytes = module->bytes(watch->stream, &len);
		const char *end = memchr(bytes, '\n', len);

		if (!end)
			break;
		r = read_line(watch, bytes, (size_t)(end - bytes));
		module->take(watch->stream, (size_t)(end - bytes) + 1);
	}
	return r;
}

int hf_watch_wait(struct hf_watch *watch, struct pollfd *fds, nfds_t n, int64_t ns)
{
	int came = watch->etcd->module->await(watch->stream, fds, n, ns);
	int r = came > 0 ? read_lines(watch) : 0;

	return r != 0 ? r : came < 0 ? -1 : 0;
}
