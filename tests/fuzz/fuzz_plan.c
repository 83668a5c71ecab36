/*
 * tests/fuzz/fuzz_plan.c - any bytes as the record of a plan.
 *
 * The first byte selects: bit 0, the checksum is put behind it first, because no fuzzer finds it by
 * trying. The text then lacks its closing brace and its "x", as if cut before them.
 */
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "fuzz.h"
#include "hf/plan/registry/registry.h"

/* What entering, committing and removing rely on without asking again (L12). */
static void record_makes_sense(const struct hf_plan_record *r)
{
	MUST(r->name[0] && memchr(r->name, '\0', sizeof(r->name)));
	MUST(memchr(r->reason, '\0', sizeof(r->reason)) && memchr(r->session, '\0', sizeof(r->session)));
	MUST(r->state >= HF_PLAN_CREATED && r->state <= HF_PLAN_CLEANED);
	MUST(r->n_sandboxes <= HF_PLAN_SANDBOXES_MAX);
	for (size_t i = 0; i < r->n_sandboxes; i++) {
		const struct hf_sandbox_record *s = &r->sandboxes[i];
		const char *path = s->target.path;

		MUST(s->name[0] && memchr(s->why, '\0', sizeof(s->why)));
		MUST(s->strategy >= HF_STRATEGY_OVERLAY && s->strategy <= HF_STRATEGY_COPY);
		MUST(path && path[0] == '/' && strlen(path) < 4096);
		MUST(!strstr(path, "/../") && !strstr(path, "//") && !strstr(path, "/./"));
		MUST(strlen(path) < 3 || strcmp(path + strlen(path) - 3, "/..") != 0);
		MUST(s->entered_boot[0] == '\0' || strlen(s->entered_boot) == HF_BOOT_ID_LEN);
		MUST(strlen(s->t0.boot_id) == HF_BOOT_ID_LEN);
	}
}

static void check(const char *text, size_t len)
{
	struct hf_plan_record record = HF_PLAN_RECORD_INIT, again = HF_PLAN_RECORD_INIT;
	struct hf_buf out = HF_BUF_INIT;
	const char *why = NULL;
	int r = hf_plan_decode(text, len, &record, &why);

	MUST(r == 0 || why);
	if (r == 0) {
		record_makes_sense(&record);
		hf_plan_encode(&record, &out);
		MUST(out.err == 0 && hf_plan_decode(out.s, out.len, &again, &why) == 0);
		MUST(again.n_sandboxes == record.n_sandboxes);
	}
	hf_plan_record_done(&record);
	hf_plan_record_done(&again);
	hf_buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hf_buf text = HF_BUF_INIT;

	if (size == 0)
		return 0;
	hf_buf_add(&text, data + 1, size - 1);
	if (data[0] & 1) {
		uint64_t sum = XXH3_64bits(text.s, text.len);

		hf_buf_add_text(&text, ",\"x\":\"");
		hf_buf_add_hex64(&text, sum);
		hf_buf_add_text(&text, "\"}");
	}
	if (text.err == 0)
		check(text.s, text.len);
	hf_buf_done(&text);
	return 0;
}
