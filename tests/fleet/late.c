/*
 * fleet/late.c - a holdfast-renew whose margin is negative: the holder of a session believes in its lease for longer than the store does.
 *
 * For a control: the checker must find the second holder. The shipped program has no such switch; the linker puts this function in
 * front of the real one (--wrap).
 */
#include <stdio.h>
#include <unistd.h>

#include "hf/lock/etcd/renewing.h"
#include "hf/run/fleet/agent.h"

#define LATE_NS (-5 * HF_SEC)

int __real_hf_renewing_open(struct hf_renewing *w, struct hf_journal *journal, struct hf_err *err);
int __wrap_hf_renewing_open(struct hf_renewing *w, struct hf_journal *journal, struct hf_err *err);

static int64_t late(int64_t ttl_ns)
{
	(void)ttl_ns;
	return LATE_NS;
}

int __wrap_hf_renewing_open(struct hf_renewing *w, struct hf_journal *journal, struct hf_err *err)
{
	int r = __real_hf_renewing_open(w, journal, err);

	if (r == 0)
		w->etcd->base.margin = late;
	return r;
}

int main(void)
{
	return hf_fleet_main(STDIN_FILENO);
}
