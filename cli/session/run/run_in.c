/* cli/session/run/run_in.c - run --in: options of the sandbox, the question before the commit, and the report. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/buf.h"
#include "hf/base/cleanup.h"
#include "command.h"
#include "plan/plan.h"
#include "session/run/run_in.h"
#include "session/run/run_more.h"
#include "session/unlanded.h"

/* Shows the changes on stderr, because the command's output may be data. */
static int show_changes(const struct run_in *in, const char *plan, int patch)
{
	char *argv[] = { (char *)(uintptr_t)plan, patch ? (char *)(uintptr_t)"-p" : NULL, NULL };
	struct cli cli = *in->cli;
	int status;

	(void)dup2(STDERR_FILENO, STDOUT_FILENO);
	cli.json = 0;
	status = cmd_plan_diff(&cli, patch ? 2 : 1, argv);
	(void)fflush(stdout);
	return status;
}

/* Asks before the commit. Runs in a separate process in the terminal's foreground. */
static int ask(void *arg, struct hf_plans *plans, const char *plan)
{
	const struct run_in *in = arg;
	char answer[16] = "";

	(void)plans;
	(void)setenv("PAGER", "", 1); /* the question follows the changes directly */
	if (show_changes(in, plan, 0) != HF_EXIT_DONE)
		return 0;
	for (;;) {
		fprintf(stderr, "session '%s': commit these changes? d shows the diff [y/N/d] ", in->name);
		(void)fflush(stderr);
		if (!fgets(answer, sizeof(answer), stdin))
			return 0;
		if (strcmp(answer, "d\n") != 0 && strcmp(answer, "D\n") != 0)
			return strcmp(answer, "y\n") == 0 || strcmp(answer, "Y\n") == 0 || strcmp(answer, "yes\n") == 0;
		(void)show_changes(in, plan, 1);
	}
}

static void say(void *arg, const char *text)
{
	const struct run_in *in = arg;

	cli_say(in->cli, "session '%s': %s", in->name, text);
}

static int check_words(const struct run_in *in, struct hf_tx_opts *ret)
{
	int strategy = in->strategy ? hf_strategy_of(in->strategy) : HF_STRATEGY_AUTO;

	if (strategy < 0)
		return cli_usage(in->cli, "--strategy must be auto, overlay, clone or copy, not '%s'", in->strategy);
	ret->strategy = (enum hf_strategy)strategy;
	if (in->keep && !(ret->keep = hf_tx_keep_of(in->keep)))
		return cli_usage(in->cli, "--keep must be on-failure, always or never, not '%s'", in->keep);
	if (in->commit && !(ret->commit = hf_tx_commit_of(in->commit)))
		return cli_usage(in->cli, "--commit must be on-success, ask or never, not '%s'", in->commit);
	if (in->land && !in->land[0])
		return cli_usage(in->cli, "--land must be a branch, HEAD or off, not ''");
	ret->land = in->land;
	if (in->base && strcmp(in->base, "worktree") == 0)
		ret->base = HF_LAND_BASE_WORKTREE;
	else if (in->base && strcmp(in->base, "head") != 0)
		return cli_usage(in->cli, "--base must be head or worktree, not '%s'", in->base);
	if (in->land_merge && hf_land_merge_of(in->land_merge) < 0)
		return cli_usage(in->cli, "--land-merge must be rebase, merge or ff-only, not '%s'", in->land_merge);
	if (in->land_merge)
		ret->land_merge = (enum hf_land_merge)hf_land_merge_of(in->land_merge);
	ret->message = in->message;
	ret->also = (const char *const *)in->also;
	return HF_EXIT_DONE;
}

int run_in_check(struct run_in *in, int detach, struct hf_tx_opts *ret)
{
	int status;

	*ret = (struct hf_tx_opts){ .size = sizeof(*ret),
				    .dirs = (const char *const *)in->dirs,
				    .flags = (in->merge ? HF_TX_MERGE : 0U) | (in->readonly_rest ? HF_TX_READONLY_REST : 0U) |
					     (in->no_network ? HF_TX_NO_NETWORK : 0U) | (in->require_change ? HF_TX_REQUIRE_CHANGE : 0U) |
					     (in->sign ? HF_TX_SIGN : 0U) | (in->discard ? HF_TX_DISCARD : 0U),
				    .write = (const char *const *)in->write,
				    .retry = (uint32_t)in->retry,
				    .speculate = (uint32_t)in->speculate,
				    .say = say,
				    .arg = in };
	status = check_words(in, ret);
	if (status != HF_EXIT_DONE)
		return status;
	if (in->ask && in->commit && ret->commit != HF_TX_COMMIT_ASK)
		return cli_usage(in->cli, "--ask and --commit %s cannot be combined", in->commit);
	if (in->ask)
		ret->commit = HF_TX_COMMIT_ASK;
	if (ret->commit == HF_TX_COMMIT_ASK && (detach || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)))
		return cli_usage(in->cli, "--commit ask needs a terminal");
	/* A resumed session may have stored --ask. */
	if (!detach && isatty(STDIN_FILENO) && isatty(STDERR_FILENO))
		ret->ask = ask;
	return HF_EXIT_DONE;
}

static void say_conflicts(const struct run_in *in, const struct hf_tx_report *landed)
{
	for (size_t i = 0; i < landed->n_listed; i++) {
		const struct hf_tx_conflict *c = &landed->conflicts[i];
		AUTO(hf_buf_done) struct hf_buf line = HF_BUF_INIT;

		hf_buf_add_shown(&line, c->sandbox, strlen(c->sandbox));
		hf_buf_add_text(&line, ": ");
		hf_buf_add_shown(&line, c->path, strlen(c->path));
		if (c->by[0]) {
			hf_buf_add_text(&line, " (by ");
			hf_buf_add_shown(&line, c->by, strlen(c->by));
			hf_buf_add_char(&line, ')');
		}
		if (line.err)
			cli_die_oom();
		cli_say(in->cli, "%-17s %s", c->kind, line.s);
	}
	if (landed->n_conflicts > landed->n_listed)
		cli_say(in->cli, "and %zu more", landed->n_conflicts - landed->n_listed);
}

#define RESUME_MAX (HF_SHELL_WORD_MAX + 64)

/* "'holdfast run --resume NAME' continues in it, " */
static const char *resume_words(const struct run_in *in, char out[RESUME_MAX])
{
	(void)snprintf(out, RESUME_MAX, "'holdfast run --resume %s' continues in it, ", cli_word(in->name));
	return out;
}

static void tell_landing(const struct run_in *in, const struct hf_run_report *report, const struct hf_tx_report *landed)
{
	unsigned long long files = (unsigned long long)(landed->added + landed->changed + landed->deleted);
	char key[HF_NAME_KEY_MAX], resume[RESUME_MAX];

	if (landed->refused && report->outcome == HF_OUTCOME_FAILED)
		cli_say(in->cli, "session '%s': %s", in->name, report->cause);
	if (landed->committed && landed->unsigned_commits > 0)
		cli_say(in->cli, "session '%s': %u signed commit%s rebased and no longer signed", in->name, landed->unsigned_commits,
			landed->unsigned_commits == 1 ? " was" : "s were");
	if (landed->is_unsigned)
		cli_say(in->cli, "session '%s': commit.gpgSign is set, but no key could be used: commits are not signed", in->name);
	if (landed->no_change)
		return;
	if (landed->committed && landed->is_there)
		cli_say(in->cli, "session '%s': its change is on %s already; nothing was added", in->name, landed->branch);
	else if (landed->committed && landed->commits == 0)
		cli_say(in->cli, "session '%s': nothing to land on %s", in->name, landed->branch);
	else if (landed->committed)
		cli_say(in->cli, "session '%s': landed on %s as %.12s: %u commit%s, %llu file%s%s", in->name, landed->branch, landed->commit,
			landed->commits, landed->commits == 1 ? "" : "s", files, files == 1 ? "" : "s", landed->rebased ? ", rebased onto the new state of the branch" : "");
	if (landed->committed && landed->kept && !landed->unlanded)
		cli_say(in->cli, "session '%s': the sandbox is kept as plan '%s'; 'holdfast land %s' lands later work in it", in->name, landed->plan,
			cli_word(in->name));
	if (!landed->committed && !landed->commit[0] && landed->kept)
		/* The reason for the refusal is in the sandbox or the repository, and stays until a user fixes it there. */
		cli_say(in->cli, "session '%s': not landed on %s, kept as plan '%s': 'holdfast plan diff %s' shows it, %s'holdfast land %s' "
				 "%s, 'holdfast land drop %s' drops it",
			in->name, landed->branch, landed->plan, cli_word(landed->plan), resume_words(in, resume), cli_word(in->name),
			landed->refused ? "tries again after that is fixed" : "tries to land it as it is", cli_word(in->name));
	else if (!landed->committed && landed->commit[0])
		cli_say(in->cli, "session '%s': not landed on %s; the work is kept as refs/holdfast/%s: 'holdfast land %s' tries again, "
				 "'holdfast land show %s' shows the reason, 'holdfast land drop %s' drops it",
			in->name, landed->branch, hf_name_key(in->name, strlen(in->name), key, NULL) < 0 ? in->name : key, cli_word(in->name),
			cli_word(in->name), cli_word(in->name));
}

void run_in_tell(const struct run_in *in, const struct hf_run_report *report, const struct hf_tx_report *landed)
{
	unsigned long long n = (unsigned long long)(landed->added + landed->changed + landed->deleted);
	char resume[RESUME_MAX];

	if (!landed->plan[0])
		return;
	say_conflicts(in, landed);
	if (landed->branch[0]) {
		tell_landing(in, report, landed);
		return;
	}
	if (landed->committed && n > 0)
		cli_say(in->cli, "session '%s': committed: %llu added, %llu changed, %llu deleted", in->name,
			(unsigned long long)landed->added, (unsigned long long)landed->changed,
			(unsigned long long)landed->deleted);
	if (landed->committed && landed->kept && n > 0)
		cli_say(in->cli, "session '%s': 'holdfast plan undo %s' undoes that", in->name, cli_word(landed->plan));
	if (landed->committed || !landed->kept)
		return;
	cli_say(in->cli, "session '%s': not committed, kept as plan '%s': 'holdfast plan diff %s' shows it, 'holdfast plan commit %s' "
			 "commits it, %s'holdfast plan rm --discard %s' drops it",
		in->name, landed->plan, cli_word(landed->plan), cli_word(landed->plan),
		report->outcome == HF_OUTCOME_SUCCEEDED ? "" : resume_words(in, resume), cli_word(landed->plan));
}

static void note_outcome(void *arg, const struct hf_session_info *info)
{
	*(enum hf_outcome *)arg = info->outcome;
}

void run_in_tell_refused(const struct run_in *in, struct hf_state *state)
{
	struct hf_tx_unlanded work = { .size = sizeof(work) };
	enum hf_outcome last = HF_OUTCOME_NONE;
	struct hf_sessions *sessions = NULL;

	if (in->cli->json)
		return;
	if (hf_sessions_open(state, NULL, &sessions, NULL) == 0)
		(void)!hf_session_look(sessions, in->name, note_outcome, &last, NULL);
	hf_sessions_free(sessions);
	if (hf_tx_unlanded(state, in->name, &work, NULL) > 0)
		unlanded_say_commands(in->cli, in->name, &work, last != HF_OUTCOME_NONE && last != HF_OUTCOME_SUCCEEDED);
	cli_say(in->cli, "run it with --discard to drop that work and begin again");
}

void run_in_say_discarded(const struct run_in *in, struct hf_state *state)
{
	struct hf_tx_unlanded work = { .size = sizeof(work) };

	if (hf_tx_unlanded(state, in->name, &work, NULL) > 0 && !work.in_use)
		cli_say(in->cli, "session '%s': dropping the work of the last run: %s", in->name, work.text);
}

int run_in_result(const struct run_in *in, json_t *object)
{
	AUTO_FD fd = -1;
	char *text;
	size_t len;
	ssize_t n;

	if (!in->result)
		return HF_EXIT_DONE;
	text = run_dump(object, &len);
	fd = open(in->result, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	n = fd < 0 ? -1 : write(fd, text, len);
	free(text);
	if (n == (ssize_t)len)
		return HF_EXIT_DONE;
	cli_say(in->cli, "--result %s: %s", in->result, strerrordesc_np(errno));
	return HF_EXIT_OS;
}
