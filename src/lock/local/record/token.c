/*
 * lock/local/record/token.c - tokens that rise for ever, whatever happens to the record and the clock (L2).
 *
 * A token is the time of the token clock in microseconds, or one more than the last of its record
 * where that is higher. A record that is deleted, or replaced by an older copy, forgets its last
 * token; but the token clock of a kind never goes back, so it is past that token.
 *
 * The token clock is the boot clock, which nobody can set, plus an offset that only rises. The offset
 * is noted in the file .token before any token is made with it. It follows the wall clock: it is
 * compared with it once in LAG_US, and for each new record. If the wall clock was set back, the offset
 * stays. The note also has the time of the token clock, at most LAG_US ago: after a reboot the
 * new offset begins past it.
 *
 * There are two copies of the note. One that is damaged goes to quarantine, and the other decides; if
 * one is missing, it is written again. Where none can be read or written, the wall clock has to do.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hf/base/cleanup.h"
#include "hf/lock/local/record/put_away.h"
#include "hf/lock/local/record/token.h"
#include "hf/sys/calls.h"
#include "hf/sys/fd/flock.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"
#include "hf/sys/fd/noinherit.h"

#define LAG_US (UINT64_C(1000000))

/* The wall clock runs a little faster or slower than the boot clock: that is not noted each time. */
#define STEP_US 1000

/* Holders that are let in together, within a microsecond, get tokens ahead of the clock: at most so far. */
#define AHEAD_US HF_LOCK_SLOTS_MAX

/* No clock is that far ahead (the year 2112); a note that says so is damaged. */
#define HIGHEST_US (UINT64_C(1) << 52)

/* The guard of a note is held for two system calls. */
#define NOTE_WAIT_NS (100 * HF_MSEC)

static const char *const files[] = { ".token", ".token.copy" };

#define N_FILES (sizeof(files) / sizeof(files[0]))

struct note {
	uint64_t sum;      /* XXH3-64 of the rest */
	uint64_t boot;     /* XXH3-64 of the boot id */
	int64_t offset_us; /* of the token clock to the boot clock */
	uint64_t clock_us; /* the token clock when this was written */
};

static uint64_t note_sum(const struct note *note)
{
	return XXH3_64bits(&note->boot, sizeof(*note) - offsetof(struct note, boot));
}

/* 1 sound; 0 there is none yet; -1 damaged. */
static int read_note(int fd, struct note *ret)
{
	ssize_t n = hf_pread_all(fd, (char *)ret, sizeof(*ret), 0);

	if (n == 0)
		return 0;
	return n == sizeof(*ret) && ret->sum == note_sum(ret) && ret->clock_us <= HIGHEST_US ? 1 : -1;
}

static int take_flock(int fd)
{
	static const struct hf_backoff backoff = { .yields = 4,
						   .min_ns = 20 * HF_USEC,
						   .max_ns = 2 * HF_MSEC };

	return hf_flock_until(fd, LOCK_EX, hf_mono_in(NOTE_WAIT_NS), &backoff) < 0 ? -1 : 0;
}

/* Opens one of the two. What is no private file is put away. -1: it cannot be opened. */
static int open_note(const struct hf_local_file *file, int create)
{
	const int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | (create ? O_CREAT : 0);
	AUTO_FLOCK_FD fd = hf_noinherit_open_noatime(file->dir->fd, file->file, flags, 0600);
	struct stat st;

	/* A umask took the owner's bits: the token would be noted once and never again. */
	if (fd == -EACCES && hf_mend_mode(file->dir->fd, file->file, S_IFREG, 0600) > 0)
		fd = hf_noinherit_open_noatime(file->dir->fd, file->file, flags, 0600);
	if (fd == -ELOOP || fd == -ENXIO || fd == -EISDIR ||
	    (fd >= 0 && hf_stat_at(fd, "", &st) == 0 && hf_check_private(&st, file->file, NULL) < 0)) {
		(void)hf_local_put_away_unopened(file, 0, hf_mono_in(NOTE_WAIT_NS), NULL);
		hf_noinherit_close(&fd);
		fd = create ? hf_noinherit_open_noatime(file->dir->fd, file->file, flags, 0600) : -1;
	}
	if (fd < 0 || hf_stat_at(fd, "", &st) < 0 || hf_check_private(&st, file->file, NULL) < 0)
		return -1;
	if ((st.st_mode & 0600) != 0600)
		(void)hf_sys.fchmod(fd, 0600);
	return fd_take(&fd);
}

/* Reads one of the two; one that is damaged is put away. 1 sound, 0 nothing is known. */
static int find_note(const struct hf_local_file *file, struct note *ret)
{
	AUTO_FLOCK_FD fd = open_note(file, 0);
	struct stat st;
	int r = fd < 0 ? 0 : read_note(fd, ret);

	if (r >= 0)
		return r;
	/* Half of what another process is writing, perhaps: under the flock it is whole. */
	if (take_flock(fd) < 0)
		return 0;
	r = read_note(fd, ret);
	if (r < 0 && hf_stat_at(fd, "", &st) == 0 && hf_local_is_current(file, &st))
		(void)hf_local_put_away(file, "damaged", NULL);
	return r > 0;
}

/* Writes one of the two, unless a later note of this boot is there. 0, or -1: it cannot be written. */
static int write_note(const struct hf_local_file *file, const struct note *note)
{
	struct note there;
	AUTO_FLOCK_FD fd = -1;
	size_t done;

	/* What is damaged is put away, not written over. */
	(void)find_note(file, &there);
	fd = open_note(file, 1);
	if (fd < 0 || !hf_local_may_write(file->locks, sizeof(*note), 0) || take_flock(fd) < 0)
		return -1;
	if (read_note(fd, &there) > 0 && there.boot == note->boot && there.offset_us >= note->offset_us &&
	    there.clock_us >= note->clock_us)
		return 0;
	return hf_pwrite_all(fd, (const char *)note, sizeof(*note), 0, &done) < 0 ? -1 : 0;
}

static void raise_to(_Atomic int64_t *value, int64_t to)
{
	int64_t now = *value;

	while (now < to && !atomic_compare_exchange_weak(value, &now, to))
		;
}

static int64_t higher(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/*
 * The offset that is right now: not below any that was used, nor a token that was given. `note` may
 * be NULL: none was found.
 */
static int64_t offset_now(const struct hf_guard *guard, const struct note *note, int is_of_boot,
			  int64_t boot_us, int64_t wall_us)
{
	int64_t offset = guard->dir->offset_us;

	if (note && is_of_boot)
		offset = higher(offset, note->offset_us);
	else if (note)
		offset = higher(offset, (int64_t)(note->clock_us + LAG_US + 1) - boot_us);
	if (wall_us - boot_us > offset + STEP_US)
		offset = wall_us - boot_us;
	/* A record that is ahead: from another machine, or of a time without a note. */
	if (guard->record.token < HIGHEST_US)
		offset = higher(offset, (int64_t)guard->record.token - boot_us);
	return offset;
}

/*
 * Brings the token clock up to the wall clock, the note and the token of the record, and notes it.
 * `boot_us` is the boot clock. Returns the offset.
 */
static int64_t adjust(struct hf_guard *guard, int64_t boot_us)
{
	int64_t wall_us = hf_wall_now().ns / HF_USEC;
	struct hf_local_file file = { guard->locks, guard->dir, files[0], NULL };
	struct note note, next = { .boot = XXH3_64bits(guard->locks->here.boot_id, HF_BOOT_ID_LEN) };
	int has_first = find_note(&file, &note), found = has_first, is_of_boot, noted = 0;

	for (size_t i = 1; i < N_FILES && !found; i++) {
		file.file = files[i];
		found = find_note(&file, &note);
	}
	is_of_boot = found && note.boot == next.boot && (int64_t)note.clock_us <= boot_us + note.offset_us;
	next.offset_us = offset_now(guard, found ? &note : NULL, is_of_boot, boot_us, wall_us);
	next.clock_us = (uint64_t)(boot_us + next.offset_us);
	if (has_first && is_of_boot && next.offset_us == note.offset_us &&
	    next.clock_us - note.clock_us < LAG_US) {
		raise_to(&guard->dir->offset_us, note.offset_us);
		raise_to(&guard->dir->noted_us, (int64_t)note.clock_us);
		return note.offset_us;
	}
	next.sum = note_sum(&next);
	for (size_t i = 0; i < N_FILES; i++) {
		file.file = files[i];
		noted += write_note(&file, &next) == 0;
	}
	/* What is not noted is not used, if there is anything else. */
	if (!noted && is_of_boot)
		return note.offset_us;
	raise_to(&guard->dir->offset_us, next.offset_us);
	if (noted)
		raise_to(&guard->dir->noted_us, (int64_t)next.clock_us);
	return next.offset_us;
}

uint64_t hf_token_next(struct hf_guard *guard)
{
	int64_t boot_us = hf_local_now(guard->locks) / HF_USEC;
	int64_t clock_us = boot_us + guard->dir->offset_us;
	uint64_t after = guard->record.token + 1;
	int64_t behind_us = clock_us - guard->dir->noted_us;

	if (guard->is_new || guard->dir->noted_us == 0 || behind_us < 0 || behind_us >= (int64_t)LAG_US ||
	    after > (uint64_t)clock_us + AHEAD_US)
		clock_us = boot_us + adjust(guard, boot_us);
	return after > (uint64_t)clock_us ? after : (uint64_t)clock_us;
}

const char *hf_token_damaged_note(int dirfd)
{
	for (size_t i = 0; i < N_FILES; i++) {
		AUTO_FD fd = hf_open_at(dirfd, files[i], O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
		struct note note;

		if (fd >= 0 ? read_note(fd, &note) < 0 : fd == -ELOOP || fd == -ENXIO)
			return files[i];
	}
	return NULL;
}
