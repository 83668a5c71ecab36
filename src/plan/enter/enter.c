/* plan/enter/enter.c - the parent's side: making a plan ready to be entered, and its end. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
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
#include "hf/plan/sandbox/use.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/mode.h"

#define REST_MS   30000 /* a sync of what a command wrote may take its time */
#define ENDING_NS (500 * HF_MSEC)

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
	hf_auto_close(&enter->inside.join_user);
	hf_auto_close(&enter->inside.join_mnt);
	hf_auto_close(&enter->helper.in_fd);
	for (size_t i = 0; i < HF_PLAN_SANDBOXES_MAX; i++) {
		hf_auto_close(&enter->helper.sandboxes[i]);
		hf_auto_close(&enter->targets[i]);
		hf_auto_close(&enter->layers[i].upper);
		hf_auto_close(&enter->layers[i].work);
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
	enter->report[0] = enter->report[1] = -1;
	enter->inside.join_user = enter->inside.join_mnt = -1;
	enter->helper.in_fd = enter->helper.parent = enter->helper.listener = -1;
	for (size_t i = 0; i < HF_PLAN_SANDBOXES_MAX; i++) {
		enter->helper.sandboxes[i] = enter->targets[i] = -1;
		enter->layers[i].upper = enter->layers[i].work = -1;
	}
	return enter;
}

char *const *hf_enter_environment(const struct hf_enter *enter)
{
	return enter->environment;
}

/* -- one overlay ------------------------------------------------------------------- */

/* The upper directory's mode is what the target's root shows inside. */
static int open_upper(int sandbox_fd, int target_fd, int fresh, struct hf_layer *layer,
		      struct hf_err *err)
{
	struct stat st;

	if ((hf_mkdir_at(sandbox_fd, HF_SANDBOX_UPPER, 0700) < 0 && errno != EEXIST) ||
	    (hf_mkdir_at(sandbox_fd, HF_SANDBOX_WORK, 0700) < 0 && errno != EEXIST))
		return FAIL_SYS(err, "mkdirat", layer->sandbox);
	layer->upper = hf_open_at(sandbox_fd, HF_SANDBOX_UPPER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	layer->work = hf_open_at(sandbox_fd, HF_SANDBOX_WORK, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (layer->upper < 0 || layer->work < 0)
		return hf_fail_sys(err, layer->upper < 0 ? -layer->upper : -layer->work, "openat",
				   layer->sandbox);
	if (hf_sys.fstatat(target_fd, "", &st, AT_EMPTY_PATH) < 0)
		return FAIL_SYS(err, "fstat", layer->target);
	layer->dev = st.st_dev;
	layer->ino = st.st_ino;
	if (!fresh)
		return 0;
	/* Root may sandbox another user's directory, which must go on being that user's inside. */
	if (geteuid() == 0 && (st.st_uid != 0 || st.st_gid != 0) &&
	    hf_sys.fchown(layer->upper, st.st_uid, st.st_gid) < 0)
		return FAIL_SYS(err, "fchown", layer->sandbox);
	if (hf_sys.fchmod(layer->upper, st.st_mode & 07777) < 0)
		return FAIL_SYS(err, "fchmod", layer->sandbox);
	return 0;
}

static int prepare_layer(struct hf_enter *enter, struct hf_sandbox_record *s, struct hf_err *err)
{
	size_t i = enter->inside.n;
	struct hf_layer *layer = &enter->layers[i];
	AUTO(hf_buf_done) struct hf_buf path = HF_BUF_INIT;
	AUTO_FD target = -1;
	int r = hf_target_open(&s->target, &target, err);

	if (r == 0)
		r = hf_target_check(enter->plans, &s->target, err);
	if (r == 0)
		r = hf_sandbox_dir(enter->plan_fd, s->name, 1, &enter->helper.sandboxes[i], err);
	if (r < 0)
		return r;
	hf_sandbox_path(enter->plans, enter->record.name, s->name, "", &path);
	enter->paths[i] = path.err ? NULL : strdup(path.s);
	if (!enter->paths[i])
		return hf_fail_sys(err, ENOMEM, "memory", s->name);
	layer->target = s->target.path;
	layer->sandbox = enter->paths[i];
	r = open_upper(enter->helper.sandboxes[i], target, !s->entered, layer, err);
	if (r < 0)
		return r;
	if (!s->entered) {
		/* What others change from now on is a conflict; what they did before is seen inside. */
		r = hf_t0_take(&s->t0, err);
		if (r < 0)
			return r;
		enter->targets[i] = fd_take(&target);
	}
	enter->inside.n = enter->helper.n = i + 1;
	return 0;
}

/* Outer before inner: a shorter path is never below a longer one. */
static int by_length(const void *a, const void *b)
{
	size_t x = strlen((*(struct hf_sandbox_record *const *)a)->target.path);
	size_t y = strlen((*(struct hf_sandbox_record *const *)b)->target.path);

	return (x > y) - (x < y);
}

static int prepare_layers(struct hf_enter *enter, struct hf_err *err)
{
	struct hf_sandbox_record *order[HF_PLAN_SANDBOXES_MAX];
	struct hf_here here;
	size_t n = 0;
	int r = hf_here_read(&here, err);

	for (size_t i = 0; i < enter->record.n_sandboxes; i++) {
		if (enter->record.sandboxes[i].strategy == HF_STRATEGY_OVERLAY)
			order[n++] = &enter->record.sandboxes[i];
		else
			enter->entered |= HF_ENTERED_ELSEWHERE;
	}
	if (n > 0)
		qsort(order, n, sizeof(*order), by_length);
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = prepare_layer(enter, order[i], err);
		if (r == 0) {
			hf_copy_text(order[i]->entered_boot, sizeof(order[i]->entered_boot),
				     here.boot_id);
			order[i]->entered = 1;
		}
	}
	enter->inside.layers = enter->layers;
	return r;
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
		int pid = try == 0 ? inside.pid : hf_in_find(inside.mnt_ns);
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

/* Joins those inside, or settles what they left. 0 or an error. */
static int join_or_settle(struct hf_enter *enter, struct hf_err *err)
{
	struct hf_mono until = hf_mono_in(REST_MS * HF_MSEC);

	for (;;) {
		int r = hf_plan_settle(enter->plans, &enter->record, hf_lock_token(enter->lock), err);

		if (r != HF_E_IN_USE)
			return r;
		/* A confined command does not go where another may have entered without. */
		if (!enter->plans->confine && open_inhabited(enter)) {
			enter->entered |= HF_ENTERED_JOINED;
			return 0;
		}
		/* The last one is on its way out, and syncs. */
		if (hf_mono_left(until) == 0)
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

/* A directory as standard input is a way into the old tree. */
static int check_stdio(struct hf_err *err)
{
	struct stat st;

	for (int fd = 0; fd <= 2; fd++)
		if (hf_sys.fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
			return FAIL(err, HF_E_TARGET, "fstat", "standard input or output",
				    "it is a directory, through which the command could leave the sandbox");
	return 0;
}

static int begin(struct hf_enter *enter, const char *plan, struct hf_err *err)
{
	uint64_t token = hf_lock_token(enter->lock);
	struct hf_plan_record *record = &enter->record;
	int r = check_stdio(err);

	if (r == 0)
		r = hf_plan_load(enter->plans, plan, record, err);
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
		r = prepare_layers(enter, err);
	if (r == 0)
		r = prepare_child(enter, err);
	if (r < 0)
		return r;
	r = hf_in_lock(enter->helper.in_fd, 0);
	if (r < 0)
		return hf_fail_sys(err, -r, "fcntl", plan);
	if (record->state == HF_PLAN_CREATED)
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

static void note_told(struct hf_enter *enter)
{
	struct hf_enter_told told = { 0 };

	hf_auto_close(&enter->report[1]);
	hf_auto_close(&enter->channel[1]);
	if (hf_sys.read(enter->report[0], &told, sizeof(told)) != sizeof(told))
		told.helper = 0;
	enter->helper_pid = told.helper;
	if (told.landlocked)
		enter->entered |= HF_ENTERED_LANDLOCK;
	if (told.root_only) {
		enter->entered |= HF_ENTERED_ROOT;
		hf_copy_text(enter->why, sizeof(enter->why), "user namespaces are not to be had");
	}
	if (told.helper || enter->inside.n == 0)
		return;
	enter->entered |= HF_ENTERED_NO_RENAME;
	if (told.without.step[0])
		(void)snprintf(enter->why, sizeof(enter->why), "%s: %s", told.without.step,
			       told.without.sys == EBUSY ?
				       "another filter listens already, as in a sandbox in a sandbox" :
				       strerrordesc_np(told.without.sys));
}

static void start_one(struct hf_enter *enter, size_t i, const struct hf_t0 *t0)
{
	struct hf_census_children *children = enter->children;
	pid_t pid = 0;

	if (hf_census_start(enter->targets[i], enter->helper.sandboxes[i], t0, children ? &pid : NULL) == 0 && pid > 0)
		children->pids[children->n++] = pid;
}

static void start_census(struct hf_enter *enter)
{
	if (enter->flags & HF_PLAN_ENTER_NO_CENSUS)
		return;
	for (size_t i = 0; i < enter->inside.n; i++) {
		const struct hf_sandbox_record *s = NULL;

		for (size_t k = 0; k < enter->record.n_sandboxes; k++)
			if (enter->record.sandboxes[k].target.path == enter->layers[i].target)
				s = &enter->record.sandboxes[k];
		if (s && enter->targets[i] >= 0)
			start_one(enter, i, &s->t0);
		hf_auto_close(&enter->targets[i]);
	}
}

unsigned hf_enter_flags(const struct hf_enter *enter, char why[HF_PLAN_WHY_MAX])
{
	hf_copy_text(why, HF_PLAN_WHY_MAX, enter->why);
	return enter->entered;
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

int hf_enter_mounted(struct hf_enter *enter, pid_t pid, const struct hf_inside_fail *fail,
		     struct hf_err *err)
{
	if (fail)
		return hf_inside_error(fail, enter->record.name, err);
	note_told(enter);
	struct hf_field fields[] = { HF_FIELD_INT("leader", pid),
				     HF_FIELD_BOOL("joined", enter->entered & HF_ENTERED_JOINED),
				     HF_FIELD_TEXT("without", "directory renames") };
	if (!(enter->flags & HF_PLAN_ENTER_QUIET))
		hf_plan_event(enter->plans, HF_EV_PLAN_ENTERED, enter->record.name, fields,
			      enter->entered & HF_ENTERED_NO_RENAME ? 3 : 2);
	hf_plan_unlock(&enter->lock);
	start_census(enter);
	return 0;
}

/* No helper, or it was killed: is a process left inside? */
static void settle_here(struct hf_enter *enter)
{
	AUTO(hf_plan_record_done) struct hf_plan_record record = HF_PLAN_RECORD_INIT;
	AUTO(hf_plan_unlock) struct hf_lock *lock = NULL;
	struct hf_mono until = hf_mono_in(ENDING_NS);
	int r;

	hf_auto_close(&enter->helper.in_fd);
	r = hf_plan_lock(enter->plans, enter->record.name, HF_SEC, &lock, NULL);
	/* The process that has the plan's lock now settles it. */
	if (r == HF_E_BUSY || r == HF_E_TIMEOUT)
		return;
	if (r == 0)
		r = hf_plan_load(enter->plans, enter->record.name, &record, NULL);
	/* A helper that has told its end may still be on its way out of the namespaces. */
	while (r == 0 &&
	       (r = hf_plan_settle(enter->plans, &record, hf_lock_token(lock), NULL)) == HF_E_IN_USE &&
	       hf_mono_left(until) > 0) {
		hf_pause(2 * HF_MSEC);
		r = 0;
	}
	if (r < 0)
		enter->entered |= HF_ENTERED_LEFT;
}

void hf_enter_end(struct hf_enter *enter)
{
	char word = HF_HELPER_ENDED;
	ssize_t n = 0;

	if (enter->inside.n > 0) {
		/* The lock is the helper's alone from here on. */
		if (!(enter->entered & HF_ENTERED_NO_RENAME)) {
			struct pollfd fd = { .fd = enter->channel[0], .events = POLLIN };

			hf_auto_close(&enter->helper.in_fd);
			(void)!send(enter->channel[0], &word, 1, MSG_NOSIGNAL);
			while (hf_sys.poll(&fd, 1, REST_MS) < 0 && errno == EINTR)
				;
			n = recv(enter->channel[0], &word, 1, MSG_DONTWAIT);
		}
		if (n == 1 && word == HF_HELPER_LEFT)
			enter->entered |= HF_ENTERED_LEFT;
		else if (n != 1 || word == HF_HELPER_FAILED)
			settle_here(enter);
	}
}
