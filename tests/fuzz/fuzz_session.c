/*
 * tests/fuzz/fuzz_session.c - any bytes as a line of a session's record.
 *
 * The first byte selects: bit 0, the checksum is put behind it first, because no fuzzer finds
 * it by trying. The text then lacks its closing brace and its "x", as if cut before them.
 */
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "fuzz.h"
#include "hf/run/session/record/record.h"

static void is_text(const char *text, size_t cap)
{
	MUST(memchr(text, '\0', cap));
}

static void id_is_one(const struct hf_proc_id *id)
{
	MUST(id->pid == 0 || (id->pid > 1 && strlen(id->boot_id) == HF_BOOT_ID_LEN));
}

/* What stop, reap and ps rely on without asking again. */
static void record_makes_sense(const struct hf_session_record *r)
{
	is_text(r->name, sizeof(r->name));
	is_text(r->command, sizeof(r->command));
	is_text(r->cause, sizeof(r->cause));
	is_text(r->cgroup, sizeof(r->cgroup));
	MUST(r->name[0] && r->token > 0 && r->token <= INT64_MAX);
	MUST(r->phase >= HF_PHASE_STARTING && r->phase <= HF_PHASE_ENDED);
	MUST((unsigned)r->outcome <= HF_OUTCOME_NOT_STARTED && r->exit_status >= 0 && r->exit_status <= 255);
	MUST(r->keeper.pid > 1 && r->supervisor.pid > 1);
	id_is_one(&r->keeper);
	id_is_one(&r->supervisor);
	id_is_one(&r->leader);
	MUST((!r->mark || r->mark >> 62 == 1) && (!r->around || r->around >> 62 == 1));
	MUST(r->cgroup[0] == '\0' || r->cgroup[0] == '/');
	MUST(r->began_ns >= 0 && r->deadline_ns >= 0 && r->hang_ns >= 0 && r->grace_ns >= 0);
	MUST(r->ran_ns >= 0 && r->kills <= 1 && (unsigned)r->loop <= 1 && (unsigned)r->logged <= 1);
}

static void decode(const char *line, size_t len)
{
	struct hf_session_record record = { .attempt = 77 }, again;
	struct hf_buf once = HF_BUF_INIT, twice = HF_BUF_INIT;
	const char *why = NULL;
	int r = hf_session_decode(line, len, &record, &why);

	MUST(r == 0 ? !why : r == HF_E_FORMAT && why && record.attempt == 77);
	if (r < 0)
		return;
	record_makes_sense(&record);
	hf_session_encode(&record, &once);
	MUST(once.err == 0 && once.s[once.len - 1] == '\n');
	MUST(hf_session_decode(once.s, once.len - 1, &again, &why) == 0);
	hf_session_encode(&again, &twice);
	MUST(once.len == twice.len && memcmp(once.s, twice.s, once.len) == 0);
	hf_buf_done(&once);
	hf_buf_done(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Of exactly that size, so that a sanitizer sees a step beyond it. */
	char *line = malloc(size + 32);

	MUST(line);
	if (size == 0 || size > 2 * HF_SESSION_LINE_MAX) {
		free(line);
		return 0;
	}
	memcpy(line, data + 1, --size);
	if (data[0] & 1)
		size += (size_t)snprintf(line + size, 32, ",\"x\":\"%016llx\"}",
					 (unsigned long long)XXH3_64bits(line, size));
	line = realloc(line, size ? size : 1);
	MUST(line);
	decode(line, size);
	free(line);
	return 0;
}
