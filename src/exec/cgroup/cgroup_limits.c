/* exec/cgroup/cgroup_limits.c - the figures of a group, and its limits, as far as its controllers are there. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/parse.h"
#include "hf/exec/cgroup/cgroup.h"
#include "hf/sys/calls.h"
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

static int write_to(const struct hf_cgroup *group, const char *file, const char *value)
{
	AUTO_FD fd = group->fd < 0 ? -ENOENT : hf_open_at(group->fd, file, O_WRONLY | O_NOFOLLOW, 0);
	ssize_t n;

	if (fd < 0)
		return fd;
	n = hf_sys.write(fd, value, strlen(value));
	return n < 0 ? -errno : n == (ssize_t)strlen(value) ? 0 : -EIO;
}

int hf_cgroup_limit(const struct hf_cgroup *own, const struct hf_cgroup *group, const char *controller, const char *file, const char *value)
{
	char ask[32];
	int r = write_to(group, file, value);

	/* Not allowed where the group around has processes of its own, unless it is the root. */
	if (r == -ENOENT && (size_t)snprintf(ask, sizeof(ask), "+%s", controller) < sizeof(ask) &&
	    write_to(own, "cgroup.subtree_control", ask) == 0)
		r = write_to(group, file, value);
	return r;
}
