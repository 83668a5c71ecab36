/* plan/tree/rows.c - getdents64, without the memory that opendir takes. */
#include <errno.h>
#include <string.h>
#include <sys/types.h>

#include "hf/plan/tree/rows.h"
#include "hf/sys/calls.h"

/* Packs one entry of getdents64: struct linux_dirent64 has inode, offset, length, type, name. */
static int keep_entry(struct hf_rows *rows, const char *entry)
{
	const char *name = entry + 19;
	struct hf_row row = { .type = (uint8_t)entry[18], .name_len = (uint8_t)strlen(name) };

	memcpy(&row.ino, entry, sizeof(row.ino));
	if (rows->used + sizeof(row) + row.name_len > rows->room)
		return -E2BIG;
	memcpy(rows->at + rows->used, &row, sizeof(row));
	memcpy(rows->at + rows->used + sizeof(row), name, row.name_len);
	rows->used += sizeof(row) + row.name_len;
	return 0;
}

int64_t hf_rows_list(struct hf_rows *rows, int dir_fd)
{
	int64_t count = 0;
	ssize_t n;

	while ((n = hf_sys.getdents64(dir_fd, rows->buffer, sizeof(rows->buffer))) > 0) {
		for (ssize_t at = 0; at < n;) {
			const char *entry = rows->buffer + at;
			uint16_t len;
			int r;

			memcpy(&len, entry + 16, sizeof(len));
			at += len;
			if (strcmp(entry + 19, ".") == 0 || strcmp(entry + 19, "..") == 0)
				continue;
			r = keep_entry(rows, entry);
			if (r < 0)
				return r;
			count++;
		}
	}
	return n < 0 ? -errno : count;
}
