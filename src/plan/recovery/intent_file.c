/* plan/recovery/intent_file.c - the intent on disk. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/recovery/intent.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/replace.h"

#define PHASE_AT 8 /* intent.c asserts it */

int hf_intent_write(int plan_fd, const struct hf_intent *intent)
{
	AUTO(hf_buf_done) struct hf_buf bytes = HF_BUF_INIT;

	hf_intent_encode(intent, &bytes);
	if (bytes.err)
		return bytes.err;
	return hf_replace_file(plan_fd, HF_INTENT, HF_INTENT_NEW, bytes.s, bytes.len, 0);
}

int hf_intent_set_phase(int plan_fd, enum hf_intent_phase phase)
{
	AUTO_FD fd = -1;
	uint32_t value = phase;
	size_t done;
	int r = hf_open_private(plan_fd, HF_INTENT, O_WRONLY, HF_INTENT, &fd, NULL, NULL);

	return r < 0 ? r : hf_pwrite_all(fd, (const char *)&value, sizeof(value), PHASE_AT, &done);
}

int hf_intent_touch(int plan_fd, const char *name)
{
	AUTO_FD fd = -1;
	int r = hf_open_private(plan_fd, name, O_WRONLY, name, &fd, NULL, NULL);

	if (r < 0)
		return r;
	return hf_sys.fchmod(fd, 0600) < 0 ? -errno : 0;
}

int hf_intent_load(int plan_fd, const char *name, struct hf_intent *ret, const char **ret_why,
		   struct hf_err *err)
{
	AUTO_FREE char *bytes = NULL;
	AUTO_FD fd = -1;
	struct stat st;
	size_t n;
	int r;

	*ret_why = "not a Holdfast file";
	r = hf_open_private(plan_fd, name, O_RDONLY, name, &fd, &st, err);
	if (r == HF_E_UNTRUSTED || r == -ELOOP)
		return HF_E_FORMAT;
	if (r < 0)
		return r;
	*ret_why = "it is too large";
	r = hf_pread_new(fd, (uint64_t)st.st_size, HF_BUF_LIMIT, &bytes, &n);
	if (r < 0)
		return r == -E2BIG ? HF_E_FORMAT : hf_fail_sys(err, -r, "pread", name);
	r = hf_intent_decode(bytes, n, ret, ret_why);
	return r == -ENOMEM ? hf_fail_sys(err, ENOMEM, "memory", name) : r;
}
