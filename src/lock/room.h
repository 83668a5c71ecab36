/* lock/room.h - a part of the state directory that has locks: sessions, plans, landings. */
#ifndef LOCK_ROOM_H
#define LOCK_ROOM_H

#include "holdfast/lock.h"

/*
 * Opens the directory `name` of the state directory, and the locks. On a read-only file system that has no such directory yet
 * *ret_fd is -1: nothing is there to be shown, and nothing can be made. 0 or as hf_locks_open; on failure nothing stays open.
 */
int hf_room_open(struct hf_state *state, struct hf_journal *journal, const char *name, int *ret_fd, struct hf_locks **ret_locks,
		 struct hf_err *err);

#endif
