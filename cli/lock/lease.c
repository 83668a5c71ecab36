/* cli/lock/lease.c - renews the lease of a lock while a command runs, and ends the command when the lease is lost. */
#include <stdio.h>

#include "lock/lease.h"
#include "lock/lock.h"

#define GRACE_NS      (5 * HF_SEC)
#define KILL_AGAIN_NS (20 * HF_MSEC)
#define START_NS      (300 * HF_MSEC)
#define FIRST_NS      (10 * HF_SEC)

int lease_begin(struct lease *lease, int64_t ttl_ns, int elsewhere, const struct hf_proc_id *owner)
{
	lease->elsewhere = elsewhere && lease->lock;
	lease->owner = *owner;
	if (!lease->elsewhere) {
		hf_renewal_begin(&lease->renewal, lease->lock, ttl_ns);
		return 0;
	}
	lease->start_at = hf_mono_in(ttl_ns / 6 < START_NS ? ttl_ns / 6 : START_NS);
	return hf_renewer_begin(&lease->renewer, lease->lock, GRACE_NS, ttl_ns);
}

void lease_poll(const struct lease *lease, int ret_fds[2], struct hf_mono *ret_until)
{
	ret_fds[0] = lease->elsewhere ? lease->renewer.fd : -1;
	ret_fds[1] = lease->elsewhere && !lease->lost && !lease->asked ? lease->renewer.timer : -1;
	if (lease->lost || lease->asked)
		*ret_until = lease->kill_at;
	else if (lease->elsewhere)
		*ret_until = lease->renewer.fd < 0 ? lease->start_at : (struct hf_mono){ INT64_MAX };
	else
		*ret_until = lease->renewal.next;
}

static void step_here(struct cli *cli, struct lease *lease, struct hf_tree *tree)
{
	struct hf_err err = HF_ERR_INIT;
	char text[HF_ERR_TEXT_MAX];

	if (hf_renewal_step(&lease->renewal, &err) < 0) {
		lease->lost = 1;
		(void)hf_tree_term(tree, 0);
		lease->kill_at = hf_mono_in(GRACE_NS);
		cli_say(cli, "the lease is lost, ending the command: %s", lock_why(&err, text));
	} else if (lease->renewal.lost && hf_mono_left(lease->kill_at) == 0) {
		hf_tree_kill(tree);
		lease->kill_at = hf_mono_in(KILL_AGAIN_NS);
	}
}

/* No grace period here: another machine may acquire a lost lock at once. */
static void step_elsewhere(struct cli *cli, struct lease *lease, struct hf_tree *tree)
{
	struct hf_err err = HF_ERR_INIT;
	char text[HF_ERR_TEXT_MAX];
	enum hf_renewer_state state;

	if (lease->lost) {
		if (hf_mono_left(lease->kill_at) > 0)
			return;
		hf_tree_kill(tree);
		lease->kill_at = hf_mono_in(KILL_AGAIN_NS);
		return;
	}
	state = hf_renewer_step(&lease->renewer);
	if (state == HF_RENEWER_OVER) {
		hf_tree_kill(tree);
		lease->lost = 1;
		lease->kill_at = hf_mono_in(KILL_AGAIN_NS);
		cli_say(cli, "the lock is lost, ended the command: %s",
			lease->renewer.why[0] ? lease->renewer.why : "its lease could not be renewed in time");
	} else if (state == HF_RENEWER_ENDS && !lease->asked) {
		lease->asked = 1;
		(void)hf_tree_term(tree, 0);
		cli_say(cli, "the lease cannot be renewed, ending the command");
	}
	if (lease->asked)
		lease->kill_at = hf_mono_in(KILL_AGAIN_NS);
	if (state == HF_RENEWER_HOLDS && !lease->renewer.released && lease->renewer.fd < 0 && hf_mono_left(lease->start_at) == 0) {
		lease->start_at = hf_mono_in(HF_SEC);
		if (hf_renewer_start(&lease->renewer, &lease->owner, 1, &err) < 0)
			cli_say(cli, "the lease is not renewed: %s", lock_why(&err, text));
	}
}

void lease_step(struct cli *cli, struct lease *lease, struct hf_tree *tree)
{
	if (lease->elsewhere)
		step_elsewhere(cli, lease, tree);
	else
		step_here(cli, lease, tree);
}

int lease_is_lost(struct cli *cli, struct lease *lease, struct hf_tree *tree)
{
	if (lease->elsewhere && !lease->lost && lease->renewer.fd >= 0)
		step_elsewhere(cli, lease, tree);
	return lease->lost || lease->asked;
}

void lease_end(struct cli *cli, struct lease *lease)
{
	struct hf_err err = HF_ERR_INIT;
	char text[HF_ERR_TEXT_MAX];

	if (!lease->elsewhere) {
		if (lease->lock && !lease->lost)
			(void)hf_lock_release(lease->lock, NULL);
		return;
	}
	if (lease->lost)
		hf_renewer_leave(&lease->renewer);
	else if (hf_renewer_end(&lease->renewer, &err) < 0)
		cli_say(cli, "the lock is not released: %s; it becomes free within %lld s", lock_why(&err, text),
			(long long)(lease->renewer.ttl_ns / HF_SEC));
}

int lease_keep_for(struct hf_lock *lock, int64_t ttl_ns, const struct hf_proc_id *owner, struct hf_err *err)
{
	struct hf_renewer renewer;
	int r = hf_renewer_begin(&renewer, lock, 0, ttl_ns);

	if (r == 0)
		r = hf_renewer_start(&renewer, owner, 0, err);
	if (r == 0)
		r = hf_renewer_await(&renewer, FIRST_NS, err);
	hf_renewer_leave(&renewer);
	return r;
}
