/* tx/land/candidate/begin.c - the start of a candidate: its record, and a sandbox as it is committed. */
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/buf.h"
#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/sys/io.h"
#include "hf/tx/land/git/git.h"
#include "hf/tx/land/candidate/begin.h"
#include "hf/tx/land/candidate/land.h"
#include "hf/tx/land/candidate/lock.h"

int hf_land_new_record(const char *name, const char *plan, const struct hf_land_place *place,
		       struct hf_landing *ret, struct hf_err *err)
{
	AUTO(hf_landing_done) struct hf_landing landing = { 0 };

	if (hf_landing_init(&landing, name) < 0 || hf_landing_set(&landing.top, place->top) < 0 ||
	    hf_landing_set(&landing.git_dir, place->git_dir) < 0 || hf_landing_set(&landing.common, place->common) < 0 ||
	    hf_landing_set(&landing.branch, place->branch) < 0 || hf_landing_set(&landing.plan, plan) < 0)
		return hf_fail_sys(err, ENOMEM, "memory", name);
	hf_copy_text(landing.base, sizeof(landing.base), place->base);
	landing.dev = place->dev;
	landing.ino = place->ino;
	*ret = landing;
	landing = (struct hf_landing){ 0 };
	return 0;
}

/* In a child, inside: a lock that is seen through the sandbox is that of a user's git, and none here. */
static int remove_locks(void *arg)
{
	static const char *const names[] = { "index.lock", "HEAD.lock" };
	const struct hf_land_place *place = arg;
	char path[PATH_MAX];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (snprintf(path, sizeof(path), "%s/%s", place->git_dir, names[i]) < (int)sizeof(path))
			(void)unlink(path);
	return 0;
}

/* The user's edits go out of the sandbox; what git ignores stays, so that builds are warm. */
int hf_land_restore(struct hf_landings *landings, const char *plan, const struct hf_land_place *place, int is_changed, int has_untracked,
		    struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	struct hf_git git = { .plans = landings->plans, .plan = plan, .dir = place->top, .said = &said, .before = remove_locks,
			      .before_arg = (void *)(uintptr_t)place };
	int r = is_changed ? hf_git(&git, err, "reset", "--quiet", "--hard", NULL) : 0;

	/* A user's git may have come between: its lock is gone in a moment, or removed by the next try. */
	for (int try = 1; r > 0 && try < HF_LAND_TRIES; try++) {
		hf_pause(20 * HF_MSEC);
		r = hf_git(&git, err, "reset", "--quiet", "--hard", NULL);
	}
	if (r == 0 && has_untracked)
		r = hf_git(&git, err, "clean", "-q", "-f", "-d", NULL);
	return r > 0 ? hf_git_failed(&said, place->top, "reset", err) : r;
}

int hf_land_may_begin(struct hf_landings *landings, const char *name, struct hf_err *err)
{
	AUTO(hf_landing_done) struct hf_landing old = { 0 };
	struct hf_err why = HF_ERR_INIT;
	char word[HF_SHELL_WORD_MAX];
	int r = hf_landing_load(landings, name, &old, &why);

	if (r == HF_E_NO_LANDING || r == HF_E_FORMAT)
		return 0;
	if (r < 0) {
		if (err)
			*err = why;
		return r;
	}
	/* One that was only begun holds nothing that its plan does not hold; one that its agent went on with (hf_land_reopen) may. */
	if (old.state != HF_LAND_LANDED && old.state != HF_LAND_DROPPED && (old.state != HF_LAND_WORKING || old.tip[0]))
		return FAIL(err, HF_E_PLAN_STATE, "land", name,
			    "it is %s, and its work in %.80s did not land; 'holdfast land %s' tries again, 'holdfast land drop %s' drops it",
			    hf_land_state_word(old.state), old.top ? old.top : "a repository", hf_shell_word(name, word), word);
	return 0;
}

/* Refs that keep work of a candidate of that name before are its own now: 'land drop' removes them. */
static void carry_rest(struct hf_landings *landings, struct hf_landing *landing)
{
	AUTO(hf_landing_done) struct hf_landing old = { 0 };

	if (hf_landing_load(landings, landing->name, &old, NULL) < 0 || strcmp(old.common, landing->common) != 0)
		return;
	hf_land_rest_forget(&old.rest);
	landing->rest = old.rest;
	old.rest = (struct hf_land_rest){ 0 };
}

int hf_land_begin_pinned(struct hf_landings *landings, const char *name, const char *plan, const struct hf_land_place *place,
			 const struct hf_land_opts *opts, struct hf_err *err)
{
	AUTO(hf_landing_done) struct hf_landing landing = { 0 };
	AUTO(hf_land_unlock) struct hf_lock *lock = NULL;
	char lock_name[HF_NAME_MAX + 1], key[HF_NAME_KEY_MAX];
	int r = hf_name_key(name, strlen(name), key, err);

	if (r < 0)
		return r;
	hf_land_lock_name(name, lock_name);
	r = hf_land_lock(landings, lock_name, NULL, &lock, err);
	if (r == 0)
		r = hf_land_may_begin(landings, name, err);
	if (r == 0)
		r = hf_land_new_record(name, plan, place, &landing, err);
	if (r == 0)
		carry_rest(landings, &landing);
	if (r == 0 && opts)
		r = hf_landing_take_terms(&landing, opts, landings->plans, err);
	if (r == 0)
		r = hf_land_pin(landings, &landing, place, err);
	/* Not synced: the last process that leaves the sandbox syncs its work, and this with it. Before that there is none. */
	return r < 0 ? r : hf_landing_note(landings, &landing, err);
}

/* Does the index that was pinned differ from HEAD? A user's git may have changed it after it was found to be clean. 1, 0 or an error. */
static int is_staged(struct hf_landings *landings, const char *plan, const struct hf_land_place *place, struct hf_err *err)
{
	struct hf_git git = { .plans = landings->plans, .plan = plan, .dir = place->top };
	int r = hf_git(&git, err, "diff-index", "--cached", "--quiet", "HEAD", "--", NULL);

	return r < 0 ? r : r != 0;
}

int hf_land_begin(struct hf_landings *landings, const char *name, const char *plan, const struct hf_land_place *place,
		  enum hf_land_base base, struct hf_err *err)
{
	int r;

	if (!landings || !name || !plan || !place || !place->top)
		return FAIL(err, -EINVAL, "arguments", "hf_land_begin", "NULL");
	r = hf_land_begin_pinned(landings, name, plan, place, NULL, err);
	if (r < 0 || base != HF_LAND_BASE_HEAD)
		return r;
	r = place->n_dirty > 0 ? 1 : is_staged(landings, plan, place, err);
	return r > 0 ? hf_land_restore(landings, plan, place, 1, 1, err) : r;
}
