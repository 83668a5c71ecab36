/* tx/land/candidate/pin.c - what of the repository is the sandbox's own from the start. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/target/pins.h"
#include "hf/plan/target/target.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/tx/land/candidate/begin.h"
#include "hf/tx/land/git/refs.h"

#define TRIES    20 /* while a user's git changes HEAD or the index */
#define PAUSE_NS (5 * HF_MSEC)

/* HEAD as it was when the index was the one that is pinned. */
struct head {
	char text[HF_GIT_REF_MAX + 8]; /* of its file */
	char ref[HF_GIT_REF_MAX];      /* the branch that it names; "": detached */
	char oid[HF_LAND_OID_MAX];
};

struct pinning {
	struct hf_plans *plans;
	const struct hf_landing *landing;
	const struct hf_land_place *place;
	char sandbox[HF_LAND_SANDBOX_MAX]; /* of `pins`; "": of none yet */
	struct hf_pins pins;
};

static void pinning_done(struct pinning *pinning)
{
	hf_pins_done(&pinning->pins);
}

/* -- in the layer of pins -------------------------------------------------------------------- */

/* The sandbox that has `path`, and its path below the target. */
static const char *find_sandbox(const struct hf_land_place *place, const char *path, char ret_name[HF_LAND_SANDBOX_MAX])
{
	size_t best = place->n_targets;

	for (size_t i = 0; i < place->n_targets; i++)
		if (hf_path_is_in(path, place->targets[i]) &&
		    (best == place->n_targets || strlen(place->targets[i]) > strlen(place->targets[best])))
			best = i;
	if (best == place->n_targets)
		return NULL;
	hf_land_sandbox_name(place, best, ret_name);
	return path + strlen(place->targets[best]) + 1;
}

static int open_pins(struct pinning *pinning, const char *sandbox, struct hf_err *err)
{
	if (strcmp(pinning->sandbox, sandbox) == 0)
		return 0;
	hf_pins_done(&pinning->pins);
	pinning->pins = (struct hf_pins)HF_PINS_INIT;
	hf_copy_text(pinning->sandbox, sizeof(pinning->sandbox), sandbox);
	return hf_pins_open(pinning->plans, pinning->landing->plan, sandbox, &pinning->pins, err);
}

/* `text` NULL: the file as it is now, with its stat in *ret; 1 or 0: there is none. */
static int put(struct pinning *pinning, const char *dir, const char *name, const char *text, struct stat *ret, struct hf_err *err)
{
	char path[PATH_MAX], sandbox[HF_LAND_SANDBOX_MAX];
	const char *below;
	int r;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		return hf_fail_sys(err, ENAMETOOLONG, "pin", dir);
	below = find_sandbox(pinning->place, path, sandbox);
	if (!below)
		return FAIL(err, HF_E_LAND, "pin", path, "the plan has no sandbox for it");
	r = open_pins(pinning, sandbox, err);
	if (r < 0)
		return r;
	r = text ? hf_pins_write(&pinning->pins, below, text, strlen(text)) : hf_pins_share(&pinning->pins, below, ret);
	return r < 0 ? hf_fail_sys(err, -r, "pin", path) : r;
}

static void hide(struct pinning *pinning, const char *dir, const char *name, struct hf_err *err)
{
	char path[PATH_MAX], sandbox[HF_LAND_SANDBOX_MAX];
	const char *below = snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path) ? find_sandbox(pinning->place, path, sandbox) : NULL;

	if (below && open_pins(pinning, sandbox, err) == 0)
		(void)hf_pins_hide(&pinning->pins, below);
}

/* -- HEAD, its branch and the index of one moment -------------------------------------------- */

static int look(const char *dir, const char *name, struct stat *ret)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path) &&
	       hf_sys.fstatat(AT_FDCWD, path, ret, AT_SYMLINK_NOFOLLOW) == 0;
}

static int is_same(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static void read_text(const char *git_dir, char *out, size_t cap)
{
	char path[PATH_MAX];
	ssize_t n = snprintf(path, sizeof(path), "%s/HEAD", git_dir) < (int)sizeof(path) ?
			    hf_read_file(AT_FDCWD, path, out, cap - 1) : -1;

	out[n > 0 ? n : 0] = '\0';
}

/* HEAD is kept in a way that only git knows: its commit, and its branch ("HEAD" when it is detached), by one look. */
static int ask_git(const struct hf_landing *landing, struct head *head, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;
	struct hf_git git = { .dir = landing->top, .out = &out, .said = &said };
	char *ref;
	int r = hf_git(&git, err, "rev-parse", "HEAD^{commit}", "--symbolic-full-name", "HEAD", NULL);

	if (r != 0)
		return r < 0 ? r : hf_git_failed(&said, git.dir, "rev-parse", err);
	ref = strchr(out.s, '\n');
	if (!ref || ref - out.s >= HF_LAND_OID_MAX || strlen(ref) > HF_GIT_REF_MAX)
		return FAIL(err, HF_E_LAND, "git", git.dir, "its HEAD is invalid");
	*ref++ = '\0';
	ref[strcspn(ref, "\n")] = '\0';
	hf_copy_text(head->oid, sizeof(head->oid), out.s);
	hf_copy_text(head->ref, sizeof(head->ref), strncmp(ref, "refs/heads/", 11) == 0 ? ref : "");
	return 0;
}

static int read_head(const struct hf_landing *landing, struct head *head, struct hf_err *err)
{
	head->ref[0] = '\0';
	if (hf_git_head_ref(landing->git_dir, head->ref) == 0 ? hf_git_read_ref(landing->common, head->ref, head->oid) == 0 :
								 hf_git_loose_ref(landing->git_dir, "HEAD", head->oid) == 0)
		return 0;
	return ask_git(landing, head, err);
}

/*
 * git writes the index, then the branch, or the other way round, and has "index.lock" all the while: a pair of two moments would show the agent what a
 * user has just committed as changes, to be committed back. 0; -EAGAIN: once more; or an error.
 */
static int pin_index(struct pinning *pinning, struct head *head, struct hf_err *err)
{
	const struct hf_landing *landing = pinning->landing;
	struct stat pinned = { 0 }, now = { 0 };
	char text[sizeof(head->text)];
	int r, has;

	read_text(landing->git_dir, head->text, sizeof(head->text));
	has = put(pinning, landing->git_dir, "index", NULL, &pinned, err);
	r = has < 0 ? has : read_head(landing, head, err);
	if (r < 0)
		return r;
	read_text(landing->git_dir, text, sizeof(text));
	if (strcmp(text, head->text) != 0 || look(landing->git_dir, "index", &now) != has || (has && !is_same(&pinned, &now)) ||
	    look(landing->git_dir, "index.lock", &now))
		return -EAGAIN;
	return 0;
}

/*
 * The locks of a user's git, and those of a landing, are none in the sandbox: an agent's git would fail over one that is gone in a moment. Where this is not
 * possible it is as before.
 */
static void hide_locks(struct pinning *pinning, const char *ref, struct hf_err *err)
{
	static const char *const of_work_tree[] = { "index.lock", "HEAD.lock" };
	static const char *const of_repository[] = { "packed-refs.lock", "config.lock" };
	const struct hf_landing *landing = pinning->landing;
	char lock[HF_GIT_REF_MAX + 8];

	for (size_t i = 0; i < 2; i++)
		hide(pinning, landing->git_dir, of_work_tree[i], err);
	for (size_t i = 0; i < 2; i++)
		hide(pinning, landing->common, of_repository[i], err);
	if (ref[0] && snprintf(lock, sizeof(lock), "%s.lock", ref) < (int)sizeof(lock))
		hide(pinning, landing->common, lock, err);
}

int hf_land_pin(struct hf_landings *landings, struct hf_landing *landing, const struct hf_land_place *place, struct hf_err *err)
{
	AUTO(pinning_done) struct pinning pinning = { .plans = landings->plans, .landing = landing, .place = place, .pins = HF_PINS_INIT };
	struct head head = { 0 };
	char line[HF_LAND_OID_MAX + 2];
	int r = -EAGAIN;

	/* A git that was killed may have left its lock: that is no reason not to begin. */
	for (int try = 0; r == -EAGAIN && try < TRIES; try++) {
		if (try > 0)
			hf_pause(PAUSE_NS);
		r = pin_index(&pinning, &head, err);
	}
	if (r < 0 && r != -EAGAIN)
		return r;
	hf_copy_text(landing->base, sizeof(landing->base), head.oid);
	hide_locks(&pinning, head.ref, err);
	r = put(&pinning, landing->git_dir, "HEAD", head.text, NULL, err);
	if (r < 0 || !head.ref[0])
		return r < 0 ? r : 0;
	(void)snprintf(line, sizeof(line), "%s\n", head.oid);
	r = put(&pinning, landing->common, head.ref, line, NULL, err);
	return r < 0 ? r : 0;
}
