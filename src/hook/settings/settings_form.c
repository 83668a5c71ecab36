/* hook/settings/settings_form.c - which hooks a client is to have, and how its settings spell them. */
#include <stdio.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/hook/settings/settings.h"

/* Seconds. A stop hook waits for the until command; Claude gives all hooks of an end 1.5 s together, unless they say more. */
#define STOP_S 600
#define TOOL_S 30
#define ENDS_S 5

/* When a client calls a hook, in the order in which its settings list them. */
enum moment { STOPS, BEFORE_TOOL, AFTER_TOOL, TOOL_FAILED, ASKS, STARTS, ENDS, N_MOMENTS };

/* How each client calls them; NULL: it has no such event. Codex and Gemini report a prompt on their terminal. */
static const char *const event_names[][N_MOMENTS] = {
	[HF_CLIENT_CLAUDE] = { "Stop", "PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest", "SessionStart", "SessionEnd" },
	[HF_CLIENT_CODEX] = { "Stop", "PreToolUse", "PostToolUse", NULL, NULL, "SessionStart", NULL },
	[HF_CLIENT_COPILOT] = { "agentStop", "preToolUse", "postToolUse", NULL, "permissionRequest", "sessionStart", "sessionEnd" },
	[HF_CLIENT_GEMINI] = { "AfterAgent", "BeforeTool", "AfterTool", NULL, NULL, "SessionStart", "SessionEnd" },
};

static const struct row {
	enum moment moment;
	const char *verb;
	int timeout_s;
} rows[] = {
	{ STOPS, "stop", STOP_S },
	{ BEFORE_TOOL, "guard", TOOL_S },
	{ BEFORE_TOOL, "tool", TOOL_S },
	{ AFTER_TOOL, "tool", TOOL_S },
	{ TOOL_FAILED, "tool", TOOL_S },
	{ ASKS, "asks", TOOL_S },
	{ STARTS, "session-start", TOOL_S },
	{ ENDS, "session-end", ENDS_S },
};

int hf_settings_has_groups(enum hf_client client)
{
	return client != HF_CLIENT_COPILOT;
}

int hf_settings_takes_comments(enum hf_client client)
{
	return client == HF_CLIENT_GEMINI;
}

/* -- a handler ------------------------------------------------------------------------------ */

static int is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr("_-./+:@%,=", c));
}

/* One word for a shell. */
static void add_quoted(struct hf_buf *out, const char *word)
{
	size_t plain = 0;

	while (is_plain(word[plain]))
		plain++;
	if (plain > 0 && !word[plain]) {
		hf_buf_add_text(out, word);
		return;
	}
	hf_buf_add_char(out, '\'');
	for (; *word; word++)
		if (*word == '\'')
			hf_buf_add_text(out, "'\\''");
		else
			hf_buf_add_char(out, *word);
	hf_buf_add_char(out, '\'');
}

/* The command of clients that give it to a shell. */
static json_t *shell_line(const struct hf_settings_want *want, const char *verb)
{
	AUTO(hf_buf_done) struct hf_buf line = HF_BUF_INIT;

	add_quoted(&line, want->program);
	if (want->dir) {
		hf_buf_add_text(&line, " --dir ");
		add_quoted(&line, want->dir);
	}
	hf_buf_add_format(&line, " hook %s", verb);
	return line.err ? NULL : json_stringn(line.s, line.len);
}

static json_t *handler(const struct hf_settings_want *want, const struct row *row)
{
	json_t *args;

	switch (want->client) {
	case HF_CLIENT_CLAUDE:
		args = want->dir ? json_pack("[ssss]", "--dir", want->dir, "hook", row->verb)
				 : json_pack("[ss]", "hook", row->verb);
		return json_pack("{ss ss so si}", "type", "command", "command", want->program, "args", args, "timeout",
				 row->timeout_s);
	case HF_CLIENT_CODEX:
		return json_pack("{ss so si}", "type", "command", "command", shell_line(want, row->verb), "timeout",
				 row->timeout_s);
	case HF_CLIENT_COPILOT:
		return json_pack("{ss so si}", "type", "command", "bash", shell_line(want, row->verb), "timeoutSec",
				 row->timeout_s);
	case HF_CLIENT_GEMINI: {
		char name[40];

		(void)snprintf(name, sizeof(name), "holdfast-%s", row->verb);
		/* Milliseconds. */
		return json_pack("{ss ss so si}", "type", "command", "name", name, "command", shell_line(want, row->verb),
				 "timeout", row->timeout_s * 1000);
	}
	case HF_CLIENT_UNKNOWN:
	default:
		return NULL;
	}
}

json_t *hf_settings_handlers(const struct hf_settings_want *want)
{
	json_t *events = json_object();

	for (const struct row *row = rows; row < rows + sizeof(rows) / sizeof(rows[0]); row++) {
		const char *event = event_names[want->client][row->moment];
		json_t *list = event ? json_object_get(events, event) : NULL;

		if (!event || (strcmp(row->verb, "guard") == 0 && !want->guard))
			continue;
		if (!list && json_object_set_new(events, event, json_array()) == 0)
			list = json_object_get(events, event);
		/* Fails for what could not be made as well. */
		if (json_array_append_new(list, handler(want, row)) < 0) {
			json_decref(events);
			return NULL;
		}
	}
	return events;
}

/* -- one of ours ----------------------------------------------------------------------------- */

#define WORD_MAX 4096

/*
 * Takes the next word of a shell line of the kind that add_quoted makes. 1; 0: the end; -1: it is more than a
 * list of words, and no line of ours.
 */
static int next_word(const char **line, char word[WORD_MAX])
{
	const char *at = *line;
	size_t n = 0;

	while (*at == ' ')
		at++;
	if (!*at)
		return 0;
	for (; *at && *at != ' '; at++) {
		if (*at == '\'') {
			for (at++; *at != '\''; at++) {
				if (!*at || n + 1 >= WORD_MAX)
					return -1;
				word[n++] = *at;
			}
			continue;
		}
		if (*at == '\\' && at[1] == '\'')
			at++;
		else if (!is_plain(*at) && *at != '~')
			return -1;
		if (n + 1 >= WORD_MAX)
			return -1;
		word[n++] = *at;
	}
	word[n] = '\0';
	*line = at;
	return 1;
}

/* Where our words stand: 0 the program, 1 its options, 2 behind "hook"; 3: it is ours; -1: it is not. */
static int step(int state, int *skip, const char *word)
{
	static const char *const verbs[] = { "stop", "tool", "guard", "asks", "session-start", "session-end" };
	const char *slash = strrchr(word, '/');

	if (*skip)
		return *skip = 0, state;
	switch (state) {
	case 0:
		return strcmp(slash ? slash + 1 : word, "holdfast") == 0 ? 1 : -1;
	case 1:
		*skip = strcmp(word, "--dir") == 0;
		return strcmp(word, "hook") == 0 ? 2 : word[0] == '-' ? 1 : -1;
	case 2:
		for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
			if (strcmp(word, verbs[i]) == 0)
				return 3;
		return -1;
	default:
		return state;
	}
}

int hf_settings_is_ours(json_t *handler)
{
	json_t *args = json_object_get(handler, "args"), *arg;
	const char *line = json_string_value(json_object_get(handler, "command"));
	char word[WORD_MAX];
	int r, state = 0, skip = 0;
	size_t i;

	if (!line)
		line = json_string_value(json_object_get(handler, "bash"));
	if (!line)
		return 0;
	if (json_is_array(args)) {
		state = step(state, &skip, line);
		json_array_foreach(args, i, arg)
			if (state >= 0)
				state = json_is_string(arg) ? step(state, &skip, json_string_value(arg)) : -1;
		return state == 3;
	}
	while ((r = next_word(&line, word)) > 0 && state >= 0)
		state = step(state, &skip, word);
	return r == 0 && state == 3;
}
