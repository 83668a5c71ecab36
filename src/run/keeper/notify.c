/*
 * run/keeper/notify.c - telling the user how it went, without telling the same thing for ever.
 *
 * The first outcome of its kind in a run is told at once. While it repeats, it is told again the
 * 3rd, 9th, 27th … time. Each run begins anew: the second nightly success is told as well.
 */
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/run/keeper/keeper.h"
#include "hf/run/options.h"

#define FACTOR 3

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
	int on = hf_options_notify(k->o.notify_on), failed = k->record.outcome != HF_OUTCOME_SUCCEEDED;
	uint32_t same = k->record.same < k->outcomes ? k->record.same : k->outcomes;

	if (on & HF_NOTIFY_ALWAYS)
		return 1;
	return (on & HF_NOTIFY_CHANGE || (on & HF_NOTIFY_FAILURE && failed)) && is_turn(same);
}

static void add_text(struct hf_buf *out, const char *key, const char *text)
{
	hf_buf_add_format(out, ",\"%s\":", key);
	(void)hf_buf_add_json(out, text, strlen(text), SIZE_MAX);
}

static void add_time(struct hf_buf *out, const char *key, struct hf_wall time)
{
	char text[HF_WALL_TEXT_MAX];

	hf_wall_format(time, text);
	add_text(out, key, text);
}

/* What both kinds of notices have. */
static void build_head(const struct hf_keeper *k, const char *event, struct hf_buf *out)
{
	const struct hf_session_record *r = &k->record;

	hf_buf_add_text(out, "{\"v\":1");
	add_text(out, "event", event);
	add_text(out, "session", r->name);
	hf_buf_add_format(out, ",\"token\":%llu,\"attempt\":%u", (unsigned long long)r->token, r->attempt);
	add_text(out, "command", r->command);
	add_time(out, "started", r->started);
}

static void build_end(const struct hf_keeper *k, struct hf_buf *out)
{
	const struct hf_session_record *r = &k->record;

	build_head(k, "end", out);
	add_text(out, "outcome", hf_outcome_word(r->outcome));
	add_text(out, "cause", r->cause);
	hf_buf_add_format(out, ",\"exit\":%d,\"same\":%u,\"failures\":%u,\"ran_ms\":%lld", r->exit_status, r->same, r->failures,
			  (long long)(r->ran_ns / HF_MSEC));
	add_time(out, "ended", r->ended);
	hf_buf_add_text(out, "}\n");
}

static void build_start(const struct hf_keeper *k, struct hf_buf *out)
{
	build_head(k, "start", out);
	hf_buf_add_format(out, ",\"outcome\":null,\"cause\":null,\"exit\":null,\"same\":null,\"failures\":%u,\"ran_ms\":null,\"ended\":null}\n",
			  k->record.failures);
}

static void tell(struct hf_keeper *k, const char *outcome, uint32_t same, const struct hf_buf *text)
{
	struct hf_notice notice = { .same = same, .attempt = k->record.attempt };

	if (text->err || text->len >= sizeof(notice.text))
		return;
	hf_copy_text(notice.outcome, sizeof(notice.outcome), outcome);
	memcpy(notice.text, text->s, text->len);
	hf_notifier_tell(k, &notice);
}

void hf_keeper_notify(struct hf_keeper *k)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;

	k->outcomes++;
	/* It is told of a stop as well; a keeper that lost the lock has nothing to tell: its successor does. */
	if (!k->o.notify || !is_due(k) || k->lost)
		return;
	build_end(k, &text);
	tell(k, hf_outcome_word(k->record.outcome), k->record.same, &text);
}

void hf_keeper_notify_start(struct hf_keeper *k)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;

	if (!k->o.notify || !(hf_options_notify(k->o.notify_on) & HF_NOTIFY_START))
		return;
	build_start(k, &text);
	tell(k, "started", 1, &text);
}
