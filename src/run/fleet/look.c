/* run/fleet/look.c - sessions of other machines: looking, waiting, asking for their end. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/escapes.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/lock/board.h"
#include "hf/run/session/inspect.h"
#include "hf/sys/fd/poll.h"
#include "holdfast/fleet.h"

/* A watch may be silent where its member lost the others: then the store is asked again after so long. */
#define ASK_AGAIN_NS (3 * HF_SEC)

static int64_t number(const json_t *json, const char *key)
{
	const json_t *value = json_object_get(json, key);
	const char *text = json_string_value(value);
	uint64_t n = 0;

	if (!text)
		return json_is_integer(value) ? json_integer_value(value) : 0;
	return hf_parse_u64(text, strlen(text), INT64_MAX, &n) == 0 ? (int64_t)n : 0;
}

static void text_of(const json_t *json, const char *key, char *to, size_t cap)
{
	const char *text = json_string_value(json_object_get(json, key));

	(void)hf_plain_text(to, cap, text ? text : "", text ? strlen(text) : 0);
}

static enum hf_session_state state_of_phase(const char *word)
{
	static const struct {
		enum hf_phase phase;
		enum hf_session_state state;
	} known[] = { { HF_PHASE_STARTING, HF_SESSION_STARTING }, { HF_PHASE_VERIFYING, HF_SESSION_VERIFYING },
		      { HF_PHASE_WAITING, HF_SESSION_WAITING },   { HF_PHASE_STOPPING, HF_SESSION_STOPPING },
		      { HF_PHASE_LANDING, HF_SESSION_LANDING } };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(word, hf_phase_word(known[i].phase)) == 0)
			return known[i].state;
	return HF_SESSION_RUNNING;
}

/* Believes nothing: another machine wrote it. 0 or -EINVAL. */
static int read_entry(const struct hf_board_entry *entry, struct hf_fleet_session *ret)
{
	json_t *json = json_loads(entry->text, 0, NULL);
	char phase[24], outcome[24];

	if (!json_is_object(json) || number(json, "v") != 1) {
		json_decref(json);
		return -EINVAL;
	}
	*ret = (struct hf_fleet_session){ .token = (uint64_t)number(json, "token"),
					  .pid = (int32_t)number(json, "pid"),
					  .attempt = (uint32_t)number(json, "attempt"),
					  .started = { number(json, "started") * HF_MSEC } };
	hf_copy_text(ret->name, sizeof(ret->name), entry->name);
	text_of(json, "host", ret->host, sizeof(ret->host));
	text_of(json, "command", ret->command, sizeof(ret->command));
	text_of(json, "phase", phase, sizeof(phase));
	text_of(json, "outcome", outcome, sizeof(outcome));
	if (strcmp(phase, hf_phase_word(HF_PHASE_ENDED)) == 0) {
		ret->outcome = hf_outcome_of(outcome);
		ret->state = hf_session_state_of(ret->outcome);
		ret->exit_status = (int)(number(json, "status") & 255);
		ret->ended.ns = number(json, "ended") * HF_MSEC;
		text_of(json, "cause", ret->cause, sizeof(ret->cause));
	} else {
		ret->state = entry->token == ret->token ? state_of_phase(phase) : HF_SESSION_DEAD_UNREAPED;
	}
	json_decref(json);
	return 0;
}

static int look(struct hf_locks *locks, const char *name, struct hf_board_entry *entry, struct hf_fleet_session *ret, struct hf_err *err)
{
	int r = hf_board_read(locks, name, entry, err);

	if (r < 0)
		return r;
	return read_entry(entry, ret) == 0 ? 0 : FAIL(err, HF_E_NO_SESSION, "session", name, "the store knows no session with this name");
}

int hf_fleet_look(struct hf_locks *locks, const char *name, struct hf_fleet_session *ret, struct hf_err *err)
{
	AUTO_FREE struct hf_board_entry *entry = calloc(1, sizeof(*entry));

	return entry ? look(locks, name, entry, ret, err) : hf_fail_sys(err, ENOMEM, "memory", name);
}

struct list {
	void (*fn)(void *arg, const struct hf_fleet_session *session);
	void *arg;
};

static void pass_on(void *arg, const struct hf_board_entry *entry)
{
	const struct list *list = arg;
	struct hf_fleet_session session;

	if (read_entry(entry, &session) == 0)
		list->fn(list->arg, &session);
}

int hf_fleet_list(struct hf_locks *locks, void (*fn)(void *arg, const struct hf_fleet_session *session), void *arg, struct hf_err *err)
{
	struct list list = { fn, arg };

	return hf_board_list(locks, pass_on, &list, err);
}

int hf_fleet_stop(struct hf_locks *locks, const struct hf_fleet_session *session, int64_t grace_ns, struct hf_err *err)
{
	int64_t ms = grace_ns > 0 ? (grace_ns + HF_MSEC - 1) / HF_MSEC : 0;
	char text[HF_BOARD_ASK_MAX];

	/* keeper/fleet.c reads it. */
	if (grace_ns < 0)
		hf_copy_text(text, sizeof(text), "stop -");
	else
		(void)snprintf(text, sizeof(text), "stop %lld", (long long)(ms < INT32_MAX ? ms : INT32_MAX));
	return hf_board_ask(locks, session->name, session->token, text, err);
}

int hf_fleet_wait(struct hf_locks *locks, struct hf_fleet_session *session, int64_t wait_ns, struct hf_err *err)
{
	AUTO_FREE struct hf_board_entry *entry = calloc(1, sizeof(*entry));
	struct hf_mono until = hf_mono_in(wait_ns < 0 ? INT64_MAX : wait_ns);
	struct hf_fleet_session now;

	if (!entry)
		return hf_fail_sys(err, ENOMEM, "memory", session->name);
	for (;;) {
		int64_t left = hf_mono_left(until);
		int r = look(locks, session->name, entry, &now, err);

		/* The store may be away for a while. */
		if (r < 0 && (r != HF_E_STORE || left == 0))
			return r;
		if (r == 0 && now.token != session->token)
			return FAIL(err, HF_E_STALE, "wait", session->name, "another run has the name now: its token is %llu",
				    (unsigned long long)now.token);
		if (r == 0 && (now.outcome != HF_OUTCOME_NONE || now.state == HF_SESSION_DEAD_UNREAPED)) {
			*session = now;
			return 0;
		}
		if (left == 0)
			return FAIL(err, HF_E_TIMEOUT, "wait", session->name, "it has not ended");
		left = left < ASK_AGAIN_NS ? left : ASK_AGAIN_NS;
		if (r < 0)
			(void)hf_poll_until(NULL, 0, hf_mono_in(left / 3));
		else if (hf_board_wait(locks, entry, left, NULL) < 0)
			continue;
	}
}
