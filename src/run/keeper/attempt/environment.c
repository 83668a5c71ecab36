/* run/keeper/attempt/environment.c - the variables that the command gets: ours, those of --env, and the caller's. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "hf/base/cleanup.h"
#include "hf/run/keeper/keeper.h"

static int add_variable(struct hf_keeper *k, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int add_variable(struct hf_keeper *k, const char *format, ...)
{
	size_t n = 0;
	va_list args;
	int len;

	while (k->env_set[n])
		n++;
	if (n + 1 >= sizeof(k->env_set) / sizeof(k->env_set[0]))
		return 1;
	va_start(args, format);
	len = vasprintf(&k->env_set[n], format, args);
	va_end(args);
	if (len < 0)
		k->env_set[n] = NULL;
	return len < 0;
}

int hf_keeper_environment(struct hf_keeper *k)
{
	static const char *const unset[] = { "HOLDFAST_DEADLINE", NULL };
	const char *around = getenv(HF_MARK_VARIABLE);
	unsigned long long token = k->record.token;
	int bad = 0;

	free(k->envp);
	for (size_t i = 0; k->env_set[i]; i++) {
		free(k->env_set[i]);
		k->env_set[i] = NULL;
	}
	bad |= add_variable(k, HF_MARK_VARIABLE "=%s%llu%s%s", k->tree.mark, token,
			    around && around[0] ? ":" : "", around ? around : "");
	bad |= add_variable(k, "HOLDFAST_SESSION=%s", k->name);
	bad |= add_variable(k, "HOLDFAST_LOCK=%s", k->name);
	bad |= add_variable(k, "HOLDFAST_LOCK_KIND=%s", hf_lock_kind_word(HF_LOCK_KIND_NAME));
	bad |= add_variable(k, "HOLDFAST_TOKEN=%llu", token);
	bad |= add_variable(k, "HOLDFAST_DIR=%s", hf_state_path(k->sessions->state));
	bad |= add_variable(k, "HOLDFAST_DEPTH=%llu", (unsigned long long)hf_keeper_depth() + 1);
	bad |= add_variable(k, "HOLDFAST_ATTEMPT=%u", k->record.attempt);
	/* For people and scripts, so by their clock; in seconds. */
	if (k->o.deadline_ns)
		bad |= add_variable(k, "HOLDFAST_DEADLINE=%lld",
				    (long long)((hf_wall_now().ns + k->o.deadline_ns) / HF_SEC));
	for (char *const *more = k->stage && k->stage->environment ? k->stage->environment(k->stage->arg) : NULL;
	     more && *more; more++)
		bad |= add_variable(k, "%s", *more);
	k->envp = bad ? NULL : hf_spawn_environment(k->env_set, k->given.env, unset);
	return k->envp ? 0 : -ENOMEM;
}
