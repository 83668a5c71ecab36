/* sys/state/quarantine.c - records that failed their checks are moved away, never deleted. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hf/base/buf.h"
#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "holdfast/clock.h"
#include "hf/sys/io.h"
#include "hf/sys/state/state.h"

int hf_state_quarantine(const struct hf_state *state, const char *subdir, const char *file,
			char ret_name[HF_QUARANTINE_NAME_MAX], struct hf_err *err)
{
	AUTO_FD from = -1;
	int r = hf_state_subdir(state, subdir, 0, &from, err);

	return r < 0 ? r : hf_state_quarantine_from(state, from, subdir, file, ret_name, err);
}

int hf_state_quarantine_from(const struct hf_state *state, int from, const char *label,
			     const char *file, char ret_name[HF_QUARANTINE_NAME_MAX],
			     struct hf_err *err)
{
	char name[HF_QUARANTINE_NAME_MAX];
	AUTO_FD to = -1;
	int r;

	r = hf_state_subdir(state, "quarantine", 1, &to, err);
	if (r < 0)
		return r;
	for (int try = 0; try < 100; try++) {
		/* Cut, so that the whole stays below NAME_MAX. */
		(void)snprintf(name, sizeof(name), "%.100s.%.*s.%lld.%d", label,
			       (int)(200 - strnlen(label, 100)), file,
			       (long long)(hf_wall_now().ns / HF_USEC), try);
		r = hf_rename_new(from, file, to, name);
		if (r == 0) {
			(void)hf_sync_dir(to);
			(void)hf_sync_dir(from);
			hf_copy_text(ret_name, HF_QUARANTINE_NAME_MAX, name);
			return 0;
		}
		if (r != -EEXIST)
			return hf_fail_sys(err, -r, "rename to quarantine", file);
	}
	return hf_fail_sys(err, EEXIST, "rename to quarantine", file);
}
