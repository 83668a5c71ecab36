/*
 * run/keeper/notify.c - telling the user how it went, without telling the same thing for ever.
 *
 * The first outcome of its kind in a run is told at once. While it repeats, it is told again the
 * 3rd, 9th, 27th … time. Each run begins anew: the second nightly success is told as well.
 */
#include <string.h>
#include <sys/wait.h>

#include "holdfast/exit.h"
#include "hf/base/cleanup.h"
#include "hf/run/keeper/keeper.h"

#define NOTIFY_NS (30 * HF_SEC)
#define FACTOR    3

/* 1, 3, 9, 27, … */
static int is_turn(uint32_t same)
{
	while (same > 1 && same % FACTOR == 0)
		same /= FACTOR;
	return same == 1;
}

/* Is it to be told of this outcome? */
static int is_due(const struct hf_keeper *k)
{
	const char *on = k->o.notify_on ? k->o.notify_on : "change";
	uint32_t same = k->record.same < k->outcomes ? k->record.same : k->outcomes;

	if (strcmp(on, "always") == 0)
		return 1;
	if (strcmp(on, "failure") == 0 && k->record.outcome == HF_OUTCOME_SUCCEEDED)
		return 0;
	return is_turn(same);
}

static void add_text(struct hf_buf *out, const char *key, const char *text)
{
	hf_buf_add_format(out, ",\"%s\":", key);
	(void)hf_buf_add_json(out, text, strlen(text), SIZE_MAX);
}

static void build(const struct hf_keeper *k, struct hf_buf *out)
{
	const struct hf_session_record *r = &k->record;
	char ended[HF_WALL_TEXT_MAX];

	hf_wall_format(r->ended, ended);
	hf_buf_add_text(out, "{\"v\":1");
	add_text(out, "session", r->name);
	add_text(out, "outcome", hf_outcome_word(r->outcome));
	add_text(out, "cause", r->cause);
	hf_buf_add_format(out, ",\"exit\":%d,\"attempt\":%u,\"same\":%u,\"failures\":%u,\"ran_ms\":%lld",
			  r->exit_status, r->attempt, r->same, r->failures,
			  (long long)(r->ran_ns / HF_MSEC));
	hf_buf_add_format(out, ",\"token\":%llu", (unsigned long long)r->token);
	add_text(out, "command", r->command);
	add_text(out, "ended", ended);
	hf_buf_add_text(out, "}\n");
}

void hf_keeper_notify(struct hf_keeper *k)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;
	struct hf_watched w;
	struct hf_field fields[] = { HF_FIELD_TEXT("outcome", hf_outcome_word(k->record.outcome)),
				     HF_FIELD_INT("same", k->record.same), HF_FIELD_INT("status", 0) };

	k->outcomes++;
	/* It is told of a stop as well; only with nobody left to run for it is not told. */
	if (!k->o.notify || !is_due(k) || k->lost || k->over == HF_CAUSE_SUPERVISOR)
		return;
	build(k, &text);
	if (text.err)
		return;
	/* A notice that takes too long ends nothing but itself. */
	w = hf_keeper_helper(k, k->o.notify, NOTIFY_NS, text.s, 0);
	fields[2].number = w.code == CLD_EXITED ? w.status : w.code == 0 ? HF_EXIT_NO_FILE : HF_EXIT_SIGNAL + w.status;
	hf_session_event(k->sessions, HF_EV_SESSION_NOTIFIED, k->name, fields, 3);
}
