/* journal/read/find.c - looking for one event. */
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/journal/read/find.h"
#include "hf/journal/line.h"
#include "hf/journal/read/scan.h"

int hf_journal_find(const struct hf_state *state, const char *needle, hf_find_fn *fn, void *arg, struct hf_err *err)
{
	AUTO(hf_scan_done) struct hf_scan scan = { .dirfd = -1, .fd = -1, .left_fd = -1 };
	struct hf_scan_line line;
	int found = 0, r = hf_scan_open(state, &scan, err);

	if (r < 0)
		return r;
	while (!found && (r = hf_scan_next(&scan, &line, err)) != HF_SCAN_END && r >= 0) {
		struct hf_record event;
		json_t *root = NULL;

		if (r != HF_SCAN_LINE || !memmem(line.text, line.len, needle, strlen(needle)) ||
		    hf_line_decode(line.text, line.len, &event, &root) < 0)
			continue;
		found = fn(arg, &event);
		json_decref(root);
	}
	return r < 0 ? r : found;
}
