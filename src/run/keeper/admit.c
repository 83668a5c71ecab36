/* run/keeper/admit.c - may the session start? Its depth, and its name. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/run/keeper/keeper.h"

int hf_keeper_refuse(struct hf_keeper *k, const struct hf_err *err)
{
	char text[HF_ERR_TEXT_MAX];
	struct hf_field fields[] = { HF_FIELD_TEXT("action", "run"), HF_FIELD_TEXT("reason", text) };

	(void)hf_err_format(err, text, sizeof(text));
	hf_session_event(k->sessions, HF_EV_SESSION_REFUSED, k->name, fields, 2);
	return err->code;
}

uint64_t hf_keeper_depth(void)
{
	const char *text = getenv("HOLDFAST_DEPTH");
	uint64_t depth = 0;

	/* One that cannot be read is taken for the deepest: this library did not write it. */
	if (text && text[0] && hf_parse_u64(text, strlen(text), UINT32_MAX - 1, &depth) < 0)
		return UINT32_MAX - 1;
	return depth;
}

int hf_keeper_check_depth(struct hf_keeper *k, struct hf_err *err)
{
	uint64_t depth = hf_keeper_depth();

	if (depth < k->o.max_depth)
		return 0;
	(void)FAIL(err, HF_E_LIMIT, "depth", k->name,
		   "this would be session %llu within sessions, and the limit is %u (--max-depth)",
		   (unsigned long long)depth + 1, k->o.max_depth);
	return hf_keeper_refuse(k, err);
}

/* The name, for both of us: it is free only when both are gone. */
int hf_keeper_take_lock(struct hf_keeper *k, struct hf_holder *ret_blocker, struct hf_err *err)
{
	struct hf_lock_opts opts = { .size = sizeof(opts), .ttl_ns = k->o.ttl_ns };
	int r;

	k->wait_until = hf_mono_in(k->o.wait_ns > 0 ? k->o.wait_ns : 0);
	hf_keeper_wait_options(k, &opts);
	r = hf_lock_acquire(k->sessions->locks, k->name, &opts, &k->lock, ret_blocker, err);
	hf_keeper_waited(k);
	if (r < 0)
		return r;
	k->record.token = hf_lock_token(k->lock);
	atomic_store(&k->gate->token, k->record.token);
	/* A signal that came while we waited has ended it: nothing is started. */
	if (!hf_gate_decide(k->gate, HF_GATE_HELD))
		return FAIL(err, -ECANCELED, "lock", k->name, "it was asked to stop");
	/* From here on there may be a tree, which is ended before we are. */
	(void)prctl(PR_SET_PDEATHSIG, 0);
	hf_renewal_begin(&k->renewal, k->lock, k->o.ttl_ns);
	r = hf_lock_add_owner(k->lock, &k->record.supervisor, err);
	if (r == 0 && hf_keeper_is_orphan(k))
		r = FAIL(err, HF_E_GONE, "supervisor", k->name, "it is already gone");
	return r;
}
