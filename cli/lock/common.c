/* cli/lock/common.c - options, opening, refusals and events of the lock commands. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/parse.h"
#include "hf/view/lock.h"
#include "lock/lock.h"
#include "screen/waiting.h"

int lock_options_check(struct cli *cli, struct lock_options *o)
{
	if (o->no_wait)
		o->wait_ns = 0;
	if (o->shared && o->slots_word)
		return cli_usage(cli, "--shared and --slots cannot be combined");
	if (o->slots_word && (hf_parse_u64(o->slots_word, strlen(o->slots_word), HF_LOCK_SLOTS_MAX,
					   &o->slots) < 0 ||
			      o->slots == 0))
		return cli_usage(cli, "--slots must be from 1 to %d", HF_LOCK_SLOTS_MAX);
	if (o->ttl_ns == 0 || o->ttl_ns > HF_LOCK_TTL_MAX)
		return cli_usage(cli, "--ttl must be more than 0 and at most 30d");
	if (o->ttl_ns < 0)
		o->ttl_ns = 0;
	if (o->busy_status > 255)
		return cli_usage(cli, "-E must be from 0 to 255");
	if (!o->on_timeout_word || strcmp(o->on_timeout_word, "fail") == 0)
		o->on_timeout = ON_TIMEOUT_FAIL;
	else if (strcmp(o->on_timeout_word, "skip") == 0)
		o->on_timeout = ON_TIMEOUT_SKIP;
	else if (strcmp(o->on_timeout_word, "proceed") == 0)
		o->on_timeout = ON_TIMEOUT_PROCEED;
	else
		return cli_usage(cli, "--on-timeout must be fail, skip or proceed, not '%s'",
				 o->on_timeout_word);
	return HF_EXIT_DONE;
}

struct hf_lock_opts lock_options_for(const struct lock_options *o, const struct hf_proc_id *owner,
				     unsigned flags)
{
	return (struct hf_lock_opts){ .size = sizeof(struct hf_lock_opts),
				      .mode = o->slots	  ? HF_LOCK_SLOTS
					      : o->shared ? HF_LOCK_SHARED
							  : HF_LOCK_EXCLUSIVE,
				      .slots = (unsigned)o->slots,
				      .wait_ns = o->wait_ns,
				      .ttl_ns = o->ttl_ns,
				      .flags = flags,
				      .owner = owner };
}

int lock_take(const struct cli *cli, const struct lock_context *context, const char *name, const struct hf_lock_opts *opts,
	      struct hf_lock **ret_lock, struct hf_holder *ret_blocker, struct hf_err *err)
{
	struct waiting *line = opts->wait_ns == 0 ? NULL : waiting_begin(cli, 0);
	struct hf_lock_opts told = *opts;
	int r;

	told.waiting = line ? waiting_show : NULL;
	told.waiting_arg = line;
	r = hf_lock_acquire(context->locks, name, &told, ret_lock, ret_blocker, err);
	waiting_end(line);
	return r;
}

const char *lock_why(const struct hf_err *err, char text[HF_ERR_TEXT_MAX])
{
	if (err->detail[0])
		return err->detail;
	(void)hf_err_format(err, text, HF_ERR_TEXT_MAX);
	return text;
}

static int open_store(struct cli *cli, const char *url, struct lock_context *ret)
{
	int status = HF_EXIT_DONE;
	struct hf_state *state = cli_state(cli, 0, &status);

	ret->journal = NULL;
	ret->locks = NULL;
	if (!state)
		return status;
	ret->journal = cli_journal(cli, state);
	if (hf_locks_open_store(url, state, ret->journal, &ret->locks, &ret->err) < 0) {
		ret->locks = NULL;
		return cli_fail(cli, &ret->err);
	}
	return HF_EXIT_DONE;
}

int lock_open(struct cli *cli, struct lock_context *ret)
{
	return open_store(cli, cli_store(cli), ret);
}

int lock_open_here(struct cli *cli, struct lock_context *ret)
{
	return open_store(cli, NULL, ret);
}

int lock_kind(const char *word)
{
	for (int kind = 0; kind < HF_LOCK_KINDS; kind++)
		if (strcmp(word, hf_lock_kind_word((enum hf_lock_kind)kind)) == 0)
			return kind;
	return -1;
}

int lock_open_kind(struct cli *cli, const char *word, struct lock_context *ret)
{
	int status, kind = word ? lock_kind(word) : HF_LOCK_KIND_NAME;

	if (kind < 0)
		return cli_usage(cli, "--kind must be name, group, file, plan, target or land, not '%s'", word);
	/* Files, plans, groups and branches belong to this machine. */
	status = kind == HF_LOCK_KIND_NAME ? lock_open(cli, ret) : lock_open_here(cli, ret);
	if (status != HF_EXIT_DONE)
		return status;
	ret->kind = (enum hf_lock_kind)kind;
	ret->locks = hf_locks_kind(ret->locks, ret->kind);
	return HF_EXIT_DONE;
}

void lock_close(struct lock_context *context)
{
	hf_locks_free(context->locks);
	hf_journal_free(context->journal);
}

int lock_is_timeout(int result)
{
	return result == HF_E_BUSY || result == HF_E_TIMEOUT || result == HF_E_DEADLOCK;
}

static void holder_text(const struct hf_holder *holder, char *out, size_t cap)
{
	if (holder->id.pid > 0)
		(void)snprintf(out, cap, "pid %d%s%s, %s", (int)holder->id.pid, holder->host[0] ? " on " : "", holder->host,
			       holder->evidence);
	else
		(void)snprintf(out, cap, "unknown");
}

void lock_journal_timeout(const struct lock_context *context, enum hf_event event, const char *name,
			  int64_t waited_ns, const struct hf_holder *blocker,
			  const struct hf_err *err)
{
	const struct hf_err_info *info = hf_err_info(err->code);
	char holder[HF_EVIDENCE_MAX + HF_HOST_NAME_MAX + 24], text[HF_ERR_TEXT_MAX];
	struct hf_field fields[] = {
		HF_FIELD_INT("waited_ms", waited_ns / HF_MSEC),
		HF_FIELD_TEXT("cause", lock_is_timeout(err->code) && info ? info->name
									  : lock_why(err, text)),
		HF_FIELD_TEXT("holder", holder),
		HF_FIELD_TEXT("kind", hf_lock_kind_word(context->kind)),
	};

	holder_text(blocker, holder, sizeof(holder));
	if (context->journal)
		(void)hf_journal_append(context->journal, event, name, fields,
					context->kind == HF_LOCK_KIND_NAME ? 3 : 4, 0, NULL);
}

int lock_say_busy(const struct cli *cli, enum hf_lock_kind kind, const char *name,
		  const struct hf_holder *blocker, const struct hf_err *err, int status)
{
	char text[HF_ERR_TEXT_MAX], own[HF_NAME_MAX + 16], option[24] = "";

	if (kind != HF_LOCK_KIND_NAME)
		(void)snprintf(option, sizeof(option), " --kind %s", hf_lock_kind_word(kind));
	(void)hf_err_format(err, text, sizeof(text));
	/* The message starts with the lock's name, and contains it once. */
	(void)snprintf(own, sizeof(own), "lock '%s': ", name);
	if (strncmp(text, own, strlen(own)) == 0)
		cli_say(cli, "%s", text);
	else
		cli_say(cli, "%s%s", own, text);
	/* A flock of another tool cannot be broken. */
	if (err->code != HF_E_DEADLOCK && strcmp(err->op, "flock") != 0)
		cli_say(cli, "wait with -w 30s, see 'holdfast why%s %s', or end it with 'holdfast lock "
			     "break%s --reason TEXT %s'",
			option, cli_word(name), option, cli_word(name));
	if (cli->json)
		cli_print_json(hf_view_conflict(kind, name, blocker, err, status));
	return status;
}

int lock_settle(struct cli *cli, const struct lock_context *context, const struct lock_options *o,
		const char *name, int r, struct hf_mono start, const struct hf_holder *blocker,
		const struct hf_err *err, int *ret_go)
{
	int64_t waited = hf_mono_now().ns - start.ns;
	int usage = hf_err_exit_status(r) == HF_EXIT_USAGE;
	char text[HF_ERR_TEXT_MAX];

	*ret_go = 0;
	/* Never without its event (L8). */
	if (o->on_timeout == ON_TIMEOUT_PROCEED && !usage && context->journal) {
		lock_journal_timeout(context, HF_EV_LOCK_FAIL_OPEN, name, waited, blocker, err);
		cli_say(cli, "running WITHOUT the lock '%s': %s", name, lock_why(err, text));
		*ret_go = 1;
		return HF_EXIT_DONE;
	}
	if (!lock_is_timeout(r))
		return cli_fail(cli, err);
	if (o->on_timeout == ON_TIMEOUT_SKIP) {
		lock_journal_timeout(context, HF_EV_LOCK_SKIPPED, name, waited, blocker, err);
		cli_say(cli, "skipped: lock '%s': %s", name, err->detail);
		if (cli->json)
			cli_print_json(hf_view_conflict(context->kind, name, blocker, err, HF_EXIT_DONE));
		return HF_EXIT_DONE;
	}
	return lock_say_busy(cli, context->kind, name, blocker, err, (int)o->busy_status);
}

int lock_owner(const struct cli *cli, const char *pid_word, struct hf_proc_id *ret)
{
	struct hf_err err = HF_ERR_INIT;
	uint64_t pid = (uint64_t)getppid();

	if (pid_word && (hf_parse_u64(pid_word, strlen(pid_word), INT32_MAX, &pid) < 0 || pid == 0))
		return cli_usage(cli, "--pid: '%s' is not a pid", pid_word);
	if (hf_proc_identify((int32_t)pid, ret, &err) < 0)
		return cli_fail(cli, &err);
	return HF_EXIT_DONE;
}
