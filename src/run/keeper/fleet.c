/*
 * run/keeper/fleet.c - the keeper of a session whose name counts on several machines.
 *
 * The name of this machine is taken first, as always; so what an earlier run left here is ended before the name of the fleet is asked
 * for, and waiters of this machine stand in its own queue. Then the agent (fleet/agent.h) acquires it in the store. Its token becomes
 * that of the session and of the lock here: one number, on every machine.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/lock/store.h"
#include "hf/run/fleet/agent.h"
#include "hf/run/keeper/keeper.h"
#include "hf/sys/fd/poll.h"
#include "hf/sys/state/state.h"

static void note_clock(struct hf_keeper *k)
{
	atomic_store(&k->gate->fleet_end, k->fleet.end_at.ns);
}

/* Until the agent has it. 1, or the failure. */
static int await(struct hf_keeper *k, struct hf_err *err)
{
	struct hf_lock_waiting waiting = { .kind = HF_LOCK_KIND_NAME };
	struct hf_mono begun = hf_mono_now();
	int r;

	hf_copy_text(waiting.name, sizeof(waiting.name), k->name);
	k->queueing = 1;
	while ((r = hf_renewer_acquired(&k->fleet, err)) == 0) {
		struct pollfd fds[] = { { .fd = k->signals, .events = POLLIN }, { .fd = k->link, .events = POLLIN },
					{ .fd = k->supervisor_fd, .events = POLLIN }, { .fd = k->fleet.fd, .events = POLLIN } };

		(void)hf_poll_until(fds, 4, hf_mono_earlier(hf_mono_in(HF_SEC), k->renewal.next));
		waiting.waited_ns = hf_mono_now().ns - begun.ns;
		hf_keeper_note_waiting(k, &waiting);
		if (!hf_keeper_goes_on(k)) {
			r = FAIL(err, HF_E_CANCELLED, "wait", k->name, "%s", "");
			break;
		}
	}
	k->queueing = 0;
	hf_keeper_waited(k);
	return r;
}

int hf_keeper_join_fleet(struct hf_keeper *k, struct hf_holder *ret_blocker, struct hf_err *err)
{
	struct hf_renewer_order order = { .url = k->o.store,
					  .dir = hf_state_path(k->sessions->state),
					  .lock = { HF_LOCK_KIND_NAME, k->name },
					  .owner = &k->record.keeper,
					  .above = k->record.token,
					  .ttl_ns = k->given.ttl_ns > 0 ? k->given.ttl_ns : 0 };
	struct hf_link_news news = { .kind = HF_LINK_FLEET };
	int r;

	if (!hf_fleet_is_store(k->o.store))
		return 0;
	if (k->fleet.fd < 0) {
		(void)FAIL(err, -EINVAL, "store", k->name, "its name is in the store %s; name that store with --store or HOLDFAST_STORE", k->o.store);
		return hf_keeper_refuse(k, err);
	}
	order.wait_ns = k->o.wait_ns <= 0 ? k->o.wait_ns : hf_mono_left(k->wait_until) > 0 ? hf_mono_left(k->wait_until) : 1;
	r = hf_renewer_adopt(&k->fleet, k->fleet.fd, k->name, k->o.grace_ns > 0 ? k->o.grace_ns : 0, &order);
	if (r < 0)
		return hf_fail_sys(err, -r, "send", HF_RENEW_PROGRAM);
	r = await(k, err);
	if (r == HF_E_BUSY || r == HF_E_TIMEOUT)
		*ret_blocker = k->fleet.holder;
	if (r < 0)
		return r;
	k->in_fleet = 1;
	r = hf_lock_raise(k->lock, k->fleet.token, err);
	if (r < 0)
		return r;
	k->record.token = k->fleet.token;
	atomic_store(&k->gate->token, k->record.token);
	note_clock(k);
	hf_keeper_tell(k, &news, -1);
	return k->over == HF_CAUSE_NONE ? 0 : FAIL(err, HF_E_CANCELLED, "wait", k->name, "%s", "");
}

nfds_t hf_keeper_fleet_poll(const struct hf_keeper *k, struct pollfd fds[HF_KEEPER_FLEET_POLL])
{
	if (!k->in_fleet)
		return 0;
	fds[0] = (struct pollfd){ .fd = k->fleet.fd, .events = POLLIN };
	/* Asked already: then ending.c has its own clock. */
	fds[1] = (struct pollfd){ .fd = k->fleet_asked ? -1 : k->fleet.timer, .events = POLLIN };
	return HF_KEEPER_FLEET_POLL;
}

/* "stop MILLISECONDS": a negative grace is none. */
static void obey(struct hf_keeper *k)
{
	uint64_t ms = 0;
	int at_once = strcmp(k->fleet.asked, "stop -") == 0;

	if (strncmp(k->fleet.asked, "stop ", 5) == 0 &&
	    (at_once || hf_parse_u64(k->fleet.asked + 5, strlen(k->fleet.asked + 5), INT32_MAX, &ms) == 0))
		hf_keeper_end(k, HF_CAUSE_STOP, at_once ? -1 : ms ? (int64_t)ms * HF_MSEC : k->o.grace_ns);
	k->fleet.asked[0] = '\0';
}

void hf_keeper_fleet_step(struct hf_keeper *k)
{
	enum hf_renewer_state state;
	int64_t left;

	if (!k->in_fleet || k->fleet_lost)
		return;
	state = hf_renewer_step(&k->fleet);
	if (k->fleet.asked[0])
		obey(k);
	if (state == HF_RENEWER_HOLDS) {
		note_clock(k);
		return;
	}
	left = k->fleet.end_at.ns - hf_boot_now().ns;
	/* Another machine may have the name the moment it is lost: no grace then. */
	if (state == HF_RENEWER_OVER) {
		k->fleet_lost = 1;
		hf_keeper_end(k, HF_CAUSE_CUT_OFF, -1);
	} else if (!k->fleet_asked) {
		hf_keeper_end(k, HF_CAUSE_CUT_OFF, left > 0 ? left : -1);
	}
	k->fleet_asked = 1;
}

void hf_keeper_fleet_tell(struct hf_keeper *k)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;

	if (!k->in_fleet || k->fleet_lost || k->fleet.fd < 0 || k->fleet_phase == k->record.phase)
		return;
	hf_buf_add_char(&text, 'F');
	hf_fleet_facts(&k->record, &text);
	if (text.err == 0 && send(k->fleet.fd, text.s, text.len, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
		k->fleet_phase = k->record.phase;
}

void hf_keeper_leave_fleet(struct hf_keeper *k)
{
	struct hf_err err = HF_ERR_INIT;

	if (k->in_fleet && !k->fleet_lost && hf_renewer_end(&k->fleet, &err) < 0)
		(void)hf_keeper_refuse(k, &err);
	/* Without its keeper the agent ends, too. */
	hf_renewer_leave(&k->fleet);
}
