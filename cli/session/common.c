/* cli/session/common.c - opens the state of sessions, and handles commands that take names. */
#include "hf/base/cleanup.h"
#include "session/session.h"

int session_open(struct cli *cli, struct session_context *ret)
{
	struct hf_err err = HF_ERR_INIT;
	int status = HF_EXIT_DONE;
	struct hf_state *state = cli_state(cli, 0, &status);

	*ret = (struct session_context){ 0 };
	if (!state)
		return status;
	ret->journal = cli_journal(cli, state);
	if (hf_sessions_open(state, ret->journal, &ret->sessions, &err) < 0) {
		ret->sessions = NULL;
		return cli_fail(cli, &err);
	}
	return HF_EXIT_DONE;
}

void session_close(struct session_context *context)
{
	hf_sessions_free(context->sessions);
	hf_journal_free(context->journal);
}

void session_print_done(const char *name, const char *done)
{
	json_t *object = json_object();

	cli_set(object, "name", cli_text(name));
	cli_set(object, done, json_true());
	cli_print_json(object);
}

int session_each_named(struct cli *cli, int argc, char **argv, const char *done,
		       int (*fn)(struct hf_sessions *sessions, const char *name, uint64_t token, struct hf_err *err))
{
	uint64_t token = 0;
	const struct option_spec specs[] = { SESSION_TOKEN_SPEC(token), { 0 } };
	AUTO(session_close) struct session_context context = { 0 };
	int status, n = cli_options(cli, specs, argc, argv, 1, INT_MAX - 1);

	if (n < 0)
		return cli_options_status(n);
	if (token && n != 1)
		return cli_usage(cli, "--token needs exactly one NAME");
	status = session_open(cli, &context);
	if (status != HF_EXIT_DONE)
		return status;
	for (int i = 0; i < n; i++) {
		struct hf_err err = HF_ERR_INIT;
		int one = fn(context.sessions, argv[i], token, &err) < 0 ? cli_fail(cli, &err) : HF_EXIT_DONE;

		if (one == HF_EXIT_DONE && cli->json)
			session_print_done(argv[i], done);
		if (one > status)
			status = one;
	}
	return status;
}
