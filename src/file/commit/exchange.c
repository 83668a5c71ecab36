/* file/commit/exchange.c - exchanging two files, and never losing what comes out. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/file/commit/commit.h"
#include "hf/file/content.h"
#include "hf/file/commit/exchange.h"
#include "hf/file/commit/intent.h"
#include "hf/file/commit/lease.h"
#include "hf/file/commit/temp.h"
#include "hf/proc/judge.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/fd/noinherit.h"

#define BRING_BACK_TRIES 64 /* each one lost to an editor that saved in those microseconds */
#define KEPT_MAX         99

/* -- which version is it? --------------------------------------------------------- */

enum kind {
	NOTHING, /* no entry has that name */
	OURS,    /* what we made, or the version that was read: may be removed */
	FOREIGN,
};

static int look(const struct hf_file *file, const char *name, struct stat *ret)
{
	return hf_sys.fstatat(file->dirfd, name, ret, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int is_version(const struct hf_file *file, const char *name, const struct hf_stamp *stamp)
{
	struct hf_stamp now;
	struct stat st;

	if (look(file, name, &st) < 0)
		return 0;
	now = hf_stamp_of(&st);
	return hf_stamp_equal(&now, stamp);
}

static enum kind kind_of(const struct hf_file *file, const char *name, const struct hf_stamp *old,
			 const struct hf_stamp *made)
{
	struct stat st;
	int r = look(file, name, &st);

	if (r < 0)
		return r == -ENOENT ? NOTHING : FOREIGN;
	return is_version(file, name, old) || is_version(file, name, made) ? OURS : FOREIGN;
}

static struct hf_stamp old_stamp(const struct hf_file *file)
{
	return (struct hf_stamp){ file->version.ino, file->version.size, file->version.mtime };
}

/* -- there and back --------------------------------------------------------------- */

static int exchange(const struct hf_file *file, const char *temp)
{
	return hf_sys.renameat2(file->dirfd, temp, file->dirfd, file->leaf, RENAME_EXCHANGE) == 0
		       ? 0
		       : -errno;
}

/*
 * The version under `temp` goes back to where what we made stands. An editor may save at any
 * moment: if something else than we put there comes out, that is the latest, and it goes back in
 * turn. At the end the latest is in place, and `temp` is what is left over, if anything.
 */
static int bring_back(const struct hf_file *file, const char *temp, ino_t made)
{
	ino_t expected = made;
	struct stat in_hand, out;
	int r = look(file, file->leaf, &out);

	/* A later save replaced what we made: that stays. */
	if (r == 0 && out.st_ino != made)
		return 0;
	for (int i = 0; i < BRING_BACK_TRIES; i++) {
		r = look(file, temp, &in_hand);
		if (r < 0)
			return r;
		r = exchange(file, temp);
		if (r == -ENOENT) {
			r = hf_rename_new(file->dirfd, temp, file->dirfd, file->leaf);
			if (r == -EEXIST)
				continue;
			return r;
		}
		if (r < 0 || (r = look(file, temp, &out)) < 0)
			return r;
		if (out.st_ino == expected)
			return 0;
		expected = in_hand.st_ino;
	}
	return -EBUSY;
}

int hf_exchange(struct hf_file *file)
{
	struct hf_stamp old = old_stamp(file);
	int r = hf_intent_make(file);

	/* Without it, a crash could make the next process remove a foreign version. */
	if (r == -EPERM || r == -EOPNOTSUPP || r == -ENOSYS)
		return -ENOTSUP;
	if (r < 0)
		return r;
	r = exchange(file, file->temp);
	if (r == -EINVAL || r == -ENOSYS || r == -EOPNOTSUPP)
		return -ENOTSUP;
	if (r < 0)
		return r == -ENOENT ? HF_E_CHANGED : r;
	if (is_version(file, file->temp, &old) && hf_lease_holds(file)) {
		file->landing = HF_LANDED_EXCHANGED;
		return 0;
	}
	(void)bring_back(file, file->temp, file->made.ino);
	return HF_E_CHANGED;
}

int hf_exchange_undo(struct hf_file *file)
{
	struct stat st;
	int r = look(file, file->leaf, &st);

	if (r < 0 || st.st_ino != file->made.ino)
		return -ESTALE; /* only what is still ours is taken back */
	if (file->landing == HF_LANDED_EXCHANGED) {
		r = bring_back(file, file->temp, file->made.ino);
	} else if (file->landing == HF_LANDED_NEW) {
		/* Under its first name again, where it can be looked at before it goes. */
		hf_temp_name(file, file->slot, file->temp);
		file->has_intent = 1; /* what has that name is looked at */
		r = hf_rename_new(file->dirfd, file->leaf, file->dirfd, file->temp);
		if (r < 0)
			file->temp[0] = '\0';
		else if (look(file, file->temp, &st) == 0 && st.st_ino != file->made.ino)
			r = hf_rename_new(file->dirfd, file->temp, file->dirfd, file->leaf);
	} else {
		return -ENOSYS;
	}
	if (r == 0)
		file->landing = HF_NOT_LANDED;
	return r;
}

/* -- what is left under the temporary name ------------------------------------------ */

static void tell_kept(struct hf_file *file)
{
	struct hf_field fields[] = { HF_FIELD_TEXT("path", file->path),
				     HF_FIELD_TEXT("kept", file->kept) };

	if (file->journal)
		(void)hf_journal_append(file->journal, HF_EV_FILE_KEPT, NULL, fields, 2, 0, NULL);
}

/* Gives a foreign version a name of its own. Returns 0 or -errno. */
static int keep(struct hf_file *file, const char *temp)
{
	int r = -EEXIST;

	for (int i = 1; r == -EEXIST && i <= KEPT_MAX; i++) {
		if (i == 1)
			(void)snprintf(file->kept, sizeof(file->kept), "%.*s.~c~", HF_LEAF_MAX,
				       file->leaf);
		else
			(void)snprintf(file->kept, sizeof(file->kept), "%.*s.~c%d~",
				       HF_LEAF_MAX, file->leaf, i);
		r = hf_rename_new(file->dirfd, temp, file->dirfd, file->kept);
	}
	if (r < 0)
		file->kept[0] = '\0';
	else
		tell_kept(file);
	return r;
}

/* Returns 0 when no foreign version has the name any more. */
static int clear(struct hf_file *file, const char *temp, const struct hf_stamp *old,
		 const struct hf_stamp *made)
{
	switch (kind_of(file, temp, old, made)) {
	case NOTHING:
		return 0;
	case OURS:
		/* If that fails, it is what a sweep takes it for. */
		(void)hf_sys.unlinkat(file->dirfd, temp, 0);
		return 0;
	case FOREIGN:
	default:
		return keep(file, temp);
	}
}

void hf_exchange_settle(struct hf_file *file)
{
	struct hf_stamp old = old_stamp(file);

	/* A process waits to write into it: it is no longer only the version that was read. */
	if (!hf_lease_holds(file))
		old = (struct hf_stamp){ 0 };
	if (file->has_intent) {
		/* If it cannot be cleared, the intent tells the next process what it is. */
		if (!file->temp[0] || clear(file, file->temp, &old, &file->made) == 0)
			hf_intent_remove(file, file->slot);
	} else if (file->new_fd >= 0 && file->temp[0]) {
		(void)hf_sys.unlinkat(file->dirfd, file->temp, 0);
	}
	file->has_intent = 0;
	file->temp[0] = '\0';
	hf_noinherit_unlock_close(&file->new_fd);
}

/* -- after a crash ------------------------------------------------------------------- */

struct recovery {
	const char *temp;
	ino_t made;
};

static int bring_back_guarded(struct hf_file *file, void *arg)
{
	const struct recovery *recovery = arg;

	return bring_back(file, recovery->temp, recovery->made);
}

/* May the intent be acted upon? Its process is dead, or is this one and has only failed to remove it. */
static int is_left(const struct hf_intent *intent, int has_temp)
{
	struct hf_proc_id self;

	if (!has_temp && hf_proc_self(&self, NULL) == 0 && hf_proc_equal(&self, &intent->process))
		return 1;
	/* A living one went on without the lock and may be in the middle of it. */
	return hf_proc_liveness(&intent->process, 0, NULL) == HF_DEAD;
}

static void recover_slot(struct hf_file *file, int slot)
{
	struct hf_intent intent = { 0 };
	char temp[NAME_MAX + 1];
	struct recovery recovery = { .temp = temp };
	AUTO_FLOCK_FD fd = -1;
	struct stat st;
	int has_temp, r = hf_intent_read(file, slot, &intent);

	if (r == -ENOENT) {
		hf_temp_sweep(file, slot);
		return;
	}
	if (r < 0 && r != HF_E_FORMAT)
		return;
	hf_temp_name(file, slot, temp);
	has_temp = look(file, temp, &st) == 0;
	if (r == 0 && !is_left(&intent, has_temp))
		return;
	recovery.made = intent.made.ino;
	/* Of another user: not ours to move. (A symlink that was replaced has no flock.) */
	if (has_temp && !S_ISLNK(st.st_mode)) {
		fd = hf_temp_claim(file, temp);
		if (fd < 0)
			return;
		/* A process has it open, to save into it: then that is the latest version. */
		if (hf_sys.set_lease(fd, F_RDLCK) < 0 && errno == EAGAIN)
			intent.old = (struct hf_stamp){ 0 };
	}
	/* It died between taking a foreign version out and bringing it back. */
	if (kind_of(file, temp, &intent.old, &intent.made) == FOREIGN &&
	    is_version(file, file->leaf, &intent.made))
		(void)hf_commit_guarded(file, bring_back_guarded, &recovery, NULL);
	if (clear(file, temp, &intent.old, &intent.made) == 0)
		hf_intent_remove(file, slot);
}

void hf_exchange_recover(struct hf_file *file)
{
	for (int slot = 0; slot < HF_TEMP_SLOTS; slot++)
		recover_slot(file, slot);
}
