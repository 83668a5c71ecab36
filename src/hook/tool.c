/* hook/tool.c - a tool call begins or ends: progress of a work mode, and the session's heartbeat. */
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/hook/mode.h"
#include "hf/hook/own.h"

/* The Holdfast session that this process is in works. Without one there is nothing to do. */
static int beat(struct hf_hooks *hooks, int busy, struct hf_err *err)
{
	AUTO(hf_own_done) struct hf_own own = HF_OWN_INIT;
	struct hf_activity_note note;
	int r = hf_own_open(hooks, &own, err);

	if (r <= 0)
		return r;
	r = hf_session_beat(own.sessions, own.name, own.token, busy, err);
	/* It no longer waits. */
	if (r == 0 && hf_activity_read(own.sessions, own.name, own.token, &note) && note.activity != HF_ACTIVITY_NONE && note.activity != HF_ACTIVITY_WORKING)
		r = hf_session_set_activity(own.sessions, own.name, own.token, HF_ACTIVITY_WORKING, NULL, err);
	return r;
}

int hf_hook_tool(struct hf_hooks *hooks, const char *id, const struct hf_hook_event *event, struct hf_err *err)
{
	AUTO(hf_mode_close) struct hf_mode mode = HF_MODE_INIT;
	int r, beaten = beat(hooks, event->kind == HF_HOOK_TOOL_BEFORE, err);

	r = id ? hf_mode_open(hooks, id, 0, &mode, err) : 0;
	if (r > 0) {
		mode.tools++;
		r = hf_mode_save(&mode, err);
	}
	return r < 0 ? r : beaten;
}
