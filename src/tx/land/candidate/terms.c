/* tx/land/candidate/terms.c - on which terms a candidate lands: given with the run that made it, or with a later try, and kept in its record. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/exec/lookup.h"
#include "hf/plan/enter/confine.h"
#include "hf/tx/land/candidate/land.h"
#include "hf/tx/land/git/git.h"

void hf_landing_free_list(char ***list)
{
	for (size_t i = 0; *list && (*list)[i]; i++)
		free((*list)[i]);
	free(*list);
	*list = NULL;
}

int hf_landing_set_list(char ***list, const char *const *value)
{
	char **copy = NULL;
	size_t n = 0;

	while (value && value[n])
		n++;
	if (n > 0)
		copy = calloc(n + 1, sizeof(*copy));
	for (size_t i = 0; copy && i < n; i++)
		if (!(copy[i] = strdup(value[i])))
			hf_landing_free_list(&copy);
	if (n > 0 && !copy)
		return -ENOMEM;
	hf_landing_free_list(list);
	*list = copy;
	return 0;
}

static int check(const struct hf_landing *landing, const struct hf_land_opts *opts, struct hf_err *err)
{
	for (size_t i = 0; opts->also && opts->also[i]; i++)
		if (i == HF_LAND_ALSO_MAX || !opts->also[i][0])
			return FAIL(err, -EINVAL, "arguments", landing->name, "at most %d globs of ignored files are possible, and none may be empty",
				    HF_LAND_ALSO_MAX);
	for (size_t i = 0; opts->env && opts->env[i]; i++)
		if (!strchr(opts->env[i], '=') || opts->env[i][0] == '=')
			return FAIL(err, -EINVAL, "arguments", landing->name, "a variable must be NAME=VALUE");
	if (opts->dir && opts->dir[0] && opts->dir[0] != '/')
		return FAIL(err, -EINVAL, "arguments", landing->name, "the verifier's directory must be absolute");
	return hf_lookup_line("verifier", opts->verify, opts->env ? opts->env : (const char *const *)landing->env,
			      opts->dir && opts->dir[0] ? opts->dir : landing->dir && landing->dir[0] ? landing->dir : landing->top, err);
}

/* The real repository is asked: an agent may have changed the configuration of its sandbox. */
int hf_land_ask_sign(const struct hf_landing *landing, enum hf_land_sign *ret, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_git git = { .dir = landing->common, .out = &out };
	int r = landing->sign ? 0 : hf_git(&git, err, "config", "--type=bool", "--get", "commit.gpgSign", NULL);

	*ret = landing->sign ? HF_LAND_SIGN_ALL : r == 0 && strcmp(out.s, "true\n") == 0 ? HF_LAND_SIGN_IF_POSSIBLE : HF_LAND_SIGN_NONE;
	return r < 0 ? r : 0;
}

int hf_landing_take_terms(struct hf_landing *landing, const struct hf_land_opts *opts, const struct hf_plans *plans, struct hf_err *err)
{
	int r = check(landing, opts, err);

	if (r < 0)
		return r;
	if (opts->merge != HF_LAND_MERGE_AS_BEFORE)
		landing->merge = opts->merge;
	landing->keep_plan |= (opts->flags & HF_LAND_KEEP_PLAN) != 0;
	landing->sign |= (opts->flags & HF_LAND_SIGN) != 0;
	if (opts->token)
		landing->token = opts->token;
	if (opts->verify_ns > 0)
		landing->verify_limit_ns = opts->verify_ns;
	if (landing->verify_limit_ns <= 0)
		landing->verify_limit_ns = HF_LAND_VERIFY_NS;
	if ((opts->verify && hf_landing_set(&landing->verify, opts->verify) < 0) ||
	    (opts->message && hf_landing_set(&landing->message, opts->message) < 0) ||
	    (opts->session && hf_landing_set(&landing->session, opts->session) < 0) ||
	    (opts->dir && hf_landing_set(&landing->dir, opts->dir) < 0) ||
	    (opts->also && hf_landing_set_list(&landing->also, opts->also) < 0) ||
	    (opts->env && hf_landing_set_list(&landing->env, opts->env) < 0))
		return hf_fail_sys(err, ENOMEM, "memory", landing->name);
	if (!plans->confine)
		return 0;
	landing->confine = plans->confine->flags;
	if (hf_landing_set_list(&landing->write, (const char *const *)plans->confine->write) < 0)
		return hf_fail_sys(err, ENOMEM, "memory", landing->name);
	return 0;
}
