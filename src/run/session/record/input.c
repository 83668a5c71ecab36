/* run/session/record/input.c - keeping the standard input of a session, and giving it out again. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/run/session/record/input.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/replace.h"
#include "hf/sys/state/state.h"
#include "holdfast/run.h"

#define INPUT     "input."
#define INPUT_NEW ".input.new"
#define SUM_CHARS 16
#define NOT_KEPT  "0000000000000000" /* in the place of the checksum */

#define AGAIN     "; resume it with that input in a pipe or file"

#define NAME_MAX_INPUT (sizeof(INPUT) + HF_INPUT_ID_MAX)

int hf_input_is_id(const char *id, uint64_t *ret_bytes)
{
	uint64_t bytes;

	if (strspn(id, "0123456789abcdef") != SUM_CHARS || id[SUM_CHARS] != '.' || strlen(id) >= HF_INPUT_ID_MAX ||
	    hf_parse_u64(id + SUM_CHARS + 1, strlen(id + SUM_CHARS + 1), INT64_MAX, &bytes) < 0)
		return 0;
	if (ret_bytes)
		*ret_bytes = bytes;
	return 1;
}

static void name_of(const char *id, char out[NAME_MAX_INPUT])
{
	(void)snprintf(out, NAME_MAX_INPUT, INPUT "%s", id);
}

static void make_id(const char *bytes, size_t len, char ret_id[HF_INPUT_ID_MAX])
{
	uint64_t sum = XXH3_64bits(bytes, len);

	(void)snprintf(ret_id, HF_INPUT_ID_MAX, "%016" PRIx64 ".%zu", sum ? sum : 1, len);
}

/* Reads what is kept under that name, to be freed. 1; 0 when there is none, or it is not what was kept; or an error. */
static int read_kept(int dirfd, const char *id, char **ret_bytes, size_t *ret_len, struct hf_err *err)
{
	char name[NAME_MAX_INPUT], found[HF_INPUT_ID_MAX];
	AUTO_FREE char *bytes = NULL;
	AUTO_FD fd = -1;
	struct stat st;
	int r;

	name_of(id, name);
	r = hf_open_private(dirfd, name, O_RDONLY, name, &fd, &st, err);
	if (r < 0)
		return r == -ENOENT || r == HF_E_UNTRUSTED || r == -ELOOP ? 0 : r;
	r = hf_pread_new(fd, (uint64_t)st.st_size, HF_RUN_INPUT_MAX, &bytes, ret_len);
	if (r < 0)
		return r == -E2BIG ? 0 : hf_fail_sys(err, -r, "read", name);
	make_id(bytes, *ret_len, found);
	if (strcmp(found, id) != 0)
		return 0;
	*ret_bytes = ptr_take(&bytes);
	return 1;
}

int hf_input_keep(int dirfd, int fd, char ret_id[HF_INPUT_ID_MAX], struct hf_err *err)
{
	AUTO_FREE char *bytes = NULL;
	AUTO_FREE char *kept = NULL;
	char name[NAME_MAX_INPUT];
	size_t len, kept_len;
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return FAIL_SYS(err, "fstat", "input_fd");
	len = (size_t)st.st_size;
	if (st.st_size > HF_RUN_INPUT_MAX) {
		(void)snprintf(ret_id, HF_INPUT_ID_MAX, NOT_KEPT ".%zu", len);
		return 0;
	}
	r = hf_pread_new(fd, len, HF_RUN_INPUT_MAX, &bytes, &len);
	if (r < 0)
		return hf_fail_sys(err, -r, "read", "input_fd");
	make_id(bytes, len, ret_id);
	name_of(ret_id, name);
	if (read_kept(dirfd, ret_id, &kept, &kept_len, NULL) == 1)
		return 0;
	r = hf_replace_file(dirfd, name, INPUT_NEW, bytes, len, 0);
	return r < 0 ? hf_fail_sys(err, -r, "write", name) : 1;
}

/* A file in memory that the command cannot change for the attempt after it. */
static int make_sealed(const char *bytes, size_t len, int *ret_fd)
{
	AUTO_FD fd = memfd_create("holdfast-input", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	size_t done;
	int r = fd < 0 ? -errno : hf_pwrite_all(fd, bytes, len, 0, &done);

	if (r < 0)
		return r;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -errno;
	*ret_fd = fd_take(&fd);
	return 0;
}

int hf_input_open(int dirfd, const char *id, int *ret_fd, struct hf_err *err)
{
	AUTO_FREE char *bytes = NULL;
	uint64_t wanted = 0;
	size_t len = 0;
	int r;

	if (!hf_input_is_id(id, &wanted))
		return FAIL(err, HF_E_FORMAT, "input", id, "not a valid name");
	if (strncmp(id, NOT_KEPT, SUM_CHARS) == 0)
		return FAIL(err, HF_E_FORMAT, "input", "standard input", "%" PRIu64 " bytes were too many to keep" AGAIN, wanted);
	r = read_kept(dirfd, id, &bytes, &len, err);
	if (r < 0)
		return r;
	if (r == 0)
		return FAIL(err, HF_E_FORMAT, "input", "standard input", "the %" PRIu64 " bytes that were kept are lost" AGAIN, wanted);
	r = make_sealed(bytes, len, ret_fd);
	return r < 0 ? hf_fail_sys(err, -r, "memfd", id) : 0;
}

void hf_input_delete(int dirfd, const char *id)
{
	char name[NAME_MAX_INPUT];

	name_of(id, name);
	(void)hf_sys.unlinkat(dirfd, name, 0);
}

void hf_input_delete_others(int dirfd, const char *id)
{
	AUTO_DIR dir = NULL;
	struct dirent *entry;

	if (hf_open_dir(dirfd, ".", &dir) < 0)
		return;
	while ((entry = readdir(dir)))
		if (strncmp(entry->d_name, INPUT, strlen(INPUT)) == 0 && (!id || strcmp(entry->d_name + strlen(INPUT), id) != 0))
			(void)hf_sys.unlinkat(dirfd, entry->d_name, 0);
}

int64_t hf_input_measure(int dirfd)
{
	AUTO_DIR dir = NULL;
	struct dirent *entry;
	int64_t bytes = 0;
	uint64_t one;

	if (hf_open_dir(dirfd, ".", &dir) < 0)
		return 0;
	while ((entry = readdir(dir)))
		if (strncmp(entry->d_name, INPUT, strlen(INPUT)) == 0 && hf_input_is_id(entry->d_name + strlen(INPUT), &one))
			bytes += (int64_t)one;
	return bytes;
}
