/*
 * hook/install/arguments.c - our hooks as arguments of a client's command.
 *
 * Hooks in a file can be taken out by the agent itself: Claude reads its settings again while it works. What
 * stands on its command line stays.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/hook/settings/settings.h"

#define TRUST "--dangerously-bypass-hook-trust"

static void free_json(json_t **value)
{
	json_decref(*value);
}

void hf_hook_command_free(char **argv)
{
	for (size_t i = 0; argv && argv[i]; i++)
		free(argv[i]);
	free(argv);
}

static size_t count(char *const *argv)
{
	size_t n = 0;

	while (argv[n])
		n++;
	return n;
}

/* Is that option among them? "--settings=X" is, too. What stands behind "--" is none. */
static int has_option(char *const *argv, const char *option)
{
	size_t len = strlen(option);

	for (size_t i = 1; argv[i] && strcmp(argv[i], "--") != 0; i++)
		if (strncmp(argv[i], option, len) == 0 && (argv[i][len] == '\0' || argv[i][len] == '='))
			return 1;
	return 0;
}

/* `argv` with `more` (ended by NULL, taken over) in place `at`. NULL: no memory. */
static char **insert(char *const *argv, size_t at, char **more)
{
	size_t n = count(argv), m = count(more), k = 0;
	char **out = calloc(n + m + 1, sizeof(*out));

	for (size_t i = 0; out && i < n + m; i++) {
		if (i >= at && i < at + m) {
			out[i] = ptr_take(&more[i - at]);
			continue;
		}
		out[i] = strdup(argv[k++]);
		if (!out[i]) {
			while (i > 0)
				free(out[--i]);
			free(ptr_take(&out));
		}
	}
	return out;
}

/* -- Claude ----------------------------------------------------------------------------------------- */

static int claude_settings(const struct hf_settings_want *want, char **ret)
{
	AUTO(free_json) json_t *events = hf_settings_handlers(want);
	AUTO(free_json) json_t *hooks = json_object();
	/* Else "disableAllHooks" in a file, which the agent can write, would switch these off. */
	AUTO(free_json) json_t *root = json_pack("{sO sb}", "hooks", hooks, "disableAllHooks", 0);
	const char *event;
	json_t *handlers;

	if (!events || !root)
		return -ENOMEM;
	json_object_foreach(events, event, handlers)
		if (json_object_set_new(hooks, event, json_pack("[{sO}]", "hooks", handlers)) < 0)
			return -ENOMEM;
	*ret = json_dumps(root, JSON_COMPACT);
	return *ret ? 0 : -ENOMEM;
}

static int for_claude(const struct hf_settings_want *want, char *const *argv, char ***ret, struct hf_err *err)
{
	char *more[3] = { NULL, NULL, NULL };
	size_t at = 1;

	if (has_option(argv, "--settings"))
		return FAIL(err, -EINVAL, "hooks", argv[0], "the command already has --settings, and claude accepts only one");
	if (has_option(argv, "--bare") || has_option(argv, "--safe-mode"))
		return FAIL(err, -EINVAL, "hooks", argv[0], "with --bare or --safe-mode claude skips hooks");
	if (claude_settings(want, &more[1]) < 0 || !(more[0] = strdup("--settings"))) {
		free(more[1]);
		return hf_fail_sys(err, ENOMEM, "hooks", argv[0]);
	}
	/* Last, so that the command is recognised where it is shown. */
	while (argv[at] && strcmp(argv[at], "--") != 0)
		at++;
	*ret = insert(argv, at, more);
	free(more[0]);
	free(more[1]);
	return *ret ? 0 : hf_fail_sys(err, ENOMEM, "hooks", argv[0]);
}

/* -- Codex ------------------------------------------------------------------------------------------- */

/* TOML's inline form; its strings are those of JSON. */
static void add_toml(struct hf_buf *out, json_t *value)
{
	const char *key, *comma = "";
	json_t *item;
	size_t i;

	if (json_is_array(value)) {
		hf_buf_add_char(out, '[');
		json_array_foreach(value, i, item) {
			hf_buf_add_text(out, comma);
			add_toml(out, item);
			comma = ",";
		}
		hf_buf_add_char(out, ']');
	} else if (json_is_object(value)) {
		hf_buf_add_char(out, '{');
		json_object_foreach(value, key, item) {
			hf_buf_add_format(out, "%s%s=", comma, key);
			add_toml(out, item);
			comma = ",";
		}
		hf_buf_add_char(out, '}');
	} else {
		AUTO_FREE char *text = json_dumps(value, JSON_ENCODE_ANY);

		if (text)
			hf_buf_add_text(out, text);
		else
			out->err = -ENOMEM;
	}
}

static char *codex_option(const char *event, json_t *handlers)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;

	hf_buf_add_format(&out, "hooks.%s=[{hooks=", event);
	add_toml(&out, handlers);
	hf_buf_add_text(&out, "}]");
	return out.err ? NULL : strdup(out.s);
}

static int for_codex(const struct hf_settings_want *want, char *const *argv, char ***ret, struct hf_err *err)
{
	AUTO(free_json) json_t *events = hf_settings_handlers(want);
	char **more;
	const char *event;
	json_t *handlers;
	size_t n = 0;

	if (!has_option(argv, TRUST))
		return FAIL(err, -EINVAL, "hooks", argv[0],
			    "codex silently skips hooks of its command line unless the command has " TRUST
			    "; this option also trusts the project's hooks; add it if you trust them, or use 'hook install codex'");
	more = calloc(2 * json_object_size(events) + 1, sizeof(*more));
	if (!events || !more) {
		free(more);
		return hf_fail_sys(err, ENOMEM, "hooks", argv[0]);
	}
	json_object_foreach(events, event, handlers) {
		more[n] = strdup("-c");
		more[n + 1] = more[n] ? codex_option(event, handlers) : NULL;
		n += more[n] ? more[n + 1] ? 2 : 1 : 0;
	}
	/* Before any subcommand, all of which have it. */
	*ret = n == 2 * json_object_size(events) ? insert(argv, 1, more) : NULL;
	for (size_t i = 0; i < n; i++)
		free(more[i]);
	free(more);
	return *ret ? 0 : hf_fail_sys(err, ENOMEM, "hooks", argv[0]);
}

/* -- Copilot ------------------------------------------------------------------------------------------ */

static int for_copilot(struct hf_state *state, const struct hf_settings_want *want, char *const *argv, char ***ret,
		       struct hf_err *err)
{
	char *more[3] = { NULL, NULL, NULL };
	int r;

	if (!state)
		return FAIL(err, -EINVAL, "hooks", argv[0], "copilot reads hooks from a directory, which needs a state directory");
	r = hf_hook_plugin(state, want, &more[1], err);
	if (r < 0)
		return r;
	more[0] = strdup("--plugin-dir");
	*ret = more[0] ? insert(argv, 1, more) : NULL;
	free(more[0]);
	free(more[1]);
	return *ret ? 0 : hf_fail_sys(err, ENOMEM, "hooks", argv[0]);
}

int hf_hook_command(struct hf_state *state, const char *program, char *const *argv, char ***ret_argv, struct hf_err *err)
{
	const char *slash = argv && argv[0] ? strrchr(argv[0], '/') : NULL;
	struct hf_settings_want want = { .program = program };
	int client;

	if (!argv || !argv[0] || !program)
		return FAIL(err, -EINVAL, "arguments", "hf_hook_command", "NULL");
	client = hf_client_of(slash ? slash + 1 : argv[0]);
	want.client = client < 0 ? HF_CLIENT_UNKNOWN : (enum hf_client)client;
	switch (want.client) {
	case HF_CLIENT_CLAUDE:
		return for_claude(&want, argv, ret_argv, err);
	case HF_CLIENT_CODEX:
		return for_codex(&want, argv, ret_argv, err);
	case HF_CLIENT_COPILOT:
		return for_copilot(state, &want, argv, ret_argv, err);
	case HF_CLIENT_GEMINI:
		/* It has system settings, too, but only root's count. */
		return FAIL(err, -EINVAL, "hooks", argv[0],
			    "gemini reads hooks only from its settings; use 'hook install gemini' (it reads them at its start, so a running agent cannot remove them)");
	case HF_CLIENT_UNKNOWN:
	default:
		return FAIL(err, -EINVAL, "hooks", argv[0],
			    "not a client that accepts hooks on its command line; the command must begin with claude, codex or copilot");
	}
}
