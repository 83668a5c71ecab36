/* cli/session/common.c - opening what the commands about sessions need. */
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
