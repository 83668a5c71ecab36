/* view/doctor/store.h - is the store of several machines sound? */
#ifndef VIEW_DOCTOR_STORE_H
#define VIEW_DOCTOR_STORE_H

#include "hf/view/doctor/doctor.h"

struct hf_state;

enum hf_doctor_store_flags {
	HF_DOCTOR_ACCEPT = 1 << 0, /* the cluster that answers now is the one from now on */
	HF_DOCTOR_CLEAN = 1 << 1,  /* names that nobody has used for a week are removed */
};

/* Asks each server of the store that `url` names; `fn` gets each result. 0, or the exit status of a store that cannot be opened. */
int hf_doctor_store(const char *url, struct hf_state *state, unsigned flags, hf_checkup_fn *fn, void *arg);

#endif
