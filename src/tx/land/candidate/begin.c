/* tx/land/candidate/begin.c - the start of a candidate: its record, and a sandbox as it is committed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/sys/io.h"
#include "hf/tx/land/git/git.h"
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

/* -- what is the sandbox's own ---------------------------------------------------------- */

/* Written into its git directory by a child, inside. */
struct pinned {
	char *head, *index;
	char *loose; /* the branch, as a file of its own */
	char oid[HF_LAND_OID_MAX + 1];
};

static void pinned_done(struct pinned *pinned)
{
	free(pinned->head);
	free(pinned->index);
	free(pinned->loose);
}

/* The time of access: any change copies the file, and this one means nothing to git. */
static int touch(void *arg)
{
	static const struct timespec times[2] = { { 0, UTIME_NOW }, { 0, UTIME_OMIT } };
	const struct pinned *pinned = arg;
	const char *const paths[] = { pinned->head, pinned->index };

	for (size_t i = 0; i < 2; i++)
		if (utimensat(AT_FDCWD, paths[i], times, AT_SYMLINK_NOFOLLOW) < 0 && errno != ENOENT)
			return -errno;
	return 0;
}

/* Writes the branch, wherever it is kept outside (in packed-refs, in another file's place). */
static int write_branch(void *arg)
{
	struct pinned *pinned = arg;
	int fd, r;

	for (char *slash = strchr(pinned->loose + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		r = mkdir(pinned->loose, 0755);
		/* Whatever the umask is: git has to get in. */
		if (r == 0)
			r = chmod(pinned->loose, 0755);
		else if (errno == EEXIST)
			r = 0;
		if (r < 0)
			return -errno;
		*slash = '/';
	}
	if (unlink(pinned->loose) < 0 && errno != ENOENT)
		return -errno;
	fd = open(pinned->loose, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0 || fchmod(fd, 0644) < 0)
		return -errno;
	return hf_write_all(fd, pinned->oid, strlen(pinned->oid)) < 0 ? -EIO : 0;
}

/*
 * HEAD, its branch and the index become the sandbox's own, so that a landing of another candidate does not move them under
 * the agent's hands: its next commit would undo that landing. What the agent begins with is read after that.
 */
static int pin(struct hf_landings *landings, struct hf_landing *landing, struct hf_err *err)
{
	AUTO(pinned_done) struct pinned pinned = { 0 };
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_git git = { .plans = landings->plans, .plan = landing->plan, .dir = landing->top, .said = &said, .out = &out,
			      .before = touch, .before_arg = &pinned };
	char *ref;
	int r;

	if (asprintf(&pinned.head, "%s/HEAD", landing->git_dir) < 0)
		pinned.head = NULL;
	if (asprintf(&pinned.index, "%s/index", landing->git_dir) < 0)
		pinned.index = NULL;
	if (!pinned.head || !pinned.index)
		return hf_fail_sys(err, ENOMEM, "memory", landing->name);
	/* One look at HEAD: its commit, and its branch ("HEAD" when it is detached). */
	r = hf_git(&git, err, "rev-parse", "HEAD^{commit}", "--symbolic-full-name", "HEAD", NULL);
	if (r != 0)
		return r < 0 ? r : hf_git_failed(&said, landing->top, "rev-parse", err);
	ref = strchr(out.s, '\n');
	if (!ref || ref - out.s >= HF_LAND_OID_MAX)
		return FAIL(err, HF_E_LAND, "git", landing->top, "its HEAD cannot be understood");
	*ref++ = '\0';
	ref[strcspn(ref, "\n")] = '\0';
	hf_copy_text(landing->base, sizeof(landing->base), out.s);
	if (strncmp(ref, "refs/heads/", 11) != 0)
		return 0;
	(void)snprintf(pinned.oid, sizeof(pinned.oid), "%s\n", landing->base);
	if (asprintf(&pinned.loose, "%s/%s", landing->common, ref) < 0) {
		pinned.loose = NULL;
		return hf_fail_sys(err, ENOMEM, "memory", landing->name);
	}
	git.out = NULL;
	git.before = write_branch;
	return hf_git_act(&git, "write the branch in", err);
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
