/* tx/stage.h - the stage of a transactional run for the program that supervises sessions in the background. */
#ifndef TX_STAGE_H
#define TX_STAGE_H

#include "hf/run/supervisor/order.h"

/* Calls `fn` with a stage that lives as long as the call; it does nothing for a session without sandboxes. */
int hf_tx_with_stage(struct hf_state *state, const char *name, hf_with_stage_fn *fn, void *arg);

#endif
