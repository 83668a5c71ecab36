/*
 * tests/fuzz/fuzz_settings.c - our hooks put into any text, and taken out again.
 *
 * The first byte selects: bits 0 and 1 the client, bit 2 the guard, bit 3 whether the text may be put right.
 */
#include <errno.h>
#include <string.h>

#include "fuzz.h"
#include "hf/hook/settings/settings.h"

static int is_same(const struct hf_buf *a, const struct hf_buf *b)
{
	return a->len == b->len && memcmp(a->s, b->s, a->len) == 0;
}

/* In and out of a text that has none of ours: the same bytes. */
static void there_and_back(const struct hf_settings_want *want, struct hf_buf *text)
{
	struct hf_buf before = HF_BUF_INIT, once = HF_BUF_INIT;
	struct hf_err err = HF_ERR_INIT;
	int same = 0, empty = 0, n, r;

	hf_buf_add(&before, text->s, text->len);
	r = hf_settings_put(want, text, "f", &err);
	MUST(r == 1 || r == HF_E_FORMAT);
	if (r == 1) {
		MUST(hf_settings_check(want->client, text, 0, "f", &err) == 0);
		n = hf_settings_count(want, text, &same, "f", &err);
		MUST(n > 0 && same);
		hf_buf_add(&once, text->s, text->len);
		MUST(hf_settings_put(want, text, "f", &err) == 0 && is_same(text, &once));
		MUST(hf_settings_take(want->client, text, &empty, "f", &err) == n);
		MUST(is_same(text, &before));
		MUST(!empty || want->client == HF_CLIENT_COPILOT);
	}
	hf_buf_done(&before);
	hf_buf_done(&once);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hf_settings_want want = { .program = "/usr/bin/hold fast/holdfast" };
	struct hf_buf text = HF_BUF_INIT;
	struct hf_err err = HF_ERR_INIT;
	int fix, same, empty, r;

	/* Each handler is looked for from the beginning. */
	if (size == 0 || size > 65536)
		return 0;
	want.client = (enum hf_client)(HF_CLIENT_CLAUDE + (data[0] & 3));
	want.guard = data[0] >> 2 & 1;
	fix = data[0] >> 3 & 1;
	hf_buf_add(&text, data + 1, size - 1);
	r = hf_settings_check(want.client, &text, fix, "f", &err);
	MUST(r == 0 || r == HF_E_FORMAT || (r == 1 && fix));
	/* Put right is right. */
	if (r >= 0) {
		MUST(hf_settings_check(want.client, &text, 0, "f", &err) == 0);
		r = hf_settings_count(&want, &text, &same, "f", &err);
		MUST(r >= 0 || r == HF_E_FORMAT);
	}
	if (r > 0) {
		r = hf_settings_take(want.client, &text, &empty, "f", &err);
		MUST(r > 0 || r == HF_E_FORMAT);
		if (r > 0) {
			MUST(hf_settings_check(want.client, &text, 0, "f", &err) == 0);
			r = hf_settings_count(&want, &text, &same, "f", &err);
			MUST(r == 0);
		}
	}
	if (r == 0)
		there_and_back(&want, &text);
	hf_buf_done(&text);
	return 0;
}
