/* lock/holder.h - a holder in words, the same for every store. */
#ifndef LOCK_HOLDER_H
#define LOCK_HOLDER_H

#include "holdfast/lock.h"

#define HF_HOLDER_TEXT_MAX 448

/* What hf_proc_judge says, in one of three words. */
enum hf_liveness hf_holder_liveness(int verdict);

/* "pid 4711 (make) on build-2 for 12s, alive: pid 4711 runs (…)" for messages and events. */
void hf_holder_text(const struct hf_holder *holder, char *out, size_t cap);

#endif
