/* run/keeper/output/program.c - parses OSC 7501 and titles. */
#include <stdio.h>
#include <string.h>

#include "hf/base/buf.h"
#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/run/keeper/output/program.h"

#define ESC 0x1b

static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
static const char id_bytes[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.+-/";

/* Part of a sequence. */
struct word {
	const char *s;
	size_t len;
};

static int is(struct word word, const char *text)
{
	return word.len == strlen(text) && memcmp(word.s, text, word.len) == 0;
}

static int begins(struct word word, const char *text)
{
	return word.len >= strlen(text) && memcmp(word.s, text, strlen(text)) == 0;
}

static int has_only(struct word word, const char *allowed)
{
	for (size_t i = 0; i < word.len; i++)
		if (!word.s[i] || !strchr(allowed, word.s[i]))
			return 0;
	return 1;
}

/* Takes the word before the next `end`, and skips both. */
static struct word cut(struct word *rest, char end)
{
	const char *at = rest->len ? memchr(rest->s, end, rest->len) : NULL;
	struct word word = { rest->s, at ? (size_t)(at - rest->s) : rest->len };
	size_t passed = word.len + (at != NULL);

	rest->s += passed;
	rest->len -= passed;
	return word;
}

/* -- records -------------------------------------------------------------------------- */

static void drop(struct hf_program *p, size_t i)
{
	p->records[i] = p->records[--p->n];
}

static struct hf_program_record *find(struct hf_program *p, const char *id)
{
	size_t oldest = 0;

	for (size_t i = 0; i < p->n; i++) {
		if (strcmp(p->records[i].id, id) == 0)
			return &p->records[i];
		if (p->records[i].order < p->records[oldest].order)
			oldest = i;
	}
	if (p->n < HF_PROGRAM_RECORDS)
		return &p->records[p->n++];
	return &p->records[oldest];
}

/* Removes the record `id` and those below it; "" removes all. */
static void clear(struct hf_program *p, const char *id)
{
	size_t len = strlen(id);

	for (size_t i = p->n; i-- > 0;) {
		const char *other = p->records[i].id;

		if (len == 0 || (strncmp(other, id, len) == 0 && (other[len] == '\0' || other[len] == '/')))
			drop(p, i);
	}
}

/* The newest of the most urgent records. */
static const struct hf_program_record *choose(const struct hf_program *p)
{
	static const int urgency[] = { [HF_ACTIVITY_IDLE] = 1, [HF_ACTIVITY_DONE] = 2, [HF_ACTIVITY_ERROR] = 3, [HF_ACTIVITY_WORKING] = 4, [HF_ACTIVITY_BLOCKED] = 5 };
	const struct hf_program_record *best = &p->title;

	for (size_t i = 0; i < p->n; i++) {
		const struct hf_program_record *r = &p->records[i];
		int more = urgency[r->state] - urgency[best->state];

		if (best == &p->title || more > 0 || (more == 0 && r->order > best->order))
			best = r;
	}
	return best;
}

static int conclude(struct hf_program *p)
{
	const struct hf_program_record *best = choose(p);

	if (best->state == p->state && strcmp(best->text, p->text) == 0)
		return 0;
	p->state = best->state;
	p->since = hf_boot_now();
	memcpy(p->text, best->text, sizeof(p->text));
	return 1;
}

/* -- reports -------------------------------------------------------------------------- */

/* Returns 0 for an unknown word. "clear" is HF_ACTIVITY_NONE. */
static int read_state(struct word word, enum hf_activity *ret)
{
	static const enum hf_activity reported[] = { HF_ACTIVITY_IDLE, HF_ACTIVITY_WORKING, HF_ACTIVITY_BLOCKED, HF_ACTIVITY_DONE, HF_ACTIVITY_ERROR };

	*ret = HF_ACTIVITY_NONE;
	for (size_t i = 0; i < sizeof(reported) / sizeof(reported[0]); i++)
		if (is(word, hf_activity_word(reported[i])))
			*ret = reported[i];
	return *ret != HF_ACTIVITY_NONE || is(word, "clear");
}

static void read_message(struct word word, char out[HF_ACTIVITY_TEXT_MAX + 1])
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;

	if (hf_base64_read(word.s, word.len, &text) == 0)
		(void)hf_plain_text(out, HF_ACTIVITY_TEXT_MAX + 1, text.s, text.len);
}

/* The text of a report without a message. */
static const char *words_of_kind(struct word kind)
{
	return is(kind, "permission") ? "a permission" :
	       is(kind, "question")   ? "an answer to its question" :
	       is(kind, "auth")	      ? "a login" :
					"";
}

/* "state=working:app=codex": unknown keys and malformed pairs are skipped; the last value of a key is used. */
static int take_report(struct hf_program *p, struct word report)
{
	struct word state = { "", 0 }, id = { "", 0 }, kind = { "", 0 }, message = { "", 0 };
	struct hf_program_record record = { .order = ++p->order }, *place;

	while (report.len > 0) {
		struct word value = cut(&report, ':'), key = cut(&value, '=');

		if (is(key, "state"))
			state = value;
		else if (is(key, "id"))
			id = value;
		else if (is(key, "kind"))
			kind = value;
		else if (is(key, "msg") && has_only(value, base64))
			message = value;
	}
	if (!read_state(state, &record.state) || id.len > HF_PROGRAM_ID_MAX || !has_only(id, id_bytes))
		return 0;
	memcpy(record.id, id.s, id.len);
	if (record.state == HF_ACTIVITY_NONE) {
		clear(p, record.id);
		return conclude(p);
	}
	read_message(message, record.text);
	if (record.state == HF_ACTIVITY_BLOCKED && !record.text[0])
		hf_copy_text(record.text, sizeof(record.text), words_of_kind(kind));
	place = find(p, record.id);
	*place = record;
	return conclude(p);
}

/* -- titles --------------------------------------------------------------------------- */

static int take_title(struct hf_program *p, struct word title)
{
	static const struct {
		const char *sign;
		enum hf_activity state;
	} signs[] = {
		{ "\xe2\x9c\x8b", HF_ACTIVITY_BLOCKED },	    /* raised hand: Gemini */
		{ "[ ! ] ", HF_ACTIVITY_BLOCKED },		    /* Codex, blinking */
		{ "[ . ] ", HF_ACTIVITY_BLOCKED },
		{ "\xe2\x9c\xa6", HF_ACTIVITY_WORKING },	    /* four pointed star: Gemini */
		{ "\xe2\x97\x90", HF_ACTIVITY_WORKING },	    /* half circles: Claude */
		{ "\xe2\x97\x91", HF_ACTIVITY_WORKING },
		{ "\xe2\x97\x87", HF_ACTIVITY_IDLE },	    /* diamond: Gemini */
		{ "\xe2\x9c\xb3", HF_ACTIVITY_IDLE },	    /* eight spoked asterisk: Claude */
	};
	struct hf_program_record record = { .order = 0 };

	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]) && record.state == HF_ACTIVITY_NONE; i++) {
		if (!begins(title, signs[i].sign))
			continue;
		title.s += strlen(signs[i].sign);
		title.len -= strlen(signs[i].sign);
		while (title.len > 0 && title.s[0] == ' ')
			(void)cut(&title, ' ');
		record.state = signs[i].state;
		if (record.state == HF_ACTIVITY_BLOCKED)
			(void)hf_plain_text(record.text, sizeof(record.text), title.s, title.len);
	}
	p->title = record;
	return conclude(p);
}

/* -- the stream ----------------------------------------------------------------------- */

/* A shell prompt: the program before it has ended. */
static int take_prompt(struct hf_program *p)
{
	for (size_t i = p->n; i-- > 0;)
		if (p->records[i].state == HF_ACTIVITY_WORKING || p->records[i].state == HF_ACTIVITY_BLOCKED || p->records[i].state == HF_ACTIVITY_IDLE)
			drop(p, i);
	p->title = (struct hf_program_record){ .order = 0 };
	return conclude(p);
}

static int take_osc(struct hf_program *p, struct word osc)
{
	struct word number = cut(&osc, ';');

	if (is(number, "0") || is(number, "2"))
		return take_title(p, osc);
	if (is(number, "133") && (is(osc, "A") || begins(osc, "A;")))
		return take_prompt(p);
	if (!is(number, "7501"))
		return 0;
	if (!is(osc, "?"))
		return take_report(p, osc);
	if (p->answered < HF_PROGRAM_ANSWERS) {
		p->answered++;
		p->asked++;
	}
	return 0;
}

/* ESC c resets the terminal. */
static int take_reset(struct hf_program *p)
{
	clear(p, "");
	p->title = (struct hf_program_record){ .order = 0 };
	return conclude(p);
}

int hf_program_take(struct hf_program *p, const char *bytes, size_t n)
{
	int changed = 0;

	for (size_t i = 0; i < n; i++) {
		struct word osc;

		if (p->escapes.state == HF_ESCAPES_TEXT) {
			const char *next = memchr(bytes + i, ESC, n - i);

			if (!next)
				break;
			i = (size_t)(next - bytes);
		}
		if (hf_escape_take(&p->escapes, bytes[i]) != HF_ESCAPE_END)
			continue;
		osc.s = hf_escape_osc(&p->escapes, &osc.len);
		if (osc.s)
			changed |= take_osc(p, osc);
		else if (p->escapes.kind == HF_ESCAPE_SHORT && p->escapes.kept[p->escapes.len - 1] == 'c' && p->escapes.len == 2)
			changed |= take_reset(p);
	}
	return changed;
}
