/*
 * file/commit/exchange.h - the exchange of the old file and the new one, and what comes out of it.
 *
 * The file is exchanged with the temporary one, not overwritten. So what was replaced is in
 * hand, and is looked at: the version that was read, or one that an editor saved in the last
 * microsecond. The latter is brought back. Nothing is removed but what we made and the version that
 * was read: a foreign version that cannot go back, because an even later one stands there,
 * gets a name of its own ("<leaf>.~c~", "<leaf>.~c2~", …) and an event.
 */
#ifndef FILE_COMMIT_EXCHANGE_H
#define FILE_COMMIT_EXCHANGE_H

#include "hf/file/file.h"

/*
 * Exchanges. Returns 0: landed; HF_E_CHANGED: another version was there, and is again;
 * -ENOTSUP: not supported here; -errno.
 */
int hf_exchange(struct hf_file *file);

/* Takes a landed file back: what was there before is in place again. 0 or -errno. */
int hf_exchange_undo(struct hf_file *file);

/*
 * Removes the temporary file, or gives a foreign version that has its name a name of its
 * own. Closes new_fd.
 */
void hf_exchange_settle(struct hf_file *file);

/* Finishes or undoes what dead processes left in all slots. The caller has the lock. */
void hf_exchange_recover(struct hf_file *file);

#endif
