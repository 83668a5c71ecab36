/* cli/hook/install.c - hook install, uninstall, status: Holdfast's hooks in the settings of a client. */
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/view/json.h"
#include "hook/hook.h"
#include "lock/lock.h"

static const char *const scopes[] = {
	[HF_SCOPE_USER] = "user",
	[HF_SCOPE_PROJECT] = "project",
	[HF_SCOPE_LOCAL] = "local",
};

static const char *const states[] = {
	[HF_SETTINGS_ABSENT] = "absent",
	[HF_SETTINGS_INSTALLED] = "installed",
	[HF_SETTINGS_DIFFERENT] = "different",
};

struct install {
	struct cli *cli;
	int user, project, local; /* flags */
	char program[PATH_MAX];
	char *state_dir;
	struct hf_settings_opts o;
};

static void install_done(struct install *install)
{
	free(install->state_dir);
}

/* Returns 1 if $PATH leads to this program. */
static int is_in_path(const char *self)
{
	const char *path = getenv("PATH");
	struct stat ours, theirs;

	if (!path || stat(self, &ours) < 0)
		return 0;
	while (*path) {
		const char *end = strchrnul(path, ':');
		char file[PATH_MAX];
		int n = snprintf(file, sizeof(file), "%.*s/holdfast", (int)(end - path), path);

		if (path[0] == '/' && n > 0 && (size_t)n < sizeof(file) && access(file, X_OK) == 0)
			return stat(file, &theirs) == 0 && ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
		path = *end ? end + 1 : end;
	}
	return 0;
}

/* Chooses the program that the hooks call. Other people share a project's settings, so these use $PATH if possible. */
static int choose_program(struct install *install)
{
	ssize_t n = readlink("/proc/self/exe", install->program, sizeof(install->program) - 1);

	if (n <= 0)
		return cli_usage(install->cli, "cannot find the path of this program");
	install->program[n] = '\0';
	install->o.program = install->program;
	if (install->o.scope == HF_SCOPE_PROJECT && is_in_path(install->program))
		install->o.program = "holdfast";
	else if (strcmp(strrchr(install->program, '/') + 1, "holdfast") != 0)
		return cli_usage(install->cli, "this program is named %s, not holdfast, so its hooks could not be recognized", install->program);
	if (!install->cli->dir)
		return HF_EXIT_DONE;
	free(install->state_dir);
	install->state_dir = realpath(install->cli->dir, NULL);
	if (!install->state_dir)
		return cli_usage(install->cli, "--dir %s: no such directory", install->cli->dir);
	install->o.dir = install->state_dir;
	return HF_EXIT_DONE;
}

static int read_words(struct install *install, int argc, char **argv, const struct option_spec *specs)
{
	int client, n = cli_options(install->cli, specs, argc, argv, 1, 1);

	if (n < 0)
		return n == -2 ? -1 : cli_options_status(n);
	client = hf_client_of(argv[0]);
	if (client < 0)
		return cli_usage(install->cli, "the client must be claude, codex, copilot or gemini, not '%s'", argv[0]);
	if (install->user + install->project + install->local > 1)
		return cli_usage(install->cli, "--user, --project and --local cannot be combined");
	if (install->local && client != HF_CLIENT_CLAUDE)
		return cli_usage(install->cli, "--local works only with claude");
	install->o.size = sizeof(install->o);
	install->o.client = (enum hf_client)client;
	install->o.scope = install->project ? HF_SCOPE_PROJECT : install->local ? HF_SCOPE_LOCAL : HF_SCOPE_USER;
	return choose_program(install);
}

#define SCOPE_SPECS(install)                                                                                     \
	{ "user", 0, OPTION_FLAG, &(install).user, NULL, "your settings (default)" },                \
	{ "project", 0, OPTION_FLAG, &(install).project, NULL, "the settings of this directory, for all users" },       \
	{ "local", 0, OPTION_FLAG, &(install).local, NULL, "the settings of this directory, for you (claude)" }

/* -- hints ---------------------------------------------------------------------------------------- */

/* Returns a reason why installed hooks may not run, or NULL. */
static const char *hint(enum hf_client client, enum hf_hook_scope scope)
{
	switch (client) {
	case HF_CLIENT_CLAUDE:
		return scope == HF_SCOPE_USER ? NULL
					      : "claude reads this file only if it is started in this directory, not below it";
	case HF_CLIENT_CODEX:
		return "codex silently skips hooks until you trust them: start codex and review them with /hooks, or run "
		       "'codex exec --dangerously-bypass-hook-trust'";
	case HF_CLIENT_COPILOT:
		return scope == HF_SCOPE_USER ? NULL
					      : "copilot -p runs them only in a trusted folder, or with "
						"GITHUB_COPILOT_PROMPT_MODE_REPO_HOOKS=true";
	case HF_CLIENT_GEMINI:
		return scope == HF_SCOPE_USER ? NULL : "gemini runs a project's hooks only in a folder that you trust";
	case HF_CLIENT_UNKNOWN:
	default:
		return NULL;
	}
}

static json_t *json_of(const struct install *install, const struct hf_settings_report *report, const char *state)
{
	const char *said = hint(install->o.client, install->o.scope);
	json_t *object = json_object();

	hf_view_set(&object, "client", hf_view_text(hf_client_word(install->o.client)));
	hf_view_set(&object, "scope", hf_view_text(scopes[install->o.scope]));
	hf_view_set(&object, "file", hf_view_text(report->path ? report->path : ""));
	hf_view_set(&object, "state", hf_view_text(state));
	hf_view_set(&object, "disabled", json_boolean(report->disabled));
	hf_view_set(&object, "hint", said ? hf_view_text(said) : json_null());
	if (!object)
		cli_die_oom();
	return object;
}

static int tell(const struct install *install, const struct hf_settings_report *report, const char *done, const char *not)
{
	const char *word = hf_client_word(install->o.client), *would = install->o.dry_run ? " (not done: --dry-run)" : "";
	const char *said = hint(install->o.client, install->o.scope);

	if (install->cli->json) {
		json_t *object = json_of(install, report, states[report->state]);

		cli_set(object, "changed", json_boolean(report->changed));
		cli_set(object, "fixed", json_boolean(report->fixed));
		cli_set(object, "other", report->other[0] ? cli_text(report->other) : json_null());
		if (install->o.dry_run)
			cli_set(object, "text", cli_text(report->text));
		cli_print_json(object);
	} else if (install->o.dry_run) {
		fputs(report->text, stdout);
	}
	cli_say(install->cli, "%s: %s %s%s", word, report->changed ? done : not, report->path, would);
	if (report->fixed)
		cli_say(install->cli, "removed comments and trailing commas; the previous file is %s.~1~",
			report->path);
	if (report->other[0])
		cli_say(install->cli, "%s has the hooks, and %s reads that file here, too%s", report->other, word,
			report->state == HF_SETTINGS_ABSENT ? ": nothing to do" : "; uninstall them in one of the two");
	if (report->disabled)
		cli_say(install->cli, "%s disables all hooks (disableAllHooks, or gemini's hooksConfig.enabled)",
			report->path);
	if (said && report->state != HF_SETTINGS_ABSENT)
		cli_say(install->cli, "%s", said);
	return HF_EXIT_DONE;
}

/* -- the commands -------------------------------------------------------------------------------------- */

/* Reads and checks the arguments, then applies `verb` to the settings. */
static int change(struct install *install, const struct option_spec *specs, int argc, char **argv,
		  int (*verb)(struct hf_locks *locks, struct hf_journal *journal, const struct hf_settings_opts *opts,
				struct hf_settings_report *ret_report, struct hf_err *err),
		  const char *done, const char *same)
{
	AUTO(hf_settings_report_done) struct hf_settings_report report = { 0 };
	AUTO(lock_close) struct lock_context context = { 0 };
	struct hf_err err = HF_ERR_INIT;
	int status = read_words(install, argc, argv, specs);

	if (status == HF_EXIT_DONE)
		status = lock_open_here(install->cli, &context);
	if (status != HF_EXIT_DONE)
		return status < 0 ? HF_EXIT_DONE : status;
	if (verb(context.locks, context.journal, &install->o, &report, &err) < 0)
		return cli_fail(install->cli, &err);
	return tell(install, &report, done, report.other[0] && report.state == HF_SETTINGS_ABSENT ? "no hooks needed in" : same);
}

int cmd_hook_install(struct cli *cli, int argc, char **argv)
{
	AUTO(install_done) struct install install = { .cli = cli };
	const struct option_spec specs[] = {
		SCOPE_SPECS(install),
		{ "guard", 0, OPTION_FLAG, &install.o.guard, NULL, "also install the guard before each tool call" },
		{ "fix", 0, OPTION_FLAG, &install.o.fix, NULL, "remove comments and trailing commas, which the client cannot read" },
		{ "dry-run", 0, OPTION_FLAG, &install.o.dry_run, NULL, "print the new file without writing it" },
		{ 0 },
	};

	return change(&install, specs, argc, argv, hf_hook_install, "installed hooks in", "hooks are already in");
}

int cmd_hook_uninstall(struct cli *cli, int argc, char **argv)
{
	AUTO(install_done) struct install install = { .cli = cli };
	const struct option_spec specs[] = {
		SCOPE_SPECS(install),
		{ "dry-run", 0, OPTION_FLAG, &install.o.dry_run, NULL, "print the new file without writing it" },
		{ 0 },
	};

	return change(&install, specs, argc, argv, hf_hook_uninstall, "removed hooks from", "no Holdfast hooks in");
}

/* Returns true if project and user have the same settings file, which is so in the home directory. */
static bool is_user_file(const struct hf_settings_report *report, const struct stat *user)
{
	struct stat st;

	return report->path && user->st_ino && stat(report->path, &st) == 0 && st.st_dev == user->st_dev &&
	       st.st_ino == user->st_ino;
}

/*
 * Prints a line, or an object, for the settings of one scope. `user` remembers the file of the user's scope, which is not shown
 * again as the file of a project. Returns true if the file has Holdfast's hooks.
 */
static bool show(const struct install *install, struct stat *user)
{
	AUTO(hf_settings_report_done) struct hf_settings_report report = { 0 };
	struct hf_err err = HF_ERR_INIT;
	int r = hf_hook_settings(&install->o, &report, &err);
	const char *state = r < 0 ? "unreadable" : states[report.state];
	char text[HF_ERR_TEXT_MAX];

	if (install->o.scope != HF_SCOPE_USER && is_user_file(&report, user))
		return false;
	if (install->o.scope == HF_SCOPE_USER && (!report.path || stat(report.path, user) < 0))
		*user = (struct stat){ 0 };
	if (install->cli->json) {
		json_t *object = json_of(install, &report, state);

		cli_set(object, "error", r < 0 ? hf_view_error(&err, hf_err_exit_status(r)) : json_null());
		cli_print_json(object);
	} else {
		printf("%-8s %-10s ", scopes[install->o.scope], state);
		cli_print_shown(report.path ? report.path : "");
		printf("%s\n", report.disabled ? "  (disables all hooks)" : "");
		if (r < 0)
			cli_say(install->cli, "%s", lock_why(&err, text));
	}
	return r == 0 && report.state != HF_SETTINGS_ABSENT;
}

int cmd_hook_status(struct cli *cli, int argc, char **argv)
{
	AUTO(install_done) struct install install = { .cli = cli };
	const struct option_spec specs[] = { SCOPE_SPECS(install), { 0 } };
	int found = 0, status = read_words(&install, argc, argv, specs);
	int all = !install.user && !install.project && !install.local;
	struct stat user = { 0 };

	if (status != HF_EXIT_DONE)
		return status < 0 ? HF_EXIT_DONE : status;
	if (!all)
		return show(&install, &user) ? HF_EXIT_DONE : HF_EXIT_NO;
	for (int scope = HF_SCOPE_USER; scope <= HF_SCOPE_LOCAL; scope++) {
		if (scope == HF_SCOPE_LOCAL && install.o.client != HF_CLIENT_CLAUDE)
			continue;
		install.o.scope = (enum hf_hook_scope)scope;
		status = choose_program(&install);
		if (status != HF_EXIT_DONE)
			return status;
		found += show(&install, &user);
	}
	return found ? HF_EXIT_DONE : HF_EXIT_NO;
}
