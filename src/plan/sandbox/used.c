/* plan/sandbox/used.c - the mark of a clone or copy that is in use. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "hf/plan/sandbox/used.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/replace.h"

#define MARK     "used"
#define MARK_NEW ".used.new"

int hf_used_look(int sandbox_fd, char ret_boot[HF_BOOT_ID_LEN + 1])
{
	char text[HF_BOOT_ID_LEN + 2] = "";
	ssize_t n = hf_read_file(sandbox_fd, MARK, text, sizeof(text));

	if (n == -ENOENT)
		return 0;
	if (n < 0 && n != -E2BIG)
		return (int)n;
	if (ret_boot) {
		ret_boot[0] = '\0';
		if (n == HF_BOOT_ID_LEN && hf_boot_id_valid(text, HF_BOOT_ID_LEN)) {
			memcpy(ret_boot, text, HF_BOOT_ID_LEN);
			ret_boot[HF_BOOT_ID_LEN] = '\0';
		}
	}
	return 1;
}

int hf_used_mark(int sandbox_fd, const char *boot_id)
{
	char boot[HF_BOOT_ID_LEN + 1];
	int r = hf_used_look(sandbox_fd, boot);

	if (r < 0 || (r == 1 && strcmp(boot, boot_id) == 0))
		return r < 0 ? r : 0;
	return hf_replace_file(sandbox_fd, MARK, MARK_NEW, boot_id, strlen(boot_id), HF_REPLACE_SYNC);
}

int hf_used_settle(int sandbox_fd)
{
	struct stat st;

	if (hf_sys.fstatat(sandbox_fd, MARK, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (hf_sys.syncfs(sandbox_fd) < 0)
		return -errno;
	/* Only now: a mark that is gone says that everything is on disk. */
	return hf_sys.unlinkat(sandbox_fd, MARK, 0) < 0 && errno != ENOENT ? -errno : 1;
}
