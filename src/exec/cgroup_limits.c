/* exec/cgroup_limits.c - the figures of a group, and its limits, as far as its controllers are there. */
#include <stdio.h>
#include <string.h>

#include "hf/base/parse.h"
#include "hf/exec/cgroup.h"
#include "hf/sys/io.h"

#define FILE_MAX_BYTES 4096

int64_t hf_cgroup_number(const struct hf_cgroup *group, const char *file, const char *key)
{
	char text[FILE_MAX_BYTES];
	size_t key_len = strlen(key);
	ssize_t n = group->fd < 0 ? -1 : hf_read_file(group->fd, file, text, sizeof(text) - 1);

	if (n <= 0)
		return -1;
	text[n] = '\0';
	for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
		uint64_t value;

		if (strncmp(line, key, key_len) == 0)
			return hf_parse_u64(line + key_len, strcspn(line + key_len, "\n"), INT64_MAX, &value) < 0 ? -1 : (int64_t)value;
	}
	return -1;
}
