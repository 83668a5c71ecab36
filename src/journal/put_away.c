/* journal/put_away.c - moves a damaged file to quarantine, and limits the size of the quarantine. */
#include <dirent.h>
#include <limits.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/journal/put_away.h"
#include "hf/sys/calls.h"
#include "hf/sys/fd/noinherit.h"
#include "hf/sys/io.h"
#include "hf/sys/state/state.h"

#define DEPTH_MAX 16 /* of directories in quarantine */

struct kept {
	char name[NAME_MAX + 1];
	struct timespec since; /* the ctime: moving it here was its last change */
	uint64_t bytes;
};

struct room {
	struct kept *all;
	size_t n;
	uint64_t bytes;
};

static void room_done(struct room *room)
{
	free(room->all);
}

/* Sums up the entry; with `remove`, removes it as well. Returns 0 or -1. */
static int visit(int fd, const char *name, int remove, int depth, uint64_t *bytes)
{
	AUTO_DIR dir = NULL;
	struct dirent *entry;
	struct stat st;

	if (depth > DEPTH_MAX || hf_sys.fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	*bytes += (uint64_t)st.st_size;
	if (!S_ISDIR(st.st_mode))
		return remove ? hf_sys.unlinkat(fd, name, 0) : 0;
	if (hf_open_dir(fd, name, &dir) < 0)
		return -1;
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
		    visit(dirfd(dir), entry->d_name, remove, depth + 1, bytes) < 0)
			return -1;
	return remove ? hf_sys.unlinkat(fd, name, AT_REMOVEDIR) : 0;
}

static int add(struct room *room, int fd, const char *name)
{
	struct kept *grown, *kept;
	struct stat st;

	if (hf_sys.fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	grown = reallocarray(room->all, room->n + 1, sizeof(*grown));
	if (!grown)
		return -1;
	room->all = grown;
	kept = &grown[room->n++];
	*kept = (struct kept){ .since = st.st_ctim };
	hf_copy_text(kept->name, sizeof(kept->name), name);
	(void)visit(fd, name, 0, 0, &kept->bytes);
	room->bytes += kept->bytes;
	return 0;
}

static int list(int fd, struct room *room)
{
	AUTO_DIR dir = NULL;
	struct dirent *entry;
	int r = hf_open_dir(fd, ".", &dir);

	while (r == 0 && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = add(room, fd, entry->d_name);
	return r;
}

static int by_age(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	if (x->since.tv_sec != y->since.tv_sec)
		return x->since.tv_sec < y->since.tv_sec ? -1 : 1;
	if (x->since.tv_nsec != y->since.tv_nsec)
		return x->since.tv_nsec < y->since.tv_nsec ? -1 : 1;
	return strcmp(x->name, y->name);
}

void hf_quarantine_trim(const struct hf_state *state, struct hf_journal *journal, const char *newest)
{
	AUTO(room_done) struct room room = { 0 };
	AUTO_FD dir = -1;
	AUTO_FLOCK_FD fd = -1;
	uint64_t bytes = 0;
	size_t n = 0, left;

	if (!journal || hf_state_subdir(state, "quarantine", 0, &dir, NULL) < 0)
		return;
	fd = hf_noinherit_open(dir, ".", O_RDONLY | O_DIRECTORY, 0);
	/* Another process trims already. */
	if (fd < 0 || hf_sys.flock(fd, LOCK_EX | LOCK_NB) < 0 || list(fd, &room) < 0)
		return;
	if (room.n <= HF_QUARANTINE_ENTRIES && room.bytes <= HF_QUARANTINE_BYTES)
		return;
	/* Times are coarse: an entry may have the same one as the newest. */
	for (size_t i = 0; i < room.n; i++)
		if (strcmp(room.all[i].name, newest) == 0)
			room.all[i].since.tv_sec = INT64_MAX;
	qsort(room.all, room.n, sizeof(*room.all), by_age);
	/* A tenth more, so that not every further entry causes an event. The newest entry stays in any case. */
	for (left = room.n; n + 1 < room.n; n++, left--) {
		const struct kept *oldest = &room.all[n];
		uint64_t removed = 0;

		if (left <= HF_QUARANTINE_ENTRIES / 10 * 9 && room.bytes <= HF_QUARANTINE_BYTES / 10 * 9)
			break;
		if (visit(fd, oldest->name, 1, 0, &removed) < 0)
			break;
		room.bytes -= oldest->bytes;
		bytes += oldest->bytes;
	}
	if (n > 0)
		(void)hf_journal_append(journal, HF_EV_QUARANTINE_TRIMMED, NULL,
					(struct hf_field[]){ HF_FIELD_INT("entries", (int64_t)n),
							     HF_FIELD_INT("bytes", (int64_t)bytes),
							     HF_FIELD_INT("left", (int64_t)left) },
					3, 0, NULL);
}

int hf_put_away(const struct hf_put_away *what, int dirfd, const char *file, struct hf_err *err)
{
	char moved[HF_QUARANTINE_NAME_MAX];
	struct hf_field fields[] = { HF_FIELD_TEXT("file", what->shown), HF_FIELD_TEXT("moved_to", moved),
				     HF_FIELD_TEXT("reason", what->reason) };
	int r = hf_state_quarantine_from(what->state, dirfd, what->label, file, moved, err);

	if (r == 0 && what->journal) {
		(void)hf_journal_append(what->journal, HF_EV_RECORD_QUARANTINED, what->subject, fields, 3, 0, NULL);
		hf_quarantine_trim(what->state, what->journal, moved);
	}
	return r;
}
