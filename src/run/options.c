/* run/options.c - options of a session. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>

#include "hf/base/fail.h"
#include "hf/run/options.h"
#include "hf/run/session/record/input.h"
#include "holdfast/lock.h"
#include "holdfast/name.h"

#define OF(field) offsetof(struct hf_run_opts, field)

const struct hf_option hf_options[] = {
	{ "deadline_ns", "deadline", HF_OPTION_DURATION, OF(deadline_ns) },
	{ "idle_ns", "idle", HF_OPTION_DURATION, OF(idle_ns) },
	{ "hang_ns", "hung-after", HF_OPTION_DURATION, OF(hang_ns) },
	{ "grace_ns", "grace", HF_OPTION_GRACE, OF(grace_ns) },
	{ "verify", "verify", HF_OPTION_TEXT, OF(verify) },
	{ "verify_ns", "verify-deadline", HF_OPTION_DURATION, OF(verify_ns) },
	{ "every_ns", "every", HF_OPTION_DURATION, OF(every_ns) },
	{ "max_runs", "max-runs", HF_OPTION_COUNT, OF(max_runs) },
	{ "until", "until", HF_OPTION_TEXT, OF(until) },
	{ "backoff_ns", "backoff", HF_OPTION_DURATION, OF(backoff_ns) },
	{ "backoff_max_ns", "backoff-max", HF_OPTION_DURATION, OF(backoff_max_ns) },
	{ "notify", "notify", HF_OPTION_TEXT, OF(notify) },
	{ "notify_on", "notify-on", HF_OPTION_TEXT, OF(notify_on) },
	{ "max_depth", "max-depth", HF_OPTION_COUNT, OF(max_depth) },
	{ "max_active", "max-active", HF_OPTION_COUNT, OF(max_active) },
	{ "group", "group", HF_OPTION_TEXT, OF(group) },
	{ "priority", "priority", HF_OPTION_COUNT, OF(priority) },
	{ "stop_signal", "signal", HF_OPTION_COUNT, OF(stop_signal) },
	{ "mem_max", "mem", HF_OPTION_SIZE, OF(mem_max) },
	{ "cpus_centi", "cpus/100", HF_OPTION_COUNT, OF(cpus_centi) },
	{ "pids_max", "pids", HF_OPTION_COUNT, OF(pids_max) },
	{ "nice", "nice", HF_OPTION_COUNT, OF(nice) },
	{ "store", "store", HF_OPTION_TEXT, OF(store) },
	{ "stage", "stage", HF_OPTION_TEXT, OF(stage) },
	{ "input", "standard input", HF_OPTION_TEXT, OF(input) },
	{ "ttl_ns", "ttl", HF_OPTION_DURATION, OF(ttl_ns) },
	{ "log_max", "log-max", HF_OPTION_SIZE, OF(log_max) },
	{ "tree", "tree", HF_OPTION_TREE, OF(tree) },
	{ "term", "term", HF_OPTION_TERM, OF(term) },
	{ "log", "log", HF_OPTION_FLAG, HF_RUN_LOG },
	{ "no_log", "no-log", HF_OPTION_FLAG, HF_RUN_NO_LOG },
	{ "terminal", "terminal", HF_OPTION_FLAG, HF_RUN_TERMINAL },
	{ "leave_running", "leave-running", HF_OPTION_FLAG, HF_RUN_LEAVE_RUNNING },
	{ "loop", "loop", HF_OPTION_FLAG, HF_RUN_LOOP },
	{ "rm", "rm", HF_OPTION_FLAG, HF_RUN_REMOVE },
	{ "preserve_status", "preserve-status", HF_OPTION_FLAG, HF_RUN_PRESERVE_STATUS },
	{ "foreground", "foreground", HF_OPTION_FLAG, HF_RUN_FOREGROUND },
	{ "end_background", "end-background", HF_OPTION_FLAG, HF_RUN_END_BACKGROUND },
	{ NULL, NULL, HF_OPTION_FLAG, 0 },
};

static const char *const tree_words[] = { "", "cgroup", "walk", "auto" };
static const char *const term_words[] = { "", "leader", "tree" };

/* -- one of them -------------------------------------------------------------------- */

int64_t hf_option_number(const struct hf_option *option, const struct hf_run_opts *o)
{
	const char *at = (const char *)o + option->at;

	switch (option->kind) {
	case HF_OPTION_DURATION:
	case HF_OPTION_GRACE:
		return *(const int64_t *)(const void *)at;
	case HF_OPTION_COUNT:
		return *(const uint32_t *)(const void *)at;
	case HF_OPTION_SIZE:
		/* One bit less than it has; what is beyond is as good as no limit. */
		return *(const uint64_t *)(const void *)at > INT64_MAX
			       ? INT64_MAX
			       : (int64_t)*(const uint64_t *)(const void *)at;
	case HF_OPTION_TREE:
		return (int64_t)o->tree;
	case HF_OPTION_TERM:
		return (int64_t)o->term;
	case HF_OPTION_FLAG:
		return (o->flags & option->at) != 0;
	case HF_OPTION_TEXT:
	default:
		return 0;
	}
}

void hf_option_set_number(const struct hf_option *option, struct hf_run_opts *o, int64_t number)
{
	char *at = (char *)o + option->at;

	switch (option->kind) {
	case HF_OPTION_DURATION:
	case HF_OPTION_GRACE:
		*(int64_t *)(void *)at = number;
		break;
	case HF_OPTION_COUNT:
		*(uint32_t *)(void *)at = (uint32_t)number;
		break;
	case HF_OPTION_SIZE:
		*(uint64_t *)(void *)at = number == INT64_MAX ? HF_RUN_LOG_UNLIMITED : (uint64_t)number;
		break;
	case HF_OPTION_TREE:
		o->tree = (enum hf_run_tree)number;
		break;
	case HF_OPTION_TERM:
		o->term = (enum hf_run_term)number;
		break;
	case HF_OPTION_FLAG:
		if (number)
			o->flags |= (unsigned)option->at;
		break;
	case HF_OPTION_TEXT:
	default:
		break;
	}
}

const char **hf_option_text(const struct hf_option *option, struct hf_run_opts *o)
{
	return (const char **)(void *)((char *)o + option->at);
}

const char *hf_option_word(const struct hf_option *option, int64_t number)
{
	const char *const *words = option->kind == HF_OPTION_TREE ? tree_words : term_words;
	int64_t n = option->kind == HF_OPTION_TREE ? HF_TREE_AUTO : HF_TERM_TREE;

	return number > 0 && number <= n ? words[number] : "";
}

int64_t hf_option_of_word(const struct hf_option *option, const char *word)
{
	for (int64_t i = 1; hf_option_word(option, i)[0]; i++)
		if (strcmp(hf_option_word(option, i), word) == 0)
			return i;
	return 0;
}

/* -- all of them -------------------------------------------------------------------- */

int hf_env_is_usable(const char *entry)
{
	size_t len = strcspn(entry, "=");

	/* Ours are how a session and its processes are known. */
	return len > 0 && entry[len] == '=' && strncmp(entry, "HOLDFAST_", 9) != 0;
}

static int check_durations(const char *name, const struct hf_run_opts *o, struct hf_err *err)
{
	int64_t least = o->flags & HF_RUN_RESUME ? HF_RUN_NONE : 0;

	for (const struct hf_option *option = hf_options; option->key; option++)
		if (option->kind == HF_OPTION_DURATION && hf_option_number(option, o) < least)
			return FAIL(err, -EINVAL, "arguments", name, "a duration must not be negative");
	if (o->ttl_ns > HF_LOCK_TTL_MAX || (o->ttl_ns > 0 && o->ttl_ns < 100 * HF_MSEC))
		return FAIL(err, -EINVAL, "arguments", name, "a lease must be from 100ms to 30d");
	return 0;
}

int hf_options_notify(const char *words)
{
	static const struct {
		const char *word;
		int bit;
	} known[] = { { "change", HF_NOTIFY_CHANGE }, { "failure", HF_NOTIFY_FAILURE }, { "always", HF_NOTIFY_ALWAYS }, { "start", HF_NOTIFY_START } };
	int bits = 0;

	if (!words || !words[0])
		return HF_NOTIFY_CHANGE;
	for (;; words++) {
		size_t len = strcspn(words, ","), i = 0;

		while (i < 4 && (strlen(known[i].word) != len || strncmp(words, known[i].word, len) != 0))
			i++;
		if (i == 4)
			return -EINVAL;
		bits |= known[i].bit;
		words += len;
		if (!*words)
			return bits;
	}
}

int hf_options_check(const char *name, const struct hf_run_opts *o, struct hf_err *err)
{
	const unsigned flags = HF_RUN_RESUME | HF_RUN_LEAVE_RUNNING | HF_RUN_LOG | HF_RUN_LOOP | HF_RUN_NO_LOG |
			       HF_RUN_TERMINAL | HF_RUN_REMOVE | HF_RUN_PRESERVE_STATUS | HF_RUN_FOREGROUND | HF_RUN_END_BACKGROUND;
	char key[HF_NAME_KEY_MAX];
	int r = hf_name_key(name, name ? strlen(name) : 0, key, err);

	if (r < 0)
		return r;
	if ((!o->argv || !o->argv[0]) && !(o->flags & HF_RUN_RESUME))
		return FAIL(err, -EINVAL, "arguments", name, "no command given");
	r = check_durations(name, o, err);
	if (r < 0)
		return r;
	if (o->flags & ~flags || (unsigned)o->tree > HF_TREE_AUTO || (unsigned)o->term > HF_TERM_TREE)
		return FAIL(err, -EINVAL, "arguments", name, "unknown flag, tree or term");
	if (hf_options_notify(o->notify_on) < 0)
		return FAIL(err, -EINVAL, "arguments", name, "notify_on must be change, failure, always, start, or a list such as start,failure");
	if (o->flags & HF_RUN_LOG && o->flags & HF_RUN_NO_LOG)
		return FAIL(err, -EINVAL, "arguments", name, "HF_RUN_LOG and HF_RUN_NO_LOG cannot be combined");
	if (o->flags & HF_RUN_TERMINAL && o->flags & (HF_RUN_NO_LOG | HF_RUN_LEAVE_RUNNING))
		return FAIL(err, -EINVAL, "arguments", name,
			    "a terminal needs the log and ends with its keeper, so HF_RUN_NO_LOG and HF_RUN_LEAVE_RUNNING are not possible");
	if (o->log_max && o->log_max < HF_RUN_LOG_MIN)
		return FAIL(err, -EINVAL, "arguments", name, "a log's limit must be at least %d bytes",
			    HF_RUN_LOG_MIN);
	if (o->input && o->input[0] && !hf_input_is_id(o->input, NULL))
		return FAIL(err, -EINVAL, "arguments", name, "callers may set input only to \"\"");
	if (o->stop_signal > (uint32_t)SIGRTMAX || o->nice > 19)
		return FAIL(err, -EINVAL, "arguments", name, "unknown signal, or nice is more than 19");
	if (o->priority > HF_LOCK_PRIORITY_MAX)
		return FAIL(err, -EINVAL, "arguments", name, "priority must be at most %d", HF_LOCK_PRIORITY_MAX);
	if (o->max_active > HF_LOCK_SLOTS_MAX)
		return FAIL(err, -EINVAL, "arguments", name, "max_active must be at most %d", HF_LOCK_SLOTS_MAX);
	for (size_t i = 0; o->env && o->env[i]; i++)
		if (!hf_env_is_usable(o->env[i]))
			return FAIL(err, -EINVAL, "arguments", name,
				    "a variable must be NAME=VALUE, and its name must not begin with HOLDFAST_");
	return 0;
}

static void fill_default(int64_t *value, int64_t otherwise)
{
	if (*value == 0)
		*value = otherwise;
}

/* Seventy years: so long that a clock can be added to it. */
#define LONGEST_NS (INT64_MAX / 4)

struct hf_run_opts hf_options_complete(const struct hf_run_opts *given)
{
	struct hf_run_opts o = *given;

	for (const struct hf_option *option = hf_options; option->key; option++) {
		int64_t number = hf_option_number(option, &o);

		if (option->kind == HF_OPTION_DURATION && number < 0)
			hf_option_set_number(option, &o, 0);
		if ((option->kind == HF_OPTION_DURATION || option->kind == HF_OPTION_GRACE) && number > LONGEST_NS)
			hf_option_set_number(option, &o, LONGEST_NS);
		if (option->kind == HF_OPTION_TEXT && *hf_option_text(option, &o) && !**hf_option_text(option, &o))
			*hf_option_text(option, &o) = NULL;
	}
	fill_default(&o.grace_ns, HF_RUN_GRACE_NS);
	fill_default(&o.hang_ns, HF_RUN_HANG_NS);
	fill_default(&o.ttl_ns, HF_RUN_TTL_NS);
	fill_default(&o.verify_ns, HF_RUN_VERIFY_NS);
	fill_default(&o.backoff_ns, HF_RUN_BACKOFF_NS);
	fill_default(&o.backoff_max_ns, HF_RUN_BACKOFF_MAX_NS);
	if (o.argv && !o.argv[0])
		o.argv = NULL;
	if (o.log_max == 0)
		o.log_max = HF_RUN_LOG_MAX;
	if (o.max_depth == 0)
		o.max_depth = HF_RUN_DEPTH_MAX;
	if (!o.group)
		o.group = HF_RUN_GROUP_ALL;
	if (o.tree == HF_TREE_DEFAULT)
		o.tree = HF_TREE_AUTO;
	if (o.term == HF_TERM_DEFAULT)
		o.term = HF_TERM_LEADER;
	if (o.every_ns || o.max_runs || o.until)
		o.flags |= HF_RUN_LOOP;
	/* A loop that nothing bounds does not become a busy one by succeeding. */
	if (o.flags & HF_RUN_LOOP && o.max_runs == 0)
		fill_default(&o.every_ns, o.backoff_ns);
	return o;
}

unsigned hf_options_stored_flags(const struct hf_run_opts *given, const struct hf_run_opts *stored)
{
	unsigned not = given->flags & HF_RUN_LOG ? HF_RUN_NO_LOG : given->flags & HF_RUN_NO_LOG ? HF_RUN_LOG : 0;

	return stored->flags & ~not;
}

void hf_options_merge(struct hf_run_opts *given, const struct hf_run_opts *stored)
{
	struct hf_run_opts old = *stored;

	old.flags = hf_options_stored_flags(given, stored);
	for (const struct hf_option *option = hf_options; option->key; option++) {
		int64_t number = hf_option_number(option, given);

		if (option->kind == HF_OPTION_TEXT) {
			const char **text = hf_option_text(option, given);

			if (!*text)
				*text = *hf_option_text(option, &old);
			else if (!**text)
				*text = NULL;
		} else if (number == 0) {
			hf_option_set_number(option, given, hf_option_number(option, &old));
		} else if (option->kind == HF_OPTION_DURATION && number < 0) {
			hf_option_set_number(option, given, 0);
		}
	}
	if (!given->cwd || !given->cwd[0])
		given->cwd = old.cwd;
	if (!given->argv || !given->argv[0])
		given->argv = old.argv;
}

/* -- for people -------------------------------------------------------------------- */

/* As it is typed: exact, in one unit. */
static void add_duration(struct hf_buf *out, int64_t ns)
{
	static const struct {
		int64_t ns;
		const char *unit;
	} units[] = { { 86400 * HF_SEC, "d" }, { 3600 * HF_SEC, "h" }, { 60 * HF_SEC, "m" },
		      { HF_SEC, "s" },	       { HF_MSEC, "ms" } };
	size_t i = 0;

	if (ns <= 0) {
		hf_buf_add_char(out, '0');
		return;
	}
	while (i < 4 && ns % units[i].ns != 0)
		i++;
	hf_buf_add_i64(out, ns / units[i].ns);
	hf_buf_add_text(out, units[i].unit);
}

static void add_value(const struct hf_option *option, struct hf_run_opts *o, struct hf_buf *out)
{
	int64_t number = hf_option_number(option, o);
	uint64_t bytes;

	hf_buf_add_char(out, ' ');
	switch (option->kind) {
	case HF_OPTION_DURATION:
	case HF_OPTION_GRACE:
		add_duration(out, number);
		break;
	case HF_OPTION_COUNT:
	case HF_OPTION_SIZE:
		if (option->kind == HF_OPTION_SIZE && number == INT64_MAX)
			hf_buf_add_char(out, '0');
		else
			hf_buf_add_i64(out, number);
		break;
	case HF_OPTION_TEXT:
		if (option->at == OF(input) && hf_input_is_id(o->input, &bytes))
			hf_buf_add_format(out, "of %" PRIu64 " bytes", bytes);
		else
			hf_buf_add_format(out, "'%s'", *hf_option_text(option, o));
		break;
	case HF_OPTION_TREE:
	case HF_OPTION_TERM:
		hf_buf_add_text(out, hf_option_word(option, number));
		break;
	case HF_OPTION_FLAG:
	default:
		break;
	}
}

void hf_options_describe(const struct hf_run_opts *given, struct hf_buf *out)
{
	struct hf_run_opts o = *given;

	for (const struct hf_option *option = hf_options; option->key; option++) {
		int is_text = option->kind == HF_OPTION_TEXT;

		/* That one is told by the layer that it belongs to. */
		if ((is_text && option->at == OF(stage)) || (is_text ? !*hf_option_text(option, &o) : hf_option_number(option, &o) == 0))
			continue;
		hf_buf_add_text(out, ", ");
		hf_buf_add_text(out, option->label);
		if (option->kind != HF_OPTION_FLAG)
			add_value(option, &o, out);
	}
	/* Their names only: a value may be a secret. */
	for (size_t i = 0; o.env && o.env[i]; i++) {
		hf_buf_add_text(out, i ? " " : ", env ");
		hf_buf_add(out, o.env[i], strcspn(o.env[i], "="));
	}
}
