/* lock/local/record/open.c - the descriptor of a record, also when a process has none left. */
#include <errno.h>

#include "hf/lock/local/record/guard.h"
#include "hf/sys/fd/noinherit.h"
#include "hf/sys/io.h"

/* Another thread may take the number between the close and the open. A thread of ours soon closes it again. */
#define STOLEN_NS (2 * HF_SEC)

int hf_record_open(struct hf_guard *guard, int flags)
{
	struct hf_mono until;
	int r = hf_noinherit_open_noatime(guard->dir->fd, guard->key, flags, 0600);

	if (r != -EMFILE && r != -ENFILE)
		return r;
	hf_local_close_now(guard->locks);
	r = hf_noinherit_open_noatime(guard->dir->fd, guard->key, flags, 0600);
	if ((r != -EMFILE && r != -ENFILE) || !guard->is_release)
		return r;
	if (!guard->borrowed)
		hf_local_borrow(guard->locks);
	guard->borrowed = 1;
	until = hf_mono_in(STOLEN_NS);
	while (((r = hf_noinherit_open_noatime(guard->dir->fd, guard->key, flags, 0600)) == -EMFILE || r == -ENFILE) &&
	       hf_mono_left(until) > 0)
		hf_pause(HF_MSEC);
	return r;
}

void hf_record_close(struct hf_guard *guard)
{
	if (guard->borrowed)
		hf_local_give_back(guard->locks, &guard->fd);
	guard->borrowed = 0;
	hf_noinherit_close(&guard->fd);
}
