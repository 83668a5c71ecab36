/* unit/run/test_program.c - reports of a program in its terminal output. */
#include <stdio.h>
#include <string.h>

#include "helper/random.h"
#include "helper/test.h"
#include "hf/base/buf.h"
#include "hf/base/cleanup.h"
#include "hf/run/keeper/output/program.h"

static struct hf_program program;

static void begin(void)
{
	memset(&program, 0, sizeof(program));
}

static int take(const char *text)
{
	return hf_program_take(&program, text, strlen(text));
}

static void assert_says(enum hf_activity state, const char *text)
{
	assert_string_equal(hf_activity_word(program.state), hf_activity_word(state));
	assert_string_equal(program.text, text);
}

/* "OSC 7501 ; PAIRS:msg=MESSAGE ST" */
static int report(const char *pairs, const char *message, size_t len)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;

	hf_buf_add_format(&text, "\033]7501;%s:msg=", pairs);
	hf_buf_add_base64(&text, message, len);
	hf_buf_add_text(&text, "\033\\");
	return hf_program_take(&program, text.s, text.len);
}

static void report_is_what_counts(void **state)
{
	(void)state;
	begin();
	assert_int_equal(take("hello\033]7501;state=idle:app=codex\033\\"), 1);
	assert_says(HF_ACTIVITY_IDLE, "");
	assert_int_equal(take("\033]7501;state=working:app=codex\007"), 1);
	assert_says(HF_ACTIVITY_WORKING, "");
	assert_int_equal(take("\033]7501;state=working:app=codex:progress=40\007"), 0);
	assert_int_equal(take("\033]7501;state=blocked:app=codex:kind=permission\007"), 1);
	assert_says(HF_ACTIVITY_BLOCKED, "a permission");
	assert_int_equal(report("state=blocked:kind=permission", "approve Bash: make", 18), 1);
	assert_says(HF_ACTIVITY_BLOCKED, "approve Bash: make");
	assert_int_equal(take("\033]7501;state=done\007"), 1);
	assert_says(HF_ACTIVITY_DONE, "");
	assert_int_equal(take("\033]7501;state=error\007"), 1);
	assert_says(HF_ACTIVITY_ERROR, "");
	assert_int_equal(take("\033]7501;state=clear\007"), 1);
	assert_says(HF_ACTIVITY_NONE, "");
}

static void report_that_is_none_changes_nothing(void **state)
{
	static const char *const wrong[] = {
		"\033]7501;\007", "\033]7501\007", "\033]7501;state\007", "\033]7501;state=\007", "\033]7501;state=nothing\007", "\033]7501;state=background\007",
		"\033]7501;state=waiting:kind=permission\007", "\033]7501;app=x\007", "\033]7501;state=done:id=a b\007", "\033]7501;state=done:id=\xc3\xa9\007",
		"\033]7502;state=done\007", "\033]07501;state=done\007", "\033P7501;state=done\033\\", "\033]7501;state=done\030", "]7501;state=done\007",
		"\033]7501;state=done\033[m", ("\xc2\x9d" "7501;state=done\007"), "\033]7501;STATE=done\007",
	};

	(void)state;
	begin();
	assert_int_equal(take("\033]7501;state=working\007"), 1);
	for (size_t i = 0; i < COUNT(wrong); i++) {
		assert_int_equal(take(wrong[i]), 0);
		assert_says(HF_ACTIVITY_WORKING, "");
		(void)take("\030");
	}
	/* Malformed pairs are skipped; the last value of a key is used. */
	assert_int_equal(take("\033]7501;::x:=:=y:state=idle:color=red:state=done:\007"), 1);
	assert_says(HF_ACTIVITY_DONE, "");
	assert_int_equal(program.asked, 0);
}

static void message_is_plain_text_and_bounded(void **state)
{
	static char longest[3200];
	char many[400];

	(void)state;
	begin();
	assert_int_equal(report("state=blocked", "run \033[31mrm\033[0m\n\xe2\x80\xae\xff\033]0;x\007?", 27), 1);
	assert_says(HF_ACTIVITY_BLOCKED, "run rm????");
	memset(longest, 'x', sizeof(longest));
	assert_int_equal(report("state=blocked", longest, 2048), 1);
	assert_int_equal(strlen(program.text), HF_ACTIVITY_TEXT_MAX);
	/* A report over the limit is ignored. */
	assert_int_equal(report("state=done", longest, sizeof(longest)), 0);
	/* The state is used even if the message is not base64. */
	assert_int_equal(take("\033]7501;state=blocked:kind=question:msg=###\007"), 1);
	assert_says(HF_ACTIVITY_BLOCKED, "an answer to its question");
	assert_int_equal(take("\033]7501;state=blocked:kind=auth:msg=YQ\007"), 1);
	assert_says(HF_ACTIVITY_BLOCKED, "a login");
	/* An id that is too long. */
	(void)snprintf(many, sizeof(many), "\033]7501;state=done:id=%0*d\007", HF_PROGRAM_ID_MAX + 1, 0);
	assert_int_equal(take(many), 0);
	(void)snprintf(many, sizeof(many), "\033]7501;state=working:id=%0*d\007", HF_PROGRAM_ID_MAX, 0);
	assert_int_equal(take(many), 0);
	assert_int_equal(program.n, 2);
}

static void most_urgent_record_counts_and_their_number_is_bounded(void **state)
{
	char text[80];

	(void)state;
	begin();
	(void)take("\033]7501;state=working\007\033]7501;state=blocked:id=sub/a:kind=permission\007");
	assert_says(HF_ACTIVITY_BLOCKED, "a permission");
	(void)take("\033]7501;state=done:id=sub/b\007");
	assert_says(HF_ACTIVITY_BLOCKED, "a permission");
	(void)take("\033]7501;state=clear:id=sub\007");
	assert_says(HF_ACTIVITY_WORKING, "");
	assert_int_equal(program.n, 1);
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(text, sizeof(text), "\033]7501;state=%s:id=r%d\007", i == 0 ? "blocked" : "idle", i);
		(void)take(text);
		assert_true(program.n <= HF_PROGRAM_RECORDS);
	}
	/* The oldest went first, also that which was blocked. */
	assert_says(HF_ACTIVITY_IDLE, "");
	(void)take("\033]7501;state=clear\007");
	assert_int_equal(program.n, 0);
}

static void prompt_of_a_shell_and_a_reset_end_what_ran(void **state)
{
	(void)state;
	begin();
	(void)take("\033]7501;state=blocked\007\033]0;\xe2\x9c\xa6 Working\007");
	assert_says(HF_ACTIVITY_BLOCKED, "");
	assert_int_equal(take("\033]133;A\007"), 1);
	assert_says(HF_ACTIVITY_NONE, "");
	(void)take("\033]7501;state=done\007\033]133;A;k=i\007");
	assert_says(HF_ACTIVITY_DONE, "");
	assert_int_equal(take("\033c"), 1);
	assert_says(HF_ACTIVITY_NONE, "");
}

static void title_counts_where_there_is_no_report(void **state)
{
	(void)state;
	begin();
	(void)take("\033]0;\xe2\x97\x87  Ready (dir)   \007");
	assert_says(HF_ACTIVITY_IDLE, "");
	(void)take("\033]2;\xe2\x9c\xa6  Working\xe2\x80\xa6 (dir)\033\\");
	assert_says(HF_ACTIVITY_WORKING, "");
	(void)take("\033]0;\xe2\x9c\x8b  Action Required (dir)\007");
	assert_says(HF_ACTIVITY_BLOCKED, "Action Required (dir)");
	assert_int_equal(take("\033]0;[ ! ] Action Required | dir\007"), 1);
	assert_int_equal(take("\033]0;[ . ] Action Required | dir\007"), 0);
	assert_says(HF_ACTIVITY_BLOCKED, "Action Required | dir");
	(void)take("\033]0;\xe2\x9c\xb3 Claude Code\007");
	assert_says(HF_ACTIVITY_IDLE, "");
	(void)take("\033]0;\xe2\x97\x91 Claude Code\007");
	assert_says(HF_ACTIVITY_WORKING, "");
	/* Other titles report no state and do not replace a report. */
	(void)take("\033]0;user@host: ~\007");
	assert_says(HF_ACTIVITY_NONE, "");
	(void)take("\033]7501;state=working\007\033]0;\xe2\x9c\x8b  Action Required\007");
	assert_says(HF_ACTIVITY_WORKING, "");
	(void)take("\033]1;\xe2\x9c\x8b icon\007\033]0\007\033]0;\007");
	assert_says(HF_ACTIVITY_WORKING, "");
}

static void question_is_answered_so_often_and_no_more(void **state)
{
	(void)state;
	begin();
	assert_int_equal(take("\033]7501;?\033\\"), 0);
	assert_int_equal(program.asked, 1);
	(void)take("\033]7501;?\007\033]7501;?;v=1\007\033]7501;??\007\033]7501;? \007");
	assert_int_equal(program.asked, 2);
	/* As where our own answer is echoed. */
	for (int i = 0; i < 1000; i++)
		(void)take(HF_PROGRAM_ANSWER);
	assert_int_equal(program.asked, HF_PROGRAM_ANSWERS);
}

/* Pieces change nothing, and whatever comes the bounds hold. */
static void any_bytes_in_any_pieces(void **state)
{
	static const char *const parts[] = { "\033]7501;", "state=", "blocked", "working", "clear", ":", "id=a/b", "msg=", "YWJj", "\033\\", "\007", "\033", "\030",
					     "?", "\033]0;", "\xe2\x9c\x8b ", "\xc2\x9d", "\xff", "\033]133;A\007", "\033c", "x", ";" };
	static struct hf_program whole;

	(void)state;
	for (int round = 0; round < 2000; round++) {
		char bytes[600] = "";
		size_t len;

		for (int i = 0; i < 40; i++)
			strcat(bytes, parts[random_u64() % COUNT(parts)]);
		len = strlen(bytes);
		begin();
		memset(&whole, 0, sizeof(whole));
		(void)hf_program_take(&whole, bytes, len);
		for (size_t at = 0, n; at < len; at += n) {
			n = 1 + random_u64() % 9;
			n = n < len - at ? n : len - at;
			(void)hf_program_take(&program, bytes + at, n);
		}
		assert_int_equal(whole.state, program.state);
		assert_string_equal(whole.text, program.text);
		assert_int_equal(whole.asked, program.asked);
		assert_int_equal(whole.n, program.n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HF_TEST(report_is_what_counts),
		HF_TEST(report_that_is_none_changes_nothing),
		HF_TEST(message_is_plain_text_and_bounded),
		HF_TEST(most_urgent_record_counts_and_their_number_is_bounded),
		HF_TEST(prompt_of_a_shell_and_a_reset_end_what_ran),
		HF_TEST(title_counts_where_there_is_no_report),
		HF_TEST(question_is_answered_so_often_and_no_more),
		HF_TEST(any_bytes_in_any_pieces),
	};

	return hf_run_tests("program", tests);
}
