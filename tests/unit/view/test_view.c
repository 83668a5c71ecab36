/* unit/view/test_view.c - what is shown: unknown is null, codes are words, and nothing is left out. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "helper/test.h"
#include "hf/view/event.h"
#include "hf/view/lock.h"
#include "hf/view/session/session.h"

static void every_error_has_a_code_of_its_own_in_small_letters(void **state)
{
	char codes[64][HF_VIEW_CODE_MAX], code[HF_VIEW_CODE_MAX];
	size_t n = 0;

	(void)state;
	for (const struct hf_err_info *info; (info = hf_err_at(n)); n++) {
		assert_in_range(n, 0, 63);
		hf_view_error_code(info->code, codes[n]);
		assert_int_equal(strspn(codes[n], "abcdefghijklmnopqrstuvwxyz-"), strlen(codes[n]));
		for (size_t i = 0; i < n; i++)
			assert_string_not_equal(codes[i], codes[n]);
	}
	hf_view_error_code(HF_E_STALE, code);
	assert_string_equal(code, "stale-token");
	hf_view_error_code(HF_E_NO_SESSION, code);
	assert_string_equal(code, "no-session");
	hf_view_error_code(-EACCES, code);
	assert_string_equal(code, "EACCES");
	hf_view_error_code(-4000, code);
	assert_string_equal(code, "unknown");
}

static void what_is_not_known_is_null_and_never_missing(void **state)
{
	static const char *const members[] = {
		"cause",	"age_ms",	  "ran_ms",	  "deadline_ms",   "deadline_left_ms", "idle_ms",
		"outcome",	"exit",		  "last",	  "argv",	   "output_age_ms",    "cpu_pct",
		"cpu_ms",	"memory_bytes",	  "processes",	  "last_line",	   "log_bytes",	       "log_dropped_bytes",
		"pid",		"supervisor",	  "keeper",	  "leader",	   "evidence",	       "attempt",
		"failures",	"loop",		  "command",	  "memory_peak_bytes", "started",      "ended",
		"waits_for",	"plan",		  "land",	  "cwd",	   "group",	       "output_bytes",
		"next_in_ms",	"last_line_partial",
	};
	struct hf_session_info info = { .name = "x",
					.state = HF_SESSION_UNREADABLE,
					.cause = "",
					.command = "",
					.last = { .cause = "", .ran_ns = -1 },
					.tree = "walk",
					.age_ns = -1,
					.ran_ns = -1,
					.deadline_ns = -1,
					.deadline_left_ns = -1,
					.output_age_ns = -1,
					.processes = -1,
					.memory_bytes = -1,
					.cpu_ns = -1,
					.log_bytes = -1,
					.log_dropped_bytes = -1,
					.idle_ns = -1,
					.next_in_ns = -1,
					.cpu_permille = -1,
					.memory_peak_bytes = -1,
					.output_bytes = -1,
					.token = 1 };
	json_t *object = hf_view_session(&info, NULL);

	(void)state;
	assert_non_null(object);
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		json_t *value = json_object_get(object, members[i]);

		if (!json_is_null(value)) {
			print_error("%s is not null\n", members[i]);
			fail();
		}
	}
	assert_string_equal(json_string_value(json_object_get(object, "state")), "unreadable");
	json_decref(object);
}

static void every_session_has_the_same_members_whatever_is_known(void **state)
{
	char *argv[] = { (char[]){ "sleep" }, (char[]){ "1" }, NULL };
	struct hf_session_info little = { .name = "x", .state = HF_SESSION_STARTING, .cause = "", .command = "",
					  .last = { .cause = "" }, .tree = "walk" };
	struct hf_session_info much = little;
	json_t *a, *b;
	const char *key;
	json_t *value;

	(void)state;
	much.state = HF_SESSION_FAILED;
	much.outcome = HF_OUTCOME_FAILED;
	much.exit_status = 3;
	much.cause = "exit 3";
	much.argv = argv;
	much.attempt = 2;
	much.started.ns = much.ended.ns = 1700000000 * HF_SEC;
	ASSERT_OK(hf_proc_self(&much.keeper, ERR));
	strcpy(much.evidence, "it runs");
	a = hf_view_session(&little, NULL);
	b = hf_view_session(&much, NULL);
	assert_int_equal(json_object_size(a), json_object_size(b));
	json_object_foreach(a, key, value)
		assert_non_null(json_object_get(b, key));
	assert_int_equal(json_integer_value(json_object_get(b, "exit")), 3);
	assert_int_equal(json_array_size(json_object_get(b, "argv")), 2);
	json_decref(a);
	json_decref(b);
}

static void name_that_is_not_utf8_has_its_key_beside_it(void **state)
{
	struct hf_lock_info info = { .name = "caf\xe9" };
	json_t *object = hf_view_lock(&info);

	(void)state;
	assert_string_equal(json_string_value(json_object_get(object, "name")), "caf\xef\xbf\xbd");
	assert_string_equal(json_string_value(json_object_get(object, "key")), "caf%E9");
	assert_true(json_is_null(json_object_get(object, "mode")));
	assert_int_equal(json_array_size(json_object_get(object, "holders")), 0);
	json_decref(object);
}

static void holder_from_a_clock_that_was_ahead_has_no_age(void **state)
{
	struct hf_holder holder = { .liveness = HF_UNKNOWN, .lease_left_ns = -1 };
	struct hf_lock_info info = { .name = "x", .holders = &holder, .n_holders = 1 };
	struct hf_buf cells[HF_VIEW_LOCK_COLUMNS];
	json_t *object, *shown;

	(void)state;
	ASSERT_OK(hf_proc_self(&holder.id, ERR));
	holder.since.ns = hf_wall_now().ns + 3600 * HF_SEC;
	object = hf_view_lock(&info);
	shown = json_array_get(json_object_get(object, "holders"), 0);
	assert_true(json_is_null(json_object_get(shown, "held_ms")));
	assert_true(json_is_null(json_object_get(shown, "lease_left_ms")));
	json_decref(object);
	for (int i = 0; i < HF_VIEW_LOCK_COLUMNS; i++)
		cells[i] = (struct hf_buf)HF_BUF_INIT;
	hf_view_lock_cells(&info, &holder, cells);
	assert_string_equal(cells[1].s, "name");
	assert_string_equal(cells[4].s, "-");
	assert_string_equal(cells[HF_VIEW_LOCK_STATE].s, "unknown");
	hf_view_cells_done(cells, HF_VIEW_LOCK_COLUMNS);
}

/* As without memory: what was made so far is freed, and nothing is added to what is not there. */
static void object_that_failed_once_stays_null(void **state)
{
	json_t *object = json_object(), *array = json_array();

	(void)state;
	hf_view_set(&object, "a", json_integer(1));
	hf_view_set(&object, "b", NULL);
	assert_null(object);
	hf_view_set(&object, "c", json_integer(3));
	assert_null(object);
	hf_view_add(&array, NULL);
	assert_null(array);
	hf_view_add(&array, json_integer(1));
	assert_null(array);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HF_TEST(every_error_has_a_code_of_its_own_in_small_letters),
		HF_TEST(what_is_not_known_is_null_and_never_missing),
		HF_TEST(every_session_has_the_same_members_whatever_is_known),
		HF_TEST(name_that_is_not_utf8_has_its_key_beside_it),
		HF_TEST(holder_from_a_clock_that_was_ahead_has_no_age),
		HF_TEST(object_that_failed_once_stays_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
