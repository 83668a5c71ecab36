/* cli/session/run/run_words.c - run: finds the name and the command; and restart. */
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "session/run/run.h"
#include "session/session.h"

/* Makes a readable and unused name, such as "make-3f2a" for "/usr/bin/make". */
static void make_name(struct run *run, const char *program)
{
	const char *slash = strrchr(program, '/');
	char word[HF_NAME_MAX - 8];
	unsigned short random = 0;

	program = slash && slash[1] ? slash + 1 : program;
	(void)hf_name_sanitize(program, strlen(program), word, sizeof(word));
	(void)!getrandom(&random, sizeof(random), GRND_NONBLOCK);
	(void)snprintf(run->made_name, sizeof(run->made_name), "%s-%04x", word, random);
	run->name = run->made_name;
}

int run_words(struct run *run, int n, char **argv, char ***ret_command)
{
	static char sh[] = "sh", dash_c[] = "-c";
	int named = n > 0 && run->cli->dashes != 0;
	char **command = argv + named;

	argv[n] = NULL; /* n <= argc, so argv has room */
	if (run->shell && command[0])
		return cli_usage(run->cli, "-c has the command already; '%s' is a second one", command[0]);
	if (run->shell) {
		run->shell_command[0] = sh;
		run->shell_command[1] = dash_c;
		run->shell_command[2] = (char *)(uintptr_t)run->shell;
		command = run->shell_command;
	}
	if (!command[0] && !run->resume)
		return cli_usage(run->cli, "missing command; put it after --");
	if (!named && run->resume)
		return cli_usage(run->cli, "--resume needs the name of the session");
	if (named)
		run->name = argv[0];
	else
		make_name(run, run->shell ? "run" : command[0]);
	if (!named && !run->detach)
		cli_say(run->cli, "session '%s'", run->name);
	run->command = command[0];
	*ret_command = command;
	return HF_EXIT_DONE;
}

int cmd_restart(struct cli *cli, int argc, char **argv)
{
	int64_t grace_ns = -1;
	uint64_t token = 0;
	const struct option_spec specs[] = {
		SESSION_TOKEN_SPEC(token),
		{ "grace", 0, OPTION_DURATION, &grace_ns, "DUR", "time between TERM and KILL (default: the session's)" },
		{ 0 },
	};
	/* The session keeps its stored input; our standard input is not meant for it. */
	char resume[] = "--resume", detach[] = "--detach", no_stdin[] = "--stdin=no", *words[] = { NULL, resume, detach, no_stdin, NULL };
	struct session_context context = { 0 };
	struct hf_err err = HF_ERR_INIT;
	int r, status, n = cli_options(cli, specs, argc, argv, 1, 1);

	if (n < 0)
		return cli_options_status(n);
	status = session_open(cli, &context);
	if (status != HF_EXIT_DONE)
		return status;
	/* 0 on the command line: kill at once; no option: the session's grace period. */
	r = hf_session_stop_run(context.sessions, argv[0], token, grace_ns < 0 ? 0 : grace_ns == 0 ? -1 : grace_ns, &err);
	session_close(&context);
	if (r < 0)
		return cli_fail(cli, &err);
	words[0] = argv[0];
	return cmd_run(cli, 4, words);
}
