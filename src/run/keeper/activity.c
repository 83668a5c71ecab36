/* run/keeper/activity.c - reports of the command on its terminal: records and answers them, and applies them to the idle limit. */
#include "hf/run/keeper/keeper.h"
#include "hf/run/session/notes/beat.h"
#include "hf/run/session/notes/activity.h"

void hf_keeper_take_activity(struct hf_keeper *k)
{
	struct hf_program *program = k->output.program;

	if (!program)
		return;
	/* In the foreground the caller's terminal answers. */
	for (; program->asked > 0; program->asked--)
		if (k->detached)
			hf_viewers_answer(&k->viewers, HF_PROGRAM_ANSWER);
	if (!k->output.has_activity)
		return;
	k->output.has_activity = 0;
	if (!k->lost)
		(void)!hf_session_set_activity(k->sessions, k->name, k->record.token, program->state, program->text, NULL);
}

/* It waits for a person. */
static int waits(const struct hf_program *program)
{
	return program && program->state != HF_ACTIVITY_NONE && program->state != HF_ACTIVITY_WORKING;
}

int64_t hf_keeper_quiet(struct hf_keeper *k)
{
	int64_t age = hf_output_age(&k->output), limit = k->o.idle_ns, beat;
	const struct hf_program *program = k->output.program;
	struct hf_activity_note note;

	/* A blinking prompt is not progress, but keys of a viewer are. In the foreground the keeper does not see keys. */
	if (k->detached && waits(program)) {
		int64_t since = program->since.ns > k->viewers.typed.ns ? program->since.ns : k->viewers.typed.ns;

		age = hf_boot_now().ns - since > age ? hf_boot_now().ns - since : age;
	}
	if (age < limit)
		return age;
	/* A silent command may still report work. */
	beat = hf_beat_age(k->sessions, k->name, k->record.token);
	if (beat >= 0 && beat < age)
		age = beat;
	if (age >= limit && hf_activity_read(k->sessions, k->name, k->record.token, &note) && note.activity == HF_ACTIVITY_WORKING &&
	    note.age_ns < HF_RUN_BUSY_NS)
		age = 0;
	return age;
}
