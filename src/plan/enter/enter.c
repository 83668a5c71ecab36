/* plan/enter/enter.c - the parent's side: making a plan ready to be entered, and its end. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/target/census.h"
#include "hf/plan/enter/confine.h"
#include "hf/plan/enter/enter_inner.h"
#include "hf/plan/target/target.h"
#include "hf/plan/sandbox/strays.h"
#include "hf/plan/sandbox/use.h"
#include "hf/plan/sandbox/used.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

void hf_enter_free(struct hf_enter *enter)
{
	if (!enter)
		return;
	hf_plan_unlock(&enter->lock);
	hf_auto_close(&enter->plan_fd);
	hf_auto_close(&enter->channel[0]);
	hf_auto_close(&enter->channel[1]);
	hf_auto_close(&enter->report[0]);
	hf_auto_close(&enter->report[1]);
	hf_auto_close(&enter->go);
	hf_auto_close(&enter->inside.join_user);
	hf_auto_close(&enter->inside.join_mnt);
	hf_auto_close(&enter->helper.in_fd);
	for (size_t i = 0; i < HF_PLAN_SANDBOXES_MAX; i++) {
		hf_auto_close(&enter->helper.sandboxes[i]);
		hf_auto_close(&enter->helper.copies[i]);
		hf_auto_close(&enter->targets[i]);
		hf_auto_close(&enter->layers[i].upper);
		hf_auto_close(&enter->layers[i].work);
		hf_auto_close(&enter->layers[i].pins);
		free(enter->paths[i]);
	}
	for (size_t i = 0; i < 4; i++)
		free(enter->environment[i]);
	for (size_t i = 0; i < enter->inside.n_places; i++)
		free(enter->inside.places[i]);
	free(enter->cwd);
	hf_plan_record_done(&enter->record);
	free(enter);
}

static void auto_enter_free(struct hf_enter **enter)
{
	hf_enter_free(*enter);
}

static struct hf_enter *new_entry(struct hf_plans *plans, unsigned flags)
{
	struct hf_enter *enter = calloc(1, sizeof(*enter));

	if (!enter)
		return NULL;
	enter->plans = plans;
	enter->flags = flags;
	enter->plan_fd = enter->channel[0] = enter->channel[1] = -1;
	enter->report[0] = enter->report[1] = enter->go = -1;
	enter->inside.join_user = enter->inside.join_mnt = -1;
	enter->helper.in_fd = enter->helper.parent = enter->helper.listener = -1;
	for (size_t i = 0; i < HF_PLAN_SANDBOXES_MAX; i++) {
		enter->helper.sandboxes[i] = enter->helper.copies[i] = enter->targets[i] = -1;
		enter->layers[i].upper = enter->layers[i].work = enter->layers[i].pins = -1;
	}
	return enter;
}

char *const *hf_enter_environment(const struct hf_enter *enter)
{
	return enter->environment;
}

/* -- the plan ------------------------------------------------------------------------ */

static int check_state(struct hf_enter *enter, struct hf_err *err)
{
	struct hf_plan_record *record = &enter->record;

	if (record->torn)
		return FAIL(err, HF_E_TORN, "plan", record->name, "%s", record->reason);
	if (record->state != HF_PLAN_CREATED && record->state != HF_PLAN_ACTIVE)
		return FAIL(err, HF_E_PLAN_STATE, "plan", record->name, "it is %s%s%.200s",
			    hf_plan_state_word(record->state), record->reason[0] ? ": " : "",
			    record->reason);
	if (record->n_sandboxes == 0)
		return FAIL(err, HF_E_PLAN_STATE, "plan", record->name,
			    "it has no sandbox; 'holdfast plan add' adds one");
	return 0;
}

static uint64_t namespace_of(int fd)
{
	struct stat st;

	return hf_sys.fstat(fd, &st) < 0 ? 0 : (uint64_t)st.st_ino;
}

static int open_namespace(int32_t pid, const char *what)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, what);
	return hf_open_at(AT_FDCWD, path, O_RDONLY, 0);
}

/*
 * Opens the namespaces of those inside, which keeps them. 1 when that worked, 0 when no process is
 * there any more. The pid is proven after the namespaces were opened, by their numbers.
 */
static int open_inhabited(struct hf_enter *enter)
{
	struct hf_inhabitants inside;
	AUTO_FD own = open_namespace(getpid(), "user");

	hf_in_read(enter->helper.in_fd, &inside);
	if (inside.mnt_ns == 0)
		return 0;
	for (int try = 0; try < 2; try++) {
		int pid = try == 0 ? inside.pid : hf_strays_find(enter->plans, enter->plan_fd, &enter->record);
		AUTO_FD user = pid > 0 ? open_namespace(pid, "user") : -1;
		AUTO_FD mnt = pid > 0 ? open_namespace(pid, "mnt") : -1;

		if (user < 0 || mnt < 0 || namespace_of(mnt) != inside.mnt_ns ||
		    namespace_of(user) != inside.user_ns)
			continue;
		/* Root without a user namespace is in its own already. */
		if (own < 0 || namespace_of(own) != inside.user_ns)
			enter->inside.join_user = fd_take(&user);
		enter->inside.join_mnt = fd_take(&mnt);
		return 1;
	}
	return 0;
}

/* Joins those inside. 1 when that worked. */
static int join(struct hf_enter *enter)
{
	int fd = enter->helper.in_fd;

	/* First: the last one inside, which is about to bring the sandbox to rest, must see that another comes. */
	if (hf_in_lock(fd, 0) < 0)
		return 0;
	if (!open_inhabited(enter)) {
		hf_in_unlock(fd);
		return 0;
	}
	enter->entered |= HF_ENTERED_JOINED;
	enter->helper.is_joined = 1;
	return 1;
}

/* Joins those inside, or settles what they left. 0 or an error. */
static int join_or_settle(struct hf_enter *enter, struct hf_err *err)
{
	struct hf_mono until = hf_mono_in(HF_ENTER_REST_MS * HF_MSEC);

	for (;;) {
		int r = hf_plan_settle(enter->plans, &enter->record, hf_lock_token(enter->lock), err);

		if (r != HF_E_IN_USE)
			return r;
		/* A confined command does not go where another may have entered without. */
		if (!enter->plans->confine && join(enter))
			return 0;
		/* The last one is on its way out, and syncs. Strays are not. */
		if (hf_in_is_locked(enter->helper.in_fd) == 0 || hf_mono_left(until) == 0)
			return r;
		hf_pause(HF_MSEC);
	}
}

static int add_environment(struct hf_enter *enter, struct hf_err *err)
{
	size_t n = 0;

	if (asprintf(&enter->environment[n++], "HOLDFAST_PLAN=%s", enter->record.name) < 0 ||
	    asprintf(&enter->environment[n++], "HOLDFAST_DIR=%s",
		     hf_state_path(enter->plans->state)) < 0)
		return hf_fail_sys(err, ENOMEM, "memory", enter->record.name);
	if (hf_git_is_across(&enter->record)) {
		enter->environment[n] = strdup("GIT_DISCOVERY_ACROSS_FILESYSTEM=1");
		if (!enter->environment[n])
			return hf_fail_sys(err, ENOMEM, "memory", enter->record.name);
	}
	return 0;
}

/* In a target that was copied the command works in the copy. */
static int map_cwd(struct hf_enter *enter)
{
	const struct hf_sandbox_record *best = NULL;
	AUTO(hf_buf_done) struct hf_buf path = HF_BUF_INIT;

	for (size_t i = 0; i < enter->record.n_sandboxes; i++) {
		const struct hf_sandbox_record *s = &enter->record.sandboxes[i];

		if (hf_path_is_in(enter->cwd, s->target.path) &&
		    (!best || strlen(s->target.path) > strlen(best->target.path)))
			best = s;
	}
	if (!best || best->strategy == HF_STRATEGY_OVERLAY)
		return 0;
	hf_sandbox_path(enter->plans, enter->record.name, best->name, HF_SANDBOX_TREE, &path);
	hf_buf_add_text(&path, enter->cwd + strlen(best->target.path));
	if (path.err)
		return -ENOMEM;
	free(enter->cwd);
	enter->cwd = strdup(path.s);
	return enter->cwd ? 0 : -ENOMEM;
}

/* Names and paths that are needed inside: nothing may be allocated there. */
static int prepare_child(struct hf_enter *enter, struct hf_err *err)
{
	int r;

	enter->cwd = getcwd(NULL, 0);
	if (!enter->cwd)
		return FAIL_SYS(err, "getcwd", "current directory");
	if (map_cwd(enter) < 0)
		return hf_fail_sys(err, ENOMEM, "memory", enter->record.name);
	enter->inside.cwd = enter->cwd;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, enter->channel) < 0 ||
	    pipe2(enter->report, O_CLOEXEC) < 0)
		return FAIL_SYS(err, "socketpair", enter->record.name);
	enter->helper.parent = enter->channel[1];
	r = geteuid() == 0 ? hf_inside_read_maps(&enter->inside, err) : 0;
	if (r == 0)
		r = hf_confine_prepare(enter, err);
	return r < 0 ? r : add_environment(enter, err);
}

/* With the lock held: a mark without a lock says that the enter is gone. */
static int mark_copies(struct hf_enter *enter, struct hf_err *err)
{
	char boot_id[HF_BOOT_ID_LEN + 1];
	int r = enter->helper.n_copies > 0 ? hf_here_boot(boot_id, err) : 0;

	for (size_t i = 0; r == 0 && i < enter->helper.n_copies; i++) {
		r = hf_used_mark(enter->helper.copies[i], boot_id);
		if (r < 0)
			r = hf_fail_sys(err, -r, "write", enter->record.name);
	}
	return r;
}

static int begin(struct hf_enter *enter, const char *plan, struct hf_err *err)
{
	uint64_t token = hf_lock_token(enter->lock);
	struct hf_plan_record *record = &enter->record;
	int r = hf_plan_load(enter->plans, plan, record, err);

	if (r == 0)
		r = hf_plan_dir(enter->plans, plan, 0, &enter->plan_fd, err);
	if (r == 0)
		r = hf_in_open(enter->plan_fd, &enter->helper.in_fd, err);
	if (r == 0)
		r = check_state(enter, err);
	if (r == 0)
		r = join_or_settle(enter, err);
	if (r == 0)
		r = check_state(enter, err); /* settling may have found it torn */
	if (r == 0)
		r = hf_enter_prepare_layers(enter, err);
	if (r == 0)
		r = prepare_child(enter, err);
	if (r < 0)
		return r;
	r = hf_in_lock(enter->helper.in_fd, 0);
	if (r < 0)
		return hf_fail_sys(err, -r, "fcntl", plan);
	r = mark_copies(enter, err);
	if (r == 0 && record->state == HF_PLAN_CREATED)
		r = hf_plan_become(record, HF_PLAN_ACTIVE, NULL, err);
	/* Before the mount, and in the same directory tree: a disk that has a later write of the
	 * sandbox has this one. */
	return r < 0 ? r : hf_plan_save(enter->plans, record, token, 0, err);
}

int hf_enter_begin(struct hf_plans *plans, const char *plan, unsigned flags, int64_t wait_ns,
		   struct hf_enter **ret_enter, struct hf_err *err)
{
	AUTO(auto_enter_free) struct hf_enter *enter = new_entry(plans, flags);
	int r;

	if (!enter)
		return hf_fail_sys(err, ENOMEM, "memory", plan);
	r = hf_plan_heal(plans, plan, wait_ns, err);
	if (r == 0)
		r = hf_plan_lock(plans, plan, wait_ns, &enter->lock, err);
	if (r == 0)
		r = begin(enter, plan, err);
	if (r < 0)
		return r;
	*ret_enter = ptr_take(&enter);
	return 0;
}

/* -- the parent ----------------------------------------------------------------------- */

unsigned hf_enter_flags(const struct hf_enter *enter, char why[HF_PLAN_WHY_MAX])
{
	hf_copy_text(why, HF_PLAN_WHY_MAX, enter->why);
	return enter->entered;
}

void hf_enter_go_to(struct hf_enter *enter, const char *dir)
{
	enter->inside.cwd = dir;
}

void hf_enter_keep_children(struct hf_enter *enter, struct hf_census_children *children)
{
	children->n = 0;
	enter->children = children;
}

pid_t hf_enter_helper(const struct hf_enter *enter)
{
	return enter->helper_pid;
}
