/* run/keeper/resume.c - the options in force: those that are given now, on top of those that were stored. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/escapes.h"
#include "hf/base/fail.h"
#include "hf/run/keeper/keeper.h"
#include "hf/run/options.h"

void hf_keeper_peek(struct hf_keeper *k, struct hf_state *state)
{
	struct hf_sessions *sessions = NULL;
	struct hf_stored stored;

	if (!(k->o.flags & HF_RUN_RESUME) || hf_sessions_open(state, NULL, &sessions, NULL) < 0)
		return;
	if (hf_stored_load(sessions, k->name, 0, 0, &stored, NULL) == 0) {
		if (k->given.idle_ns == 0)
			k->o.idle_ns = stored.o.idle_ns;
		k->o.flags |= hf_options_stored_flags(&k->given, &stored.o);
		hf_stored_done(&stored);
	}
	hf_sessions_free(sessions);
}

/* -- the environment ------------------------------------------------------------------ */

static int is_same_variable(const char *a, const char *b)
{
	size_t len = strcspn(a, "=");

	return strncmp(a, b, len) == 0 && b[len] == '=';
}

static int is_given(char *const *env, const char *entry)
{
	for (size_t i = 0; env && env[i]; i++)
		if (is_same_variable(env[i], entry))
			return 1;
	return 0;
}

/* The stored ones that are not given anew, then the given ones. Lives as long as the keeper. */
static int merge_env(struct hf_keeper *k)
{
	char *const *given = k->given.env, *const *old = k->stored.o.env;
	size_t n = 0, at = 0;
	char **env;

	if (!given || !old) {
		k->given.env = given ? given : old;
		return 0;
	}
	while (given[n])
		n++;
	for (size_t i = 0; old[i]; i++)
		n++;
	env = calloc(n + 1, sizeof(*env));
	if (!env)
		return -ENOMEM;
	for (size_t i = 0; old[i]; i++)
		if (!is_given(given, old[i]))
			env[at++] = old[i];
	for (size_t i = 0; given[i]; i++)
		env[at++] = given[i];
	k->given.env = env;
	return 0;
}

/* -- resuming ---------------------------------------------------------------------- */

static int may_resume(struct hf_keeper *k, const struct hf_session_record *old, struct hf_err *err)
{
	if (old->token == 0)
		return FAIL(err, HF_E_NO_SESSION, "resume", k->name, "nothing to resume");
	if (hf_session_check_run(old, k->given.resume_token, "resume", err) < 0)
		return err->code;
	if (old->outcome == HF_OUTCOME_SUCCEEDED)
		return FAIL(err, HF_E_FINISHED, "resume", k->name,
			    "attempt %u succeeded; a new run needs its command again", old->attempt);
	return 0;
}

/*
 * Loads what was stored, if it is what the run before ran with. A command that is given again can do
 * without; then only what is given with it counts. *ret_why: that, for people.
 */
static int load(struct hf_keeper *k, const struct hf_session_record *old, const char **ret_why, struct hf_err *err)
{
	int has_command = k->given.argv && k->given.argv[0];
	int r = hf_stored_load(k->sessions, k->name, old->options, 1, &k->stored, err);

	*ret_why = "";
	if (r == 0 && !k->stored.has_options)
		*ret_why = " (its options were not stored)";
	if (r == HF_E_FORMAT && has_command) {
		*ret_why = " (its stored options are lost; only the options given now apply)";
		return 0;
	}
	return r;
}

/* The supervisor watches the lease and frees the place; and people are told. */
static void tell_resumed(struct hf_keeper *k)
{
	struct hf_link_news news = { .kind = HF_LINK_RESUMED,
				     .terms = { .ttl_ns = k->o.ttl_ns,
						.grace_ns = k->o.grace_ns,
						.max_active = k->o.max_active } };

	hf_copy_text(news.terms.group, sizeof(news.terms.group), k->o.group);
	memcpy(news.report.resumed, k->resumed, sizeof(k->resumed));
	hf_keeper_tell(k, &news, -1);
}

static void describe(struct hf_keeper *k, const char *why)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;
	char here[PATH_MAX];

	hf_buf_add_format(&text, "attempt %u in %s", k->record.attempt + 1,
			  getcwd(here, sizeof(here)) ? here : "a deleted directory");
	hf_options_describe(&k->given, &text);
	if (k->given.stage && k->stage && k->stage->describe)
		k->stage->describe(k->stage->arg, k->given.stage, &text);
	hf_buf_add_text(&text, why);
	if (!text.err)
		(void)hf_plain_text(k->resumed, sizeof(k->resumed), text.s, strlen(text.s));
}

/* Goes to the directory of the command. 0, or refused. */
int hf_keeper_enter_directory(struct hf_keeper *k, struct hf_err *err)
{
	/* We are there then: a relative one is gone to once. */
	if (!k->given.cwd || chdir(k->given.cwd) == 0) {
		k->given.cwd = NULL;
		return 0;
	}
	(void)FAIL(err, HF_E_NO_DIRECTORY, "directory",
		   k->given.cwd[0] ? k->given.cwd : "its directory",
		   "%s; give another with --cwd", strerrordesc_np(errno));
	return hf_keeper_refuse(k, err);
}

/* The layer above has its own options, in a text that it alone reads. */
static int merge_stage(struct hf_keeper *k, struct hf_err *err)
{
	int r = 0;

	if (k->stage && k->stage->merge)
		r = k->stage->merge(k->stage->arg, k->given.stage, k->stored.o.stage, &k->stage_text, err);
	else if (k->stored.o.stage)
		r = FAIL(err, -EINVAL, "resume", k->name, "it ran in a sandbox; resume it with hf_tx_supervise or hf_tx_start");
	if (r == 0 && k->stage_text)
		k->given.stage = k->stage_text;
	return r;
}

int hf_keeper_resume(struct hf_keeper *k, const struct hf_session_record *old, struct hf_err *err)
{
	const char *why;
	int r;

	if (!(k->given.flags & HF_RUN_RESUME))
		return 0;
	k->record.attempt = old->attempt;
	r = may_resume(k, old, err);
	if (r == 0)
		r = load(k, old, &why, err);
	if (r < 0)
		return hf_keeper_refuse(k, err);
	r = merge_stage(k, err);
	if (r < 0)
		return hf_keeper_refuse(k, err);
	hf_options_merge(&k->given, &k->stored.o);
	r = merge_env(k);
	if (r < 0)
		return hf_fail_sys(err, -r, "memory", k->name);
	r = hf_keeper_resume_input(k, err);
	if (r < 0)
		return hf_keeper_refuse(k, err);
	k->o = hf_options_complete(&k->given);
	hf_keeper_set_comm(k);
	/* Before it is said where it is resumed: the path may lead elsewhere now, or nowhere. */
	r = hf_keeper_enter_directory(k, err);
	if (r < 0)
		return r;
	describe(k, why);
	tell_resumed(k);
	/* The lock was taken before this was known. */
	r = hf_lock_renew(k->lock, k->o.ttl_ns, err);
	if (r < 0)
		return r;
	hf_renewal_begin(&k->renewal, k->lock, k->o.ttl_ns);
	return hf_keeper_check_depth(k, err);
}

/* -- storing ----------------------------------------------------------------------- */

int hf_keeper_store(struct hf_keeper *k, struct hf_err *err)
{
	char here[PATH_MAX];
	int r = hf_keeper_enter_directory(k, err);

	if (r == 0)
		r = hf_keeper_keep_input(k, err);
	if (r < 0)
		return r;
	/* Absolute, and as it is now: a resume may come from elsewhere. "": it is gone, and refused then. */
	if (!getcwd(here, sizeof(here)) || here[0] != '/')
		here[0] = '\0';
	k->given.cwd = here;
	r = hf_stored_stage(k->sessions, k->name, &k->given, k->options_before, &k->record.options, err);
	k->given.cwd = NULL;
	k->options_staged = r > 0;
	return r < 0 ? r : 0;
}

void hf_keeper_store_done(struct hf_keeper *k, int is_on_record)
{
	if (k->options_staged && !k->lost) {
		hf_stored_settle(k->sessions, k->name, is_on_record);
		hf_keeper_input_done(k, is_on_record);
	}
	k->options_staged = 0;
}
