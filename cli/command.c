/* cli/command.c - executes a command in place of this process, and runs a command as a filter. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "hf/exec/command.h"
#include "hf/exec/spawn.h"
#include "holdfast/clock.h"

#define GRACE_NS (2 * HF_SEC) /* between TERM and KILL */

int command_status_around(int status)
{
	return status == HF_EXIT_OS ? HF_EXIT_AROUND : status;
}

int command_status_of(int code, int status)
{
	return code == CLD_EXITED ? status : HF_EXIT_SIGNAL + status;
}

int command_not_executed(const struct cli *cli, const char *name, int error)
{
	return cli_fail_words(cli, error, hf_spawn_status(-error), "%s: %s", name, strerrordesc_np(-error));
}

void command_environment(const struct cli *cli, enum hf_lock_kind kind, const char *name,
			 uint64_t token)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)token);
	if (setenv("HOLDFAST_LOCK", name, 1) < 0 ||
	    setenv("HOLDFAST_LOCK_KIND", hf_lock_kind_word(kind), 1) < 0 ||
	    (token ? setenv("HOLDFAST_TOKEN", text, 1) : unsetenv("HOLDFAST_TOKEN")) < 0 ||
	    (cli->store && setenv("HOLDFAST_STORE", cli->store, 1) < 0) ||
	    setenv("HOLDFAST_DIR", hf_state_path(cli->state), 1) < 0)
		cli_die_oom();
}

int command_become(const struct cli *cli, char **command)
{
	(void)fflush(stdout);
	(void)execvp(command[0], command);
	return command_not_executed(cli, command[0], -errno);
}

/* This process ignores SIGXFSZ, so that a limit on file sizes is an error. The command gets the default action. */
static int enter_filter(void *arg)
{
	const struct sigaction usual = { .sa_handler = SIG_DFL };

	(void)arg;
	return sigaction(SIGXFSZ, &usual, NULL) < 0 ? -errno : 0;
}

struct filter_result command_filter(const struct cli *cli, const struct filter *filter)
{
	const struct hf_command command = { .argv = filter->command,
					    .envp = environ,
					    .in = filter->in,
					    .out = filter->out,
					    .limit_ns = filter->limit_ns,
					    .grace_ns = GRACE_NS,
					    .enter = enter_filter };
	struct hf_command_result ended;
	struct filter_result result = { .status = HF_EXIT_AROUND };

	(void)fflush(stdout);
	hf_command_run(&command, &ended);
	if (ended.error < 0) {
		cli_say(cli, "cannot start %s: %s", filter->command[0],
			strerrordesc_np(-ended.error));
		return result;
	}
	if (ended.left > 0)
		cli_say(cli, "%s left %u process(es) running; they were ended", filter->command[0],
			ended.left);
	result.timed_out = ended.timed_out;
	result.signal = ended.signal;
	result.write_error = ended.write_error;
	if (ended.timed_out)
		result.status = HF_EXIT_TIMED_OUT;
	else if (ended.signal)
		result.status = HF_EXIT_SIGNAL + ended.signal;
	else if (ended.exec_error < 0)
		result.status = command_not_executed(cli, filter->command[0], ended.exec_error);
	else
		result.status = command_status_of(ended.code, ended.status);
	return result;
}
