/* cli/session_common.c - opening what the commands about sessions need. */
#include "session.h"

int session_open(struct cli *cli, struct session_context *ret)
{
	struct hf_err err = HF_ERR_INIT;
	char text[HF_ERR_TEXT_MAX];
	int status = EXIT_DONE;
	struct hf_state *state = cli_state(cli, 0, &status);

	*ret = (struct session_context){ 0 };
	if (!state)
		return status;
	/* Sessions work without their journal; that it is missing is said. */
	if (hf_journal_open(state, NULL, &ret->journal, &err) < 0) {
		(void)hf_err_format(&err, text, sizeof(text));
		cli_say(cli, "no journal: %s", text);
		ret->journal = NULL;
	}
	if (hf_sessions_open(state, ret->journal, &ret->sessions, &err) < 0) {
		ret->sessions = NULL;
		return cli_fail(cli, &err);
	}
	return EXIT_DONE;
}

void session_close(struct session_context *context)
{
	hf_sessions_free(context->sessions);
	hf_journal_free(context->journal);
}
