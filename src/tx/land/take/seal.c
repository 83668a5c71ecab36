/*
 * tx/land/take/seal.c - what the agent made is set apart from what a verifier writes in the same sandbox.
 *
 *   sealed     HEAD when the verifier began: what lands. What the agent had left uncommitted was committed for that, on top of
 *   unsealed   HEAD before that commit
 *   after      HEAD when the verifier had said no: a commit that it made is not the agent's either
 *
 * If the agent goes on in the sandbox (run --resume), it finds there what it left, as it left it.
 */
#include <errno.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/sys/io.h"
#include "hf/tx/land/candidate/land.h"
#include "hf/tx/land/candidate/lock.h"
#include "hf/tx/land/git/git.h"
#include "hf/tx/land/take/touched.h"

static struct hf_git inside(const struct hf_land_work *work, struct hf_buf *said)
{
	return (struct hf_git){ .plans = work->landings->plans, .plan = work->landing.plan, .dir = work->landing.top, .said = said };
}

int hf_land_seal_work(struct hf_land_work *work, struct hf_err *err)
{
	AUTO(hf_touched_done) struct hf_touched touched = { 0 };
	AUTO(hf_left_done) struct hf_left left = HF_LEFT_INIT;
	struct hf_landing *landing = &work->landing;
	struct hf_git git = inside(work, NULL);
	int r = hf_touched_read(work->landings, landing, landing->plan, &touched, err);

	landing->sealed[0] = landing->unsealed[0] = landing->after[0] = '\0';
	hf_copy_text(left.tip, sizeof(left.tip), landing->base);
	if (r == 0 && touched.n_changes > 0)
		r = hf_left_commit(work, &touched, &left, err);
	if (r == 0 && !left.tip[0]) {
		r = hf_git_oid(&git, "HEAD^{commit}", left.tip, err);
		if (r > 0)
			r = hf_land_reject(work, err, "its HEAD cannot be read");
		hf_copy_text(landing->unsealed, sizeof(landing->unsealed), left.head);
	}
	if (r == 0)
		hf_copy_text(landing->sealed, sizeof(landing->sealed), left.tip);
	return r;
}

/* Is HEAD where the verifier left it? Then nothing was committed by hand since. 1, 0 or an error. */
static int is_untouched(const struct hf_land_work *work, struct hf_err *err)
{
	struct hf_git git = inside(work, NULL);
	char head[HF_LAND_OID_MAX];
	int r = hf_git_oid(&git, "HEAD^{commit}", head, err);

	if (r != 0)
		return r < 0 ? r : 0;
	return strcmp(head, work->landing.sealed) == 0 || strcmp(head, work->landing.after) == 0;
}

/*
 * In the run that sealed it, whatever its verifier did to the repository since; later, by hand, while HEAD is where that left it: after a commit
 * made inside by hand, all of it is wanted.
 */
int hf_land_find_sealed(struct hf_land_work *work, char ret_tip[HF_LAND_OID_MAX], struct hf_err *err)
{
	int r;

	if (!work->landing.sealed[0])
		return 0;
	r = work->opts->session ? 1 : is_untouched(work, err);
	if (r == 1)
		hf_copy_text(ret_tip, HF_LAND_OID_MAX, work->landing.sealed);
	return r;
}

/* Its lock, and its record. 1; 0: there is none; or an error. */
static int open_record(struct hf_land_work *work, const char *name, struct hf_lock **ret_lock, struct hf_err *err)
{
	struct hf_err why = HF_ERR_INIT;
	char lock_name[HF_NAME_MAX + 1];
	int r;

	hf_land_lock_name(name, lock_name);
	r = hf_land_lock(work->landings, lock_name, NULL, ret_lock, err);
	if (r < 0)
		return r;
	r = hf_landing_load(work->landings, name, &work->landing, &why);
	if (r == HF_E_NO_LANDING || (r == 0 && (work->landing.state == HF_LAND_LANDED || work->landing.state == HF_LAND_DROPPED)))
		return 0;
	if (r < 0 && err)
		*err = why;
	return r < 0 ? r : 1;
}

int hf_land_note_after(struct hf_landings *landings, const char *name, struct hf_err *err)
{
	AUTO(hf_land_work_done) struct hf_land_work work = { .landings = landings, HF_LAND_WORK_INIT };
	AUTO(hf_land_unlock) struct hf_lock *lock = NULL;
	struct hf_git git;
	int r = open_record(&work, name, &lock, err);

	if (r <= 0 || !work.landing.sealed[0])
		return r < 0 ? r : 0;
	git = inside(&work, NULL);
	r = hf_git_oid(&git, "HEAD^{commit}", work.landing.after, err);
	/* A repository that its verifier broke has none. */
	if (r > 0)
		work.landing.after[0] = '\0';
	return r < 0 ? r : hf_landing_note(landings, &work.landing, err);
}

/* In the sandbox: what the verifier wrote goes, but for what git ignores; and the commit that was made to seal it is taken back. */
static int unseal(struct hf_land_work *work, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	struct hf_landing *landing = &work->landing;
	struct hf_git git = inside(work, &said);
	int r = is_untouched(work, err);

	if (r <= 0)
		return r;
	r = hf_git(&git, err, "reset", "--quiet", "--hard", landing->sealed, NULL);
	if (r == 0)
		r = hf_git(&git, err, "clean", "-q", "-f", "-d", NULL);
	if (r == 0 && landing->unsealed[0])
		r = hf_git(&git, err, "reset", "--quiet", "--mixed", landing->unsealed, NULL);
	return r > 0 ? hf_git_failed(&said, landing->top, "reset", err) : r;
}

int hf_land_reopen(struct hf_landings *landings, const char *name, struct hf_err *err)
{
	AUTO(hf_land_work_done) struct hf_land_work work = { .landings = landings, HF_LAND_WORK_INIT };
	AUTO(hf_land_unlock) struct hf_lock *lock = NULL;
	struct hf_landing *landing = &work.landing;
	int r = open_record(&work, name, &lock, err);

	if (r <= 0)
		return r;
	r = landing->sealed[0] ? unseal(&work, err) : 0;
	if (r < 0)
		return r;
	landing->sealed[0] = landing->unsealed[0] = landing->after[0] = '\0';
	hf_land_paths_done(&landing->paths);
	return hf_landing_become(landings, landing, HF_LAND_WORKING, err, "its agent goes on");
}
