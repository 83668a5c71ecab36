/*
 * tests/fuzz/fuzz_reply.c - any bytes as what a server of the store answers, in pieces of any size: the pieces change nothing.
 *
 * The first byte is the size of the pieces.
 */
#include <errno.h>
#include <string.h>

#include "fuzz.h"
#include "hf/lock/etcd/http/http.h"
#include "hf/lock/etcd/http/reply.h"

static int read_in_pieces(struct hf_reply *reply, const char *bytes, size_t size, size_t piece)
{
	int r = 0;

	for (size_t at = 0; at < size && r == 0; at += piece)
		r = hf_reply_read(reply, bytes + at, size - at < piece ? size - at : piece);
	return r;
}

static void verdict_is_one_that_is_documented(const struct hf_reply *reply, int r)
{
	MUST(r == 0 || r == 1 || r == -EPROTO || r == -EMSGSIZE || r == -ENOMEM);
	MUST((r == 1) == (r >= 0 && reply->part == HF_REPLY_DONE));
	MUST(reply->len <= HF_HTTP_ANSWER_MAX);
	MUST(!reply->body || reply->body[reply->len] == '\0');
	MUST(r != 1 || (reply->status >= 200 && reply->status <= 999 && reply->date >= 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct hf_reply whole, pieces; /* of 4 KiB each */
	const char *bytes = (const char *)data;
	int r, s;

	if (size == 0)
		return 0;
	memset(&whole, 0, sizeof(whole));
	memset(&pieces, 0, sizeof(pieces));
	r = read_in_pieces(&whole, bytes + 1, size - 1, size);
	s = read_in_pieces(&pieces, bytes + 1, size - 1, (size_t)data[0] + 1);
	verdict_is_one_that_is_documented(&whole, r);
	verdict_is_one_that_is_documented(&pieces, s);
	MUST(r == s && whole.len == pieces.len && whole.status == pieces.status && whole.date == pieces.date);
	MUST(whole.len == 0 || memcmp(whole.body, pieces.body, whole.len) == 0);
	hf_reply_done(&whole);
	hf_reply_done(&pieces);
	return 0;
}
