/* run/session/list.c - the names of all sessions there are, in order. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/run/session/store.h"
#include "hf/sys/io.h"

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names there are, in one growing array of strings. */
static int collect(struct hf_sessions *sessions, char ***ret_names, size_t *ret_n)
{
	AUTO_DIR dir = NULL;
	struct dirent *entry;
	char **names = NULL;
	size_t n = 0, room = 0;
	int r = hf_open_dir(sessions->dirfd, ".", &dir);

	while (r == 0 && (entry = readdir(dir))) {
		char name[HF_NAME_MAX + 1];
		int len = hf_name_unkey(entry->d_name, strlen(entry->d_name), name, NULL);

		if (len < 0 || strlen(name) != (size_t)len)
			continue;
		if (n == room) {
			char **more = realloc(names, (room = room * 2 + 16) * sizeof(*names));

			if (!more) {
				r = -ENOMEM;
				break;
			}
			names = more;
		}
		names[n] = strdup(name);
		if (!names[n])
			r = -ENOMEM;
		else
			n++;
	}
	if (n > 0)
		qsort(names, n, sizeof(*names), by_name);
	*ret_names = names;
	*ret_n = n;
	return r;
}

int hf_session_each(struct hf_sessions *sessions, int (*fn)(void *arg, const char *name), void *arg,
		    struct hf_err *err)
{
	char **names = NULL;
	size_t n = 0;
	int r;

	if (!sessions || sessions->process != getpid())
		return FAIL(err, sessions ? HF_E_FORKED : -EINVAL, "list", "sessions",
			    "open the sessions anew in this process");
	r = collect(sessions, &names, &n);
	if (r < 0)
		(void)hf_fail_sys(err, -r, "readdir", "sessions");
	for (size_t i = 0; i < n; i++) {
		if (r >= 0)
			r = fn(arg, names[i]);
		free(names[i]);
	}
	free(names);
	return r < 0 ? r : 0;
}
