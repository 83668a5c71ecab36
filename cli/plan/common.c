/* cli/plan/common.c - opens plans for a command, and reads the file of globs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"

int plan_open(struct cli *cli, struct plan_context *ret)
{
	int status = HF_EXIT_DONE;
	struct hf_state *state = cli_state(cli, 0, &status);

	if (!state)
		return status;
	ret->journal = cli_journal(cli, state);
	if (hf_plans_open(state, ret->journal, &ret->plans, &ret->err) < 0)
		return cli_fail(cli, &ret->err);
	return HF_EXIT_DONE;
}

void plan_done(struct plan_context *context)
{
	hf_plans_free(context->plans);
	hf_journal_free(context->journal);
}

int plan_read_ignore(const struct cli *cli, const char *file, char ***globs)
{
	FILE *in = file ? fopen(file, "re") : NULL;
	char *line = NULL;
	size_t room = 0, count = 0;
	ssize_t n;

	if (!file)
		return HF_EXIT_DONE;
	if (!in) {
		cli_say(cli, "%s: %s", file, strerrordesc_np(errno));
		return HF_EXIT_OS;
	}
	while (*globs && (*globs)[count])
		count++;
	while ((n = getline(&line, &room, in)) >= 0) {
		if (n > 0 && line[n - 1] == '\n')
			line[--n] = '\0';
		if (n == 0 || line[0] == '#')
			continue;
		*globs = reallocarray(*globs, count + 2, sizeof(**globs));
		if (!*globs)
			cli_die_oom();
		(*globs)[count++] = line; /* kept until the program ends */
		(*globs)[count] = NULL;
		line = NULL;
		room = 0;
	}
	free(line);
	(void)fclose(in);
	return HF_EXIT_DONE;
}
