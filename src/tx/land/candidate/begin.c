/* tx/land/candidate/begin.c - the start of a candidate: its record, and a sandbox as it is committed. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/sys/io.h"
#include "hf/tx/land/git/git.h"
#include "hf/tx/land/git/refs.h"
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

/* Made by a child, inside; both see it. */
struct pinned {
	char git_dir[PATH_MAX], common[PATH_MAX];
	char expected[HF_LAND_OID_MAX]; /* where HEAD was a moment ago */
	char base[HF_LAND_OID_MAX];     /* where it is; "": git has to say */
	char ref[HF_GIT_REF_MAX];       /* the branch of that */
};

/* The time of access: any change copies the file, and this one means nothing to git. */
static int touch(const struct pinned *pinned, const char *name)
{
	static const struct timespec times[2] = { { 0, UTIME_NOW }, { 0, UTIME_OMIT } };
	char path[PATH_MAX + 8];

	(void)snprintf(path, sizeof(path), "%s/%s", pinned->git_dir, name);
	return utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW) < 0 && errno != ENOENT ? -errno : 0;
}

/* Writes the branch, wherever it is kept outside (in packed-refs, in another file's place). */
static int write_branch(void *arg)
{
	struct pinned *pinned = arg;
	char loose[PATH_MAX + HF_GIT_REF_MAX], line[HF_LAND_OID_MAX + 1];
	int fd, r;

	(void)snprintf(loose, sizeof(loose), "%s/%s", pinned->common, pinned->ref);
	for (char *slash = strchr(loose + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		r = mkdir(loose, 0755);
		/* Whatever the umask is: git has to get in. */
		if (r == 0)
			r = chmod(loose, 0755);
		else if (errno == EEXIST)
			r = 0;
		if (r < 0)
			return -errno;
		*slash = '/';
	}
	if (unlink(loose) < 0 && errno != ENOENT)
		return -errno;
	fd = open(loose, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0 || fchmod(fd, 0644) < 0)
		return -errno;
	(void)snprintf(line, sizeof(line), "%s\n", pinned->base);
	return hf_write_all(fd, line, strlen(line)) < 0 ? -EIO : 0;
}

/* What the agent begins with is read when the index is the sandbox's own: a commit of a user may come between. */
static int take_over(void *arg)
{
	struct pinned *pinned = arg;
	int r = touch(pinned, "HEAD");

	if (r == 0)
		r = touch(pinned, "index");
	if (r < 0)
		return r;
	if (hf_git_head_ref(pinned->git_dir, pinned->ref)) {
		(void)hf_git_loose_ref(pinned->git_dir, "HEAD", pinned->base);
		return 0;
	}
	if (hf_git_loose_ref(pinned->common, pinned->ref, pinned->base)) {
		if (!hf_git_packed_has(pinned->common, pinned->ref, pinned->expected))
			return 0;
		hf_copy_text(pinned->base, sizeof(pinned->base), pinned->expected);
	}
	return write_branch(pinned);
}

/* HEAD is kept in a way that only git knows. */
static int ask_git(struct hf_git *git, struct pinned *pinned, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	char *ref;
	int r;

	git->before = NULL;
	git->out = &out;
	git->said = &said;
	/* One look at HEAD: its commit, and its branch ("HEAD" when it is detached). */
	r = hf_git(git, err, "rev-parse", "HEAD^{commit}", "--symbolic-full-name", "HEAD", NULL);
	git->out = git->said = NULL;
	if (r != 0)
		return r < 0 ? r : hf_git_failed(&said, git->dir, "rev-parse", err);
	ref = strchr(out.s, '\n');
	if (!ref || ref - out.s >= HF_LAND_OID_MAX || strlen(ref) > HF_GIT_REF_MAX)
		return FAIL(err, HF_E_LAND, "git", git->dir, "its HEAD cannot be understood");
	*ref++ = '\0';
	ref[strcspn(ref, "\n")] = '\0';
	hf_copy_text(pinned->base, sizeof(pinned->base), out.s);
	hf_copy_text(pinned->ref, sizeof(pinned->ref), ref);
	if (strncmp(ref, "refs/heads/", 11) != 0)
		return 0;
	git->before = write_branch;
	return hf_git_act(git, "write the branch in", err);
}

static void unmap(struct pinned **pinned)
{
	if (*pinned)
		(void)munmap(*pinned, sizeof(**pinned));
}

/*
 * HEAD, its branch and the index become the sandbox's own, so that a landing of another candidate does not move them under
 * the agent's hands: its next commit would undo that landing.
 */
static int pin(struct hf_landings *landings, struct hf_landing *landing, struct hf_err *err)
{
	AUTO(unmap) struct pinned *pinned = mmap(NULL, sizeof(*pinned), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct hf_git git = { .plans = landings->plans, .plan = landing->plan, .dir = landing->top, .before = take_over,
			      .before_arg = pinned };
	int r;

	if (pinned == MAP_FAILED) {
		pinned = NULL;
		return FAIL_SYS(err, "mmap", landing->name);
	}
	if (strlen(landing->git_dir) >= PATH_MAX || strlen(landing->common) >= PATH_MAX)
		return hf_fail_sys(err, ENAMETOOLONG, "open", landing->common);
	hf_copy_text(pinned->git_dir, sizeof(pinned->git_dir), landing->git_dir);
	hf_copy_text(pinned->common, sizeof(pinned->common), landing->common);
	hf_copy_text(pinned->expected, sizeof(pinned->expected), landing->base);
	r = hf_git_act(&git, "write the branch in", err);
	if (r == 0 && !pinned->base[0])
		r = ask_git(&git, pinned, err);
	hf_copy_text(landing->base, sizeof(landing->base), pinned->base);
	return r;
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
