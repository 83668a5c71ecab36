/* sys/fd/numbers.c - entries of a directory that are numbers. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/parse.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/fd/numbers.h"

/* Of struct linux_dirent64, which no header has: inode, offset, length, type, name. */
#define AT_LENGTH 16
#define AT_NAME   19

int hf_numbers_in(const char *dir, int (*fn)(void *arg, int32_t number), void *arg)
{
	AUTO_FD fd = hf_open_at(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY, 0);
	char room[4096] __attribute__((aligned(8)));
	ssize_t n = 0;
	int r = fd < 0 ? fd : 0;

	while (r == 0 && (n = hf_sys.getdents64(fd, room, sizeof(room))) > 0) {
		uint16_t len;
		uint64_t number;

		for (ssize_t at = 0; r == 0 && at < n; at += len) {
			const char *name = room + at + AT_NAME;

			memcpy(&len, room + at + AT_LENGTH, sizeof(len));
			if (hf_parse_u64(name, strlen(name), INT32_MAX, &number) == 0)
				r = fn(arg, (int32_t)number);
		}
	}
	return r == 0 && n < 0 ? -errno : r;
}
