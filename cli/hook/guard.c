/*
 * cli/hook/guard.c - hook guard: refuses writes to files that belong to another session.
 *
 * It refuses files whose lock another process holds (file with, file edit, the library). With --targets it also
 * refuses files outside the targets of the current plan. The refusal has the client's JSON form
 * if that is known; otherwise it is exit 2 with the reason on standard error. After any error the tool may write
 * (hook.c). The hook does not see writes of the client's shell commands.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/exec/ptable.h"
#include "hf/view/json.h"
#include "holdfast/file.h"
#include "holdfast/plan.h"
#include "hook/hook.h"

#define REFUSED_STATUS 2
struct guard {
	const struct hf_hook_event *event;
	char path[4096];
	char reason[512]; /* "": not refused */
};

/* -- writes ------------------------------------------------------------------------------- */

/* Returns 1 for the clients' tools that write the file they name. */
static int is_writer(const char *tool)
{
	static const char *const tools[] = { "Write", "Edit", "MultiEdit", "NotebookEdit", /* Claude */
					     "apply_patch", /* Codex */
					     "create", "edit", "str_replace_editor", "write", /* Copilot */
					     "write_file", "replace" /* Gemini */ };

	for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++)
		if (strcmp(tool, tools[i]) == 0)
			return 1;
	return 0;
}

/* Finds the path; a relative path starts at the agent's directory. */
static int find_path(struct guard *guard)
{
	const char *path = guard->event->path, *cwd = guard->event->cwd;
	int n = path[0] == '/' || !cwd[0] ? snprintf(guard->path, sizeof(guard->path), "%s", path)
					  : snprintf(guard->path, sizeof(guard->path), "%s/%s", cwd, path);

	return path[0] && n > 0 && (size_t)n < sizeof(guard->path);
}

/* -- locks ------------------------------------------------------------------------------------ */

static void judge_lock(void *arg, const struct hf_lock_info *info)
{
	struct guard *guard = arg;

	for (size_t i = 0; i < info->n_holders; i++) {
		const struct hf_holder *holder = &info->holders[i];

		/* A lock of our own session does not matter: its holder is one of our ancestors. */
		if (holder->liveness == HF_DEAD || hf_ptable_is_above(holder->id.pid))
			continue;
		(void)snprintf(guard->reason, sizeof(guard->reason),
			       "another process is changing this file: pid %d holds its lock (%.200s). Wait and try again.",
			       holder->id.pid, holder->evidence);
	}
}

static void check_lock(struct guard *guard, struct hf_state *state)
{
	struct hf_file_opts opts = { .size = sizeof(opts), .flags = HF_FILE_CREATE };
	AUTO_FREE char *real = realpath(guard->path, NULL); /* a write goes through a symlink */
	struct hf_locks *locks = NULL, *files = NULL;
	struct hf_file *file = NULL;

	if (hf_locks_open(state, NULL, &locks, NULL) == 0 &&
	    (files = hf_locks_kind(locks, HF_LOCK_KIND_FILE)) != NULL &&
	    hf_file_open(locks, real ? real : guard->path, &opts, &file, NULL) == 0)
		(void)!hf_lock_look(files, hf_file_lock_name(file), judge_lock, guard, NULL);
	(void)hf_file_close(file, NULL);
	hf_locks_free(locks);
}

/* -- targets ------------------------------------------------------------------------------------ */

struct inside {
	const char *path;
	int is;
};

static void find_target(void *arg, const struct hf_plan_info *info)
{
	struct inside *inside = arg;

	for (size_t i = 0; i < info->n_sandboxes; i++) {
		const char *roots[] = { info->sandboxes[i].target, info->sandboxes[i].path };

		for (int j = 0; j < 2; j++) {
			size_t len = strlen(roots[j]);

			inside->is |= strncmp(inside->path, roots[j], len) == 0 &&
				      (inside->path[len] == '/' || inside->path[len] == '\0');
		}
	}
}

/* Returns the file's directory without symlinks and "..", which is where a write would go. */
static char *real_directory(const char *path)
{
	AUTO_FREE char *copy = strdup(path);
	char *slash;

	while (copy && (slash = strrchr(copy, '/')) && slash != copy) {
		char *real;

		*slash = '\0';
		real = realpath(copy, NULL);
		if (real)
			return real;
	}
	return strdup("/");
}

static void check_targets(struct guard *guard, struct hf_state *state)
{
	const char *plan = getenv("HOLDFAST_PLAN");
	AUTO_FREE char *real = real_directory(guard->path);
	struct inside inside = { real, 0 };
	struct hf_plans *plans = NULL;

	if (!plan || !real || hf_plans_open(state, NULL, &plans, NULL) < 0)
		return;
	if (hf_plan_look(plans, plan, find_target, &inside, NULL) == 0 && !inside.is)
		(void)snprintf(guard->reason, sizeof(guard->reason),
			       "this file is outside the directories of your sandbox (plan '%.80s'); work inside them.", plan);
	hf_plans_free(plans);
}

/* -- the answer ----------------------------------------------------------------------------------- */

static int refuse(struct hook *hook, const struct guard *guard)
{
	struct hf_field fields[] = { HF_FIELD_TEXT("tool", guard->event->tool), HF_FIELD_TEXT("path", guard->path),
				     HF_FIELD_TEXT("reason", guard->reason) };
	enum hf_client client = hf_client_here();
	json_t *answer = NULL;
	char *text;

	if (hook_journal(hook))
		(void)hf_journal_append(hook_journal(hook), HF_EV_TOOL_REFUSED, hook->id, fields, 3, 0, NULL);
	if (client == HF_CLIENT_CLAUDE)
		answer = json_pack("{s:{s:s,s:s,s:o}}", "hookSpecificOutput", "hookEventName", "PreToolUse",
				   "permissionDecision", "deny", "permissionDecisionReason", cli_text(guard->reason));
	else if (client == HF_CLIENT_COPILOT)
		answer = json_pack("{s:s,s:o}", "permissionDecision", "deny", "permissionDecisionReason",
				   cli_text(guard->reason));
	else if (client == HF_CLIENT_GEMINI)
		answer = json_pack("{s:s,s:o}", "decision", "deny", "reason", cli_text(guard->reason));
	text = answer ? json_dumps(answer, JSON_COMPACT) : NULL;
	json_decref(answer);
	if (text) {
		puts(text);
		free(text);
		return HF_EXIT_DONE;
	}
	fprintf(stderr, "%s\n", guard->reason);
	return REFUSED_STATUS;
}

int cmd_hook_guard(struct cli *cli, int argc, char **argv)
{
	AUTO(hook_done) struct hook hook = { .cli = cli, .word = "guard", .input = HF_BUF_INIT };
	int targets = 0;
	const struct option_spec specs[] = {
		{ "session", 0, OPTION_TEXT, &hook.session, "ID", "the session (default: $HOLDFAST_SESSION, or the client's id)" },
		{ "targets", 0, OPTION_FLAG, &targets, NULL, "refuse files outside the targets of the current plan" },
		{ 0 },
	};
	struct guard guard = { 0 };
	int n = cli_options(cli, specs, argc, argv, 0, 0);

	if (n < 0)
		return cli_options_status(n);
	cli_keep_status(cli);
	if (!hook_begin(&hook))
		return HF_EXIT_DONE;
	guard.event = hook.event;
	if (hook.event->kind == HF_HOOK_TOOL_AFTER || !is_writer(hook.event->tool) || !find_path(&guard))
		return HF_EXIT_DONE;
	check_lock(&guard, cli->state);
	if (!guard.reason[0] && targets)
		check_targets(&guard, cli->state);
	return guard.reason[0] ? refuse(&hook, &guard) : HF_EXIT_DONE;
}
