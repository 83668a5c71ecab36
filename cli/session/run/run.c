/* cli/session/run/run.c - run: runs a command as a supervised session. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/view/lock.h"
#include "hf/view/session/session.h"
#include "hf/view/plan/tx.h"
#include "holdfast/hook.h"
#include "lock/lock.h"
#include "session/run/run.h"
#include "session/session.h"
#include "screen/waiting.h"

#define NOT_GIVEN UINT64_MAX /* larger than any number on the command line */

static int check_words(struct run *run)
{
	const char *tree = run->tree_word, *term = run->term_word;

	run->o.tree = !tree			    ? HF_TREE_DEFAULT
		      : strcmp(tree, "auto") == 0   ? HF_TREE_AUTO
		      : strcmp(tree, "cgroup") == 0 ? HF_TREE_CGROUP
						    : HF_TREE_WALK;
	if (run->o.tree == HF_TREE_WALK && strcmp(tree, "walk") != 0)
		return cli_usage(run->cli, "--tree must be auto, cgroup or walk, not '%s'", tree);
	run->o.term = !term			    ? HF_TERM_DEFAULT
		      : strcmp(term, "leader") == 0 ? HF_TERM_LEADER
						    : HF_TERM_TREE;
	if (run->o.term == HF_TERM_TREE && strcmp(term, "tree") != 0)
		return cli_usage(run->cli, "--term must be leader or tree, not '%s'", term);
	return HF_EXIT_DONE;
}

/* Checks --env. --env NAME gets its value from this environment. */
static int check_env(struct run *run)
{
	size_t n = 0;

	while (run->env && run->env[n])
		n++;
	run->env_set = calloc(n + 1, sizeof(*run->env_set));
	if (!run->env_set)
		cli_die_oom();
	for (size_t i = 0; i < n; i++) {
		const char *word = run->env[i], *value = strchr(word, '=') ? NULL : getenv(word);

		if (!word[0] || word[0] == '=' || strncmp(word, "HOLDFAST_", 9) == 0)
			return cli_usage(run->cli, "--env must be NAME=VALUE or NAME, without HOLDFAST_ names: '%s'", word);
		if (strchr(word, '='))
			continue;
		if (!value)
			return cli_usage(run->cli, "--env %s: no such variable in this environment", word);
		if (asprintf(&run->env_set[run->n_set], "%s=%s", word, value) < 0)
			cli_die_oom();
		run->env[i] = run->env_set[run->n_set++];
	}
	return HF_EXIT_DONE;
}

static void free_env(struct run *run)
{
	while (run->n_set > 0)
		free(run->env_set[--run->n_set]);
	free(run->env_set);
	free(run->env);
	free(run->in.dirs);
	free(run->in.also);
	free(run->in.write);
	free(run->more.map_exit);
	hf_hook_command_free(run->hooked);
}

/*
 * --hooks: adds Holdfast's hooks to the client's command line, which is stored and so resumed with them. --end-background needs the
 * stop hook. A command that does not accept hooks, such as a script that starts the client, may have them in the client's settings.
 */
static int add_hooks(struct run *run, char ***command)
{
	struct hf_err err = HF_ERR_INIT;
	char program[PATH_MAX];
	struct hf_state *state;
	int status;
	ssize_t n;

	if (!run->hooks && (!run->more.end_background || !(*command)[0]))
		return HF_EXIT_DONE;
	if (!(*command)[0])
		return cli_usage(run->cli, "--hooks needs the command; a session resumed without a command keeps its hooks");
	state = cli_state(run->cli, 0, &status);
	if (!state)
		return status;
	n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	program[n > 0 ? n : 0] = '\0';
	if (hf_hook_command(state, n > 0 ? program : "holdfast", *command, &run->hooked, &err) == 0)
		*command = run->hooked;
	else if (run->hooks)
		return cli_fail(run->cli, &err);
	return HF_EXIT_DONE;
}

static int check_limits(struct run *run)
{
	const struct lock_options *lock = &run->lock;

	/* A name belongs to one agent at a time, so a session's lock has no other mode. */
	if (lock->shared || lock->slots)
		return cli_usage(run->cli, "a session's lock is exclusive; use --group and --max-active");
	if (lock->on_timeout == ON_TIMEOUT_PROCEED)
		return cli_usage(run->cli, "--on-timeout proceed would run two sessions with the same name");
	/* The library reads 0 as the default, the opposite of what a user means. */
	if (run->max_runs == 0 || run->max_depth == 0)
		return cli_usage(run->cli, "--max-runs and --max-depth must be at least 1");
	if (run->max_active == 0 || (run->max_active != NOT_GIVEN && run->max_active > HF_LOCK_SLOTS_MAX))
		return cli_usage(run->cli, "--max-active must be from 1 to %d", HF_LOCK_SLOTS_MAX);
	if (run->priority > HF_LOCK_PRIORITY_MAX)
		return cli_usage(run->cli, "--priority must be from 0 to %d", HF_LOCK_PRIORITY_MAX);
	if (run->priority && run->max_active == NOT_GIVEN && !run->resume)
		return cli_usage(run->cli, "--priority needs --max-active N");
	if (run->o.resume_token && !run->resume)
		return cli_usage(run->cli, "--token needs --resume");
	if (run->o.group && run->max_active == NOT_GIVEN && !run->resume)
		return cli_usage(run->cli, "--group needs --max-active N");
	if (run->terminal && (!run->detach || run->no_log || run->leave_running))
		return cli_usage(run->cli, "--terminal needs --detach, and cannot be combined with --no-log or --leave-running");
	if (run->no_log && (run->log || run->log_max != NOT_GIVEN))
		return cli_usage(run->cli, "--no-log cannot be combined with --log or --log-max");
	if (run->log_max != NOT_GIVEN && run->log_max != 0 && run->log_max < HF_RUN_LOG_MIN)
		return cli_usage(run->cli, "--log-max must be at least %dK, or 0 for no limit",
				 HF_RUN_LOG_MIN >> 10);
	if (run->log_max != NOT_GIVEN && run->log_max != 0 && run->detach && run->leave_running)
		return cli_usage(run->cli, "--leave-running and --log-max cannot be combined: processes left "
					   "running write to the log directly");
	return run_stdin_check(run) == HF_EXIT_DONE ? check_words(run) : HF_EXIT_USAGE;
}

static uint32_t given(uint64_t count)
{
	return count == NOT_GIVEN ? 0 : (uint32_t)count;
}

/* With --resume, 0 on the command line removes a stored value; otherwise it is the same as no option. */
static int64_t duration(const struct run *run, int64_t ns)
{
	return ns > 0 ? ns : ns == 0 && run->resume ? HF_RUN_NONE : 0;
}

static void say_resumed(void *arg, const char *text)
{
	const struct run *run = arg;

	cli_say(run->cli, "session '%s': %s", run->name, text);
}

static void fill_options(struct run *run, char **command)
{
	struct hf_run_opts *o = &run->o;

	o->size = sizeof(*o);
	o->argv = command[0] ? command : NULL;
	o->flags = (run->resume ? HF_RUN_RESUME : 0) | (run->leave_running ? HF_RUN_LEAVE_RUNNING : 0) |
		   (run->log ? HF_RUN_LOG : 0) | (run->no_log ? HF_RUN_NO_LOG : 0) | (run->terminal ? HF_RUN_TERMINAL : 0) |
		   (run->remove ? HF_RUN_REMOVE : 0) | (run->more.preserve_status ? HF_RUN_PRESERVE_STATUS : 0) |
		   (run->more.foreground ? HF_RUN_FOREGROUND : 0) | (run->more.end_background ? HF_RUN_END_BACKGROUND : 0);
	/* 0 on the command line: kill at once. */
	o->grace_ns = run->grace_ns < 0 ? 0 : run->grace_ns == 0 ? -1 : run->grace_ns;
	o->deadline_ns = duration(run, run->deadline_ns);
	o->idle_ns = duration(run, run->idle_ns);
	o->hang_ns = duration(run, run->hang_ns);
	o->verify_ns = duration(run, run->verify_ns);
	o->every_ns = duration(run, run->every_ns);
	o->backoff_ns = duration(run, run->backoff_ns);
	o->backoff_max_ns = duration(run, run->backoff_max_ns);
	o->env = run->env;
	o->store = cli_store(run->cli);
	o->resumed = say_resumed;
	o->resumed_arg = run;
	o->wait_ns = run->lock.wait_ns;
	o->ttl_ns = run->lock.ttl_ns;
	o->max_runs = given(run->max_runs);
	o->max_depth = given(run->max_depth);
	o->max_active = given(run->max_active);
	o->priority = (uint32_t)run->priority;
	o->log_max = run->log_max == NOT_GIVEN ? 0 : run->log_max ? run->log_max : HF_RUN_LOG_UNLIMITED;
}

static int start(struct run *run, char **command, int32_t parent)
{
	static struct hf_tx_report landed; /* large; untouched pages cost nothing */
	struct hf_run_report report = { 0 };
	struct hf_err err = HF_ERR_INIT;
	int status = HF_EXIT_DONE, r;
	struct waiting *line;
	struct hf_state *state = cli_state(run->cli, 0, &status);

	if (!state)
		return status == HF_EXIT_OS ? HF_EXIT_AROUND : status;
	fill_options(run, command);
	status = run_stdin(run);
	if (status == HF_EXIT_DONE)
		status = run_more_begin(run->cli, &run->more, parent);
	if (status != HF_EXIT_DONE)
		return status;
	/* In the background the keeper cannot print it. */
	if (run->in.discard && run->detach)
		run_in_say_discarded(&run->in, state);
	line = run->lock.wait_ns == 0 ? NULL : waiting_begin(run->cli, run->detach);
	run->o.waiting = line ? waiting_show : NULL;
	run->o.waiting_arg = line;
	r = run->detach ? hf_tx_start(state, run->name, &run->o, &run->tx, &report, &err)
			: hf_tx_supervise(state, run->name, &run->o, &run->tx, &report, &landed, &err);
	waiting_end(line);
	cli_keep_status(run->cli);
	return r < 0 ? run_fail(run, r, &report, &err) : run_tell(run, &report, &landed);
}

int cmd_run(struct cli *cli, int argc, char **argv)
{
	struct run run = { .cli = cli,
			   .lock = LOCK_OPTIONS_INIT,
			   .deadline_ns = -1,
			   .idle_ns = -1,
			   .hang_ns = -1,
			   .grace_ns = -1,
			   .verify_ns = -1,
			   .every_ns = -1,
			   .backoff_ns = -1,
			   .backoff_max_ns = -1,
			   .max_runs = NOT_GIVEN,
			   .max_depth = NOT_GIVEN,
			   .max_active = NOT_GIVEN,
			   .log_max = NOT_GIVEN };
	struct hf_run_opts *o = &run.o;
	const struct option_spec specs[] = {
		{ "deadline", 0, OPTION_DURATION, &run.deadline_ns, "DUR", "end each attempt after DUR (exit 124)" },
		{ "timeout", 0, OPTION_DURATION, &run.deadline_ns, "DUR", "same as --deadline" },
		{ "idle", 0, OPTION_DURATION, &run.idle_ns, "DUR", "end it after DUR without output (exit 124)" },
		{ "hung-after", 0, OPTION_DURATION, &run.hang_ns, "DUR", "ps shows it as hung after DUR without output (10m)" },
		{ "grace", 0, OPTION_DURATION, &run.grace_ns, "DUR", "time between TERM and KILL (5s)" },
		{ "verify", 0, OPTION_TEXT, &o->verify, "CMD", "succeed only if CMD succeeds, too (run by sh -c)" },
		{ "verify-deadline", 0, OPTION_DURATION, &run.verify_ns, "DUR", "time limit of the verifier (10m)" },
		{ "detach", 'd', OPTION_FLAG, &run.detach, NULL, "run in the background; output goes to the log" },
		{ "terminal", 't', OPTION_FLAG, &run.terminal, NULL, "with --detach: give it a terminal, for 'holdfast attach'" },
		{ "stdin", 0, OPTION_TEXT, &run.stdin_word, "yes|no", "whether the command reads standard input (yes; with --detach not if a loop reads it)" },
		{ "log", 0, OPTION_FLAG, &run.log, NULL, "log all output, and continue when its reader is gone" },
		{ "no-log", 0, OPTION_FLAG, &run.no_log, NULL, "do not log the output" },
		{ "log-max", 0, OPTION_SIZE, &run.log_max, "SIZE", "maximum log size; the oldest output is dropped (64M; 0: no limit)" },
		{ "command", 'c', OPTION_TEXT, &run.shell, "LINE", "a shell line instead of -- CMD" },
		{ "rm", 0, OPTION_FLAG, &run.remove, NULL, "forget the session and its log when it ends, unless its work did not land" },
		{ "resume", 0, OPTION_FLAG, &run.resume, NULL, "start the next attempt with the same command, options and directory" },
		{ "token", 0, OPTION_TOKEN, &o->resume_token, "T", "with --resume: only the run with this token (exit 3 if a later run exists)" },
		{ "env", 0, OPTION_LIST, &run.env, "K[=V]", "set a variable (K alone: with its present value), also for --resume" },
		{ "cwd", 'C', OPTION_TEXT, &o->cwd, "DIR", "run the command in DIR" },
		{ "hooks", 0, OPTION_FLAG, &run.hooks, NULL, "enable Holdfast's hooks in the client (claude, codex, copilot)" },
		{ "leave-running", 0, OPTION_FLAG, &run.leave_running, NULL, "do not end processes that outlive the command" },
		{ "every", 0, OPTION_DURATION, &run.every_ns, "DUR", "repeat every DUR, from start to start" },
		{ "max-runs", 0, OPTION_COUNT, &run.max_runs, "N", "repeat at most N times" },
		{ "until", 0, OPTION_TEXT, &o->until, "CMD", "repeat until CMD succeeds (run by sh -c, at most 1m)" },
		{ "backoff", 0, OPTION_DURATION, &run.backoff_ns, "DUR", "pause after a failure, doubled each time (1s)" },
		{ "backoff-max", 0, OPTION_DURATION, &run.backoff_max_ns, "DUR", "longest pause after a failure (5m)" },
		{ "notify", 0, OPTION_TEXT, &o->notify, "CMD", "run CMD with each new outcome as JSON on stdin (sh -c)" },
		{ "notify-on", 0, OPTION_TEXT, &o->notify_on, "WHAT", "when to notify: change (of the outcome within a run), failure, always, start, or a list such as start,failure (change)" },
		{ "max-depth", 0, OPTION_COUNT, &run.max_depth, "N", "limit of sessions within sessions (32)" },
		{ "max-active", 0, OPTION_COUNT, &run.max_active, "N", "at most N sessions of the group at once" },
		{ "group", 0, OPTION_TEXT, &o->group, "NAME", "the group that --max-active counts (all)" },
		{ "priority", 0, OPTION_COUNT, &run.priority, "N", "priority in the queue of the group; the highest is first (0)" },
		{ "tree", 0, OPTION_TEXT, &run.tree_word, "auto|cgroup|walk", "how to find the session's processes (auto)" },
		{ "term", 0, OPTION_TEXT, &run.term_word, "leader|tree", "which processes get TERM first (leader)" },
		RUN_MORE_SPECS(run.more),
		RUN_IN_SPECS(run.in),
		SESSION_LOCK_SPECS(run.lock),
		{ 0 },
	};
	int32_t parent = (int32_t)getppid();
	char **command;
	int status, n;

	run.lock.wait_ns = 0;
	n = cli_options(cli, specs, argc, argv, 0, OPTIONS_THEN_COMMAND);
	if (n < 0)
		return cli_options_status(n);
	status = run_words(&run, n, argv, &command);
	if (status != HF_EXIT_DONE)
		return status;
	run.in.cli = cli;
	run.in.name = run.name;
	status = lock_options_check(cli, &run.lock);
	if (status == HF_EXIT_DONE)
		status = check_limits(&run);
	if (status == HF_EXIT_DONE)
		status = run_more_check(cli, &run.more, run.detach, &run.o);
	if (status == HF_EXIT_DONE)
		status = run_in_check(&run.in, run.detach, &run.tx);
	if (status == HF_EXIT_DONE && run.leave_running && run.in.dirs)
		status = cli_usage(cli, "--leave-running and --in cannot be combined: processes left running would change the sandbox");
	if (status == HF_EXIT_DONE && run.in.discard && run.resume)
		status = cli_usage(cli, "--resume and --discard cannot be combined: one continues in the work that the other drops");
	if (status == HF_EXIT_DONE && !run.in.dirs && !run.resume && (run.in.strategy || run.in.keep || run.in.commit || run.in.ask || run.in.merge || run.in.retry || run.in.discard))
		status = cli_usage(cli, "--strategy, --keep, --commit, --ask, --merge, --discard and --retry need --in DIR");
	if (status == HF_EXIT_DONE && !run.in.dirs && !run.resume && (run.in.readonly_rest || run.in.write || run.in.no_network))
		status = cli_usage(cli, "--readonly-rest, --write and --no-network need --in DIR");
	if (status == HF_EXIT_DONE && !run.in.dirs && !run.resume && (run.in.require_change || run.in.sign))
		status = cli_usage(cli, "--require-change and --sign need --in DIR");
	if (status == HF_EXIT_DONE && !run.in.dirs && !run.resume && run.in.land)
		status = cli_usage(cli, "--land needs --in DIR, a git work tree");
	if (status == HF_EXIT_DONE && run.in.write && !run.in.readonly_rest && !run.resume)
		status = cli_usage(cli, "--write needs --readonly-rest; otherwise everything is writable");
	if (status == HF_EXIT_DONE)
		status = check_env(&run);
	if (status == HF_EXIT_DONE)
		status = add_hooks(&run, &command);
	if (status == HF_EXIT_DONE)
		status = run_more_map(&run.more, start(&run, command, parent));
	free_env(&run);
	return status;
}
