/*
 * tests/fuzz/fuzz_stat.c - any bytes as /proc/PID/stat, status, limits and fdinfo; and any bytes as
 * the command name of a line that is otherwise good.
 */
#include <string.h>

#include "fuzz.h"
#include "holdfast/err.h"
#include "hf/exec/marks.h"
#include "hf/proc/stat.h"

#define FRONT "4711 ("
#define BACK                                                            \
	") S 4000 4710 4710 34816 4710 4194304 152 0 0 0 1 2 3 4 20 0 " \
	"3 0 123456 7340032 512\n"

static void parsed_is_in_range(const char *text, size_t size)
{
	struct hf_stat st = { .pid = -77 };
	int r = hf_stat_parse(text, size, &st);

	if (r < 0) {
		MUST(r == HF_E_FORMAT && st.pid == -77);
		return;
	}
	MUST(st.pid >= 0 && st.ppid >= 0 && st.state >= 'A' && st.state <= 'z');
	MUST(st.threads <= INT32_MAX);
	/* It starts with its pid, and has 19 more fields behind the name. */
	MUST(size > 40 && text[0] >= '0' && text[0] <= '9');
	MUST(strtoull(text, NULL, 10) == (unsigned long long)st.pid);
}

static void name_shifts_nothing(const char *name, size_t size)
{
	const size_t len = strlen(FRONT) + size + strlen(BACK);
	struct hf_stat st = { 0 };
	char *line = malloc(len);

	MUST(line != NULL);
	memcpy(line, FRONT, strlen(FRONT));
	memcpy(line + strlen(FRONT), name, size);
	memcpy(line + strlen(FRONT) + size, BACK, strlen(BACK));
	MUST(hf_stat_parse(line, len, &st) == 0);
	MUST(st.pid == 4711 && st.state == 'S' && st.ppid == 4000);
	MUST(st.threads == 3 && st.start_ticks == 123456);
	free(line);
}

static void results_are_written_only_on_success(const char *text, size_t size)
{
	uint32_t uid = 77;
	int32_t pid = -77;
	uint64_t limit = 77;
	int r = hf_status_parse_uid(text, size, &uid);
	int inner = -77;

	MUST(r == 0 || (r == HF_E_FORMAT && uid == 77));
	MUST(r < 0 || memmem(text, size, "Uid:\t", 5));
	MUST(hf_status_parse_inner(text, size, 1, &inner) == 0 ? inner == 0 || inner == 1 : inner == -77);
	r = hf_fdinfo_parse_pid(text, size, &pid);
	MUST(r == 0 ? pid >= -1 : r == HF_E_FORMAT && pid == -77);
	MUST(r < 0 || memmem(text, size, "Pid:\t", 5));
	r = hf_limits_parse(text, size, &limit);
	MUST(r == 0 || (r == HF_E_FORMAT && limit == 77));
	MUST(r < 0 || memmem(text, size, "Max file locks ", 15));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;

	parsed_is_in_range(text, size);
	name_shifts_nothing(text, size);
	results_are_written_only_on_success(text, size);
	return 0;
}
