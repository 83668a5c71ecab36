/* plan/target/mounts.c - which mounts stand below a directory, from /proc/self/mountinfo. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/plan/target/target.h"
#include "hf/sys/io.h"

/* The fifth field, with \ooo for blanks, newlines and backslashes. In place. */
static char *mount_point(char *line)
{
	char *at = line, *out;
	char *point;

	for (int i = 0; i < 4 && at; i++) {
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	if (!at)
		return NULL;
	point = out = at;
	for (; *at && *at != ' '; at++) {
		if (at[0] == '\\' && at[1] >= '0' && at[1] <= '3' && at[2] >= '0' && at[2] <= '7' &&
		    at[3] >= '0' && at[3] <= '7') {
			*out++ = (char)((at[1] - '0') * 64 + (at[2] - '0') * 8 + (at[3] - '0'));
			at += 3;
		} else {
			*out++ = *at;
		}
	}
	*out = '\0';
	return point;
}

int hf_mount_below(const char *path, char *out, size_t cap)
{
	AUTO_FREE char *line = NULL;
	size_t room = 0;
	FILE *file = fopen("/proc/self/mountinfo", "re");
	int found = 0;

	if (!file)
		return -errno;
	/* By lines and not by size: a host may have thousands of mounts. */
	while (!found && getline(&line, &room, file) > 0) {
		char *point;

		line[strcspn(line, "\n")] = '\0';
		point = mount_point(line);
		if (!point || strcmp(point, path) == 0 || !hf_path_is_in(point, path))
			continue;
		(void)snprintf(out, cap, "%s", point);
		found = 1;
	}
	if (ferror(file))
		found = -EIO;
	(void)fclose(file);
	return found;
}
