/* run/session/list.c - the names of all sessions there are, in order. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/run/session/owner.h"
#include "hf/run/session/store.h"
#include "hf/sys/io.h"

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

struct names {
	struct hf_sessions *sessions;
	char **list;
	size_t n, room;
	size_t n_sorted; /* those of directories */
	int error;
};

static void add(struct names *names, const char *name)
{
	if (names->n == names->room) {
		char **more = realloc(names->list, (names->room * 2 + 16) * sizeof(*names->list));

		if (!more) {
			names->error = -ENOMEM;
			return;
		}
		names->list = more;
		names->room = names->room * 2 + 16;
	}
	names->list[names->n] = strdup(name);
	if (names->list[names->n])
		names->n++;
	else
		names->error = -ENOMEM;
}

static void sort(struct names *names)
{
	if (names->n > 0)
		qsort(names->list, names->n, sizeof(*names->list), by_name);
}

/* The sessions that have a directory. */
static void add_directories(struct names *names)
{
	AUTO_DIR dir = NULL;
	struct dirent *entry;

	if (names->sessions->dirfd >= 0)
		names->error = hf_open_dir(names->sessions->dirfd, ".", &dir);
	while (names->error == 0 && dir && (entry = readdir(dir))) {
		char name[HF_NAME_MAX + 1];
		int len = hf_name_unkey(entry->d_name, strlen(entry->d_name), name, NULL);

		if (len >= 0 && strlen(name) == (size_t)len)
			add(names, name);
	}
	sort(names);
}

static void add_kept(void *arg, const struct hf_lock_info *info)
{
	struct names *names = arg;

	if (info->n_holders > 0 && names->error == 0 &&
	    !(names->n_sorted > 0 &&
	      bsearch(&info->name, names->list, names->n_sorted, sizeof(*names->list), by_name)) &&
	    hf_session_holds_lock(names->sessions, info))
		add(names, info->name);
}

int hf_session_each(struct hf_sessions *sessions, int kept, int (*fn)(void *arg, const char *name), void *arg,
		    struct hf_err *err)
{
	struct names names = { .sessions = sessions };
	int r;

	if (!sessions || sessions->process != getpid())
		return FAIL(err, sessions ? HF_E_FORKED : -EINVAL, "list", "sessions",
			    "open the sessions anew in this process");
	add_directories(&names);
	/* A session runs on when its directory is deleted: its lock tells. A lock that cannot be read hides no session. */
	names.n_sorted = names.n;
	r = kept && names.error == 0 ? hf_lock_list(sessions->locks, add_kept, &names, NULL) : 0;
	if (names.n > names.n_sorted)
		sort(&names);
	r = names.error < 0 ? hf_fail_sys(err, -names.error, "readdir", "sessions") : 0;
	for (size_t i = 0; i < names.n; i++) {
		if (r >= 0)
			r = fn(arg, names.list[i]);
		free(names.list[i]);
	}
	free(names.list);
	return r < 0 ? r : 0;
}
