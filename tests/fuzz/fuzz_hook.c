/* tests/fuzz/fuzz_hook.c - any bytes as what a client writes to a hook. */
#include <errno.h>
#include <string.h>

#include "fuzz.h"
#include "holdfast/hook.h"
#include "holdfast/name.h"

/* An id becomes part of a path: "" or one that a client could make (L12). */
static void id_is_one(const char *id)
{
	MUST(strlen(id) <= HF_NAME_MAX && (!id[0] || hf_name_check_stored(id, strlen(id), NULL) == 0));
}

/* What the hooks rely on without asking again. */
static void event_makes_sense(const struct hf_hook_event *event)
{
	id_is_one(event->session);
	id_is_one(event->turn);
	MUST(event->name && event->cwd && event->tool && event->path && event->command && event->message && event->memory);
	MUST(event->kind >= HF_HOOK_OTHER && event->kind <= HF_HOOK_WAITS);
	MUST(event->was_blocked >= -1 && event->was_blocked <= 1);
	MUST(event->background >= 0 && (unsigned)event->dated <= 1);
	for (int i = 0; i < event->background && i < HF_HOOK_TASKS_MAX; i++)
		MUST(event->tasks[i].id && event->tasks[i].type && event->tasks[i].command);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hf_err err = HF_ERR_INIT;
	struct hf_hook_event *event = NULL, *again = NULL;
	/* Of exactly that size, so that a sanitizer sees a step beyond it. */
	char *text = malloc(size ? size : 1);
	int r;

	MUST(text);
	if (size)
		memcpy(text, data, size);
	r = hf_hook_read(text, size, &event, &err);
	MUST(r == 0 ? event != NULL : (r == HF_E_SYNTAX || r == -E2BIG) && !event);
	if (event) {
		event_makes_sense(event);
		/* The same bytes are the same event. */
		MUST(hf_hook_read(text, size, &again, &err) == 0);
		MUST(event->digest == again->digest && event->kind == again->kind);
	}
	hf_hook_event_free(again);
	hf_hook_event_free(event);
	free(text);
	return 0;
}
