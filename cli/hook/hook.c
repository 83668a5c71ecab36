/*
 * cli/hook/hook.c - hook stop, tool, asks, session-start, session-end and beat, which clients call.
 *
 * A hook fails open. After any error the client continues as if it had no hook: exit 0, no output, and one
 * event. The only answer is a block, {"decision":"block","reason":"…"}, which is the only form that all
 * clients understand.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/parse.h"
#include "holdfast/run.h"
#include "hook/hook.h"
#include "session/session.h"

#define INPUT_WAIT_MS 5000 /* a client writes its event at once */

int hook_open(struct cli *cli, unsigned state_flags, struct hook_context *ret)
{
	struct hf_err err = HF_ERR_INIT;
	int status;
	struct hf_state *state = cli_state(cli, state_flags, &status);

	if (!state)
		return status;
	ret->journal = cli_journal(cli, state);
	if (hf_hooks_open(state, ret->journal, &ret->hooks, &err) < 0)
		return cli_fail(cli, &err);
	return HF_EXIT_DONE;
}

void hook_close(struct hook_context *context)
{
	hf_hooks_free(context->hooks);
	hf_journal_free(context->journal);
}

/* -- one call -------------------------------------------------------------------------- */

void hook_done(struct hook *hook)
{
	hf_hook_event_free(hook->event);
	hf_buf_done(&hook->input);
	hook_close(&hook->context);
}

struct hf_journal *hook_journal(struct hook *hook)
{
	if (!hook->context.journal && hook->cli->state)
		(void)!hf_journal_open(hook->cli->state, NULL, &hook->context.journal, NULL);
	return hook->context.journal;
}

/* Writes the event of a failed hook, without the client's input. */
static int let_go(struct hook *hook, const char *cause)
{
	struct hf_journal *journal = hook_journal(hook);
	struct hf_field fields[] = { HF_FIELD_TEXT("hook", hook->word), HF_FIELD_TEXT("cause", cause) };

	if (journal)
		(void)hf_journal_append(journal, HF_EV_HOOK_FAILED, hook->id, fields, 2, 0, NULL);
	return HF_EXIT_DONE;
}

static int let_go_err(struct hook *hook, const struct hf_err *err)
{
	char text[HF_ERR_TEXT_MAX];

	(void)hf_err_format(err, text, sizeof(text));
	return let_go(hook, text);
}

/* Reads all of the client's input. Returns NULL, or why the input is unusable. */
static const char *read_input(struct hf_buf *input)
{
	struct hf_mono deadline = hf_mono_in(INPUT_WAIT_MS * HF_MSEC);

	for (;;) {
		struct pollfd ready = { .fd = STDIN_FILENO, .events = POLLIN };
		ssize_t n;

		if (hf_buf_reserve(input, 65536) < 0)
			return "no memory for its input";
		n = poll(&ready, 1, (int)(hf_mono_left(deadline) / HF_MSEC));
		if (n == 0)
			return "its input did not end";
		n = n < 0 ? n : read(STDIN_FILENO, input->s + input->len, 65536);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return "its input cannot be read";
		if (n == 0)
			return input->len ? NULL : "its input is empty";
		input->len += (size_t)n;
		input->s[input->len] = '\0';
		if (input->len > HF_HOOK_INPUT_MAX)
			return "its input is too large";
	}
}

int hook_begin(struct hook *hook)
{
	struct hf_err err = HF_ERR_INIT;
	const char *own = getenv("HOLDFAST_SESSION"), *wrong;

	/* Without a state directory no session can be in work mode. */
	if (!hook->cli->state && hf_state_open(hook->cli->dir, HF_STATE_NO_CREATE, &hook->cli->state, &err) < 0)
		return 0;
	wrong = read_input(&hook->input);
	if (wrong) {
		(void)let_go(hook, wrong);
		return 0;
	}
	if (hf_hooks_open(hook->cli->state, NULL, &hook->context.hooks, &err) < 0 ||
	    hf_hook_read(hook->input.s, hook->input.len, &hook->event, &err) < 0) {
		(void)let_go_err(hook, &err);
		return 0;
	}
	hook->id = hook->session ? hook->session : own && own[0] ? own : hf_hook_session_id(hook->event);
	return 1;
}

/* Reads the options of a hook. A wrong option is a mistake in the settings and is reported. */
static int hook_options(struct hook *hook, int argc, char **argv)
{
	const struct option_spec specs[] = {
		{ "session", 0, OPTION_TEXT, &hook->session, "ID", "the session (default: $HOLDFAST_SESSION, or the client's id)" },
		{ 0 },
	};

	return cli_options(hook->cli, specs, argc, argv, 0, 0);
}

/* -- stop ------------------------------------------------------------------------------- */

static void print_block(const char *reason)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;

	hf_buf_add_text(&out, "{\"decision\":\"block\",\"reason\":");
	(void)hf_buf_add_json(&out, reason, strlen(reason), HF_HOOK_REASON_MAX);
	hf_buf_add_text(&out, "}\n");
	if (!out.err)
		(void)fwrite(out.s, 1, out.len, stdout);
}

/* Records the reason for which a stopped client waits. */
static int stopped(struct hook *hook)
{
	struct hf_err err = HF_ERR_INIT;

	/* The event needs the journal, which most hooks do not open. */
	if (hook->event->background > 0 && hook_journal(hook)) {
		hf_hooks_free(hook->context.hooks);
		hook->context.hooks = NULL;
		if (hf_hooks_open(hook->cli->state, hook->context.journal, &hook->context.hooks, &err) < 0)
			return let_go_err(hook, &err);
	}
	return hf_hook_stopped(hook->context.hooks, hook->event, &err) < 0 ? let_go_err(hook, &err) : HF_EXIT_DONE;
}

/* A session without an id may stop; the journal records that (L8). */
static int without_id(struct hook *hook)
{
	struct hf_journal *journal = hook_journal(hook);
	struct hf_field fields[] = { HF_FIELD_TEXT("reason", "no session id") };

	if (journal)
		(void)hf_journal_append(journal, HF_EV_STOP_ALLOWED, NULL, fields, 1, 0, NULL);
	return HF_EXIT_DONE;
}

int cmd_hook_stop(struct cli *cli, int argc, char **argv)
{
	AUTO(hook_done) struct hook hook = { .cli = cli, .word = "stop", .input = HF_BUF_INIT };
	struct hf_stop_answer answer;
	struct hf_err err = HF_ERR_INIT;
	int n = hook_options(&hook, argc, argv);

	if (n < 0)
		return cli_options_status(n);
	cli_keep_status(cli);
	if (!hook_begin(&hook))
		return HF_EXIT_DONE;
	if (!hook.id)
		return without_id(&hook);
	if (hf_keep_look(hook.context.hooks, hook.id, NULL, NULL, &err) == 0)
		return stopped(&hook);
	hf_hooks_free(hook.context.hooks);
	hook.context.hooks = NULL;
	if (hf_hooks_open(cli->state, hook_journal(&hook), &hook.context.hooks, &err) < 0 ||
	    hf_hook_stop(hook.context.hooks, hook.id, hook.event, &answer, &err) < 0)
		return let_go_err(&hook, &err);
	if (!answer.block)
		return stopped(&hook);
	print_block(answer.reason);
	return HF_EXIT_DONE;
}

/* -- other hooks ------------------------------------------------------------------------ */

int cmd_hook_tool(struct cli *cli, int argc, char **argv)
{
	AUTO(hook_done) struct hook hook = { .cli = cli, .word = "tool", .input = HF_BUF_INIT };
	struct hf_err err = HF_ERR_INIT;
	int n = hook_options(&hook, argc, argv);

	if (n < 0)
		return cli_options_status(n);
	cli_keep_status(cli);
	if (!hook_begin(&hook))
		return HF_EXIT_DONE;
	if (hf_hook_tool(hook.context.hooks, hook.id, hook.event, &err) < 0)
		return let_go_err(&hook, &err);
	return HF_EXIT_DONE;
}

int cmd_hook_asks(struct cli *cli, int argc, char **argv)
{
	AUTO(hook_done) struct hook hook = { .cli = cli, .word = "asks", .input = HF_BUF_INIT };
	struct hf_err err = HF_ERR_INIT;
	int n = hook_options(&hook, argc, argv);

	if (n < 0)
		return cli_options_status(n);
	cli_keep_status(cli);
	if (hook_begin(&hook) && hf_hook_asks(hook.context.hooks, hook.event, &err) < 0)
		return let_go_err(&hook, &err);
	return HF_EXIT_DONE;
}

int cmd_hook_session_start(struct cli *cli, int argc, char **argv)
{
	AUTO(hook_done) struct hook hook = { .cli = cli, .word = "session-start", .input = HF_BUF_INIT };
	struct hf_err err = HF_ERR_INIT;
	enum hf_client client = hf_client_here();
	char process[HF_PROC_TEXT_MAX];
	const char *proof, *session;
	struct hf_proc_id id;
	int n = hook_options(&hook, argc, argv);

	if (n < 0)
		return cli_options_status(n);
	cli_keep_status(cli);
	if (!hook_begin(&hook))
		return HF_EXIT_DONE;
	session = hf_hook_session_id(hook.event);
	if (!hook.id)
		return let_go(&hook, "no session id");
	if (hf_hook_client_process(client, session, &id, &proof, &err) < 0)
		return let_go_err(&hook, &err);
	(void)hf_proc_format(&id, process);
	struct hf_field fields[] = { HF_FIELD_TEXT("client", hf_client_word(client)),
				     HF_FIELD_TEXT("process", process), HF_FIELD_TEXT("proof", proof) };

	if (hook_journal(&hook))
		(void)hf_journal_append(hook_journal(&hook), HF_EV_CLIENT_STARTED, hook.id, fields, 3, 0, NULL);
	return HF_EXIT_DONE;
}

/* Only writes an event: work mode outlives the client, which may be resumed, and clients often skip this hook. */
int cmd_hook_session_end(struct cli *cli, int argc, char **argv)
{
	AUTO(hook_done) struct hook hook = { .cli = cli, .word = "session-end", .input = HF_BUF_INIT };
	struct hf_field fields[] = { HF_FIELD_TEXT("client", hf_client_word(hf_client_here())) };
	int n = hook_options(&hook, argc, argv);

	if (n < 0)
		return cli_options_status(n);
	cli_keep_status(cli);
	if (!hook_begin(&hook))
		return HF_EXIT_DONE;
	if (!hook.id)
		return let_go(&hook, "no session id");
	if (hook_journal(&hook))
		(void)hf_journal_append(hook_journal(&hook), HF_EV_CLIENT_ENDED, hook.id, fields, 1, 0, NULL);
	return HF_EXIT_DONE;
}

int cmd_beat(struct cli *cli, int argc, char **argv)
{
	const char *name = getenv("HOLDFAST_SESSION"), *text = getenv("HOLDFAST_TOKEN");
	int busy = 0;
	const struct option_spec specs[] = {
		{ "busy", 0, OPTION_FLAG, &busy, NULL, "count as working until the next beat (at most 1h)" },
		{ 0 },
	};
	AUTO(session_close) struct session_context context = { 0 };
	struct hf_err err = HF_ERR_INIT;
	uint64_t token;
	int status, n = cli_options(cli, specs, argc, argv, 0, 0);

	if (n < 0)
		return cli_options_status(n);
	if (!name || !name[0] || !text || hf_parse_u64(text, strlen(text), UINT64_MAX, &token) < 0)
		return cli_usage(cli, "no session: HOLDFAST_SESSION and HOLDFAST_TOKEN are set inside 'holdfast run'");
	status = session_open(cli, &context);
	if (status != HF_EXIT_DONE)
		return status;
	return hf_session_beat(context.sessions, name, token, busy, &err) < 0 ? cli_fail(cli, &err) : HF_EXIT_DONE;
}
