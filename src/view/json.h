/*
 * view/json.h - the rules that every shape of docs/JSON.md keeps.
 *
 * What is not known is null, never -1 or 0; one unit for each kind of number (_ms, _bytes,
 * _pct); times are RFC 3339 in UTC; text that is not UTF-8 has U+FFFD where it is not.
 *
 *     json_t *object = json_object();
 *     hf_view_set(&object, "name", hf_view_text(name));
 *     hf_view_set(&object, "held_ms", hf_view_number(held_ns, HF_MSEC));
 *     return object;                            NULL: there was no memory for all of it
 */
#ifndef VIEW_JSON_H
#define VIEW_JSON_H

#include <stdint.h>

#include <jansson.h>

#include "holdfast/clock.h"
#include "holdfast/err.h"
#include "holdfast/proc.h"

/* Adds to *object and takes `value`. Without memory *object is freed and stays NULL from then on. */
void hf_view_set(json_t **object, const char *key, json_t *value);

/* The same for an array. */
void hf_view_add(json_t **array, json_t *value);

/* A string; null for NULL. */
json_t *hf_view_text(const char *text);

/* `value` in units of `unit`; null when it is negative. */
json_t *hf_view_number(int64_t value, int64_t unit);

/* A time; null for 0. */
json_t *hf_view_time(struct hf_wall time);

/* The time that has passed since then, in ms; null where the clock says that it has not come yet. */
json_t *hf_view_since(struct hf_wall time);

/* {"pid":…,"id":…}; null for pid 0. */
json_t *hf_view_process(const struct hf_proc_id *id);

/* Adds "name" and, beside it, the name's key, which is always ASCII and tells all names apart. */
void hf_view_set_name(json_t **object, const char *name);

/* {"code":"stale-token","message":…,"exit":3}, as the member "error" has it. */
json_t *hf_view_error(const struct hf_err *err, int exit_status);

/* What "code" is for a return value: "stale-token", "no-session", or "EACCES" for an errno. */
#define HF_VIEW_CODE_MAX 32
void hf_view_error_code(int code, char out[HF_VIEW_CODE_MAX]);

#endif
