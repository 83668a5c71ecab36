/* run/keeper/said.c - what the command says of itself on its terminal: noted for others, answered, and weighed by the idle limit. */
#include "hf/run/keeper/keeper.h"
#include "hf/run/session/notes/beat.h"
#include "hf/run/session/notes/says.h"

void hf_keeper_take_said(struct hf_keeper *k)
{
	struct hf_program *program = k->output.program;

	if (!program)
		return;
	/* In the foreground the caller's own terminal answers, if it can. */
	for (; program->asked > 0; program->asked--)
		if (k->detached)
			hf_viewers_answer(&k->viewers, HF_PROGRAM_ANSWER);
	if (!k->output.has_said)
		return;
	k->output.has_said = 0;
	if (!k->lost)
		(void)!hf_session_say(k->sessions, k->name, k->record.token, program->state, program->text, NULL);
}

/* It waits for a person, and says so. */
static int waits(const struct hf_program *program)
{
	return program && program->state != HF_SAYS_NOTHING && program->state != HF_SAYS_WORKING;
}

int64_t hf_keeper_quiet(struct hf_keeper *k)
{
	int64_t age = hf_output_age(&k->output), limit = k->o.idle_ns, beat;
	const struct hf_program *program = k->output.program;
	struct hf_said said;

	/* A prompt that blinks is no sign of life; what viewers type is. In the foreground it is not known who types. */
	if (k->detached && waits(program)) {
		int64_t since = program->since.ns > k->viewers.typed.ns ? program->since.ns : k->viewers.typed.ns;

		age = hf_boot_now().ns - since > age ? hf_boot_now().ns - since : age;
	}
	if (age < limit)
		return age;
	/* A command that prints nothing may still say that it works. */
	beat = hf_beat_age(k->sessions, k->name, k->record.token);
	if (beat >= 0 && beat < age)
		age = beat;
	if (age >= limit && hf_said_read(k->sessions, k->name, k->record.token, &said) && said.says == HF_SAYS_WORKING &&
	    said.age_ns < HF_RUN_BUSY_NS)
		age = 0;
	return age;
}
