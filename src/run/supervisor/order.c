/* run/supervisor/order.c - the order to a supervisor, written and read. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/run/options_json.h"
#include "hf/run/supervisor/order.h"

void hf_order_done(struct hf_order *order)
{
	hf_options_free(&order->o);
	free(order->name);
	free(order->state_path);
	memset(order, 0, sizeof(*order));
}

void hf_order_add_json(struct hf_buf *out, const char *name, const char *state_path, const struct hf_run_opts *given)
{
	hf_buf_add_text(out, "{\"v\":1,\"name\":");
	hf_json_add_word(out, name);
	hf_buf_add_text(out, ",\"state\":");
	hf_json_add_word(out, state_path);
	hf_buf_add_format(out, ",\"resume\":%s,\"wait_ns\":", given->flags & HF_RUN_RESUME ? "true" : "false");
	hf_buf_add_i64(out, given->wait_ns);
	hf_buf_add_text(out, ",\"resume_token\":");
	hf_buf_add_u64(out, given->resume_token);
	hf_buf_add_char(out, ',');
	hf_options_add_json(out, given);
	hf_buf_add_char(out, '}');
}

/* What is wrong with it; NULL: nothing. */
static const char *decode(json_t *root, struct hf_order *ret)
{
	json_t *resume = json_object_get(root, "resume"), *wait = json_object_get(root, "wait_ns");
	json_t *token = json_object_get(root, "resume_token");

	if (!json_is_object(root) || json_integer_value(json_object_get(root, "v")) != 1)
		return "unknown version";
	if (json_object_size(root) != 10 || !json_is_boolean(resume) || !json_is_integer(wait) || !json_is_integer(token) ||
	    json_integer_value(token) < 0)
		return "it has unknown fields, or lacks some";
	ret->name = hf_json_take_word(json_object_get(root, "name"));
	ret->state_path = hf_json_take_word(json_object_get(root, "state"));
	if (!ret->name || !ret->state_path)
		return "its name or its state directory is invalid";
	ret->o.size = sizeof(ret->o);
	ret->o.wait_ns = json_integer_value(wait);
	ret->o.resume_token = (uint64_t)json_integer_value(token);
	ret->o.flags = json_is_true(resume) ? HF_RUN_RESUME : 0;
	if (!hf_options_take_argv(root, HF_OPTIONS_GIVEN, &ret->o))
		return "its command is invalid";
	return hf_options_take_rest(root, HF_OPTIONS_GIVEN, &ret->o);
}

int hf_order_read(const char *text, size_t len, struct hf_order *ret, struct hf_err *err)
{
	json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
	const char *why = "it is not JSON";
	int r;

	memset(ret, 0, sizeof(*ret));
	if (root)
		why = decode(root, ret);
	json_decref(root);
	r = why ? FAIL(err, HF_E_FORMAT, "order", HF_SUPERVISE_PROGRAM, "%s", why)
		: hf_options_check(ret->name, &ret->o, err);
	if (r < 0)
		hf_order_done(ret);
	return r;
}
