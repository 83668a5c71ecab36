/* plan/registry/add.c - making plans and adding sandboxes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/buf.h"
#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/sandbox/copy.h"
#include "hf/plan/target/target.h"
#include "hf/plan/sandbox/try.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"

int hf_plan_new(struct hf_plans *plans, const char *plan, const struct hf_plan_new_opts *opts,
		struct hf_err *err)
{
	AUTO(hf_plan_unlock) struct hf_lock *lock = NULL;
	AUTO(hf_plan_record_done) struct hf_plan_record record = HF_PLAN_RECORD_INIT;
	AUTO(hf_plan_record_done) struct hf_plan_record old = HF_PLAN_RECORD_INIT;
	struct hf_err ignored = HF_ERR_INIT;
	char word[HF_SHELL_WORD_MAX];
	int r = hf_plans_check(plans, plan, err);

	if (r < 0)
		return r;
	if (opts && (opts->size < sizeof(*opts) ||
		     (opts->session && strlen(opts->session) > HF_NAME_MAX)))
		return FAIL(err, -EINVAL, "arguments", plan, "size is not set, or invalid session name");
	if (hf_plan_is_of_run(plan) && !(opts && opts->session))
		return FAIL(err, HF_E_NAME, "plan", plan, "names that begin with '%s' belong to sessions", HF_PLAN_OF_RUN);
	r = hf_plan_lock(plans, plan, 0, &lock, err);
	if (r < 0)
		return r;
	r = hf_plan_load(plans, plan, &old, &ignored);
	if (r == 0)
		return FAIL(err, HF_E_PLAN_STATE, "plan", plan, "a plan with this name exists, and it is %s",
			    hf_plan_state_word(old.state));
	/* What is left of another must not be taken for work of this one, nor be lost. */
	if (r == HF_E_NO_PLAN && hf_plan_is_headless(plans, plan))
		return FAIL(err, HF_E_PLAN_STATE, "plan", plan,
			    "a plan with this name lost its record; its sandboxes are in %s/plans: "
			    "'holdfast plan rm --discard %s' removes them", hf_state_path(plans->state), hf_shell_word(plan, word));
	if (r != HF_E_NO_PLAN) {
		if (err)
			*err = ignored;
		return r;
	}
	hf_copy_text(record.name, sizeof(record.name), plan);
	if (opts && opts->session)
		hf_copy_text(record.session, sizeof(record.session), opts->session);
	record.state = HF_PLAN_CREATED;
	record.created = hf_wall_now();
	return hf_plan_save(plans, &record, hf_lock_token(lock), 0, err);
}

/* -- add ---------------------------------------------------------------------------- */

struct addition {
	struct hf_plans *plans;
	struct hf_plan_record *record;
	enum hf_strategy wanted;
	unsigned flags;
	int plan_fd, sandbox_fd, target_fd;
	struct hf_buf path; /* of the sandbox's directory */
	struct hf_sandbox_record s;
};

static void addition_done(struct addition *a)
{
	hf_auto_close(&a->plan_fd);
	hf_auto_close(&a->sandbox_fd);
	hf_auto_close(&a->target_fd);
	hf_buf_done(&a->path);
	free(a->s.target.path);
}

static int check_set(const struct addition *a, struct hf_err *err)
{
	struct hf_plan_record *record = a->record;

	if (record->state != HF_PLAN_CREATED && record->state != HF_PLAN_ACTIVE)
		return FAIL(err, HF_E_PLAN_STATE, "plan", record->name,
			    "it is %s: no sandbox can be added", hf_plan_state_word(record->state));
	if (record->n_sandboxes == HF_PLAN_SANDBOXES_MAX)
		return FAIL(err, HF_E_PLAN_STATE, "plan", record->name, "it already has %d sandboxes",
			    HF_PLAN_SANDBOXES_MAX);
	if (hf_plan_sandbox(record, a->s.name))
		return FAIL(err, HF_E_PLAN_STATE, "sandbox", a->s.name, "the plan has a sandbox with this name");
	return 0;
}

static int check_target(const struct addition *a, struct hf_err *err)
{
	const struct hf_target *target = &a->s.target;
	int r;

	for (size_t i = 0; i < a->record->n_sandboxes; i++)
		if (a->record->sandboxes[i].target.dev == target->dev &&
		    a->record->sandboxes[i].target.ino == target->ino)
			return FAIL(err, HF_E_PLAN_STATE, "target", target->path,
				    "sandbox '%.80s' of the plan already has it",
				    a->record->sandboxes[i].name);
	r = hf_target_check(a->plans, target, err);
	if (r == 0 && !(a->flags & HF_PLAN_ADD_GIT_OUTSIDE))
		r = hf_git_check(a->record, target, err);
	return r;
}

static void add_why(struct addition *a, const char *strategy, const char *why)
{
	size_t len = strlen(a->s.why);

	(void)snprintf(a->s.why + len, sizeof(a->s.why) - len, "%sno %s: %s", len ? "; " : "", strategy,
		       why);
}

/* 0 it is overlay; 1 it is not, with the reason; an error. */
static int choose_overlay(struct addition *a, struct hf_err *err)
{
	char why[HF_PLAN_WHY_MAX] = "", remedy[HF_PLAN_WHY_MAX];
	struct hf_inside_fail fail = { 0 };
	int r;

	if (hf_target_unfit(a->target_fd, &a->s.target, why)) {
		if (a->wanted == HF_STRATEGY_OVERLAY)
			return FAIL(err, HF_E_NO_OVERLAY, "overlay", a->s.target.path, "%.220s; use --strategy copy", why);
		add_why(a, "overlay", why);
		return 1;
	}
	if (a->flags & HF_PLAN_ADD_UNTRIED)
		return 0;
	r = hf_try_overlay(a->sandbox_fd, a->path.s, &a->s.target, &fail, err);
	if (r != 1)
		return r;
	if (a->wanted == HF_STRATEGY_OVERLAY)
		return hf_inside_error(&fail, a->s.target.path, err);
	hf_inside_explain(&fail, why, remedy);
	add_why(a, "overlay", why);
	return 1;
}

static int choose_clone(struct addition *a, struct hf_err *err)
{
	int r = hf_try_clone(a->target_fd, a->sandbox_fd);

	if (r == 0)
		return 0;
	if (a->wanted == HF_STRATEGY_CLONE)
		return FAIL(err, HF_E_NO_OVERLAY, "clone", a->s.target.path,
			    "%s: the file system cannot share blocks between it and the state directory; "
			    "use --strategy copy", strerrordesc_np(-r));
	add_why(a, "clone", strerrordesc_np(-r));
	return 1;
}

static int choose(struct addition *a, struct hf_err *err)
{
	int r = 1;

	if (a->wanted == HF_STRATEGY_AUTO || a->wanted == HF_STRATEGY_OVERLAY) {
		a->s.strategy = HF_STRATEGY_OVERLAY;
		r = choose_overlay(a, err);
	}
	if (r == 1 && (a->wanted == HF_STRATEGY_AUTO || a->wanted == HF_STRATEGY_CLONE)) {
		a->s.strategy = HF_STRATEGY_CLONE;
		r = choose_clone(a, err);
	}
	if (r == 1) {
		a->s.strategy = HF_STRATEGY_COPY;
		r = 0;
	}
	return r;
}

static int append(struct addition *a, struct hf_err *err)
{
	struct hf_sandbox_record *grown = reallocarray(a->record->sandboxes, a->record->n_sandboxes + 1,
						       sizeof(*grown));

	if (!grown)
		return hf_fail_sys(err, ENOMEM, "memory", a->s.name);
	a->record->sandboxes = grown;
	grown[a->record->n_sandboxes++] = a->s;
	a->s.target.path = NULL; /* the record's now */
	return 0;
}

static int add_locked(struct addition *a, const char *dir, uint64_t token, struct hf_err *err)
{
	int r = check_set(a, err);

	/* A command that joins those inside would find the new target without its sandbox. */
	if (r == 0)
		r = hf_plan_in_use(a->plans, a->record, err);
	if (r == 1)
		return FAIL(err, HF_E_IN_USE, "plan", a->record->name,
			    "its command still runs; add sandboxes before its start or after its end");
	if (r == 0)
		r = hf_target_resolve(dir, &a->s.target, err);
	if (r == 0)
		r = check_target(a, err);
	if (r == 0)
		r = hf_target_open(&a->s.target, &a->target_fd, err);
	if (r == 0)
		r = hf_plan_dir(a->plans, a->record->name, 0, &a->plan_fd, err);
	if (r == 0)
		r = hf_sandbox_dir(a->plan_fd, a->s.name, 1, &a->sandbox_fd, err);
	if (r < 0)
		return r;
	hf_sandbox_path(a->plans, a->record->name, a->s.name, "", &a->path);
	r = a->path.err ? hf_fail_sys(err, ENOMEM, "memory", a->s.name) : choose(a, err);
	if (r == 0)
		r = hf_t0_take(&a->s.t0, err);
	if (r == 0 && a->s.strategy != HF_STRATEGY_OVERLAY) {
		a->s.entered = 1; /* nothing tells whether it was used */
		r = hf_copy_tree(a->target_fd, a->sandbox_fd, a->s.strategy == HF_STRATEGY_CLONE,
				 a->s.target.path, err);
	}
	if (r == 0)
		r = append(a, err);
	if (r == 0 && a->s.strategy != HF_STRATEGY_OVERLAY && a->record->state == HF_PLAN_CREATED)
		r = hf_plan_become(a->record, HF_PLAN_ACTIVE, NULL, err);
	/* A copy that no record knows would be work that cleaning up does not see. */
	return r < 0 ? r : hf_plan_save(a->plans, a->record, token,
					a->s.strategy == HF_STRATEGY_OVERLAY ? 0 : HF_PLAN_SAVE_DURABLE, err);
}

/* What a failed addition made. The record does not have it, so nothing else knows of it. */
static void take_back(struct addition *a)
{
	char key[HF_NAME_KEY_MAX];
	AUTO_FD all = -1;

	if (a->sandbox_fd < 0 || hf_name_key(a->s.name, strlen(a->s.name), key, NULL) < 0)
		return;
	all = hf_open_at(a->plan_fd, "s", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (all >= 0)
		(void)hf_tree_remove(all, key);
}

int hf_plan_add(struct hf_plans *plans, const char *plan, const char *sandbox, const char *dir,
		const struct hf_plan_add_opts *opts, struct hf_plan_added *ret_added,
		struct hf_err *err)
{
	AUTO(hf_plan_record_done) struct hf_plan_record record = HF_PLAN_RECORD_INIT;
	AUTO(addition_done) struct addition a = { .plans = plans, .record = &record, .plan_fd = -1,
						  .sandbox_fd = -1, .target_fd = -1, .path = HF_BUF_INIT };
	AUTO(hf_plan_unlock) struct hf_lock *lock = NULL;
	char key[HF_NAME_KEY_MAX];
	struct hf_err why = HF_ERR_INIT;
	int r = hf_plans_check(plans, plan, err);

	if (r == 0)
		r = hf_name_key(sandbox, sandbox ? strlen(sandbox) : 0, key, err);
	if (r < 0)
		return r;
	if (!dir || !dir[0] || (opts && (opts->size < sizeof(*opts) ||
					 opts->flags & ~(unsigned)(HF_PLAN_ADD_GIT_OUTSIDE | HF_PLAN_ADD_UNTRIED) ||
					 (unsigned)opts->strategy > HF_STRATEGY_COPY)))
		return FAIL(err, -EINVAL, "arguments", plan, "a directory and known options are needed");
	a.wanted = opts ? opts->strategy : HF_STRATEGY_AUTO;
	a.flags = opts ? opts->flags : 0;
	hf_copy_text(a.s.name, sizeof(a.s.name), sandbox);
	r = hf_plan_heal(plans, plan, opts ? opts->wait_ns : 0, err);
	if (r == 0)
		r = hf_plan_lock(plans, plan, opts ? opts->wait_ns : 0, &lock, err);
	if (r == 0)
		r = hf_plan_load(plans, plan, &record, err);
	if (r < 0)
		return r;
	r = add_locked(&a, dir, hf_lock_token(lock), &why);
	if (r < 0) {
		take_back(&a);
		return hf_plan_refused(plans, plan, "add", r, &why, err);
	}
	const struct hf_sandbox_record *s = &record.sandboxes[record.n_sandboxes - 1];
	struct hf_field fields[] = { HF_FIELD_TEXT("sandbox", sandbox),
				     HF_FIELD_TEXT("target", s->target.path),
				     HF_FIELD_TEXT("strategy", hf_strategy_word(s->strategy)),
				     HF_FIELD_TEXT("why", s->why) };

	hf_plan_event(plans, HF_EV_PLAN_ADDED, plan, fields, s->why[0] ? 4 : 3);
	if (ret_added) {
		ret_added->strategy = s->strategy;
		ret_added->same_path = s->strategy == HF_STRATEGY_OVERLAY;
		hf_copy_text(ret_added->why, sizeof(ret_added->why), s->why);
	}
	return 0;
}

int hf_plan_path(struct hf_plans *plans, const char *plan, const char *sandbox, char **ret_path,
		 struct hf_err *err)
{
	AUTO(hf_plan_record_done) struct hf_plan_record record = HF_PLAN_RECORD_INIT;
	AUTO(hf_buf_done) struct hf_buf path = HF_BUF_INIT;
	const struct hf_sandbox_record *s;
	int r = hf_plans_check(plans, plan, err);

	if (r == 0)
		r = hf_plan_load(plans, plan, &record, err);
	if (r < 0)
		return r;
	s = sandbox ? hf_plan_sandbox(&record, sandbox) : NULL;
	if (!s)
		return FAIL(err, HF_E_NO_SANDBOX, "sandbox", sandbox ? sandbox : "", "plan '%.80s' has no sandbox with this name",
			    plan);
	if (s->strategy == HF_STRATEGY_OVERLAY)
		hf_buf_add_text(&path, s->target.path);
	else
		hf_sandbox_path(plans, plan, sandbox, HF_SANDBOX_TREE, &path);
	*ret_path = path.err ? NULL : strdup(path.s);
	return *ret_path ? 0 : hf_fail_sys(err, ENOMEM, "memory", plan);
}
