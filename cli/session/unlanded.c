/* cli/session/unlanded.c - work that a session left: prints its commands, and drops it. */
#include <stdio.h>
#include <string.h>

#include "session/session.h"
#include "session/unlanded.h"

#define COLUMN 34 /* of the comments, behind the verb */

static void print_command(const char *what, const char *verb, const char *name)
{
	const char *word = cli_word(name);

	fprintf(stderr, "    holdfast %s %-*s  # %s\n", verb, (int)(strlen(verb) < COLUMN ? COLUMN - strlen(verb) : 0), word, what);
}

void unlanded_say_commands(const struct cli *cli, const char *name, const struct hf_tx_unlanded *work, int resumes)
{
	if (cli->quiet)
		return;
	if (work->plan[0])
		print_command("shows it", "plan diff", work->plan);
	else if (work->candidate)
		print_command("shows it", "land show", name);
	/* The agent cannot continue a candidate that has landed. */
	if (resumes && work->plan[0] && work->candidate != HF_LAND_LANDED)
		print_command("continues in it", "run --resume", name);
	if (work->lands)
		print_command("lands it", "land", name);
	else if (!work->candidate)
		print_command("commits it", "plan commit", work->plan);
	if (work->candidate && work->candidate != HF_LAND_DROPPED && !(work->lands && work->candidate == HF_LAND_LANDED))
		print_command("drops it", "land drop", name);
	else
		print_command("drops it", "plan rm --discard", work->plan);
}

int unlanded_drop(struct cli *cli, const char *name, struct hf_journal *journal, struct hf_err *err)
{
	struct hf_tx_unlanded work = { .size = sizeof(work) };
	int status, r;
	struct hf_state *state = cli_state(cli, 0, &status);

	r = state ? hf_tx_unlanded(state, name, &work, err) : 0;
	if (r > 0)
		cli_say(cli, "session '%s': dropping its work: %s", name, work.text);
	/* Also if git finds it in the branch: its sandbox keeps the session. */
	return r < 0 ? r : state ? hf_tx_drop(state, journal, name, err) : 0;
}
