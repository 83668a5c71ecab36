/* hook/event.c - the JSON that clients write to their hooks, read without believing any of it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "holdfast/hook.h"
#include "holdfast/name.h"

/* The clients' names of the events that mean something to us. */
static const struct {
	const char *name;
	enum hf_hook_kind kind;
} kinds[] = {
	{ "Stop", HF_HOOK_STOP },
	{ "AfterAgent", HF_HOOK_STOP },
	{ "SubagentStop", HF_HOOK_SUBAGENT_STOP },
	{ "StopFailure", HF_HOOK_STOP_FAILURE },
	{ "Interrupt", HF_HOOK_STOP_FAILURE },
	{ "PreToolUse", HF_HOOK_TOOL_BEFORE },
	{ "BeforeTool", HF_HOOK_TOOL_BEFORE },
	{ "PostToolUse", HF_HOOK_TOOL_AFTER },
	{ "PostToolUseFailure", HF_HOOK_TOOL_AFTER },
	{ "AfterTool", HF_HOOK_TOOL_AFTER },
	{ "SessionStart", HF_HOOK_SESSION_START },
	{ "SessionEnd", HF_HOOK_SESSION_END },
	{ "PermissionRequest", HF_HOOK_ASKS },
};

/* The first member of that name that is a text without NUL; "" when there is none. */
static const char *text_of(json_t *object, const char *first, const char *second)
{
	const char *const names[] = { first, second };

	for (int i = 0; i < 2 && names[i]; i++) {
		json_t *value = json_object_get(object, names[i]);
		const char *text = json_string_value(value);

		if (text && strlen(text) == json_string_length(value))
			return text;
	}
	return "";
}

/* An id that becomes part of a record's name: what no client makes counts as none (L12). */
static const char *id_of(json_t *object, const char *first, const char *second)
{
	const char *id = text_of(object, first, second);
	size_t len = strlen(id);

	return len > HF_NAME_MAX || hf_name_check_stored(id, len, NULL) < 0 ? "" : id;
}

/* Tools that write a file name it so; which of them write is the guard's business. */
static const char *path_of(json_t *input)
{
	static const char *const names[] = { "file_path", "notebook_path", "path", "absolute_path", "filePath" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *path = text_of(input, names[i], NULL);

		if (path[0])
			return path;
	}
	return "";
}

/* An event and its tasks. */
struct memory {
	struct hf_hook_event event;
	struct hf_hook_task tasks[HF_HOOK_TASKS_MAX];
};

static void read_background(struct memory *memory, json_t *tasks)
{
	json_t *task;
	size_t i;

	memory->event.tasks = memory->tasks;
	json_array_foreach(tasks, i, task) {
		if (strcmp(text_of(task, "status", NULL), "running") != 0)
			continue;
		if (memory->event.background < HF_HOOK_TASKS_MAX)
			memory->tasks[memory->event.background] = (struct hf_hook_task){ .id = text_of(task, "id", NULL),
											 .type = text_of(task, "type", NULL),
											 .command = text_of(task, "command", "description") };
		memory->event.background++;
	}
}

/* The types of notifications differ between clients. */
static enum hf_hook_kind kind_of_notice(json_t *root)
{
	const char *type = text_of(root, "notification_type", NULL);

	if (strcasestr(type, "permission") || strcasestr(type, "elicitation"))
		return HF_HOOK_ASKS;
	return strcasestr(type, "idle") ? HF_HOOK_WAITS : HF_HOOK_OTHER;
}

static enum hf_hook_kind kind_of(const struct hf_hook_event *event, json_t *root)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(event->name, kinds[i].name) == 0)
			return kinds[i].kind;
	if (strcmp(event->name, "Notification") == 0)
		return kind_of_notice(root);
	/* Copilot's own form has no name of the event, except here. */
	if (!event->name[0] && strcmp(text_of(root, "hookName", NULL), "permissionRequest") == 0)
		return HF_HOOK_ASKS;
	if (!event->name[0] && json_object_get(root, "stopReason"))
		return HF_HOOK_STOP;
	if (!event->name[0] && json_object_get(root, "toolResult"))
		return HF_HOOK_TOOL_AFTER;
	if (!event->name[0] && json_object_get(root, "toolName"))
		return HF_HOOK_TOOL_BEFORE;
	return HF_HOOK_OTHER;
}

static void fill(struct memory *memory, json_t *root)
{
	struct hf_hook_event *event = &memory->event;
	json_t *active = json_object_get(root, "stop_hook_active");
	json_t *input = json_object_get(root, "tool_input");

	if (!json_is_object(input))
		input = json_object_get(root, json_object_get(root, "toolArgs") ? "toolArgs" : "toolInput");
	event->name = text_of(root, "hook_event_name", NULL);
	event->session = id_of(root, "session_id", "sessionId");
	event->turn = id_of(root, "prompt_id", "turn_id");
	event->cwd = text_of(root, "cwd", NULL);
	event->tool = text_of(root, "tool_name", "toolName");
	event->path = path_of(input);
	event->was_blocked = json_is_boolean(active) ? json_is_true(active) : -1;
	event->command = text_of(input, "command", NULL);
	event->message = text_of(root, "message", NULL);
	read_background(memory, json_object_get(root, "background_tasks"));
	event->dated = json_object_get(root, "timestamp") != NULL;
	event->kind = kind_of(event, root);
}

/* The number that four hexadecimal digits are; -1: they are none. */
static int four_digits(const char *at)
{
	int number = 0;

	for (int i = 0; i < 4; i++) {
		const char *digits = "0123456789abcdef0123456789ABCDEF", *found = at[i] ? strchr(digits, at[i]) : NULL;

		if (!found)
			return -1;
		number = number * 16 + (int)((found - digits) % 16);
	}
	return number;
}

/*
 * Half of a surrogate pair, which a client in JavaScript writes when it has cut a text inside an emoji, becomes U+FFFD.
 * Returns how many there were.
 */
static int mend_halves(char *text, size_t len)
{
	int n = 0;

	for (size_t i = 0; i + 1 < len; i++) {
		int unit;

		if (text[i] != '\\')
			continue;
		unit = text[i + 1] == 'u' && i + 6 <= len ? four_digits(text + i + 2) : -1;
		i++;
		if (unit < 0xd800 || unit > 0xdfff)
			continue;
		i += 4;
		if (unit < 0xdc00 && i + 7 <= len && text[i + 1] == '\\' && text[i + 2] == 'u') {
			int low = four_digits(text + i + 3);

			if (low >= 0xdc00 && low <= 0xdfff) {
				i += 6;
				continue;
			}
		}
		memcpy(text + i - 3, "fffd", 4);
		n++;
	}
	return n;
}

/* NULL: it is no JSON, or there is no memory. */
static json_t *parse(const char *text, size_t len)
{
	const size_t flags = JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL;
	json_t *root = json_loadb(text, len, flags, NULL);
	AUTO_FREE char *mended = root ? NULL : malloc(len + 1);

	if (!mended)
		return root;
	memcpy(mended, text, len);
	mended[len] = '\0';
	return mend_halves(mended, len) ? json_loadb(mended, len, flags, NULL) : NULL;
}

int hf_hook_read(const char *text, size_t len, struct hf_hook_event **ret_event, struct hf_err *err)
{
	struct hf_hook_event *event;
	struct memory *memory;
	json_t *root;

	if (len > HF_HOOK_INPUT_MAX)
		return FAIL(err, -E2BIG, "read", "the hook's input", "%zu bytes", len);
	memory = calloc(1, sizeof(*memory));
	if (!memory)
		return hf_fail_sys(err, ENOMEM, "malloc", "the hook's input");
	event = &memory->event;
	event->digest = XXH3_64bits(text, len);
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
		text += 3;
		len -= 3;
	}
	root = parse(text, len);
	if (!json_is_object(root)) {
		json_decref(root);
		free(memory);
		/* Not the parser's own text, which may quote the input. */
		return FAIL(err, HF_E_SYNTAX, "read", "the hook's input", "it is not a JSON object");
	}
	event->memory = root;
	fill(memory, root);
	*ret_event = event;
	return 0;
}

void hf_hook_event_free(struct hf_hook_event *event)
{
	if (!event)
		return;
	json_decref(event->memory);
	free(event);
}
