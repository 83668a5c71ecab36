/*
 * lock/etcd/wire/pin.h - the cluster that this machine has used, remembered.
 *
 * A cluster that is restored from a snapshot, or made anew, has another id; locks that were released
 * come back, and holders of the time between are forgotten. So the id that was seen first is kept in
 * the state directory (stores/<series>), and another one is refused until a person accepts it (doctor --accept-cluster).
 */
#ifndef LOCK_ETCD_WIRE_PIN_H
#define LOCK_ETCD_WIRE_PIN_H

#include "hf/lock/etcd/etcd.h"

/* Is that the cluster that is known? The first one is remembered. "": the answer does not say. */
int hf_pin_check(struct hf_etcd *etcd, const char *cluster, struct hf_err *err);

/* Another cluster may be the first one again (doctor --accept-cluster). */
void hf_pin_forget(struct hf_etcd *etcd);

#endif
