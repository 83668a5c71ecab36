/* tx/land/candidate/record.c - a candidate's record: JSON with a checksum, replaced as a whole. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/journal/put_away.h"
#include "hf/sys/io.h"
#include "hf/sys/replace.h"
#include "hf/sys/state/state.h"
#include "hf/tx/land/move/forecast.h"

#define RECORD_MAX ((size_t)8 << 20)
#define SUM_LEN    17 /* 16 digits and a newline, before the object */

static int save(struct hf_landings *landings, struct hf_landing *landing, unsigned flags, struct hf_err *err)
{
	char key[HF_NAME_KEY_MAX], temp[HF_NAME_KEY_MAX + 8];
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	AUTO_FREE char *text = NULL;
	json_t *root;
	int r = hf_name_key(landing->name, strlen(landing->name), key, err);

	if (r < 0)
		return r;
	landing->changed = hf_wall_now();
	root = hf_landing_encode(landing);
	text = root ? json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	json_decref(root);
	if (!text)
		return hf_fail_sys(err, ENOMEM, "memory", landing->name);
	hf_buf_add_hex64(&out, XXH3_64bits(text, strlen(text)));
	hf_buf_add_char(&out, '\n');
	hf_buf_add_text(&out, text);
	hf_buf_add_char(&out, '\n');
	if (out.err)
		return hf_fail_sys(err, ENOMEM, "memory", landing->name);
	(void)snprintf(temp, sizeof(temp), ".%s.new", key);
	r = hf_replace_file(landings->dirfd, key, temp, out.s, out.len, flags);
	return r < 0 ? hf_fail_sys(err, -r, "write", landing->name) : 0;
}

int hf_landing_save(struct hf_landings *landings, struct hf_landing *landing, struct hf_err *err)
{
	return save(landings, landing, HF_REPLACE_SYNC, err);
}

int hf_landing_note(struct hf_landings *landings, struct hf_landing *landing, struct hf_err *err)
{
	return save(landings, landing, 0, err);
}

static int quarantine(struct hf_landings *landings, const char *name, const char *key, const char *why,
		      struct hf_err *err)
{
	char moved[HF_QUARANTINE_NAME_MAX], file[HF_NAME_KEY_MAX + 16];
	struct hf_field fields[] = { HF_FIELD_TEXT("file", file), HF_FIELD_TEXT("moved_to", moved),
				     HF_FIELD_TEXT("reason", why) };
	int r = hf_state_quarantine(landings->state, "landings", key, moved, err);

	if (r < 0)
		return r;
	(void)snprintf(file, sizeof(file), "landings/%s", key);
	hf_land_event(landings, HF_EV_RECORD_QUARANTINED, name, fields, 3);
	hf_quarantine_trim(landings->state, landings->journal, moved);
	return FAIL(err, HF_E_FORMAT, "land", name, "its record was quarantined: %s", why);
}

static const char *read_record(int fd, const struct stat *st, struct hf_landing *ret)
{
	AUTO_FREE char *text = NULL;
	const char *why;
	uint64_t sum;
	json_t *root;
	ssize_t n;

	if (st->st_size <= SUM_LEN + 1 || (size_t)st->st_size > RECORD_MAX)
		return "its size is invalid";
	text = malloc((size_t)st->st_size + 1);
	n = text ? hf_pread_all(fd, text, (size_t)st->st_size, 0) : -1;
	if (n <= SUM_LEN + 1)
		return "it cannot be read";
	n -= text[n - 1] == '\n';
	if (hf_parse_hex64(text, 16, &sum) < 0 || sum != XXH3_64bits(text + SUM_LEN, (size_t)n - SUM_LEN))
		return "its checksum is wrong";
	root = json_loadb(text + SUM_LEN, (size_t)n - SUM_LEN, JSON_REJECT_DUPLICATES, NULL);
	why = json_is_object(root) ? hf_landing_decode(root, ret) : "it is not an object";
	json_decref(root);
	return why;
}

int hf_landing_load(struct hf_landings *landings, const char *name, struct hf_landing *ret, struct hf_err *err)
{
	AUTO(hf_landing_done) struct hf_landing landing = { 0 };
	char key[HF_NAME_KEY_MAX];
	const char *why;
	AUTO_FD fd = -1;
	struct stat st;
	int r = hf_name_key(name, name ? strlen(name) : 0, key, err);

	if (r < 0)
		return r;
	r = landings->dirfd < 0 ? -ENOENT : hf_open_private(landings->dirfd, key, O_RDONLY, name, &fd, &st, err);
	if (r == -ENOENT)
		return FAIL(err, HF_E_NO_LANDING, "land", name, "'holdfast land list' shows all candidates");
	if (r == HF_E_UNTRUSTED)
		return quarantine(landings, name, key, "not a Holdfast file", err);
	if (r < 0)
		return r;
	if (hf_landing_init(&landing, name) < 0)
		return hf_fail_sys(err, ENOMEM, "memory", name);
	why = read_record(fd, &st, &landing);
	if (why)
		return quarantine(landings, name, key, why, err);
	*ret = landing;
	landing = (struct hf_landing){ 0 };
	return 0;
}

int hf_landing_become(struct hf_landings *landings, struct hf_landing *landing, enum hf_land_state state,
		      struct hf_err *err, const char *format, ...)
{
	char text[HF_LAND_TEXT_MAX];
	va_list list;

	va_start(list, format);
	(void)vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	landing->state = state;
	if (hf_landing_set(&landing->text, text) < 0)
		return hf_fail_sys(err, ENOMEM, "memory", landing->name);
	/* That there was nothing to land is not worth a sync: nothing is lost with it. */
	if (!landing->forecasted)
		return save(landings, landing, state == HF_LAND_LANDED && landing->commits == 0 ? 0 : HF_REPLACE_SYNC, err);
	landing->forecasted->state = state;
	hf_copy_text(landing->forecasted->text, sizeof(landing->forecasted->text), text);
	hf_copy_text(landing->forecasted->commit, sizeof(landing->forecasted->commit), landing->commit);
	if (state == HF_LAND_VERIFYING)
		atomic_store(&landing->forecasted->is_known, 1);
	return 0;
}
