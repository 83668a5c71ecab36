/* run/session/notes/recent.c - the names of the sessions that run or ended lately. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/store.h"
#include "hf/name/names.h"
#include "hf/run/session/notes/recent.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"
#include "hf/sys/state/state.h"

#define RECENT "recent"

/* Directories that are made anew under us before we give up. */
#define MAX_TRIES 8

static int touch(int dirfd, const char *name)
{
	char key[HF_NAME_KEY_MAX];
	int fd, r = hf_name_key(name, strlen(name), key, NULL);

	if (r < 0)
		return r;
	/* Nearly always it is there: the name was run before. */
	fd = hf_open_at(dirfd, key, O_WRONLY | O_NONBLOCK | O_NOFOLLOW, 0);
	if (fd < 0)
		fd = hf_open_or_create_at(dirfd, key, O_WRONLY | O_NONBLOCK, 0600);
	if (fd >= 0)
		(void)close(fd);
	return fd < 0 ? fd : 0;
}

struct making {
	int fd;
};

static int add_name(void *arg, const char *name)
{
	(void)touch(((struct making *)arg)->fd, name);
	return 0;
}

static void remove_made(int state_fd, const char *made, int fd)
{
	AUTO_DIR dir = NULL;
	struct dirent *entry;

	if (hf_open_dir(fd, ".", &dir) == 0)
		while ((entry = readdir(dir)))
			if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
				(void)hf_sys.unlinkat(fd, entry->d_name, 0);
	(void)hf_sys.unlinkat(state_fd, made, AT_REMOVEDIR);
}

/* Of all sessions there are. Another process may be faster: then its directory counts. */
static int make(struct hf_sessions *sessions)
{
	int state_fd = hf_state_dirfd(sessions->state);
	struct making making;
	char made[40];
	AUTO_FD fd = -1;
	int r;

	(void)snprintf(made, sizeof(made), "." RECENT ".%d", (int)getpid());
	r = hf_mkdir_at(state_fd, made, 0700);
	if (r < 0 && r != -EEXIST)
		return r;
	r = hf_private_subdir(state_fd, made, made, 0, &fd, NULL);
	if (r < 0)
		return r;
	making.fd = fd;
	r = hf_session_each(sessions, 0, add_name, &making, NULL);
	if (r == 0 && hf_sys.renameat2(state_fd, made, state_fd, RECENT, 0) == 0)
		return 0;
	if (r == 0)
		r = errno == ENOTEMPTY || errno == EEXIST ? 0 : -errno;
	remove_made(state_fd, made, fd);
	return r;
}

static int open_recent(struct hf_sessions *sessions, int *ret_fd)
{
	int r = hf_private_subdir(hf_state_dirfd(sessions->state), RECENT, RECENT, 0, ret_fd, NULL);

	if (r != -ENOENT)
		return r;
	r = make(sessions);
	return r < 0 ? r : hf_private_subdir(hf_state_dirfd(sessions->state), RECENT, RECENT, 0, ret_fd, NULL);
}

int hf_recent_add(struct hf_sessions *sessions, const char *name)
{
	int r = -ENOENT;

	/* An empty one that another process has just made may be replaced by a full one. */
	for (int try = 0; r == -ENOENT && try < MAX_TRIES; try++) {
		AUTO_FD fd = -1;

		r = open_recent(sessions, &fd);
		if (r == 0)
			r = touch(fd, name);
	}
	return r;
}

static int each(int fd, int (*fn)(void *arg, const char *name), void *arg)
{
	AUTO(hf_names_done) struct hf_names names = { 0 };
	int r = hf_names_read(fd, &names);

	for (size_t i = 0; i < names.n && r >= 0; i++)
		r = fn(arg, names.list[i]);
	return r < 0 ? r : 0;
}

int hf_recent_each_there(struct hf_sessions *sessions, int (*fn)(void *arg, const char *name), void *arg)
{
	AUTO_FD fd = -1;
	int r = hf_private_subdir(hf_state_dirfd(sessions->state), RECENT, RECENT, 0, &fd, NULL);

	return r < 0 ? r : each(fd, fn, arg);
}

int hf_recent_each(struct hf_sessions *sessions, int (*fn)(void *arg, const char *name), void *arg, struct hf_err *err)
{
	AUTO_FD fd = -1;
	int r = open_recent(sessions, &fd);

	/* Read-only, for one: then all there are. */
	if (r < 0)
		return hf_session_each(sessions, 0, fn, arg, err);
	r = each(fd, fn, arg);
	return r < 0 ? hf_fail_sys(err, -r, "readdir", RECENT) : 0;
}

void hf_recent_remove(struct hf_sessions *sessions, const char *name)
{
	char key[HF_NAME_KEY_MAX];
	AUTO_FD fd = -1;

	if (hf_name_key(name, strlen(name), key, NULL) >= 0 &&
	    hf_private_subdir(hf_state_dirfd(sessions->state), RECENT, RECENT, 0, &fd, NULL) == 0)
		(void)hf_sys.unlinkat(fd, key, 0);
}

struct drop {
	struct hf_sessions *sessions;
	const char *name;
	struct hf_wall before;
};

/* Nobody can start it meanwhile. */
static int drop(void *arg)
{
	const struct drop *drop = arg;
	struct hf_session_record record;
	int r = hf_session_load(drop->sessions, drop->name, &record, NULL);

	if (r == HF_E_NO_SESSION || (r == 0 && record.phase == HF_PHASE_ENDED &&
				     (record.ended.ns ? record.ended.ns : record.started.ns) < drop->before.ns))
		hf_recent_remove(drop->sessions, drop->name);
	return 0;
}

void hf_recent_drop(struct hf_sessions *sessions, const char *name, struct hf_wall before)
{
	struct drop what = { sessions, name, before };
	const struct hf_forget how = { .action = drop, .arg = &what, .keep_record = 1 };

	(void)!hf_lock_forget_as(sessions->locks, name, &how, NULL);
}
