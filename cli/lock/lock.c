/* cli/lock/lock.c - lock acquire, release, renew, check and break. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/parse.h"
#include "lock/lease.h"
#include "lock/lock.h"

static int print_token(const struct cli *cli, const char *name, uint64_t token)
{
	if (cli->json) {
		json_t *object = json_object();

		cli_set(object, "name", cli_text(name));
		cli_set(object, "token", json_integer((json_int_t)token));
		cli_print_json(object);
	} else {
		printf("%llu\n", (unsigned long long)token);
	}
	return HF_EXIT_DONE;
}

int cmd_lock_acquire(struct cli *cli, int argc, char **argv)
{
	struct lock_options o = LOCK_OPTIONS_INIT;
	char text[HF_ERR_TEXT_MAX];
	const char *pid = NULL;
	int reentrant = 0;
	const struct option_spec specs[] = {
		LOCK_OPTION_SPECS(o),
		{ "reentrant", 'r', OPTION_FLAG, &reentrant, NULL,
		  "acquire again if the owner has it; release it as many times" },
		{ "pid", 0, OPTION_TEXT, &pid, "PID", "owner (default: the parent process)" },
		{ 0 },
	};
	AUTO(lock_close) struct lock_context context = { 0 };
	struct hf_mono start = hf_mono_now();
	struct hf_holder blocker = { 0 };
	struct hf_err err = HF_ERR_INIT;
	struct hf_lock_opts opts;
	struct hf_proc_id owner;
	struct hf_lock *lock;
	int64_t keep;
	int r, status, n = cli_options(cli, specs, argc, argv, 1, 1);

	if (n < 0)
		return cli_options_status(n);
	status = lock_options_check(cli, &o);
	if (status == HF_EXIT_DONE)
		status = lock_owner(cli, pid, &owner);
	if (status == HF_EXIT_DONE)
		status = lock_open(cli, &context);
	if (status != HF_EXIT_DONE)
		return status;
	keep = o.ttl_ns == 0 ? hf_locks_lease(context.locks) : 0;
	if (keep > 0)
		o.ttl_ns = keep;
	opts = lock_options_for(&o, &owner, reentrant ? HF_LOCK_REENTRANT : 0);
	r = lock_take(cli, &context, argv[0], &opts, &lock, &blocker, &err);
	if (r == 0 && keep > 0) {
		r = lease_keep_for(lock, keep, &owner, &err);
		if (r < 0) {
			(void)hf_lock_release(lock, NULL);
			hf_lock_free(lock);
		}
	}
	if (r == 0) {
		status = print_token(cli, argv[0], hf_lock_token(lock));
		hf_lock_free(lock);
		if (!pid)
			lock_warn_short_lived(cli, argv[0]);
		return status;
	}
	if (o.on_timeout == ON_TIMEOUT_PROCEED && r != HF_E_NAME && context.journal) {
		/* An empty output, without a token, shows the caller that it continues without the lock. */
		lock_journal_timeout(&context, HF_EV_LOCK_FAIL_OPEN, argv[0],
				     hf_mono_now().ns - start.ns, &blocker, &err);
		cli_say(cli, "continuing WITHOUT the lock '%s': %s", argv[0], lock_why(&err, text));
		return HF_EXIT_DONE;
	}
	if (!lock_is_timeout(r))
		return cli_fail(cli, &err);
	if (o.on_timeout == ON_TIMEOUT_SKIP)
		lock_journal_timeout(&context, HF_EV_LOCK_SKIPPED, argv[0],
				     hf_mono_now().ns - start.ns, &blocker, &err);
	return lock_say_busy(cli, HF_LOCK_KIND_NAME, argv[0], &blocker, &err, (int)o.busy_status);
}

static int read_token(const struct cli *cli, const char *text, uint64_t *ret)
{
	if (hf_parse_u64(text, strlen(text), UINT64_MAX, ret) < 0 || *ret == 0)
		return cli_usage(cli, "'%s' is not a token", text);
	return HF_EXIT_DONE;
}

int cmd_lock_release(struct cli *cli, int argc, char **argv)
{
	const char *pid = NULL, *token_text = NULL, *kind = NULL;
	uint64_t token = 0;
	const struct option_spec specs[] = {
		{ "pid", 0, OPTION_TEXT, &pid, "PID", "owner (default: the parent process)" },
		{ "token", 't', OPTION_TEXT, &token_text, "T", "the token, instead of the owner" },
		LOCK_KIND_SPEC(kind),
		{ 0 },
	};
	AUTO(lock_close) struct lock_context context = { 0 };
	struct hf_err err = HF_ERR_INIT;
	struct hf_proc_id owner = { 0 };
	int status = HF_EXIT_DONE, n = cli_options(cli, specs, argc, argv, 1, 1);

	if (n < 0)
		return cli_options_status(n);
	if (token_text && pid)
		return cli_usage(cli, "--pid and --token cannot be combined");
	if (token_text)
		status = read_token(cli, token_text, &token);
	else
		status = lock_owner(cli, pid, &owner);
	if (status == HF_EXIT_DONE)
		status = lock_open_kind(cli, kind, &context);
	if (status != HF_EXIT_DONE)
		return status;
	if (hf_lock_release_as(context.locks, argv[0], token, &owner, &err) < 0)
		return cli_fail(cli, &err);
	return HF_EXIT_DONE;
}

int cmd_lock_renew(struct cli *cli, int argc, char **argv)
{
	const char *token_text = NULL, *kind = NULL;
	int64_t ttl_ns = -1;
	uint64_t token;
	const struct option_spec specs[] = {
		{ "token", 't', OPTION_TEXT, &token_text, "T", "the token" },
		{ "ttl", 0, OPTION_DURATION, &ttl_ns, "DUR", "the new length of the lease (default: unchanged)" },
		LOCK_KIND_SPEC(kind),
		{ 0 },
	};
	AUTO(lock_close) struct lock_context context = { 0 };
	struct hf_err err = HF_ERR_INIT;
	int status, n = cli_options(cli, specs, argc, argv, 1, 1);

	if (n < 0)
		return cli_options_status(n);
	if (!token_text)
		return cli_usage(cli, "--token is missing");
	if (ttl_ns == 0)
		return cli_usage(cli, "--ttl must be more than 0");
	status = read_token(cli, token_text, &token);
	if (status == HF_EXIT_DONE)
		status = lock_open_kind(cli, kind, &context);
	if (status != HF_EXIT_DONE)
		return status;
	if (hf_lock_renew_token(context.locks, argv[0], token, ttl_ns < 0 ? 0 : ttl_ns, &err) < 0)
		return cli_fail(cli, &err);
	return HF_EXIT_DONE;
}

int cmd_lock_check(struct cli *cli, int argc, char **argv)
{
	const char *token_text = NULL, *kind = NULL;
	uint64_t token = 0;
	const struct option_spec specs[] = {
		{ "token", 't', OPTION_TEXT, &token_text, "T", "check whether this token is current" },
		LOCK_KIND_SPEC(kind),
		{ 0 },
	};
	AUTO(lock_close) struct lock_context context = { 0 };
	struct hf_err err = HF_ERR_INIT;
	int status = HF_EXIT_DONE, n = cli_options(cli, specs, argc, argv, 1, 1);

	if (n < 0)
		return cli_options_status(n);
	if (token_text)
		status = read_token(cli, token_text, &token);
	if (status == HF_EXIT_DONE)
		status = lock_open_kind(cli, kind, &context);
	if (status != HF_EXIT_DONE)
		return status;
	if (hf_lock_check_token(context.locks, argv[0], token, &err) < 0)
		return cli_fail(cli, &err);
	if (cli->json) {
		json_t *object = json_object();

		cli_set(object, "name", cli_text(argv[0]));
		cli_set(object, "held", json_true());
		cli_print_json(object);
	} else if (!cli->quiet) {
		puts(token ? "current" : "held");
	}
	return HF_EXIT_DONE;
}

int cmd_lock_break(struct cli *cli, int argc, char **argv)
{
	const char *reason = NULL, *kind = NULL;
	const struct option_spec specs[] = {
		{ "reason", 0, OPTION_TEXT, &reason, "TEXT", "the reason, for the journal" },
		LOCK_KIND_SPEC(kind),
		{ 0 },
	};
	AUTO(lock_close) struct lock_context context = { 0 };
	struct hf_err err = HF_ERR_INIT;
	int r, status, n = cli_options(cli, specs, argc, argv, 1, 1);

	if (n < 0)
		return cli_options_status(n);
	if (!reason || !reason[0])
		return cli_usage(cli, "--reason is missing: a living holder loses its lock");
	status = lock_open_kind(cli, kind, &context);
	if (status != HF_EXIT_DONE)
		return status;
	r = hf_lock_break(context.locks, argv[0], reason, &err);
	if (r < 0)
		return cli_fail(cli, &err);
	if (cli->json) {
		json_t *object = json_object();

		cli_set(object, "name", cli_text(argv[0]));
		cli_set(object, "lost", json_integer(r));
		cli_print_json(object);
	} else {
		cli_say(cli, "%d holder(s) of '%s' lost it; their tokens are refused from now on", r,
			argv[0]);
	}
	return HF_EXIT_DONE;
}
