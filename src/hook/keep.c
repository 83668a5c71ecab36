/* hook/keep.c - switching work mode on and off, and looking at it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/hook/mode.h"

int hf_hooks_open(struct hf_state *state, struct hf_journal *journal, struct hf_hooks **ret_hooks,
		  struct hf_err *err)
{
	struct hf_hooks *hooks = calloc(1, sizeof(*hooks));

	if (!hooks)
		return hf_fail_sys(err, ENOMEM, "malloc", "hooks");
	*hooks = (struct hf_hooks){ .state = state, .journal = journal, .dirfd = -1 };
	*ret_hooks = hooks;
	return 0;
}

void hf_hooks_free(struct hf_hooks *hooks)
{
	if (!hooks)
		return;
	hf_auto_close(&hooks->dirfd);
	free(hooks);
}

/* The options as a record has them; 0 or -EINVAL. */
static int take_options(struct hf_mode *mode, const struct hf_keep_opts *opts, struct hf_err *err)
{
	const char *goal = opts->goal ? opts->goal : "", *until = opts->until ? opts->until : "";

	if (strlen(goal) > HF_KEEP_GOAL_MAX)
		return FAIL(err, -EINVAL, "keep", mode->id, "the goal has %zu bytes; at most %d fit", strlen(goal),
			    HF_KEEP_GOAL_MAX);
	if (strlen(until) > HF_KEEP_UNTIL_MAX)
		return FAIL(err, -EINVAL, "keep", mode->id, "the until command has %zu bytes; at most %d fit",
			    strlen(until), HF_KEEP_UNTIL_MAX);
	if (opts->ttl_ns < 0)
		return FAIL(err, -EINVAL, "keep", mode->id, "a ttl must not be negative");
	if (opts->until_ns < 0 || opts->until_ns > HF_KEEP_UNTIL_LONGEST_NS)
		return FAIL(err, -EINVAL, "keep", mode->id, "the until command may take at most 9 minutes: clients end a hook after 10");
	free(mode->cwd);
	mode->cwd = opts->cwd ? strdup(opts->cwd) : getcwd(NULL, 0);
	if (!mode->cwd)
		return FAIL_SYS(err, "getcwd", mode->id);
	memcpy(mode->goal, goal, strlen(goal) + 1);
	memcpy(mode->until, until, strlen(until) + 1);
	mode->ttl_ns = opts->ttl_ns ? opts->ttl_ns : HF_KEEP_TTL_NS;
	mode->max = opts->max ? opts->max : HF_KEEP_MAX;
	mode->until_ns = opts->until_ns ? opts->until_ns : HF_KEEP_UNTIL_NS;
	return 0;
}

int hf_keep_on(struct hf_hooks *hooks, const char *id, const struct hf_keep_opts *opts, struct hf_err *err)
{
	static const struct hf_keep_opts defaults = { .size = sizeof(defaults) };
	AUTO(hf_mode_close) struct hf_mode mode = HF_MODE_INIT;
	int was_on, r;

	if (opts && opts->size != sizeof(*opts))
		return FAIL(err, -EINVAL, "keep", id, "struct hf_keep_opts has another size");
	r = hf_mode_open(hooks, id, 1, &mode, err);
	if (r < 0)
		return r;
	was_on = mode.ttl_ns > 0 && hf_mode_left(&mode) > 0;
	r = take_options(&mode, opts ? opts : &defaults, err);
	if (r < 0) {
		/* One that was just made has nothing in it. */
		if (mode.since.ns == 0)
			(void)unlinkat(hooks->dirfd, mode.key, 0);
		return r;
	}
	mode.since = hf_wall_now();
	mode.blocks = mode.idle = 0;
	mode.total = 0;
	mode.turn[0] = '\0';
	mode.answered.ns = 0;
	r = hf_mode_save(&mode, err);
	if (r < 0)
		return r;
	struct hf_field fields[] = { HF_FIELD_INT("ttl_ms", mode.ttl_ns / HF_MSEC), HF_FIELD_INT("max", mode.max),
				     HF_FIELD_BOOL("until", mode.until[0] != '\0') };

	hf_hook_tell(hooks, HF_EV_KEEP_ON, id, fields, 3);
	return was_on;
}

int hf_keep_off(struct hf_hooks *hooks, const char *id, struct hf_err *err)
{
	AUTO(hf_mode_close) struct hf_mode mode = HF_MODE_INIT;
	int r = hf_mode_open(hooks, id, 0, &mode, err);

	if (r <= 0)
		return r;
	r = hf_mode_end(&mode, "switched off", err);
	return r < 0 ? r : 1;
}

struct look {
	struct hf_hooks *hooks;
	hf_keep_fn *fn;
	void *arg;
	struct hf_err *err;
	int n;
};

int hf_keep_look(struct hf_hooks *hooks, const char *id, hf_keep_fn *fn, void *arg, struct hf_err *err)
{
	AUTO(hf_mode_close) struct hf_mode mode = HF_MODE_INIT;
	int r = fn ? hf_mode_open(hooks, id, 0, &mode, err) : hf_mode_exists(hooks, id, err);

	if (r <= 0 || !fn)
		return r;
	fn(arg, &(struct hf_keep_info){ .id = mode.id,
					.goal = mode.goal,
					.until = mode.until,
					.cwd = mode.cwd,
					.since = mode.since,
					.left_ns = hf_mode_left(&mode),
					.max = mode.max,
					.blocks = mode.blocks,
					.idle = mode.idle,
					.tools = mode.tools,
					.total = mode.total,
					.until_ns = mode.until_ns });
	return 1;
}

static int look_at(void *arg, const char *id)
{
	struct look *look = arg;
	int r = hf_keep_look(look->hooks, id, look->fn, look->arg, look->err);

	look->n += r > 0;
	return r < 0 ? r : 0;
}

int hf_keep_list(struct hf_hooks *hooks, hf_keep_fn *fn, void *arg, struct hf_err *err)
{
	struct look look = { hooks, fn, arg, err, 0 };
	int r = hf_mode_each(hooks, look_at, &look, err);

	return r < 0 ? r : look.n;
}
