/* hook/tool.c - a tool call begins or ends: progress of a work mode, and the session's heartbeat. */
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/parse.h"
#include "hf/hook/mode.h"
#include "holdfast/run.h"

/* The Holdfast session that this process is in works. Without one there is nothing to do. */
static int beat(struct hf_hooks *hooks, int busy, struct hf_err *err)
{
	const char *name = getenv("HOLDFAST_SESSION"), *text = getenv("HOLDFAST_TOKEN");
	struct hf_sessions *sessions = NULL;
	uint64_t token;
	int r;

	if (!name || !name[0] || !text || hf_parse_u64(text, strlen(text), UINT64_MAX, &token) < 0)
		return 0;
	r = hf_sessions_open(hooks->state, NULL, &sessions, err);
	if (r == 0)
		r = hf_session_beat(sessions, name, token, busy, err);
	hf_sessions_free(sessions);
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
