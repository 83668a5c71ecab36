/* view/plan/tx.h - what is shown of a transactional run's end. */
#ifndef VIEW_PLAN_TX_H
#define VIEW_PLAN_TX_H

#include "hf/view/json.h"
#include "holdfast/tx.h"

/* What became of the changes: an object, or null when there was no sandbox. */
json_t *hf_view_landed(const struct hf_tx_report *report);

#endif
