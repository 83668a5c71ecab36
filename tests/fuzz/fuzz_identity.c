/* tests/fuzz/fuzz_identity.c - any bytes as a process identity: one text, one identity. */
#include <string.h>

#include "fuzz.h"
#include "holdfast/proc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct hf_proc_id id = { .pid = -77 }, again;
	struct hf_err err = HF_ERR_INIT;
	char out[HF_PROC_TEXT_MAX];
	int r = hf_proc_parse(text, size, &id, &err);

	if (r < 0) {
		MUST(r == HF_E_SYNTAX && err.code == r && id.pid == -77);
		return 0;
	}
	MUST(id.pid > 0 && strlen(id.boot_id) == HF_BOOT_ID_LEN);
	MUST(hf_proc_format(&id, out) == (int)size);
	MUST(memcmp(out, text, size) == 0);
	MUST(hf_proc_parse(out, size, &again, NULL) == 0);
	MUST(again.pid == id.pid && again.pidfs_inode == id.pidfs_inode);
	MUST(again.start_ticks == id.start_ticks && again.time_ns == id.time_ns);
	MUST(again.pid_ns == id.pid_ns && strcmp(again.boot_id, id.boot_id) == 0);
	return 0;
}
