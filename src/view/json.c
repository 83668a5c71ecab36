/* view/json.c - values by the rules of json.h. */
#include <stdio.h>
#include <string.h>

#include "hf/base/buf.h"
#include "hf/base/cleanup.h"
#include "hf/view/json.h"
#include "holdfast/name.h"

static void keep_or_drop(json_t **target, int failed)
{
	if (!failed)
		return;
	json_decref(*target);
	*target = NULL;
}

void hf_view_set(json_t **object, const char *key, json_t *value)
{
	/* json_object_set_new takes the value in any case, and fails on NULL. */
	keep_or_drop(object, json_object_set_new(*object, key, value) < 0);
}

void hf_view_add(json_t **array, json_t *value)
{
	keep_or_drop(array, json_array_append_new(*array, value) < 0);
}

json_t *hf_view_text(const char *text)
{
	AUTO(hf_buf_done) struct hf_buf quoted = HF_BUF_INIT;

	if (!text)
		return json_null();
	(void)hf_buf_add_json(&quoted, text, strlen(text), SIZE_MAX);
	return quoted.err ? NULL : json_loads(quoted.s, JSON_DECODE_ANY, NULL);
}

json_t *hf_view_number(int64_t value, int64_t unit)
{
	return value < 0 ? json_null() : json_integer(value / unit);
}

json_t *hf_view_time(struct hf_wall time)
{
	char text[HF_WALL_TEXT_MAX];

	if (time.ns == 0)
		return json_null();
	hf_wall_format(time, text);
	return json_string(text);
}

json_t *hf_view_since(struct hf_wall time)
{
	return time.ns == 0 ? json_null() : hf_view_number(hf_wall_now().ns - time.ns, HF_MSEC);
}

json_t *hf_view_process(const struct hf_proc_id *id)
{
	char text[HF_PROC_TEXT_MAX];
	json_t *object;

	if (id->pid == 0)
		return json_null();
	object = json_object();
	(void)hf_proc_format(id, text);
	hf_view_set(&object, "pid", json_integer(id->pid));
	hf_view_set(&object, "id", json_string(text));
	return object;
}

void hf_view_set_name(json_t **object, const char *name)
{
	char key[HF_NAME_KEY_MAX];

	hf_view_set(object, "name", hf_view_text(name));
	hf_view_set(object, "key",
		    hf_name_key(name, strlen(name), key, NULL) < 0 ? json_null() : json_string(key));
}

void hf_view_error_code(int code, char out[HF_VIEW_CODE_MAX])
{
	const struct hf_err_info *info = hf_err_info(code);
	const char *name = info ? info->name : strerrorname_np(-code);

	/* What is stale is the token. */
	(void)snprintf(out, HF_VIEW_CODE_MAX, "%s", code == HF_E_STALE ? "stale-token" : name ? name : "unknown");
	for (char *at = out; info && *at; at++)
		*at = *at == '_' ? '-' : *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : *at;
}

json_t *hf_view_error(const struct hf_err *err, int exit_status)
{
	char code[HF_VIEW_CODE_MAX], text[HF_ERR_TEXT_MAX];
	json_t *object = json_object();

	hf_view_error_code(err->code, code);
	(void)hf_err_format(err, text, sizeof(text));
	hf_view_set(&object, "code", json_string(code));
	hf_view_set(&object, "message", hf_view_text(text));
	hf_view_set(&object, "exit", json_integer(exit_status));
	return object;
}
