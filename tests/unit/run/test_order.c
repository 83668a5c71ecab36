/* unit/run/test_order.c - the order to a supervisor: read back as it was, and nothing else is believed. */
#include <errno.h>
#include <string.h>

#include "helper/faults.h"
#include "helper/test.h"
#include "hf/base/cleanup.h"
#include "hf/run/options.h"
#include "hf/run/supervisor/order.h"

static char *const words[] = { (char[]){ "claude" }, (char[]){ "a b\n\"\\" }, (char[]){ "\xff\xfe" }, (char[]){ "" }, NULL };
static char *const variables[] = { (char[]){ "A=1" }, (char[]){ "C=\xff=x" }, NULL };

static void assert_words(char *const *a, char *const *b)
{
	size_t i = 0;

	assert_true(!a == !b);
	for (; a && a[i] && b[i]; i++)
		assert_string_equal(a[i], b[i]);
	assert_true(!a || (!a[i] && !b[i]));
}

static void assert_text(const char *a, const char *b)
{
	assert_true(!a == !b);
	if (a)
		assert_string_equal(a, b);
}

/* Writes and reads it, and compares every option. */
static void assert_round(struct hf_run_opts o)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;
	AUTO(hf_order_done) struct hf_order order = { 0 };

	hf_order_add_json(&text, "fix-160", "/state \xff", &o);
	assert_int_equal(text.err, 0);
	ASSERT_OK(hf_order_read(text.s, text.len, &order, ERR));
	assert_string_equal(order.name, "fix-160");
	assert_string_equal(order.state_path, "/state \xff");
	assert_int_equal(order.o.size, sizeof(order.o));
	assert_int_equal(order.o.flags, o.flags);
	assert_true(order.o.wait_ns == o.wait_ns);
	assert_words(order.o.argv, o.argv);
	assert_words(order.o.env, o.env);
	assert_text(order.o.cwd, o.cwd);
	for (const struct hf_option *option = hf_options; option->key; option++) {
		assert_true(hf_option_number(option, &order.o) == hf_option_number(option, &o));
		if (option->kind == HF_OPTION_TEXT)
			assert_text(*hf_option_text(option, &order.o), *hf_option_text(option, &o));
	}
}

static void every_option_arrives_as_it_was_given(void **state)
{
	struct hf_run_opts o = { .size = sizeof(o), .argv = words };

	(void)state;
	assert_round(o);
	for (const struct hf_option *option = hf_options; option->key; option++) {
		struct hf_run_opts one = { .size = sizeof(one), .argv = words };

		if (strcmp(option->key, "notify_on") == 0)
			one.notify_on = "always"; /* one of three words */
		else if (strcmp(option->key, "input") == 0)
			one.input = "0123456789abcdef.17"; /* checksum and bytes */
		else if (option->kind == HF_OPTION_TEXT)
			*hf_option_text(option, &one) = "make \xff";
		else
			hf_option_set_number(option, &one,
					     option->kind == HF_OPTION_TREE || option->kind == HF_OPTION_TERM ||
							     option->kind == HF_OPTION_FLAG || option->kind == HF_OPTION_COUNT
						     ? 1
						     : HF_SEC);
		assert_round(one);
	}
	o = (struct hf_run_opts){ .size = sizeof(o), .argv = words, .env = variables, .cwd = "relative/\xff", .wait_ns = -1,
				  .grace_ns = -1, .log_max = HF_RUN_LOG_UNLIMITED, .deadline_ns = INT64_MAX };
	assert_round(o);
}

static void what_takes_a_stored_option_back_arrives_too(void **state)
{
	struct hf_run_opts o = { .size = sizeof(o), .flags = HF_RUN_RESUME, .verify = "", .until = "", .deadline_ns = HF_RUN_NONE,
				 .wait_ns = 5 };

	(void)state;
	assert_round(o);
	/* Without a resume there is nothing to take back, and a command is needed. */
	o = (struct hf_run_opts){ .size = sizeof(o), .argv = words, .verify = "" };
	assert_round(o);
}

static void no_other_order_is_believed(void **state)
{
	static const char good[] = "{\"v\":1,\"name\":\"x\",\"state\":\"/s\",\"resume\":false,\"wait_ns\":0,\"resume_token\":0,\"argv\":[\"true\"],"
				   "\"cwd\":null,\"env\":null,\"options\":{}}";
	static const struct {
		const char *part, *instead;
		int code;
	} bad[] = {
		{ "\"v\":1", "\"v\":2", HF_E_FORMAT },
		{ "\"v\":1,", "", HF_E_FORMAT },
		{ "\"v\":1", "\"v\":1,\"w\":1", HF_E_FORMAT },
		{ "\"v\":1", "\"v\":1,\"v\":1", HF_E_FORMAT },
		{ "\"x\"", "7", HF_E_FORMAT },
		{ "\"x\"", "\"\"", HF_E_NAME },
		{ "\"x\"", "{\"hex\":\"0\"}", HF_E_FORMAT },
		{ "\"/s\"", "null", HF_E_FORMAT },
		{ "false", "0", HF_E_FORMAT },
		{ ":0,", ":\"0\",", HF_E_FORMAT },
		{ "[\"true\"]", "\"true\"", HF_E_FORMAT },
		{ "[\"true\"]", "[\"a\\u0000b\"]", HF_E_FORMAT },
		{ "[\"true\"]", "[]", -EINVAL },
		{ "[\"true\"]", "null", -EINVAL },
		{ "\"cwd\":null", "\"cwd\":1", HF_E_FORMAT },
		{ "\"env\":null", "\"env\":{}", HF_E_FORMAT },
		{ "\"env\":null", "\"env\":[\"HOLDFAST_RUNS=x\"]", -EINVAL },
		{ "{}", "[]", HF_E_FORMAT },
		{ "{}", "{\"deadline_ns\":-2}", HF_E_FORMAT },
		{ "{}", "{\"deadline_ns\":-1}", -EINVAL },
		{ "{}", "{\"deadline_ns\":1.5}", HF_E_FORMAT },
		{ "{}", "{\"max_runs\":4294967296}", HF_E_FORMAT },
		{ "{}", "{\"tree\":\"forest\"}", HF_E_FORMAT },
		{ "{}", "{\"no_such\":1}", HF_E_FORMAT },
		{ "}}", "}", HF_E_FORMAT },
	};
	struct hf_order order;

	(void)state;
	ASSERT_OK(hf_order_read(good, sizeof(good) - 1, &order, ERR));
	hf_order_done(&order);
	for (size_t len = 0; len < sizeof(good) - 1; len++)
		ASSERT_ERR(hf_order_read(good, len, &order, ERR), HF_E_FORMAT);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;
		const char *at = strstr(good, bad[i].part);

		assert_non_null(at);
		hf_buf_add(&text, good, (size_t)(at - good));
		hf_buf_add_text(&text, bad[i].instead);
		hf_buf_add_text(&text, at + strlen(bad[i].part));
		ASSERT_ERR(hf_order_read(text.s, text.len, &order, ERR), bad[i].code);
	}
}

static void a_start_that_the_system_refuses_leaves_nothing(void **state)
{
	char *const sleeps[] = { (char[]){ "sleep" }, (char[]){ "60" }, NULL };
	struct hf_run_opts o = { .size = sizeof(o), .argv = sleeps };
	struct hf_run_report report = { 0 };

	(void)state;
	hf_fault_arm(&(struct hf_fault){ .call = "spawn_session", .at = 1, .error = EAGAIN });
	ASSERT_ERR(hf_run_start(hf_test_state(), "x", &o, &report, ERR), -EAGAIN);
	assert_true(hf_fault_hit());
	hf_fault_arm(&(struct hf_fault){ .call = "openat", .at = 1, .error = EMFILE });
	ASSERT_ERR(hf_run_start(hf_test_state(), "x", &o, &report, ERR), -EMFILE);
	hf_fault_disarm();
	assert_int_equal(report.pid, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HF_TEST(every_option_arrives_as_it_was_given),
		HF_TEST(what_takes_a_stored_option_back_arrives_too),
		HF_TEST(no_other_order_is_believed),
		HF_TEST(a_start_that_the_system_refuses_leaves_nothing),
	};

	return hf_run_tests("order", tests);
}
