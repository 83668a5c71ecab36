/* lock/local/record/open.c - the descriptor of a record, also when a process has none left. */
#include <errno.h>

#include "hf/lock/local/record/guard.h"
#include "hf/sys/fd/noinherit.h"

int hf_record_open(struct hf_guard *guard, int flags)
{
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
	return hf_noinherit_open_noatime(guard->dir->fd, guard->key, flags, 0600);
}

void hf_record_close(struct hf_guard *guard)
{
	if (guard->borrowed)
		hf_local_give_back(guard->locks, &guard->fd);
	guard->borrowed = 0;
	hf_noinherit_close(&guard->fd);
}
