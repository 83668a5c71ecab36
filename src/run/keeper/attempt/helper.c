/* run/keeper/attempt/helper.c - the commands beside the command: verifier, until. */
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/run/keeper/keeper.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

struct hf_spawn hf_keeper_spawn(struct hf_keeper *k, char *const *argv, int staged)
{
	return (struct hf_spawn){ .argv = argv,
				  .envp = k->envp,
				  .stdio = { k->output.child[0], k->output.child[1],
					     k->output.child[2] },
				  .terminal = k->output.terminal >= 0,
				  .group = k->group,
				  .mask = &k->mask,
				  .cgroup = &k->tree.group,
				  .mark = k->record.mark,
				  .limits = &k->limits,
				  .enter = staged && k->stage ? k->stage->enter : NULL,
				  .enter_arg = k->stage ? k->stage->arg : NULL };
}

int hf_keeper_ready(struct hf_keeper *k)
{
	k->stage_err.code = 0;
	return k->stage && k->stage->ready ? k->stage->ready(k->stage->arg, &k->stage_err) : 0;
}

int hf_keeper_entered(struct hf_keeper *k, const struct hf_child *child, int result)
{
	int r;

	if (!k->stage || !k->stage->entered)
		return result;
	r = k->stage->entered(k->stage->arg, child->pid, result, &k->tree, &k->stage_err);
	return r != 0 ? r : result;
}

static void await_pid(pid_t pid)
{
	while (pid > 0 && waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 }, WEXITED) < 0 && errno == EINTR)
		continue;
}

/* Only that one is awaited, and the helper that it may have made: what an earlier attempt left running may go on. */
void hf_keeper_reap_child(struct hf_keeper *k, const struct hf_child *child)
{
	await_pid(child->pid);
	await_pid(k->tree.attendant);
	k->tree.attendant = 0;
	hf_output_drain(&k->output);
}

struct hf_watched hf_keeper_helper(struct hf_keeper *k, const char *command, int64_t limit_ns, int staged)
{
	AUTO(hf_child_done) struct hf_child child = HF_CHILD_INIT;
	AUTO_FD stdin_fd = hf_open_at(AT_FDCWD, "/dev/null", O_RDONLY, 0);
	char shell[] = "sh", dash_c[] = "-c";
	char *argv[] = { shell, dash_c, (char *)(uintptr_t)command, NULL };
	struct hf_watched watched, none = { .code = 0, .status = ENOMEM };
	struct hf_limits limits = { .has_deadline = 1 };
	struct hf_spawn spawn;
	int r = 0;

	/* Its output goes where the command's goes; a terminal of its own it does not get. */
	if (hf_log_is_on(&k->output.log))
		r = hf_output_open(&k->output, k->own_session && isatty(STDOUT_FILENO) ? HF_OUTPUT_SCREEN : HF_OUTPUT_PIPES);
	if (r == 0 && staged)
		r = hf_keeper_ready(k);
	if (r == 0) {
		spawn = hf_keeper_spawn(k, argv, staged);
		spawn.stdio[0] = stdin_fd;
		r = hf_spawn(&spawn, &child);
	}
	hf_output_close_child(&k->output);
	if (r == 0)
		r = hf_spawn_go(&child);
	if (r == 0)
		r = hf_spawn_result(&child);
	if (r < 0)
		hf_auto_close(&child.go); /* one that was not let go ends now */
	if (staged)
		r = hf_keeper_entered(k, &child, r);
	if (r != 0) {
		none.status = r < -4095 || r > 0 ? EINVAL : -r;
		hf_keeper_reap_child(k, &child);
		return none;
	}
	limits.deadline = hf_mono_in(limit_ns);
	k->beside = !staged;
	watched = hf_keeper_watch(k, &child, &limits);
	k->beside = 0;
	return watched;
}
