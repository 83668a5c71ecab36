/* plan/recovery/intent.c - an intent as bytes, and back with every doubt. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hf/base/cleanup.h"
#include "hf/plan/tree/attrs.h"
#include "hf/plan/tree/dirtree.h"
#include "hf/plan/recovery/intent.h"

static const char magic[8] = { 'h', 'f', 'i', 'n', 't', 'e', 'n', 't' };

struct head {
	char magic[8];
	uint32_t phase;
	uint32_t version;
	uint32_t purpose;
	uint32_t n_fences, n_targets, n_ops;
	uint64_t token;
	uint64_t bytes; /* behind the head */
	char boot_id[40];
	uint64_t sum;
} __attribute__((packed));

struct fence_row {
	uint64_t token;
} __attribute__((packed));

struct target_row {
	uint64_t dev, ino, stage_ino;
	uint32_t in_target;
} __attribute__((packed));

struct op_row {
	uint8_t kind, flags;
	uint16_t target;
	uint32_t old_mode, new_mode, old_uid, old_gid, new_uid, new_gid;
	uint64_t old_ino, new_ino, parent_ino, old_size, new_size;
	int64_t old_mtime_ns, new_mtime_ns, old_ctime_ns;
} __attribute__((packed));

/* `phase` is left out of the sum because it alone changes later. */
_Static_assert(offsetof(struct head, phase) == 8, "hf_intent_set_phase writes there");

static uint64_t sum_of(struct head head, const char *body, size_t len)
{
	XXH64_hash_t seed;

	head.phase = 0;
	head.sum = 0;
	seed = XXH3_64bits(&head, sizeof(head));
	return XXH3_64bits_withSeed(body, len, seed);
}

void hf_intent_done(struct hf_intent *intent)
{
	free(intent->fences);
	free(intent->targets);
	free(intent->ops);
	free(intent->memory);
	*intent = (struct hf_intent)HF_INTENT_INIT;
}

/* -- writing ------------------------------------------------------------------------ */

static void add_bytes(struct hf_buf *out, const void *bytes, size_t len)
{
	uint32_t n = (uint32_t)len;

	hf_buf_add(out, &n, sizeof(n));
	hf_buf_add(out, bytes, len);
	hf_buf_add_char(out, '\0');
}

static void add_op(struct hf_buf *out, const struct hf_op *op)
{
	struct op_row row = { .kind = op->kind, .flags = op->flags, .target = op->target,
			      .old_mode = op->old_mode, .new_mode = op->new_mode,
			      .old_uid = op->old_uid, .old_gid = op->old_gid,
			      .new_uid = op->new_uid, .new_gid = op->new_gid,
			      .old_ino = op->old_ino, .new_ino = op->new_ino,
			      .parent_ino = op->parent_ino, .old_size = op->old_size,
			      .new_size = op->new_size, .old_mtime_ns = op->old_mtime_ns,
			      .new_mtime_ns = op->new_mtime_ns,
			      .old_ctime_ns = op->old_ctime_ns };

	hf_buf_add(out, &row, sizeof(row));
	add_bytes(out, op->path, strlen(op->path));
	add_bytes(out, op->slot, strlen(op->slot));
	add_bytes(out, op->attrs_len ? op->attrs : "", op->attrs_len);
}

void hf_intent_encode(const struct hf_intent *intent, struct hf_buf *out)
{
	struct head head = { .phase = intent->phase, .version = HF_INTENT_VERSION,
			     .purpose = intent->purpose, .n_fences = (uint32_t)intent->n_fences,
			     .n_targets = (uint32_t)intent->n_targets,
			     .n_ops = (uint32_t)intent->n_ops, .token = intent->token };
	size_t start = out->len;

	memcpy(head.magic, magic, sizeof(magic));
	memcpy(head.boot_id, intent->boot_id, sizeof(intent->boot_id));
	hf_buf_add(out, &head, sizeof(head));
	for (size_t i = 0; i < intent->n_fences; i++) {
		struct fence_row row = { .token = intent->fences[i].token };

		hf_buf_add(out, &row, sizeof(row));
		add_bytes(out, intent->fences[i].name, strlen(intent->fences[i].name));
	}
	for (size_t i = 0; i < intent->n_targets; i++) {
		const struct hf_intent_target *t = &intent->targets[i];
		struct target_row row = { .dev = t->dev, .ino = t->ino, .stage_ino = t->stage_ino,
					  .in_target = (uint32_t)t->in_target };

		hf_buf_add(out, &row, sizeof(row));
		add_bytes(out, t->sandbox, strlen(t->sandbox));
		add_bytes(out, t->path, strlen(t->path));
	}
	for (size_t i = 0; i < intent->n_ops; i++)
		add_op(out, &intent->ops[i]);
	if (out->err)
		return;
	head.bytes = out->len - start - sizeof(head);
	head.sum = sum_of(head, out->s + start + sizeof(head), (size_t)head.bytes);
	memcpy(out->s + start, &head, sizeof(head));
}

/* -- reading ------------------------------------------------------------------------ */

/* What is left to read, and the first thing that was wrong. */
struct reader {
	const char *at, *end;
	const char *why;
};

static int take(struct reader *in, void *row, size_t len)
{
	if (in->why || (size_t)(in->end - in->at) < len) {
		in->why = in->why ? in->why : "it is truncated";
		return 0;
	}
	memcpy(row, in->at, len);
	in->at += len;
	return 1;
}

static const char *take_bytes(struct reader *in, size_t *ret_len)
{
	const char *bytes;
	uint32_t len;

	*ret_len = 0;
	if (!take(in, &len, sizeof(len)))
		return "";
	if ((size_t)(in->end - in->at) <= len || in->at[len] != '\0') {
		in->why = "a string is truncated";
		return "";
	}
	bytes = in->at;
	in->at += (size_t)len + 1;
	*ret_len = len;
	return bytes;
}

/* A string without NUL in it. */
static const char *take_text(struct reader *in)
{
	size_t len;
	const char *text = take_bytes(in, &len);

	if (memchr(text, '\0', len)) {
		in->why = "a string has a NUL";
		return "";
	}
	return text;
}

static int bad(struct reader *in, const char *why)
{
	if (!in->why)
		in->why = why;
	return 0;
}

static int take_fences(struct reader *in, struct hf_intent *ret)
{
	for (size_t i = 0; i < ret->n_fences && !in->why; i++) {
		struct fence_row row = { 0 };

		(void)take(in, &row, sizeof(row));
		ret->fences[i] = (struct hf_intent_fence){ take_text(in), row.token };
		if (!in->why && (row.token == 0 || !ret->fences[i].name[0]))
			return bad(in, "a fence has no name or token");
	}
	return !in->why;
}

static int take_targets(struct reader *in, struct hf_intent *ret)
{
	for (size_t i = 0; i < ret->n_targets && !in->why; i++) {
		struct hf_intent_target *t = &ret->targets[i];
		struct target_row row = { 0 };

		(void)take(in, &row, sizeof(row));
		t->dev = row.dev;
		t->ino = row.ino;
		t->stage_ino = row.stage_ino;
		t->in_target = row.in_target != 0;
		t->sandbox = take_text(in);
		t->path = take_text(in);
		if (!in->why && (!t->sandbox[0] || row.in_target > 1))
			return bad(in, "a target is invalid");
		if (!in->why && !hf_dirtree_target_ok(t->path))
			return bad(in, "a target is not a plain absolute path");
	}
	return !in->why;
}

static int known_type(uint32_t mode)
{
	return (mode & ~(uint32_t)(S_IFMT | 07777)) == 0 &&
	       (S_ISREG(mode) || S_ISDIR(mode) || S_ISLNK(mode));
}

/* The sides that a kind of operation needs, and those it must not have. */
static int sides_fit(const struct hf_op *op)
{
	int old = op->old_mode != 0 && op->old_ino != 0, new = op->new_mode != 0 && op->new_ino != 0;

	switch (op->kind) {
	case HF_OP_EXCHANGE:
		return old && new && known_type(op->new_mode);
	case HF_OP_NEW:
		return !op->old_mode && new && known_type(op->new_mode);
	case HF_OP_DELETE:
		return old && !op->new_mode;
	case HF_OP_META:
	case HF_OP_STAGE_MODE:
		return old && new && op->old_ino == op->new_ino &&
		       (op->old_mode & S_IFMT) == (op->new_mode & S_IFMT);
	case HF_OP_LEAVE:
		return new && !op->old_mode;
	default:
		return 0;
	}
}

/* Only mode and attributes may be those of the root of a target or of a stage. */
static int paths_fit(const struct hf_op *op)
{
	size_t path = strlen(op->path), slot = strlen(op->slot);

	if (!hf_dirtree_path_ok(op->path, path) || !hf_dirtree_path_ok(op->slot, slot))
		return 0;
	if (op->kind == HF_OP_META)
		return slot == 0;
	return slot > 0 && (path > 0 || op->kind == HF_OP_STAGE_MODE);
}

static int take_op(struct reader *in, size_t n_targets, struct hf_op *op)
{
	struct op_row row;

	if (!take(in, &row, sizeof(row)))
		return 0;
	*op = (struct hf_op){ .kind = row.kind, .flags = row.flags, .target = row.target,
			      .old_mode = row.old_mode, .new_mode = row.new_mode,
			      .old_uid = row.old_uid, .old_gid = row.old_gid,
			      .new_uid = row.new_uid, .new_gid = row.new_gid,
			      .old_ino = row.old_ino, .new_ino = row.new_ino,
			      .parent_ino = row.parent_ino, .old_size = row.old_size,
			      .new_size = row.new_size, .old_mtime_ns = row.old_mtime_ns,
			      .new_mtime_ns = row.new_mtime_ns,
			      .old_ctime_ns = row.old_ctime_ns };
	op->path = take_text(in);
	op->slot = take_text(in);
	op->attrs = take_bytes(in, &op->attrs_len);
	if (in->why)
		return 0;
	if (op->target >= n_targets || op->flags > 7)
		return bad(in, "an operation has no target");
	if (!paths_fit(op))
		return bad(in, "a path leaves its directory");
	if (!sides_fit(op))
		return bad(in, "an operation is invalid");
	return hf_attrs_ok(op->attrs, op->attrs_len) ? 1 : bad(in, "attributes are invalid");
}

static const char *check_head(const struct head *head, const char *bytes, size_t len)
{
	if (memcmp(head->magic, magic, sizeof(magic)) != 0)
		return "it is not an intent";
	if (head->version != HF_INTENT_VERSION)
		return "another version wrote it";
	if (head->bytes != len - sizeof(*head) ||
	    head->sum != sum_of(*head, bytes + sizeof(*head), len - sizeof(*head)))
		return "its checksum is wrong";
	if (head->phase > HF_INTENT_APPLIED || head->purpose < HF_INTENT_COMMIT ||
	    head->purpose > HF_INTENT_TAKE_BACK || head->token == 0)
		return "its head is invalid";
	if (head->n_fences > HF_FENCES_MAX || head->n_targets > HF_PLAN_SANDBOXES_MAX ||
	    head->n_ops > HF_INTENT_OPS_MAX || head->n_ops > len / sizeof(struct op_row))
		return "it has too many parts";
	if (memchr(head->boot_id, '\0', sizeof(head->boot_id)) == NULL ||
	    strlen(head->boot_id) > HF_BOOT_ID_LEN)
		return "its boot id is invalid";
	return NULL;
}

int hf_intent_decode(const char *bytes, size_t len, struct hf_intent *ret, const char **ret_why)
{
	AUTO(hf_intent_done) struct hf_intent found = HF_INTENT_INIT;
	struct reader in = { .why = "it is too short" };
	struct head head;

	if (len >= sizeof(head)) {
		memcpy(&head, bytes, sizeof(head));
		in.why = check_head(&head, bytes, len);
	}
	if (in.why) {
		*ret_why = in.why;
		return HF_E_FORMAT;
	}
	found.memory = malloc(len);
	found.n_fences = head.n_fences;
	found.n_targets = head.n_targets;
	found.n_ops = head.n_ops;
	found.fences = calloc(found.n_fences + 1, sizeof(*found.fences));
	found.targets = calloc(found.n_targets + 1, sizeof(*found.targets));
	found.ops = calloc(found.n_ops + 1, sizeof(*found.ops));
	if (!found.memory || !found.fences || !found.targets || !found.ops)
		return -ENOMEM;
	memcpy(found.memory, bytes, len);
	in.at = (const char *)found.memory + sizeof(head);
	in.end = (const char *)found.memory + len;
	(void)take_fences(&in, &found);
	(void)take_targets(&in, &found);
	for (size_t i = 0; i < found.n_ops && !in.why; i++)
		(void)take_op(&in, found.n_targets, &found.ops[i]);
	if (!in.why && in.at != in.end)
		in.why = "it is followed by more data";
	if (in.why) {
		*ret_why = in.why;
		return HF_E_FORMAT;
	}
	found.purpose = head.purpose;
	found.phase = head.phase;
	found.token = head.token;
	memcpy(found.boot_id, head.boot_id, sizeof(found.boot_id));
	*ret = found;
	found = (struct hf_intent)HF_INTENT_INIT;
	return 0;
}
