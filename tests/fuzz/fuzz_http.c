/*
 * tests/fuzz/fuzz_http.c - any bytes as the answer of a server.
 *
 * Read at once and byte by byte: both must come to the same end, and neither may keep more than came.
 */
#include <string.h>

#include "fuzz.h"
#include "hf/lock/etcd/http/http.h"
#include "hf/lock/etcd/http/reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hf_reply whole = { 0 }, pieces = { 0 };
	int r = hf_reply_read(&whole, (const char *)data, size), s = 0;

	for (size_t i = 0; i < size && s == 0; i++)
		s = hf_reply_read(&pieces, (const char *)data + i, 1);
	MUST(r == s);
	MUST(whole.len <= size && whole.len == pieces.len && whole.len <= HF_HTTP_ANSWER_MAX);
	MUST(whole.len == 0 || (memcmp(whole.body, pieces.body, whole.len) == 0 && whole.body[whole.len] == '\0'));
	MUST(r != 1 || (whole.status >= 200 && whole.status <= 999 && whole.status == pieces.status && whole.date == pieces.date));
	hf_reply_done(&whole);
	hf_reply_done(&pieces);
	return 0;
}
