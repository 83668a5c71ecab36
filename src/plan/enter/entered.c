/* plan/enter/entered.c - the parent's side once a command is inside: what the child tells, the census, the end. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/target/census.h"
#include "hf/plan/enter/confine.h"
#include "hf/plan/enter/enter_inner.h"
#include "hf/plan/target/target.h"
#include "hf/plan/sandbox/use.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

#define ENDING_NS (500 * HF_MSEC)

static void note_told(struct hf_enter *enter)
{
	struct hf_enter_told told = { 0 };

	hf_auto_close(&enter->report[1]);
	hf_auto_close(&enter->channel[1]);
	if (hf_sys.read(enter->report[0], &told, sizeof(told)) != sizeof(told))
		told.helper = 0;
	enter->helper_pid = told.helper;
	enter->command_pid = told.command;
	if (told.landlocked)
		enter->entered |= HF_ENTERED_LANDLOCK;
	if (told.root_only) {
		enter->entered |= HF_ENTERED_ROOT;
		hf_copy_text(enter->why, sizeof(enter->why), "user namespaces are not available");
	}
	if (told.helper || enter->inside.n == 0)
		return;
	enter->entered |= HF_ENTERED_NO_RENAME;
	if (told.without.step[0])
		(void)snprintf(enter->why, sizeof(enter->why), "%s: %s", told.without.step,
			       told.without.sys == EBUSY ?
				       "another filter already listens, as in a sandbox within a sandbox" :
				       strerrordesc_np(told.without.sys));
}

static void start_one(struct hf_enter *enter, size_t i, const struct hf_t0 *t0)
{
	struct hf_census_children *children = enter->children;
	pid_t pid = 0;

	if (hf_census_start(enter->targets[i], enter->helper.sandboxes[i], t0, children ? &pid : NULL) == 0 && pid > 0)
		children->pids[children->n++] = pid;
}

static void start_census(struct hf_enter *enter)
{
	if (enter->flags & HF_PLAN_ENTER_NO_CENSUS)
		return;
	for (size_t i = 0; i < enter->inside.n; i++) {
		const struct hf_sandbox_record *s = NULL;

		for (size_t k = 0; k < enter->record.n_sandboxes; k++)
			if (enter->record.sandboxes[k].target.path == enter->layers[i].target)
				s = &enter->record.sandboxes[k];
		if (s && enter->targets[i] >= 0)
			start_one(enter, i, &s->t0);
		hf_auto_close(&enter->targets[i]);
	}
}

int hf_enter_mounted(struct hf_enter *enter, pid_t pid, const struct hf_inside_fail *fail,
		     struct hf_err *err)
{
	if (fail)
		return hf_inside_error(fail, enter->record.name, err);
	note_told(enter);
	/* The command may use the plan at once. */
	hf_plan_unlock(&enter->lock);
	hf_auto_close(&enter->go);
	struct hf_field fields[] = { HF_FIELD_INT("leader", pid > 0 ? pid : enter->command_pid),
				     HF_FIELD_BOOL("joined", enter->entered & HF_ENTERED_JOINED),
				     HF_FIELD_TEXT("without", "directory renames") };
	if (!(enter->flags & HF_PLAN_ENTER_QUIET))
		hf_plan_event(enter->plans, HF_EV_PLAN_ENTERED, enter->record.name, fields,
			      enter->entered & HF_ENTERED_NO_RENAME ? 3 : 2);
	start_census(enter);
	return 0;
}

/* No helper, or it was killed: is a process left inside? */
static void settle_here(struct hf_enter *enter)
{
	AUTO(hf_plan_record_done) struct hf_plan_record record = HF_PLAN_RECORD_INIT;
	AUTO(hf_plan_unlock) struct hf_lock *lock = NULL;
	struct hf_mono until = hf_mono_in(ENDING_NS);
	int r;

	hf_auto_close(&enter->helper.in_fd);
	r = hf_plan_lock(enter->plans, enter->record.name, HF_SEC, &lock, NULL);
	/* The process that has the plan's lock now settles it. */
	if (r == HF_E_BUSY || r == HF_E_TIMEOUT)
		return;
	if (r == 0)
		r = hf_plan_load(enter->plans, enter->record.name, &record, NULL);
	/* A helper that has told its end may still be on its way out of the namespaces. */
	while (r == 0 &&
	       (r = hf_plan_settle(enter->plans, &record, hf_lock_token(lock), NULL)) == HF_E_IN_USE &&
	       hf_mono_left(until) > 0) {
		hf_pause(2 * HF_MSEC);
		r = 0;
	}
	if (r < 0)
		enter->entered |= HF_ENTERED_LEFT;
}

void hf_enter_ended(struct hf_enter *enter, char word)
{
	if (word == HF_HELPER_LEFT)
		enter->entered |= HF_ENTERED_LEFT;
	else if (word != HF_HELPER_SETTLED && word != HF_HELPER_OTHERS)
		settle_here(enter);
}

void hf_enter_end(struct hf_enter *enter)
{
	char word = HF_HELPER_ENDED;
	ssize_t n = 0;

	/* The lock is the helper's alone from here on. */
	if (enter->inside.n > 0 && !(enter->entered & HF_ENTERED_NO_RENAME)) {
		struct pollfd fd = { .fd = enter->channel[0], .events = POLLIN };

		hf_auto_close(&enter->helper.in_fd);
		(void)!send(enter->channel[0], &word, 1, MSG_NOSIGNAL);
		while (hf_sys.poll(&fd, 1, HF_ENTER_REST_MS) < 0 && errno == EINTR)
			;
		n = recv(enter->channel[0], &word, 1, MSG_DONTWAIT);
	}
	if (enter->inside.n > 0 || enter->helper.n_copies > 0)
		hf_enter_ended(enter, n == 1 ? word : 0);
}
