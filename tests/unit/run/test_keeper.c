/* unit/run/test_keeper.c - the keeper's pure parts: the end of a tree step by step, and what an end means. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "helper/test.h"
#include "hf/run/keeper/attempt/judge.h"

#define GRACE (3 * HF_SEC)

static struct hf_mono at(int64_t ms)
{
	return (struct hf_mono){ .ns = HF_SEC * 1000 + ms * HF_MSEC };
}

/* -- ending ------------------------------------------------------------------------ */

static void term_goes_to_the_leader_then_to_the_rest_then_kill(void **state)
{
	struct hf_ending e = { 0 };

	(void)state;
	assert_int_equal(hf_ending_time(&e, at(0)), HF_ACT_NOTHING);
	assert_true(hf_ending_due(&e, at(0)) == INT64_MAX);
	assert_int_equal(hf_ending_ask(&e, HF_CAUSE_STOP, GRACE, at(0)), HF_ACT_TERM_LEADER);
	assert_int_equal(hf_ending_due(&e, at(0)), HF_SEC);
	assert_int_equal(hf_ending_time(&e, at(999)), HF_ACT_NOTHING);
	assert_int_equal(hf_ending_time(&e, at(1000)), HF_ACT_TERM_REST);
	assert_int_equal(hf_ending_time(&e, at(1001)), HF_ACT_NOTHING);
	/* Late as it is, the leader's exit brings nothing new. */
	assert_int_equal(hf_ending_leader_exited(&e, GRACE, at(1500)), HF_ACT_NOTHING);
	assert_int_equal(hf_ending_time(&e, at(2999)), HF_ACT_NOTHING);
	assert_int_equal(hf_ending_time(&e, at(3000)), HF_ACT_KILL);
	assert_int_equal(hf_ending_time(&e, at(3001)), HF_ACT_NOTHING);
	assert_int_equal(hf_ending_time(&e, at(3010)), HF_ACT_KILL);
	assert_int_equal(e.cause, HF_CAUSE_STOP);
}

static void the_rest_has_term_when_the_leader_has_gone(void **state)
{
	struct hf_ending e = { 0 };

	(void)state;
	(void)hf_ending_ask(&e, HF_CAUSE_DEADLINE, GRACE, at(0));
	assert_int_equal(hf_ending_leader_exited(&e, GRACE, at(100)), HF_ACT_TERM_TREE);
	/* The grace is that of the request. */
	assert_int_equal(hf_ending_due(&e, at(100)), 2900 * HF_MSEC);
}

static void the_whole_tree_has_term_at_once_where_that_is_wanted(void **state)
{
	struct hf_ending e = { .whole = 1 };

	(void)state;
	assert_int_equal(hf_ending_ask(&e, HF_CAUSE_STOP, GRACE, at(0)), HF_ACT_TERM_TREE);
	assert_int_equal(hf_ending_due(&e, at(0)), GRACE);
	assert_int_equal(hf_ending_leader_exited(&e, GRACE, at(1)), HF_ACT_NOTHING);
}

static void what_a_command_leaves_has_its_own_grace_and_no_cause(void **state)
{
	struct hf_ending e = { 0 };

	(void)state;
	assert_int_equal(hf_ending_leader_exited(&e, GRACE, at(0)), HF_ACT_TERM_TREE);
	assert_int_equal(hf_ending_due(&e, at(0)), GRACE);
	/* It had ended by itself: a stop that comes now only hastens the rest. */
	assert_int_equal(hf_ending_ask(&e, HF_CAUSE_STOP, HF_SEC, at(0)), HF_ACT_TERM_TREE);
	assert_int_equal(hf_ending_due(&e, at(0)), HF_SEC);
	assert_int_equal(e.cause, HF_CAUSE_NONE);
}

static void the_first_cause_stays_and_the_nearest_end_counts(void **state)
{
	struct hf_ending e = { 0 };

	(void)state;
	(void)hf_ending_ask(&e, HF_CAUSE_DEADLINE, GRACE, at(0));
	for (enum hf_cause c = HF_CAUSE_DEADLINE; c <= HF_CAUSE_LOST; c++)
		(void)hf_ending_ask(&e, c, 60 * HF_SEC, at(10));
	assert_int_equal(e.cause, HF_CAUSE_DEADLINE);
	assert_int_equal(e.kill_at.ns, at(3000).ns);
	/* Asked again, the leader gets it again; a limit does not. */
	assert_int_equal(hf_ending_ask(&e, HF_CAUSE_STOP, HF_SEC, at(20)), HF_ACT_TERM_LEADER);
	assert_int_equal(hf_ending_ask(&e, HF_CAUSE_IDLE, HF_SEC, at(20)), HF_ACT_NOTHING);
	assert_int_equal(e.kill_at.ns, at(1020).ns);
	assert_int_equal(hf_ending_ask(&e, HF_CAUSE_SUPERVISOR, -1, at(30)), HF_ACT_KILL);
	assert_int_equal(hf_ending_ask(&e, HF_CAUSE_SUPERVISOR, -1, at(31)), HF_ACT_NOTHING);
	assert_int_equal(e.cause, HF_CAUSE_DEADLINE);
}

/* Every order of events of that length: phases only go forward, and KILL comes at the latest with the grace. */
static void no_order_of_events_goes_back_or_forgets_the_kill(void **state)
{
	enum { EVENTS = 6, LENGTH = 5, ORDERS = 6 * 6 * 6 * 6 * 6 };

	(void)state;
	for (int order = 0; order < ORDERS; order++) {
		struct hf_ending e = { .whole = order % 2 };
		enum hf_cause first = HF_CAUSE_NONE;
		int asked = 0, rest = order;
		int64_t now = 0;

		for (int step = 0; step < LENGTH; step++, rest /= EVENTS) {
			enum hf_ending_phase before = e.phase;
			int gone = e.leader_gone;

			now += 500;
			switch (rest % EVENTS) {
			case 0:
				(void)hf_ending_ask(&e, HF_CAUSE_STOP, GRACE, at(now));
				break;
			case 1:
				(void)hf_ending_ask(&e, HF_CAUSE_DEADLINE, GRACE, at(now));
				break;
			case 2:
				(void)hf_ending_ask(&e, HF_CAUSE_SUPERVISOR, -1, at(now));
				break;
			case 3:
				(void)hf_ending_leader_exited(&e, GRACE, at(now));
				break;
			default:
				(void)hf_ending_time(&e, at(now));
				break;
			}
			asked |= rest % EVENTS < 4;
			assert_true(e.phase >= before);
			if (first == HF_CAUSE_NONE && !gone && rest % EVENTS < 3)
				first = e.cause;
			assert_int_equal(e.cause, first);
		}
		for (int i = 0; i < 3; i++)
			(void)hf_ending_time(&e, at(now + 3000));
		assert_int_equal(e.phase, asked ? HF_ENDING_KILL : HF_ENDING_QUIET);
	}
}

/* -- judging ------------------------------------------------------------------------ */

static void only_exit_0_that_nothing_speaks_against_is_a_success_L14(void **state)
{
	(void)state;
	for (int cause = HF_CAUSE_NONE; cause <= HF_CAUSE_SUPERVISOR; cause++)
		for (int interrupted = 0; interrupted <= SIGQUIT; interrupted++)
			for (int code = 0; code <= CLD_DUMPED; code++)
				for (int status = 0; status < 256; status++) {
					struct hf_watched w = { .code = code,
								.status = code == CLD_EXITED ? status : status % 64,
								.cause = (enum hf_cause)cause,
								.interrupted = interrupted };
					struct hf_result command = hf_judge_command(&w);
					struct hf_result verified = hf_judge_verifier(&w, &(struct hf_err)HF_ERR_INIT);
					int good = code == CLD_EXITED && status == 0 && cause == HF_CAUSE_NONE &&
						   !interrupted;

					assert_int_equal(command.outcome == HF_OUTCOME_SUCCEEDED, good);
					assert_int_equal(command.exit_status == 0, good);
					assert_int_equal(verified.outcome == HF_OUTCOME_SUCCEEDED, good);
					assert_int_equal(verified.exit_status == 0, good);
					assert_true(command.exit_status < 256 && command.cause[0]);
				}
}

static void assert_result(const struct hf_watched *w, enum hf_outcome outcome, int status, const char *cause)
{
	struct hf_result result = hf_judge_command(w);

	assert_string_equal(hf_outcome_word(result.outcome), hf_outcome_word(outcome));
	assert_int_equal(result.exit_status, status);
	assert_string_equal(result.cause, cause);
}

static void each_end_has_its_outcome(void **state)
{
	struct hf_watched w = { .code = CLD_EXITED };

	(void)state;
	assert_result(&w, HF_OUTCOME_SUCCEEDED, 0, "exit 0");
	w.interrupted = SIGINT;
	assert_result(&w, HF_OUTCOME_INTERRUPTED, 130, "it was interrupted (exit 0)");
	w.cause = HF_CAUSE_STOP;
	assert_result(&w, HF_OUTCOME_INTERRUPTED, 130, "it was interrupted (exit 0)");
	w.cause = HF_CAUSE_HANGUP;
	assert_result(&w, HF_OUTCOME_INTERRUPTED, 130, "it was interrupted (exit 0)");
	w.cause = HF_CAUSE_DEADLINE;
	assert_result(&w, HF_OUTCOME_TIMED_OUT, 124, "the deadline was reached");
	w.interrupted = 0;
	assert_result(&w, HF_OUTCOME_TIMED_OUT, 124, "the deadline was reached");
	w.cause = HF_CAUSE_STOP;
	assert_result(&w, HF_OUTCOME_STOPPED, 143, "it was asked to stop (exit 0)");
	w.status = 9;
	assert_result(&w, HF_OUTCOME_STOPPED, 9, "it was asked to stop (exit 9)");
	w = (struct hf_watched){ .code = CLD_KILLED, .status = SIGKILL };
	assert_result(&w, HF_OUTCOME_FAILED, 137, "killed by SIGKILL");
	w.cause = HF_CAUSE_STOP;
	assert_result(&w, HF_OUTCOME_STOPPED, 137, "it was asked to stop (killed by SIGKILL)");
	w = (struct hf_watched){ .code = CLD_KILLED, .status = SIGINT };
	assert_result(&w, HF_OUTCOME_INTERRUPTED, 130, "it was interrupted (killed by SIGINT)");
	w = (struct hf_watched){ .code = CLD_EXITED, .status = 131 };
	assert_result(&w, HF_OUTCOME_INTERRUPTED, 131, "it was interrupted (exit 131)");
	w = (struct hf_watched){ .code = CLD_KILLED, .status = SIGHUP };
	assert_result(&w, HF_OUTCOME_STOPPED, 129, "killed by SIGHUP");
	w = (struct hf_watched){ .code = CLD_EXITED, .cause = HF_CAUSE_LOST };
	assert_result(&w, HF_OUTCOME_LOST_LOCK, 125, "the lock was lost");
	w.cause = HF_CAUSE_SUPERVISOR;
	assert_result(&w, HF_OUTCOME_ABANDONED, 125, "the supervisor was killed");
}

/* Status 126 and 127 come from the shell; each other status is the verdict of the verifier. */
static void a_verifier_that_could_not_be_run_said_nothing(void **state)
{
	(void)state;
	for (int status = 1; status < 256; status++) {
		struct hf_watched w = { .code = CLD_EXITED, .status = status };
		struct hf_result result = hf_judge_verifier(&w, &(struct hf_err)HF_ERR_INIT);

		if (result.outcome != HF_OUTCOME_VERIFY_FAILED)
			continue; /* by Ctrl-C */
		assert_int_equal(strstr(result.cause, "could not be run") != NULL, status == 126 || status == 127);
		assert_int_equal(strstr(result.cause, "verify failed") != NULL, status != 126 && status != 127);
	}
}

static const char *with_memory(struct hf_watched w, int64_t oom_kills, int is_bounded)
{
	static struct hf_result result;

	result = hf_judge_command(&w);
	hf_judge_memory(&w, oom_kills, is_bounded, &result);
	return result.cause;
}

static void a_death_by_the_limit_of_memory_names_it(void **state)
{
	const struct hf_watched killed = { .code = CLD_KILLED, .status = SIGKILL }, faulted = { .code = CLD_KILLED, .status = SIGSEGV };
	const struct hf_watched failed = { .code = CLD_EXITED, .status = 1 }, of_shell = { .code = CLD_EXITED, .status = 128 + SIGABRT };
	const struct hf_watched good = { .code = CLD_EXITED }, late = { .code = CLD_KILLED, .status = SIGKILL, .cause = HF_CAUSE_DEADLINE };

	(void)state;
	assert_string_equal(with_memory(killed, 1, 0), "killed by SIGKILL; it reached the memory limit (--mem)");
	assert_string_equal(with_memory(failed, 2, 0), "exit 1; it reached the memory limit (--mem)");
	assert_string_equal(with_memory(faulted, 0, 1), "killed by SIGSEGV; its processes have a memory limit (--mem)");
	assert_string_equal(with_memory(of_shell, 0, 1), "exit 134; its processes have a memory limit (--mem)");
	/* Nothing that the limit did. */
	assert_string_equal(with_memory(killed, 0, 0), "killed by SIGKILL");
	assert_string_equal(with_memory(failed, 0, 1), "exit 1");
	assert_string_equal(with_memory(good, 1, 1), "exit 0");
	assert_string_equal(with_memory(late, 1, 1), "the deadline was reached");
}

/* The longest error that there is, with the remedy at its end. */
static void a_cause_is_told_whole_with_its_remedy(void **state)
{
	struct hf_err err = { .code = HF_E_TARGET };
	struct hf_result result;

	(void)state;
	memset(err.subject, 's', sizeof(err.subject) - 1);
	memset(err.detail, 'd', sizeof(err.detail) - 1);
	memcpy(err.detail + sizeof(err.detail) - 7, "REMEDY", 6);
	result = hf_judge_not_started("agent", HF_E_TARGET, 1, &err);
	assert_non_null(strstr(result.cause, "REMEDY"));
	assert_int_equal(result.outcome, HF_OUTCOME_NOT_STARTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HF_TEST(term_goes_to_the_leader_then_to_the_rest_then_kill),
		HF_TEST(the_rest_has_term_when_the_leader_has_gone),
		HF_TEST(the_whole_tree_has_term_at_once_where_that_is_wanted),
		HF_TEST(what_a_command_leaves_has_its_own_grace_and_no_cause),
		HF_TEST(the_first_cause_stays_and_the_nearest_end_counts),
		HF_TEST(no_order_of_events_goes_back_or_forgets_the_kill),
		HF_TEST(only_exit_0_that_nothing_speaks_against_is_a_success_L14),
		HF_TEST(each_end_has_its_outcome),
		HF_TEST(a_verifier_that_could_not_be_run_said_nothing),
		HF_TEST(a_death_by_the_limit_of_memory_names_it),
		HF_TEST(a_cause_is_told_whole_with_its_remedy),
	};

	return hf_run_tests("keeper", tests);
}
