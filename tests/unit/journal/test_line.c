/* unit/journal/test_line.c - one record as a line and back: nothing else is ever accepted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hf/base/buf.h"
#include "hf/base/cleanup.h"
#include "helper/random.h"
#include "helper/test.h"
#include "hf/journal/line.h"

#define TEXT_MOST 5000

/* Bytes of every kind that matters: plain, control, whole and broken UTF-8. */
static void random_text(char *out, size_t len)
{
	static const char *const pieces[] = { "a",    "\"",	  "\\",	      "/",	"\n",
					      "\x01", "\x1f",	  "\x7f",     "\xc3\xa9",
					      "\xe2\x82\xac",	  "\xf0\x9f\x98\x80", "\xff",
					      "\xc0\x80",	  "\xed\xa0\x80",     "\xe2\x82",
					      "\xf4\x90\x80\x80", "\x80",	      "\xc2\x9b",
					      "\\u0000",	  "\",\"x\":\"",      "}\n{" };
	size_t at = 0;

	while (at < len) {
		const char *piece = pieces[random_u64() % (sizeof(pieces) / sizeof(pieces[0]))];
		size_t n = strlen(piece);

		if (random_u64() % 3 == 0) {
			out[at++] = (char)(1 + random_u64() % 255);
			continue;
		}
		if (n > len - at)
			n = len - at; /* a character broken off by the end */
		memcpy(out + at, piece, n);
		at += n;
	}
	out[len] = '\0';
}

static size_t random_len(void)
{
	static const size_t edges[] = { 0,
					1,
					HF_JOURNAL_TEXT_MAX - 1,
					HF_JOURNAL_TEXT_MAX,
					HF_JOURNAL_TEXT_MAX + 1,
					TEXT_MOST };

	return random_u64() % 2 ? edges[random_u64() % 6] : random_u64() % (TEXT_MOST + 1);
}

/* Length of the character at `s` as jansson, not Holdfast, sees it; 0: none. */
static size_t char_len(const char *s, size_t left)
{
	for (size_t n = 1; n <= 4 && n <= left; n++) {
		json_t *one = json_stringn(s, n);

		json_decref(one);
		if (one)
			return n;
	}
	return 0;
}

/* What must come back for `text`. Returns 1 when it must be marked as cut. */
static int expected_text(const char *text, struct hf_buf *out)
{
	size_t len = strlen(text), i = 0;

	hf_buf_reset(out);
	while (i < len) {
		size_t n = char_len(text + i, len - i);

		if (i + (n ? n : 1) > HF_JOURNAL_TEXT_MAX)
			break;
		if (n)
			hf_buf_add(out, text + i, n);
		else
			hf_buf_add_text(out, "\xef\xbf\xbd");
		i += n ? n : 1;
	}
	assert_int_equal(out->err, 0);
	return i < len;
}

struct sample {
	struct hf_field fields[HF_EVENT_FIELDS_MAX];
	char texts[HF_EVENT_FIELDS_MAX][TEXT_MOST + 1];
	char name[TEXT_MOST + 1];
	const char *given_name;
	size_t n;
};

static int64_t random_number(void)
{
	static const int64_t edges[] = { 0, 1, -1, INT64_MAX, INT64_MIN };

	return random_u64() % 2 ? edges[random_u64() % 5] : (int64_t)random_u64();
}

static void random_sample(const struct hf_event_info *info, struct sample *s)
{
	s->n = 0;
	for (const struct hf_event_field *f = info->fields; f->key; f++) {
		struct hf_field *field = &s->fields[s->n];

		if (!f->required && random_u64() % 2)
			continue;
		*field = (struct hf_field){ .key = f->key, .type = f->type };
		if (f->type == HF_TEXT && random_u64() % 8) {
			random_text(s->texts[s->n], random_len());
			field->text = s->texts[s->n];
		} else if (f->type != HF_TEXT) {
			field->number = f->type == HF_INT ? random_number()
							  : (int64_t)(random_u64() % 2);
		}
		s->n++;
	}
	random_text(s->name, random_len());
	s->given_name = info->needs_name || random_u64() % 2 ? s->name : NULL;
}

static int check_text(const char *got, const char *given, struct hf_buf *expected)
{
	int cut;

	if (!given) {
		assert_null(got);
		return 0;
	}
	assert_non_null(got);
	cut = expected_text(given, expected);
	assert_string_equal(got, expected->s);
	return cut;
}

static int check_field(const struct hf_record *record, const struct hf_field *field,
		       struct hf_buf *expected)
{
	int64_t number;

	if (field->type == HF_TEXT)
		return check_text(hf_record_text(record, field->key), field->text, expected);
	assert_int_equal(hf_record_int(record, field->key, &number), 1);
	assert_true(number == field->number);
	return 0;
}

static void check_round_trip(enum hf_event event, const struct sample *s)
{
	AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf line = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf expected = HF_BUF_INIT;
	struct hf_wall now = { hf_wall_now().ns / HF_USEC * HF_USEC };
	uint64_t seq = 1 + random_u64() % HF_SEQ_MAX;
	int64_t marked = 0;
	struct hf_record record;
	json_t *root;
	int cut;

	ASSERT_OK(hf_line_body(&body, event, s->given_name, s->fields, s->n, ERR));
	hf_line_finish(&line, seq, now, 4711, &body);
	assert_int_equal(line.err, 0);
	assert_true(line.len <= HF_JOURNAL_LINE_MAX);
	/* One line, whatever was in the values. */
	assert_ptr_equal(memchr(line.s, '\n', line.len), line.s + line.len - 1);
	ASSERT_OK(hf_line_decode(line.s, line.len - 1, &record, &root));
	assert_true(record.seq == seq);
	assert_true(record.time.ns == now.ns);
	assert_int_equal(record.pid, 4711);
	assert_ptr_equal(record.info, hf_event_info(event));
	assert_string_equal(record.event, record.info->name);
	cut = check_text(record.name, s->given_name, &expected);
	for (size_t i = 0; i < s->n; i++)
		cut |= check_field(&record, &s->fields[i], &expected);
	assert_int_equal(hf_record_int(&record, "cut", &marked), cut);
	assert_int_equal(marked, cut);
	json_decref(root);
}

static void every_event_comes_back_as_it_was_given(void **state)
{
	struct sample *s = calloc(1, sizeof(*s));

	(void)state;
	assert_non_null(s);
	for (int event = 0; event < HF_EVENT_COUNT; event++)
		for (int i = 0; i < 60; i++) {
			random_sample(hf_event_info((enum hf_event)event), s);
			check_round_trip((enum hf_event)event, s);
		}
	free(s);
}

/* -- what the table does not have ------------------------------------------- */

static void refuse(enum hf_event event, const char *name, const struct hf_field *fields, size_t n,
		   const char *because)
{
	AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT;

	ASSERT_ERR(hf_line_body(&body, event, name, fields, n, ERR), HF_E_EVENT);
	assert_int_equal(body.len, 0);
	assert_int_equal(hf_test_error.code, HF_E_EVENT);
	/* The message must let its reader find the mistake. */
	assert_non_null(strstr(hf_test_error.detail, because));
}

static void event_number_outside_the_table_is_refused(void **state)
{
	struct hf_field text[] = { HF_FIELD_TEXT("text", "x") };

	(void)state;
	refuse(HF_EVENT_COUNT, NULL, text, 1, "no event has number");
	refuse((enum hf_event)1000000, NULL, text, 1, "no event has number");
	refuse((enum hf_event)-1, NULL, text, 1, "no event has number -1");
	assert_null(hf_event_info(HF_EVENT_COUNT));
}

static void field_that_the_event_does_not_have_is_refused(void **state)
{
	struct hf_field fields[] = { HF_FIELD_TEXT("text", "x"), HF_FIELD_TEXT("texts", "y") };
	struct hf_field common[] = { HF_FIELD_TEXT("text", "x"), HF_FIELD_INT("seq", 1) };
	struct hf_field keyless[] = { HF_FIELD_TEXT("text", "x"), HF_FIELD_TEXT(NULL, "y") };

	(void)state;
	refuse(HF_EV_NOTE, NULL, fields, 2, "no field 'texts'");
	refuse(HF_EV_NOTE, NULL, common, 2, "no field 'seq'");
	refuse(HF_EV_NOTE, NULL, keyless, 2, "no field");
}

static void missing_required_field_is_refused_for_every_event(void **state)
{
	(void)state;
	for (int event = 0; event < HF_EVENT_COUNT; event++) {
		const struct hf_event_info *info = hf_event_info((enum hf_event)event);
		struct hf_field fields[HF_EVENT_FIELDS_MAX];
		size_t n = 0;

		for (const struct hf_event_field *f = info->fields; f->key; f++)
			fields[n++] = (struct hf_field){ .key = f->key, .type = f->type };
		for (size_t left_out = 0; left_out < n; left_out++) {
			struct hf_field kept = fields[left_out];

			if (!info->fields[left_out].required)
				continue;
			fields[left_out] = fields[n - 1];
			refuse((enum hf_event)event, "n", fields, n - 1, "is missing");
			fields[left_out] = kept;
		}
	}
}

static void field_of_the_wrong_type_is_refused(void **state)
{
	struct hf_field number[] = { HF_FIELD_INT("text", 1) };
	struct hf_field truth[] = { HF_FIELD_BOOL("count", 1), HF_FIELD_TEXT("cause", "x") };
	struct hf_field text[] = { HF_FIELD_TEXT("count", "1"), HF_FIELD_TEXT("cause", "x") };
	struct hf_field none[] = { { "text", (enum hf_type)0, "x", 0 } };

	(void)state;
	refuse(HF_EV_NOTE, NULL, number, 1, "'text' takes text");
	refuse(HF_EV_JOURNAL_LOST, NULL, truth, 2, "'count' takes a number");
	refuse(HF_EV_JOURNAL_LOST, NULL, text, 2, "'count' takes a number");
	refuse(HF_EV_NOTE, NULL, none, 1, "'text' takes text");
}

static void field_given_twice_is_refused(void **state)
{
	struct hf_field fields[] = { HF_FIELD_TEXT("text", "x"), HF_FIELD_TEXT("text", "y") };

	(void)state;
	refuse(HF_EV_NOTE, NULL, fields, 2, "is given 2 times");
}

static void missing_name_is_refused_where_the_event_needs_one(void **state)
{
	struct hf_field fields[] = { HF_FIELD_INT("waited_ms", 1), HF_FIELD_TEXT("cause", "x") };

	(void)state;
	refuse(HF_EV_LOCK_FAIL_OPEN, NULL, fields, 2, "needs a name");
	refuse(HF_EV_LOCK_SKIPPED, NULL, fields, 2, "needs a name");
}

/* -- hf_line_check ---------------------------------------------------------- */

static void make_line(struct hf_buf *line, uint64_t seq)
{
	AUTO(hf_buf_done) struct hf_buf body = HF_BUF_INIT;
	struct hf_field fields[] = { HF_FIELD_TEXT("text", "caf\xc3\xa9 \n 012345") };

	ASSERT_OK(hf_line_body(&body, HF_EV_NOTE, "fix-160", fields, 1, ERR));
	hf_line_finish(line, seq, hf_wall_now(), 4711, &body);
	assert_int_equal(line->err, 0);
}

static void every_flipped_bit_of_a_line_is_noticed(void **state)
{
	AUTO(hf_buf_done) struct hf_buf line = HF_BUF_INIT;
	uint64_t seq;

	(void)state;
	make_line(&line, 42);
	ASSERT_OK(hf_line_check(line.s, line.len - 1, &seq));
	assert_true(seq == 42);
	for (size_t i = 0; i + 1 < line.len; i++)
		for (int bit = 0; bit < 8; bit++) {
			line.s[i] = (char)(line.s[i] ^ (1 << bit));
			ASSERT_ERR(hf_line_check(line.s, line.len - 1, &seq), HF_E_FORMAT);
			line.s[i] = (char)(line.s[i] ^ (1 << bit));
		}
	ASSERT_OK(hf_line_check(line.s, line.len - 1, &seq));
}

static void every_truncation_of_a_line_is_noticed(void **state)
{
	AUTO(hf_buf_done) struct hf_buf line = HF_BUF_INIT;
	uint64_t seq;

	(void)state;
	make_line(&line, 42);
	for (size_t len = 0; len + 1 < line.len; len++) {
		/* A copy of that size, so that a sanitizer sees reads past its end. */
		AUTO_FREE char *copy = malloc(len + 1);

		assert_non_null(copy);
		memcpy(copy, line.s, len);
		ASSERT_ERR(hf_line_check(copy, len, &seq), HF_E_FORMAT);
	}
	for (size_t from = 1; from < line.len; from++)
		ASSERT_ERR(hf_line_check(line.s + from, line.len - 1 - from, &seq), HF_E_FORMAT);
	/* With its newline it is not a line either. */
	ASSERT_ERR(hf_line_check(line.s, line.len, &seq), HF_E_FORMAT);
}

static void sequence_numbers_are_1_to_2_to_the_53_minus_1(void **state)
{
	static const struct {
		uint64_t seq;
		int expected;
	} cases[] = {
		{ 0, HF_E_FORMAT },
		{ 1, 0 },
		{ (UINT64_C(1) << 53) - 1, 0 },
		{ UINT64_C(1) << 53, HF_E_FORMAT },
		{ UINT64_MAX, HF_E_FORMAT },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO(hf_buf_done) struct hf_buf line = HF_BUF_INIT;
		uint64_t seq = 0;

		make_line(&line, cases[i].seq);
		ASSERT_ERR(hf_line_check(line.s, line.len - 1, &seq), cases[i].expected);
		if (cases[i].expected == 0)
			assert_true(seq == cases[i].seq);
	}
}

/* A line with a true checksum over `text`, which need not be one of ours. */
static void sign(struct hf_buf *line, const char *text)
{
	hf_buf_reset(line);
	hf_buf_add_text(line, text);
	hf_buf_add_text(line, ",\"x\":\"");
	hf_buf_add_hex64(line, XXH3_64bits(text, strlen(text)));
	hf_buf_add_text(line, "\"}");
	assert_int_equal(line->err, 0);
}

#define TS "\"ts\":\"2026-11-15T19:48:32.123456Z\""

static void true_checksum_does_not_make_a_record_of_other_forms(void **state)
{
	static const char *const bad[] = {
		"{\"v\":1,\"seq\":01," TS ",\"pid\":1,\"event\":\"note\"",
		"{\"v\":1,\"seq\":-1," TS ",\"pid\":1,\"event\":\"note\"",
		"{\"v\":1,\"seq\":1.0," TS ",\"pid\":1,\"event\":\"note\"",
		"{\"v\":2,\"seq\":1," TS ",\"pid\":1,\"event\":\"note\"",
		"{\"v\":1,\"seq\":1,\"pid\":1,\"event\":\"note\"",
		"{\"v\":1,\"seq\":1,\"ts\":\"2026-02-30T19:48:32.123456Z\",\"pid\":1,\"event\":\"note\"",
		"{\"v\":1,\"seq\":1," TS ",\"event\":\"note\"",
		"{\"v\":1,\"seq\":1," TS ",\"pid\":0,\"event\":\"note\"",
		"{\"v\":1,\"seq\":1," TS ",\"pid\":-5,\"event\":\"note\"",
		"{\"v\":1,\"seq\":1," TS ",\"pid\":4294967297,\"event\":\"note\"",
		"{\"v\":1,\"seq\":1," TS ",\"pid\":1",
		"{\"v\":1,\"seq\":1," TS ",\"pid\":1,\"event\":7",
		"{\"v\":1,\"seq\":1," TS ",\"pid\":1,\"event\":\"note\",\"event\":\"note\"",
		"{\"v\":1,\"seq\":1," TS ",\"pid\":1,\"event\":\"note\",\"text\":\"\xff\"",
		"{\"v\":1,\"seq\":1," TS ",\"pid\":1,\"event\":\"note\",\"text\":",
	};
	AUTO(hf_buf_done) struct hf_buf line = HF_BUF_INIT;
	struct hf_record record;
	json_t *root = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		sign(&line, bad[i]);
		ASSERT_ERR(hf_line_decode(line.s, line.len, &record, &root), HF_E_FORMAT);
		assert_null(root);
	}
	/* The same made right is one: the refusals above are not for the checksum. */
	sign(&line, "{\"v\":1,\"seq\":1," TS ",\"pid\":1,\"event\":\"note\",\"text\":\"t\"");
	ASSERT_OK(hf_line_decode(line.s, line.len, &record, &root));
	json_decref(root);
}

static void event_of_a_newer_version_is_a_record_without_info(void **state)
{
	AUTO(hf_buf_done) struct hf_buf line = HF_BUF_INIT;
	struct hf_record record;
	json_t *root = NULL;

	(void)state;
	sign(&line, "{\"v\":1,\"seq\":9," TS ",\"pid\":1,\"event\":\"from_the_future\",\"k\":\"v\"");
	ASSERT_OK(hf_line_decode(line.s, line.len, &record, &root));
	assert_null(record.info);
	assert_string_equal(record.event, "from_the_future");
	assert_string_equal(hf_record_text(&record, "k"), "v");
	json_decref(root);
}

static void line_longer_than_the_limit_is_refused(void **state)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf line = HF_BUF_INIT;
	uint64_t seq;

	(void)state;
	for (int over = 0; over <= 1; over++) {
		size_t len = HF_JOURNAL_LINE_MAX - 1 + (size_t)over; /* without newline */

		hf_buf_reset(&text);
		hf_buf_add_text(&text, "{\"v\":1,\"seq\":1,\"t\":\"");
		while (text.len < len - 25)
			hf_buf_add_char(&text, 'a');
		hf_buf_add_char(&text, '"');
		sign(&line, text.s);
		assert_int_equal(line.len, len);
		ASSERT_ERR(hf_line_check(line.s, line.len, &seq), over ? HF_E_FORMAT : 0);
	}
}

static void collect(void *arg, const char *key, const char *text)
{
	struct hf_buf *all = arg;

	hf_buf_add_format(all, "%s=%s;", key, text);
}

static void fields_are_shown_in_order_and_cannot_steer_a_terminal(void **state)
{
	AUTO(hf_buf_done) struct hf_buf line = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf all = HF_BUF_INIT;
	struct hf_record record;
	int64_t number = -1;
	json_t *root;

	(void)state;
	sign(&line, "{\"v\":1,\"seq\":1," TS ",\"pid\":1,\"event\":\"note\",\"name\":\"n\","
		    "\"b\":\"\\u001b[2J\\u009bx\",\"a\":-7,\"yes\":true,\"no\":false,\"nil\":null");
	ASSERT_OK(hf_line_decode(line.s, line.len, &record, &root));
	hf_record_each(&record, collect, &all);
	assert_string_equal(all.s, "b=\\x1b[2J\\xc2\\x9bx;a=-7;yes=true;no=false;nil=-;");
	assert_null(hf_record_text(&record, "a"));
	assert_null(hf_record_text(&record, "absent"));
	assert_int_equal(hf_record_int(&record, "b", &number), 0);
	assert_int_equal(hf_record_int(&record, "absent", &number), 0);
	assert_int_equal(number, -1);
	assert_int_equal(hf_record_int(&record, "yes", &number), 1);
	assert_int_equal(number, 1);
	json_decref(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HF_TEST(every_event_comes_back_as_it_was_given),
		HF_TEST(event_number_outside_the_table_is_refused),
		HF_TEST(field_that_the_event_does_not_have_is_refused),
		HF_TEST(missing_required_field_is_refused_for_every_event),
		HF_TEST(field_of_the_wrong_type_is_refused),
		HF_TEST(field_given_twice_is_refused),
		HF_TEST(missing_name_is_refused_where_the_event_needs_one),
		HF_TEST(every_flipped_bit_of_a_line_is_noticed),
		HF_TEST(every_truncation_of_a_line_is_noticed),
		HF_TEST(sequence_numbers_are_1_to_2_to_the_53_minus_1),
		HF_TEST(true_checksum_does_not_make_a_record_of_other_forms),
		HF_TEST(event_of_a_newer_version_is_a_record_without_info),
		HF_TEST(line_longer_than_the_limit_is_refused),
		HF_TEST(fields_are_shown_in_order_and_cannot_steer_a_terminal),
	};

	return hf_run_tests("line", tests);
}
