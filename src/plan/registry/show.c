/* plan/registry/show.c - plans as others see them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/registry/registry.h"
#include "hf/plan/sandbox/use.h"
#include "hf/plan/sandbox/used.h"
#include "hf/plan/tree/dirtree.h"

struct shown {
	struct hf_sandbox_info *sandboxes;
	char **paths;
	size_t n;
};

static void shown_done(struct shown *shown)
{
	for (size_t i = 0; i < shown->n; i++)
		free(shown->paths[i]);
	free(shown->paths);
	free(shown->sandboxes);
}

/* Adds up what stands below `fd`. -1: too much of it, or it cannot be read. */
static int count_below(int fd, struct hf_sandbox_info *info, int64_t *n)
{
	AUTO(hf_listing_done) struct hf_listing listing = { 0 };
	int r = hf_listing_read(fd, &listing) < 0 ? -1 : 0;

	for (size_t i = 0; r == 0 && i < listing.n; i++) {
		const char *name = listing.entries[i].name;
		struct stat st;

		if (++*n > HF_PLAN_COUNT_MAX || hf_dirtree_look(fd, name, &st) <= 0)
			return -1;
		if (S_ISDIR(st.st_mode)) {
			AUTO_FD child = hf_dirtree_open(fd, name);

			r = child < 0 ? -1 : count_below(child, info, n);
			continue;
		}
		info->files++;
		info->bytes += S_ISREG(st.st_mode) ? (int64_t)st.st_size : 0;
	}
	return r;
}

/* A command may be at work in it: the numbers are those of some moment. */
static void count(int sandbox_fd, struct hf_sandbox_info *info)
{
	AUTO_FD upper = hf_dirtree_open(sandbox_fd, HF_SANDBOX_UPPER);
	int64_t n = 0;

	if (upper < 0 || count_below(upper, info, &n) < 0)
		info->files = info->bytes = -1;
}

static int show_sandbox(struct hf_plans *plans, const struct hf_plan_record *record, int plan_fd,
			size_t i, int in_use, struct shown *shown)
{
	const struct hf_sandbox_record *s = &record->sandboxes[i];
	AUTO(hf_buf_done) struct hf_buf path = HF_BUF_INIT;
	AUTO_FD fd = -1;
	int there = hf_sandbox_dir(plan_fd, s->name, 0, &fd, NULL) == 0;
	int overlay = s->strategy == HF_STRATEGY_OVERLAY;

	if (overlay)
		hf_buf_add_text(&path, s->target.path);
	else
		hf_sandbox_path(plans, record->name, s->name, HF_SANDBOX_TREE, &path);
	shown->paths[i] = path.err ? NULL : strdup(path.s);
	if (!shown->paths[i])
		return -ENOMEM;
	shown->n = i + 1;
	shown->sandboxes[i] = (struct hf_sandbox_info){
		.name = s->name,
		.target = s->target.path,
		.path = shown->paths[i],
		.strategy = s->strategy,
		.why = s->why,
		.since = { s->t0.real_ns },
		.dirty = there ? hf_sandbox_is_dirty(fd, s) : 0,
		.in_use = in_use,
		.settled = !there || (overlay ? !s->entered_boot[0] || !hf_sandbox_is_unsettled(fd) : hf_used_look(fd, NULL) == 0),
		.dev = s->target.dev,
		.ino = s->target.ino,
	};
	if (shown->sandboxes[i].dirty && overlay)
		count(fd, &shown->sandboxes[i]);
	else if (shown->sandboxes[i].dirty)
		shown->sandboxes[i].files = shown->sandboxes[i].bytes = -1;
	return 0;
}

/* Any change makes it dirty; one that is not known makes it not known. */
static int join_dirty(int all, int one)
{
	if (all == 1 || one == 1)
		return 1;
	return all < 0 || one < 0 ? -1 : 0;
}

int hf_plan_look(struct hf_plans *plans, const char *plan, hf_plan_fn *fn, void *arg,
		 struct hf_err *err)
{
	AUTO(hf_plan_record_done) struct hf_plan_record record = HF_PLAN_RECORD_INIT;
	AUTO(shown_done) struct shown shown = { 0 };
	struct hf_plan_info info = { 0 };
	AUTO_FD plan_fd = -1;
	int r = hf_plans_check(plans, plan, err);

	if (r == 0)
		r = hf_plan_load(plans, plan, &record, err);
	if (r == 0)
		r = hf_plan_dir(plans, plan, 0, &plan_fd, err);
	if (r == 0)
		r = hf_plan_in_use(plans, &record, err);
	if (r < 0)
		return r;
	info.in_use = r;
	shown.sandboxes = calloc(record.n_sandboxes + 1, sizeof(*shown.sandboxes));
	shown.paths = calloc(record.n_sandboxes + 1, sizeof(*shown.paths));
	r = shown.sandboxes && shown.paths ? 0 : -ENOMEM;
	for (size_t i = 0; r == 0 && i < record.n_sandboxes; i++) {
		r = show_sandbox(plans, &record, plan_fd, i, info.in_use, &shown);
		if (r == 0)
			info.dirty = join_dirty(info.dirty, shown.sandboxes[i].dirty);
	}
	if (r < 0)
		return hf_fail_sys(err, -r, "memory", plan);
	/* What is left in the sandboxes of a plan that is over are old versions, not changes. */
	if (record.state == HF_PLAN_COMMITTED || record.state == HF_PLAN_ROLLED_BACK ||
	    record.state == HF_PLAN_CLEANED) {
		info.dirty = 0;
		for (size_t i = 0; i < shown.n; i++) {
			shown.sandboxes[i].dirty = 0;
			shown.sandboxes[i].files = shown.sandboxes[i].bytes = 0;
		}
	}
	info.name = record.name;
	info.state = record.state;
	info.reason = record.reason;
	info.session = record.session;
	info.created = record.created;
	info.changed = record.changed;
	info.token = record.token;
	info.sandboxes = shown.sandboxes;
	info.n_sandboxes = shown.n;
	fn(arg, &info);
	return 0;
}

struct listing {
	struct hf_plans *plans;
	hf_plan_fn *fn;
	void *arg;
	struct hf_err *err;
	int first; /* error */
};

static int list_one(void *arg, const char *plan)
{
	struct listing *listing = arg;
	struct hf_err err = HF_ERR_INIT;
	int r = hf_plan_look(listing->plans, plan, listing->fn, listing->arg, &err);

	/* Removed meanwhile, or being removed: not an error of a list. */
	if (r < 0 && r != HF_E_NO_PLAN && listing->first == 0) {
		listing->first = r;
		if (listing->err)
			*listing->err = err;
	}
	return 0;
}

int hf_plan_list(struct hf_plans *plans, hf_plan_fn *fn, void *arg, struct hf_err *err)
{
	struct listing listing = { .plans = plans, .fn = fn, .arg = arg, .err = err };
	int r = hf_plans_check(plans, "list", err);

	if (r == 0)
		r = hf_plan_each(plans, list_one, &listing, err);
	return r < 0 ? r : listing.first;
}
