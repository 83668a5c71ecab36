/* tx/land/move/forecast.c - verifying ahead of the queue, in a child. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/tx/land/move/forecast.h"

#define END_NS (5 * HF_SEC) /* between TERM and KILL: a git takes its locks along, a verifier has its grace */

void hf_forecast_begin(struct hf_forecast *forecast, struct hf_land_work *work)
{
	struct hf_forecast_result *result;

	forecast->work = work;
	if (work->opts->speculate < 2 || !work->landing.verify[0])
		return;
	result = mmap(NULL, sizeof(*result), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	forecast->result = result == MAP_FAILED ? NULL : result;
}

/* -- the child --------------------------------------------------------------------------- */

static int verify(const struct hf_forecast *forecast, const struct hf_landings *parent)
{
	struct hf_land_opts opts = { .size = sizeof(opts), .out_fd = forecast->work->opts->out_fd };
	struct hf_land_work work = { .opts = &opts, HF_LAND_WORK_INIT };
	struct hf_plans *plans = NULL;
	int r = hf_plans_open(parent->state, NULL, &plans, NULL);

	/* Handles of the parent are not for a forked child. */
	if (r == 0)
		r = hf_landings_open(parent->state, NULL, plans, &work.landings, NULL);
	if (r == 0)
		r = hf_landing_load(work.landings, forecast->work->landing.name, &work.landing, NULL);
	if (r < 0)
		return r;
	plans->confine = parent->plans->confine;
	work.landings->envp = parent->envp;
	hf_copy_text(work.head, sizeof(work.head), forecast->onto);
	work.landing.forecasted = forecast->result;
	r = hf_land_verify(&work, NULL);
	hf_copy_text(forecast->result->commit, sizeof(forecast->result->commit), work.landing.commit);
	forecast->result->rebased = work.landing.rebased;
	forecast->result->is_signed = work.landing.is_signed;
	forecast->result->is_unsigned = work.landing.is_unsigned;
	forecast->result->commits = work.landing.commits;
	forecast->result->verify_ns = work.landing.verify_ns;
	return r;
}

static _Noreturn void child_main(const struct hf_forecast *forecast, pid_t parent, int go)
{
	char byte;
	int r;

	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	/* It may have died before the line above. */
	if (getppid() != parent || hf_sys.read(go, &byte, 1) != 1)
		_exit(1);
	(void)prctl(PR_SET_NAME, "hf-forecast");
	r = verify(forecast, forecast->work->landings);
	if (r == 0 || (r == 1 && forecast->result->state == HF_LAND_REJECTED))
		atomic_store(&forecast->result->is_over, 1);
	_exit(0);
}

/* -- its parent -------------------------------------------------------------------------- */

static int has_ended(const struct hf_forecast *forecast, int64_t wait_ns)
{
	struct pollfd fd = { .fd = forecast->pidfd, .events = POLLIN };

	return hf_sys.poll(&fd, 1, (int)(wait_ns / HF_MSEC)) > 0;
}

static void end_child(struct hf_forecast *forecast)
{
	char plan[HF_NAME_MAX + 1];

	if (forecast->pid == 0)
		return;
	(void)hf_sys.pidfd_send_signal(forecast->pidfd, SIGTERM);
	if (!has_ended(forecast, END_NS))
		(void)hf_sys.pidfd_send_signal(forecast->pidfd, SIGKILL);
	while (waitid(P_PID, (id_t)forecast->pid, &(siginfo_t){ 0 }, WEXITED) < 0 && errno == EINTR)
		continue;
	hf_auto_close(&forecast->pidfd);
	forecast->pid = 0;
	/* One that was ended between two steps could not clear up. */
	hf_land_plan_name(forecast->work->landing.name, HF_LAND_PLAN_FORECAST, plan);
	hf_land_remove_plan(forecast->work->landings, plan);
}

void hf_forecast_done(struct hf_forecast *forecast)
{
	end_child(forecast);
	if (forecast->result)
		(void)munmap(forecast->result, sizeof(*forecast->result));
	forecast->result = NULL;
}

/* What those behind this one may stand on. */
static void publish(struct hf_forecast *forecast, const char *commit)
{
	struct hf_landing *landing = &forecast->work->landing;

	if (strcmp(landing->forecast, commit) == 0)
		return;
	hf_copy_text(landing->forecast, sizeof(landing->forecast), commit);
	(void)!hf_landing_save(forecast->work->landings, landing, NULL);
}

static void start_child(struct hf_forecast *forecast, const char *onto)
{
	pid_t parent = getpid();
	AUTO_FD go = -1;
	AUTO_FD let_go = -1;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return;
	go = ends[0];
	let_go = ends[1];
	memset(forecast->result, 0, sizeof(*forecast->result));
	hf_copy_text(forecast->onto, sizeof(forecast->onto), onto);
	/* By the C library: what runs there allocates and takes locks. */
	forecast->pid = fork();
	if (forecast->pid == 0) {
		hf_auto_close(&let_go);
		child_main(forecast, parent, go);
	}
	if (forecast->pid < 0) {
		forecast->pid = 0;
		return;
	}
	/* Ours and not yet reaped: the number is its own. */
	forecast->pidfd = hf_sys.pidfd_open(forecast->pid, 0);
	if (forecast->pidfd >= 0 && hf_write_all(let_go, "g", 1) == 0)
		return;
	/* It could not be looked after: it does not start. */
	hf_auto_close(&let_go);
	while (waitid(P_PID, (id_t)forecast->pid, &(siginfo_t){ 0 }, WEXITED) < 0 && errno == EINTR)
		continue;
	hf_auto_close(&forecast->pidfd);
	forecast->pid = 0;
}

struct queue {
	const struct hf_landing *landing;
	int place;                    /* of this candidate */
	char ahead[HF_NAME_MAX + 1];  /* the one before it; "": none */
	int wanted;                   /* the place of that; 0: this candidate's is looked for */
};

static void note_place(void *arg, const struct hf_land_info *info)
{
	struct queue *queue = arg;
	const struct hf_landing *landing = queue->landing;

	if (info->dev != landing->dev || info->ino != landing->ino || strcmp(info->branch, hf_land_short(landing->branch)) != 0)
		return;
	if (queue->wanted == 0 && strcmp(info->name, landing->name) == 0)
		queue->place = info->place;
	if (queue->wanted > 0 && info->place == queue->wanted)
		hf_copy_text(queue->ahead, sizeof(queue->ahead), info->name);
}

/* The commit that the one before will be; "": not known now. */
static void find_ahead(const struct hf_forecast *forecast, char out[HF_LAND_OID_MAX])
{
	AUTO(hf_landing_done) struct hf_landing ahead = { 0 };
	struct hf_land_work *work = forecast->work;
	struct queue queue = { .landing = &work->landing };

	out[0] = '\0';
	(void)!hf_land_look(work->landings, work->landing.name, note_place, &queue, NULL);
	if (queue.place < 2 || queue.place > (int)work->opts->speculate)
		return;
	queue.wanted = queue.place - 1;
	(void)!hf_land_list(work->landings, note_place, &queue, NULL);
	if (!queue.ahead[0] || hf_landing_load(work->landings, queue.ahead, &ahead, NULL) < 0)
		return;
	if (ahead.state == HF_LAND_VERIFYING || ahead.state == HF_LAND_LANDING)
		hf_copy_text(out, HF_LAND_OID_MAX, ahead.commit);
	else if (ahead.state == HF_LAND_QUEUED)
		hf_copy_text(out, HF_LAND_OID_MAX, ahead.forecast);
}

void hf_forecast_look(struct hf_forecast *forecast)
{
	char ahead[HF_LAND_OID_MAX];

	if (!forecast->result)
		return;
	find_ahead(forecast, ahead);
	if (ahead[0] && strcmp(ahead, forecast->onto) != 0) {
		end_child(forecast);
		publish(forecast, "");
		start_child(forecast, ahead);
	}
	if (forecast->pid > 0 && atomic_load(&forecast->result->is_known))
		publish(forecast, forecast->result->commit);
}

int hf_forecast_take(struct hf_forecast *forecast, struct hf_err *err)
{
	const struct hf_forecast_result *result = forecast->result;
	struct hf_land_work *work = forecast->work;
	struct hf_landing *landing;
	int r = 0;

	/* None was begun, as when a landing goes on after a crash. */
	if (forecast->pid == 0)
		return 0;
	landing = &work->landing;
	if (strcmp(forecast->onto, work->head) == 0)
		while (r >= 0 && !has_ended(forecast, HF_SEC))
			r = work->opts->alive ? work->opts->alive(work->opts->arg) : 0;
	end_child(forecast);
	if (r < 0)
		return FAIL(err, r, "land", landing->name, "its session was asked to end");
	if (strcmp(forecast->onto, work->head) != 0 || !atomic_load(&result->is_over))
		return 0;
	landing->verify_ns = result->verify_ns;
	landing->rebased = result->rebased;
	landing->is_signed = result->is_signed;
	landing->is_unsigned |= result->is_unsigned;
	landing->commits = result->commits;
	hf_copy_text(landing->commit, sizeof(landing->commit), result->commit);
	if (result->state != HF_LAND_REJECTED)
		return 1;
	r = hf_landing_become(work->landings, landing, HF_LAND_REJECTED, err, "%s", result->text);
	return r < 0 ? r : 2;
}
