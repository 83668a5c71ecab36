/*
 * tests/fuzz/fuzz_intent.c - any bytes as an intent.
 *
 * The first byte selects: bit 0, the checksum and the length are put right first, because no fuzzer
 * finds them by trying.
 */
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "fuzz.h"
#include "hf/plan/tree/attrs.h"
#include "hf/plan/tree/dirtree.h"
#include "hf/plan/recovery/intent.h"

#define HEAD     96 /* of the head; intent.c has it as a struct */
#define PHASE_AT 8
#define BYTES_AT 40
#define SUM_AT   88

/* What applying and undoing rely on without asking again (L12). */
static void makes_sense(const struct hf_intent *intent)
{
	MUST(intent->token && (unsigned)intent->phase <= HF_INTENT_APPLIED);
	MUST(intent->n_targets <= HF_PLAN_SANDBOXES_MAX && intent->n_fences <= HF_FENCES_MAX);
	for (size_t i = 0; i < intent->n_targets; i++)
		MUST(intent->targets[i].path[0] == '/' && intent->targets[i].sandbox[0]);
	for (size_t i = 0; i < intent->n_ops; i++) {
		const struct hf_op *op = &intent->ops[i];

		MUST(op->target < intent->n_targets);
		MUST(hf_dirtree_path_ok(op->path, strlen(op->path)));
		MUST(hf_dirtree_path_ok(op->slot, strlen(op->slot)));
		MUST(op->path[0] || op->kind == HF_OP_META || op->kind == HF_OP_STAGE_MODE);
		MUST(op->slot[0] || op->kind == HF_OP_META);
		MUST(hf_attrs_ok(op->attrs, op->attrs_len));
	}
}

static void decode(const char *bytes, size_t len)
{
	struct hf_intent intent = HF_INTENT_INIT, again = HF_INTENT_INIT;
	struct hf_buf once = HF_BUF_INIT;
	const char *why = NULL;
	int r = hf_intent_decode(bytes, len, &intent, &why);

	MUST(r == 0 ? !why : (r == HF_E_FORMAT && why) || r == -ENOMEM);
	if (r < 0)
		return;
	makes_sense(&intent);
	hf_intent_encode(&intent, &once);
	MUST(once.err == 0);
	MUST(hf_intent_decode(once.s, once.len, &again, &why) == 0);
	MUST(again.n_ops == intent.n_ops && again.token == intent.token);
	hf_intent_done(&intent);
	hf_intent_done(&again);
	hf_buf_done(&once);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Of exactly that size, so that a sanitizer sees a step beyond it. */
	char *bytes = size > 1 ? malloc(size - 1) : NULL;

	if (!bytes)
		return 0;
	memcpy(bytes, data + 1, --size);
	if (data[0] & 1 && size >= HEAD) {
		char head[HEAD];
		uint64_t len = size - HEAD, sum;

		memcpy(bytes, "hfintent", 8);
		memcpy(bytes + BYTES_AT, &len, sizeof(len));
		memcpy(head, bytes, HEAD);
		memset(head + PHASE_AT, 0, 4);
		memset(head + SUM_AT, 0, 8);
		sum = XXH3_64bits_withSeed(bytes + HEAD, len, XXH3_64bits(head, HEAD));
		memcpy(bytes + SUM_AT, &sum, sizeof(sum));
	}
	decode(bytes, size);
	free(bytes);
	return 0;
}
