/* lock/room.c - a part of the state directory that has locks. */
#include <errno.h>

#include "hf/base/cleanup.h"
#include "hf/lock/room.h"
#include "hf/sys/state/state.h"

int hf_room_open(struct hf_state *state, struct hf_journal *journal, const char *name, int *ret_fd, struct hf_locks **ret_locks,
		 struct hf_err *err)
{
	AUTO_FD fd = -1;
	int r = hf_state_subdir(state, name, 1, &fd, err);

	if (r < 0 && r != -EROFS)
		return r;
	r = hf_locks_open(state, journal, ret_locks, err);
	if (r < 0)
		return r;
	*ret_fd = fd_take(&fd);
	return 0;
}
