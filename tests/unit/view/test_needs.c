/* unit/view/test_needs.c - which session needs a person: every code, on both sides of its limit. */
#include <string.h>

#include "helper/test.h"
#include "hf/base/cleanup.h"
#include "hf/view/session/session.h"

/* A session that runs, prints and works. */
static struct hf_session_info fine(void)
{
	return (struct hf_session_info){ .name = "x",
					 .state = HF_SESSION_RUNNING,
					 .cause = "",
					 .command = "sleep 1",
					 .last = { .cause = "", .ran_ns = -1 },
					 .tree = "walk",
					 .pid = 4711,
					 .started = { hf_wall_now().ns - 3600 * HF_SEC },
					 .deadline_ns = -1,
					 .deadline_left_ns = -1,
					 .idle_ns = -1,
					 .next_in_ns = -1,
					 .silent_ns = 1200 * HF_SEC,
					 .cpu_permille = 1000,
					 .last_line = "compiling",
					 .memory_bytes = -1,
					 .memory_peak_bytes = -1,
					 .log_dropped_bytes = -1 };
}

static struct hf_session_info ended(enum hf_outcome outcome, enum hf_session_state state, int64_t ago_sec)
{
	struct hf_session_info info = fine();

	info.pid = 0;
	info.state = state;
	info.outcome = outcome;
	info.cause = "exit 2";
	info.ended.ns = hf_wall_now().ns - ago_sec * HF_SEC;
	return info;
}

/* The codes of its needs, with spaces between them. */
static const char *codes_with(const struct hf_session_info *info, const struct hf_view_facts *facts)
{
	static char text[200];
	struct hf_needs needs;

	hf_needs_find(info, facts, &needs);
	text[0] = '\0';
	for (size_t i = 0; i < needs.n; i++) {
		strcat(text, i ? " " : "");
		strcat(text, needs.list[i].code);
		assert_true(needs.list[i].text[0] && needs.list[i].brief[0] && needs.list[i].action[0]);
	}
	return text;
}

static const char *codes(const struct hf_session_info *info)
{
	return codes_with(info, NULL);
}

static void session_that_works_or_ended_well_needs_nobody(void **state)
{
	struct hf_session_info info = fine();

	(void)state;
	assert_string_equal(codes(&info), "");
	info = ended(HF_OUTCOME_SUCCEEDED, HF_SESSION_DONE, 5);
	assert_string_equal(codes(&info), "");
	/* A person did that. */
	info = ended(HF_OUTCOME_STOPPED, HF_SESSION_STOPPED, 5);
	assert_string_equal(codes(&info), "");
	info = ended(HF_OUTCOME_INTERRUPTED, HF_SESSION_STOPPED, 5);
	assert_string_equal(codes(&info), "");
	info = ended(HF_OUTCOME_DECLINED, HF_SESSION_FAILED, 5);
	assert_string_equal(codes(&info), "");
}

static void bad_end_needs_a_person_for_a_day_and_until_it_was_seen(void **state)
{
	static const struct {
		enum hf_outcome outcome;
		const char *code;
	} bad[] = { { HF_OUTCOME_FAILED, "failed" },	     { HF_OUTCOME_VERIFY_FAILED, "verify-failed" },
		    { HF_OUTCOME_TIMED_OUT, "failed" },	     { HF_OUTCOME_LOST_LOCK, "failed" },
		    { HF_OUTCOME_ABANDONED, "failed" },	     { HF_OUTCOME_NOT_STARTED, "failed" },
		    { HF_OUTCOME_GAVE_UP, "gave-up" },	     { HF_OUTCOME_CONFLICT, "conflict" } };
	struct hf_view_facts facts = { .land = HF_LAND_REJECTED };
	struct hf_session_info info;
	struct hf_needs needs;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		info = ended(bad[i].outcome, HF_SESSION_FAILED, 360);
		assert_string_equal(codes(&info), bad[i].code);
		info.seen = 1;
		assert_string_equal(codes(&info), "");
		info = ended(bad[i].outcome, HF_SESSION_FAILED, 86400 + 60);
		assert_string_equal(codes(&info), "");
	}
	info = ended(HF_OUTCOME_FAILED, HF_SESSION_FAILED, 360);
	assert_string_equal(codes_with(&info, &facts), "land-rejected");
	info = ended(HF_OUTCOME_VERIFY_FAILED, HF_SESSION_VERIFY_FAILED, 360);
	hf_needs_find(&info, NULL, &needs);
	assert_string_equal(needs.list[0].text, "verify failed 6 min ago: exit 2");
	/* The outcome is not repeated. */
	info.cause = "verify failed: exit 1";
	hf_needs_find(&info, NULL, &needs);
	assert_string_equal(needs.list[0].text, "verify failed 6 min ago: exit 1");
	assert_string_equal(needs.list[0].brief, "verify failed: exit 1");
	assert_string_equal(needs.list[0].action, "resume");
	assert_true(needs.list[0].since.ns == info.ended.ns);
}

static void need_lasts_as_long_as_the_work_that_was_left(void **state)
{
	static const struct {
		enum hf_outcome outcome;
		const char *without, *with;
	} ends[] = { { HF_OUTCOME_FAILED, "failed", "failed" },	      { HF_OUTCOME_CONFLICT, "conflict", "conflict" },
		     { HF_OUTCOME_STOPPED, "", "unlanded" },	      { HF_OUTCOME_INTERRUPTED, "", "unlanded" },
		     { HF_OUTCOME_DECLINED, "", "unlanded" },	      { HF_OUTCOME_SUCCEEDED, "", "unlanded" } };
	AUTO(hf_buf_done) struct hf_buf typed = HF_BUF_INIT;
	struct hf_needs needs;

	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct hf_session_info late = ended(ends[i].outcome, HF_SESSION_FAILED, 40 * 86400);
		struct hf_session_info early = ended(ends[i].outcome, HF_SESSION_FAILED, 60);
		struct hf_view_facts facts = { .work = HF_WORK_UNLANDED };

		assert_string_equal(codes(&early), ends[i].without);
		assert_string_equal(codes_with(&early, &facts), ends[i].with);
		assert_string_equal(codes_with(&late, &facts), ends[i].with);
		facts.work = HF_WORK_RESOLVED;
		assert_string_equal(codes_with(&early, &facts), "");
		facts.work = HF_WORK_UNLANDED;
		late.seen = 1;
		assert_string_equal(codes_with(&late, &facts), "");
	}
	struct hf_session_info stopped = ended(HF_OUTCOME_STOPPED, HF_SESSION_STOPPED, 360);
	struct hf_view_facts facts = { .work = HF_WORK_UNLANDED };

	hf_needs_find(&stopped, &facts, &needs);
	hf_need_command(&needs.list[0], &stopped, &facts, &typed);
	assert_string_equal(typed.s, "holdfast plan diff run:x");
}

static void question_is_one_only_when_nothing_else_goes_on(void **state)
{
	static const char *const questions[] = { "Proceed?", "Overwrite? [y/N]", "Password: ", "Really [Y/n] " };
	struct hf_session_info info = fine();

	(void)state;
	info.silent_ns = 30 * HF_SEC;
	info.cpu_permille = 9;
	for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
		info.last_line = questions[i];
		assert_string_equal(codes(&info), "asks");
	}
	info.silent_ns = 30 * HF_SEC - 1;
	assert_string_equal(codes(&info), "");
	info.silent_ns = 30 * HF_SEC;
	info.cpu_permille = 10;
	assert_string_equal(codes(&info), "");
	/* Not known is no reason to call a person. */
	info.cpu_permille = -1;
	assert_string_equal(codes(&info), "");
	info.cpu_permille = 0;
	info.last_line = "done.";
	assert_string_equal(codes(&info), "");
	info.last_line_partial = 1;
	assert_string_equal(codes(&info), "asks");
	info.last_line = NULL;
	assert_string_equal(codes(&info), "");
	info.last_line = "Proceed?";
	info.state = HF_SESSION_SUSPENDED;
	assert_string_equal(codes(&info), "");
}

static void silence_counts_from_two_thirds_of_the_idle_limit_or_ten_minutes(void **state)
{
	struct hf_session_info info = fine();

	(void)state;
	info.cpu_permille = 0;
	info.silent_ns = 600 * HF_SEC;
	assert_string_equal(codes(&info), "silent");
	info.silent_ns--;
	assert_string_equal(codes(&info), "");
	info.idle_ns = 90 * HF_SEC;
	info.silent_ns = 60 * HF_SEC;
	assert_string_equal(codes(&info), "silent");
	info.silent_ns--;
	assert_string_equal(codes(&info), "");
	info.silent_ns = -1;
	assert_string_equal(codes(&info), "");
}

static void deadline_is_near_at_a_twentieth_of_it_but_two_to_five_minutes(void **state)
{
	struct hf_session_info info = fine();

	(void)state;
	info.deadline_ns = 3600 * HF_SEC;
	info.deadline_left_ns = 180 * HF_SEC - 1;
	assert_string_equal(codes(&info), "deadline");
	info.deadline_left_ns = 180 * HF_SEC;
	assert_string_equal(codes(&info), "");
	info.deadline_ns = 600 * HF_SEC;
	info.deadline_left_ns = 120 * HF_SEC - 1;
	assert_string_equal(codes(&info), "deadline");
	info.deadline_ns = 86400 * HF_SEC;
	info.deadline_left_ns = 300 * HF_SEC;
	assert_string_equal(codes(&info), "");
	info.deadline_left_ns--;
	assert_string_equal(codes(&info), "deadline");
	/* One that is short from the beginning on is no news. */
	info.deadline_ns = 60 * HF_SEC;
	info.deadline_left_ns = 20 * HF_SEC;
	assert_string_equal(codes(&info), "");
}

static void dead_and_damaged_sessions_need_a_person_and_so_does_one_that_waits_for_a_silent_one(void **state)
{
	struct hf_session_info info = fine();
	struct hf_view_facts facts = { .wait = { .is_known = 1, .name = "build", .place = 1, .of = 1, .waited_ns = 600 * HF_SEC,
						 .holder = "fix", .holder_silent = 1 } };
	AUTO(hf_buf_done) struct hf_buf command = HF_BUF_INIT;
	struct hf_needs needs;

	(void)state;
	assert_string_equal(codes_with(&info, &facts), "stuck");
	hf_needs_find(&info, &facts, &needs);
	hf_need_command(&needs.list[0], &info, &facts, &command);
	assert_string_equal(command.s, "holdfast why build");
	facts.wait.holder_silent = 0;
	assert_string_equal(codes_with(&info, &facts), "");
	facts.wait.holder_silent = 1;
	facts.wait.waited_ns--;
	assert_string_equal(codes_with(&info, &facts), "");
	info.state = HF_SESSION_DEAD_UNREAPED;
	assert_string_equal(codes(&info), "dead-unreaped");
	info.state = HF_SESSION_UNREADABLE;
	assert_string_equal(codes(&info), "unreadable");
	hf_needs_find(&info, NULL, &needs);
	assert_string_equal(needs.list[0].action, "stop");
}

static void command_fits_what_exists(void **state)
{
	struct hf_view_facts facts = { .work = HF_WORK_NONE };
	struct hf_session_info info = ended(HF_OUTCOME_CONFLICT, HF_SESSION_FAILED, 5);
	AUTO(hf_buf_done) struct hf_buf command = HF_BUF_INIT;
	struct hf_needs needs;

	(void)state;
	/* With --keep never. */
	hf_needs_find(&info, &facts, &needs);
	hf_need_command(&needs.list[0], &info, &facts, &command);
	assert_string_equal(command.s, "holdfast run --resume x");
	/* Without a terminal, then also without a log. */
	info = fine();
	info.activity = HF_ACTIVITY_BLOCKED;
	info.activity_text = "";
	facts.no_terminal = 1;
	hf_needs_find(&info, &facts, &needs);
	hf_buf_reset(&command);
	hf_need_command(&needs.list[0], &info, &facts, &command);
	assert_string_equal(command.s, "holdfast logs x");
	info.output_bytes = -1;
	hf_buf_reset(&command);
	hf_need_command(&needs.list[0], &info, &facts, &command);
	assert_string_equal(command.s, "holdfast status x");
}

static void command_to_type_is_quoted_for_a_shell(void **state)
{
	AUTO(hf_buf_done) struct hf_buf command = HF_BUF_INIT;
	struct hf_session_info info = ended(HF_OUTCOME_FAILED, HF_SESSION_FAILED, 5);
	struct hf_needs needs;

	(void)state;
	info.name = "it's; rm -rf";
	hf_needs_find(&info, NULL, &needs);
	hf_need_command(&needs.list[0], &info, NULL, &command);
	assert_string_equal(command.s, "holdfast run --resume \"it's; rm -rf\"");
	info.name = "it's $HOME";
	hf_buf_reset(&command);
	hf_need_command(&needs.list[0], &info, NULL, &command);
	assert_string_equal(command.s, "holdfast run --resume \"it's \\$HOME\"");
}

static int order_of(const struct hf_session_info *a, const struct hf_session_info *b)
{
	struct hf_view_rank x = hf_view_session_rank(a, NULL), y = hf_view_session_rank(b, NULL);

	return hf_view_rank_compare(&x, &y);
}

static void rows_stand_by_need_then_start_then_place_then_end(void **state)
{
	struct hf_session_info older = ended(HF_OUTCOME_FAILED, HF_SESSION_FAILED, 600),
			       newer = ended(HF_OUTCOME_FAILED, HF_SESSION_FAILED, 60), first = fine(), second = fine(),
			       queued = fine(), done = ended(HF_OUTCOME_SUCCEEDED, HF_SESSION_DONE, 60),
			       before = ended(HF_OUTCOME_SUCCEEDED, HF_SESSION_DONE, 600);

	(void)state;
	second.started.ns += HF_SEC;
	queued.state = HF_SESSION_QUEUED;
	queued.started.ns = 1;
	assert_int_equal(order_of(&older, &newer), -1);
	assert_int_equal(order_of(&newer, &first), -1);
	assert_int_equal(order_of(&first, &second), -1);
	assert_int_equal(order_of(&second, &queued), -1);
	assert_int_equal(order_of(&queued, &done), -1);
	assert_int_equal(order_of(&done, &before), -1);
	/* What it uses and prints changes nothing. */
	second.cpu_permille = 5;
	second.silent_ns = 20 * HF_SEC;
	assert_int_equal(order_of(&first, &second), -1);
}

static void report_of_its_program_is_more_exact_than_its_last_line(void **state)
{
	struct hf_session_info info = fine();
	struct hf_needs needs;
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;

	(void)state;
	info.activity_text = "";
	info.activity_age_ns = 5 * HF_SEC;
	info.last_line = "Proceed?";
	info.silent_ns = 1200 * HF_SEC;
	info.cpu_permille = 0;
	assert_string_equal(codes(&info), "asks");
	/* Work, for as long as a heartbeat is valid. */
	info.activity = HF_ACTIVITY_WORKING;
	assert_string_equal(codes(&info), "");
	info.activity_age_ns = HF_RUN_BUSY_NS;
	assert_string_equal(codes(&info), "asks");
	/* At once, with output and use of a processor. */
	info = fine();
	info.activity = HF_ACTIVITY_BLOCKED;
	info.activity_age_ns = 5 * HF_SEC;
	info.activity_text = "approve Bash: make";
	info.silent_ns = 0;
	hf_needs_find(&info, NULL, &needs);
	assert_int_equal(needs.n, 1);
	assert_string_equal(needs.list[0].code, "asks");
	assert_string_equal(needs.list[0].action, "attach");
	assert_string_equal(needs.list[0].text, "asked 5 s ago: approve Bash: make");
	assert_string_equal(needs.list[0].brief, "asks: approve Bash: make");
	info.activity_text = "";
	hf_needs_find(&info, NULL, &needs);
	assert_string_equal(needs.list[0].text, "asked 5 s ago: it needs your answer");
	info.activity = HF_ACTIVITY_DONE;
	hf_needs_find(&info, NULL, &needs);
	assert_string_equal(needs.list[0].code, "waits");
	assert_string_equal(needs.list[0].text, "has waited for you for 5 s");
	info.activity = HF_ACTIVITY_IDLE;
	assert_string_equal(codes(&info), "waits");
	info.activity = HF_ACTIVITY_ERROR;
	info.activity_text = "no network";
	hf_needs_find(&info, NULL, &needs);
	assert_string_equal(needs.list[0].text, "has waited for you for 5 s, after an error: no network");
	/* A session that waits for its task needs no person. */
	info.activity = HF_ACTIVITY_BACKGROUND;
	info.activity_text = "'npm run dev'";
	assert_string_equal(codes(&info), "");
	assert_int_equal(hf_session_add_background(&info, &text), 1);
	assert_string_equal(text.s, "answered; waits for its background task 'npm run dev'");
	/* Its command has ended, or is being ended. */
	info.activity = HF_ACTIVITY_BLOCKED;
	info.pid = 0;
	assert_string_equal(codes(&info), "");
	info.pid = 4711;
	info.state = HF_SESSION_STOPPING;
	assert_string_equal(codes(&info), "");
	info.activity = HF_ACTIVITY_BACKGROUND;
	assert_int_equal(hf_session_add_background(&info, &text), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HF_TEST(session_that_works_or_ended_well_needs_nobody),
		HF_TEST(bad_end_needs_a_person_for_a_day_and_until_it_was_seen),
		HF_TEST(need_lasts_as_long_as_the_work_that_was_left),
		HF_TEST(question_is_one_only_when_nothing_else_goes_on),
		HF_TEST(silence_counts_from_two_thirds_of_the_idle_limit_or_ten_minutes),
		HF_TEST(deadline_is_near_at_a_twentieth_of_it_but_two_to_five_minutes),
		HF_TEST(dead_and_damaged_sessions_need_a_person_and_so_does_one_that_waits_for_a_silent_one),
		HF_TEST(command_fits_what_exists),
		HF_TEST(command_to_type_is_quoted_for_a_shell),
		HF_TEST(rows_stand_by_need_then_start_then_place_then_end),
		HF_TEST(report_of_its_program_is_more_exact_than_its_last_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
