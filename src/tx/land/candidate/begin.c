/* tx/land/candidate/begin.c - the start of a candidate: its record, and a sandbox as it is committed. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/tx/land/git/git.h"
#include "hf/tx/land/candidate/land.h"
#include "hf/tx/land/candidate/lock.h"

int hf_land_new_record(const char *name, const char *plan, const struct hf_land_place *place,
		       struct hf_landing *ret, struct hf_err *err)
{
	AUTO(hf_landing_done) struct hf_landing landing = { 0 };
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_git git = { .dir = place->top, .out = &out };
	char *common;
	int r = hf_git(&git, err, "rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir", NULL);

	if (r < 0)
		return r;
	common = strchr(out.s, '\n');
	if (r > 0 || !common)
		return FAIL(err, HF_E_LAND, "git", place->top, "its repository cannot be found");
	*common++ = '\0';
	common[strcspn(common, "\n")] = '\0';
	if (hf_landing_init(&landing, name) < 0 || hf_landing_set(&landing.top, place->top) < 0 ||
	    hf_landing_set(&landing.git_dir, out.s) < 0 || hf_landing_set(&landing.common, common) < 0 ||
	    hf_landing_set(&landing.branch, place->branch) < 0 || hf_landing_set(&landing.plan, plan) < 0)
		return hf_fail_sys(err, ENOMEM, "memory", name);
	hf_copy_text(landing.base, sizeof(landing.base), place->base);
	landing.dev = place->dev;
	landing.ino = place->ino;
	*ret = landing;
	landing = (struct hf_landing){ 0 };
	return 0;
}

/* The user's edits go out of the sandbox; what git ignores stays, so that builds are warm. */
static int restore(struct hf_landings *landings, const char *plan, const char *top, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	struct hf_git git = { .plans = landings->plans, .plan = plan, .dir = top, .said = &said };
	int r = hf_git(&git, err, "reset", "--quiet", "--hard", NULL);

	if (r == 0)
		r = hf_git(&git, err, "clean", "-q", "-f", "-d", NULL);
	return r > 0 ? hf_git_failed(&said, top, "reset", err) : r;
}

/*
 * HEAD, its branch and the index become the sandbox's own, so that a landing of another candidate does not move them under
 * the agent's hands: its next commit would undo that landing. What the agent begins with is read after that.
 */
static int pin(struct hf_landings *landings, struct hf_landing *landing, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf ref = HF_BUF_INIT;
	AUTO_FREE char *head = NULL;
	AUTO_FREE char *index = NULL;
	AUTO_FREE char *loose = NULL;
	struct hf_git git = { .plans = landings->plans, .plan = landing->plan, .dir = landing->top, .said = &said };
	char oid[HF_LAND_OID_MAX + 1];
	int r;

	if (asprintf(&head, "%s/HEAD", landing->git_dir) < 0)
		head = NULL;
	if (asprintf(&index, "%s/index", landing->git_dir) < 0)
		index = NULL;
	if (!head || !index)
		return hf_fail_sys(err, ENOMEM, "memory", landing->name);
	/* The time of access: any change copies the file, and this one means nothing to git. */
	r = hf_git_other(&git, (const char *const[]){ "touch", "-a", "-c", "--", head, index, NULL }, err);
	git.out = &ref;
	if (r >= 0)
		r = hf_git(&git, err, "symbolic-ref", "--quiet", "HEAD", NULL);
	ref.s[strcspn(ref.s, "\n")] = '\0';
	git.out = NULL;
	if (r >= 0 && (r = hf_git_oid(&git, "HEAD^{commit}", landing->base, err)) > 0)
		return hf_git_failed(&said, landing->top, "rev-parse", err);
	if (r < 0 || strncmp(ref.s, "refs/heads/", 11) != 0)
		return r;
	/* Written as a file of its own, wherever the ref is kept outside. */
	if (asprintf(&loose, "%s/%s", landing->common, ref.s) < 0)
		return hf_fail_sys(err, ENOMEM, "memory", landing->name);
	git.in = oid;
	git.in_len = (size_t)snprintf(oid, sizeof(oid), "%s\n", landing->base);
	r = hf_git_other(&git, (const char *const[]){ "install", "-D", "-m", "644", "/dev/stdin", loose, NULL }, err);
	return r > 0 ? FAIL(err, HF_E_LAND, "install", loose, "exit %d", r) : r;
}

int hf_land_begin(struct hf_landings *landings, const char *name, const char *plan, const struct hf_land_place *place,
		  enum hf_land_base base, struct hf_err *err)
{
	AUTO(hf_landing_done) struct hf_landing old = { 0 };
	AUTO(hf_landing_done) struct hf_landing landing = { 0 };
	AUTO(hf_land_unlock) struct hf_lock *lock = NULL;
	char lock_name[HF_NAME_MAX + 1], key[HF_NAME_KEY_MAX];
	struct hf_err why = HF_ERR_INIT;
	int r;

	if (!landings || !name || !plan || !place || !place->top)
		return FAIL(err, -EINVAL, "arguments", "hf_land_begin", "NULL");
	r = hf_name_key(name, strlen(name), key, err);
	if (r < 0)
		return r;
	hf_land_lock_name(name, lock_name);
	r = hf_land_lock(landings, lock_name, NULL, &lock, err);
	if (r < 0)
		return r;
	r = hf_landing_load(landings, name, &old, &why);
	if (r < 0 && r != HF_E_NO_LANDING && r != HF_E_FORMAT) {
		if (err)
			*err = why;
		return r;
	}
	/* One that was only begun holds nothing that its plan does not hold. */
	if (r == 0 && old.state != HF_LAND_LANDED && old.state != HF_LAND_DROPPED && old.state != HF_LAND_WORKING)
		return FAIL(err, HF_E_PLAN_STATE, "land", name,
			    "its work is kept and is %s; 'holdfast land %s' lands it, 'holdfast land drop %s' gives it up",
			    hf_land_state_word(old.state), name, name);
	r = hf_land_new_record(name, plan, place, &landing, err);
	if (r == 0)
		r = pin(landings, &landing, err);
	if (r == 0 && base == HF_LAND_BASE_HEAD && place->n_dirty > 0)
		r = restore(landings, plan, place->top, err);
	return r < 0 ? r : hf_landing_save(landings, &landing, err);
}
