/* view/lock.h - a lock with its holders and waiters, as JSON and as rows. */
#ifndef VIEW_LOCK_H
#define VIEW_LOCK_H

#include "hf/view/columns.h"
#include "hf/view/json.h"
#include "holdfast/lock.h"

/* "exclusive", "shared", "slots"; "alive", "dead", "unknown". */
const char *hf_view_mode(enum hf_lock_mode mode);
const char *hf_view_liveness(enum hf_liveness liveness);

/* The shape "lock" of docs/JSON.md, with its holders and waiters. NULL without memory. */
json_t *hf_view_lock(const struct hf_lock_info *info);

/*
 * The shape "conflict": the lock `name` was refused because of `blocker` (pid 0: not
 * known), and the program exits with `exit_status`.
 */
json_t *hf_view_conflict(enum hf_lock_kind kind, const char *name, const struct hf_holder *blocker,
			 const struct hf_err *err, int exit_status);

#define HF_VIEW_LOCK_COLUMNS 9
#define HF_VIEW_LOCK_STATE   8 /* the column that has the tone */

extern const struct hf_view_column hf_view_lock_columns[HF_VIEW_LOCK_COLUMNS];

/* One row for each holder; `holder` NULL: nobody has it. The caller made the cells with HF_BUF_INIT. */
void hf_view_lock_cells(const struct hf_lock_info *info, const struct hf_holder *holder,
			struct hf_buf cells[HF_VIEW_LOCK_COLUMNS]);

enum hf_view_tone hf_view_lock_tone(const struct hf_holder *holder);

/* How long a lease lasts: "12s", "expired", "-" for none. */
void hf_view_lease(struct hf_buf *out, int64_t left_ns);

/* "waiting for 'build' (pid 4711 make, 4 s), place 1; Ctrl-C gives up", or what Ctrl-C does where the wait is another process's. */
void hf_view_waiting(struct hf_buf *out, const struct hf_lock_waiting *where, int in_background);

#endif
