/* file/update.c - read, change, commit, and all of it again when another process was faster. */
#include <errno.h>

#include "hf/base/fail.h"
#include "hf/file/entry.h"
#include "hf/file/file.h"

static int try_once(struct hf_file *file,
		    int (*make)(void *arg, struct hf_file *file, struct hf_err *err), void *arg,
		    struct hf_err *err)
{
	int r = make(arg, file, err);

	if (r > 0)
		r = hf_file_commit(file, err);
	else if (r == 0)
		r = hf_entry_check_path(file, err);
	hf_file_discard(file);
	return r;
}

int hf_file_update(struct hf_file *file,
		   int (*make)(void *arg, struct hf_file *file, struct hf_err *err), void *arg,
		   unsigned *ret_attempts, struct hf_err *err)
{
	unsigned attempt = 0;
	int64_t waited;
	int r;

	if (!file || !make)
		return FAIL(err, -EINVAL, "arguments", "hf_file_update", "NULL");
	do {
		file->writer_waited_ns = 0;
		r = try_once(file, make, arg, err);
		waited = file->writer_waited_ns;
		/* One budget for all attempts: the next has what is left. */
		file->writer_left_ns = waited < file->writer_left_ns ? file->writer_left_ns - waited : 0;
	} while (++attempt < HF_FILE_ATTEMPTS && r == HF_E_CHANGED && file->writer_left_ns > 0);
	file->writer_left_ns = file->writer_wait_ns;
	if (ret_attempts)
		*ret_attempts = attempt;
	return r;
}
