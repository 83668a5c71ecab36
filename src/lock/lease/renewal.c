/* lock/lease/renewal.c - when to renew a lease, and when it is lost. */
#include "hf/lock/lease/renewal.h"

static const struct hf_mono never = { .ns = INT64_MAX };

void hf_renewal_begin(struct hf_renewal *renewal, struct hf_lock *lock, int64_t ttl_ns)
{
	*renewal = (struct hf_renewal){ .lock = lock,
					.ttl_ns = ttl_ns,
					.next = lock ? hf_mono_in(ttl_ns / 3) : never,
					.ends = hf_mono_in(ttl_ns) };
}

void hf_renewal_hurry(struct hf_renewal *renewal)
{
	if (renewal->lock && !renewal->lost)
		renewal->next = hf_mono_now();
}

int hf_renewal_step(struct hf_renewal *renewal, struct hf_err *err)
{
	struct hf_mono begun = hf_mono_now();
	int r;

	if (!renewal->lock || renewal->lost || hf_mono_left(renewal->next) > 0)
		return 0;
	r = hf_lock_renew(renewal->lock, 0, err);
	if (r == 0) {
		renewal->next = hf_mono_in(renewal->ttl_ns / 3);
		renewal->ends.ns = begun.ns + renewal->ttl_ns;
		return 1;
	}
	renewal->next = hf_mono_in(renewal->ttl_ns / 10);
	if (r != HF_E_STALE && hf_mono_left(renewal->ends) > 0)
		return 0;
	renewal->lost = 1;
	renewal->next = never;
	return r;
}
