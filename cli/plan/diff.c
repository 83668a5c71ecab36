/* cli/plan/diff.c - plan diff: shows changes as lines, sizes, names, JSON or a patch. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/view/plan/plan.h"
#include "plan/plan.h"

struct diff_options {
	int stat, patch, name_only, zero;
	const char *ignore_from, *sandbox;
	char **ignore;
	int64_t wait_ns;
};

struct diff {
	const struct cli *cli;
	const struct diff_options *o;
	json_t *changes;
	char *sandbox; /* the sandbox of the previous line */
	uint64_t n[HF_CHANGE_SKIPPED + 1];
	int64_t bytes;
	int status;
};

static const struct {
	char letter;
	const char *colour;
} kinds[] = {
	[HF_CHANGE_ADDED] = { 'A', "32" },
	[HF_CHANGE_CHANGED] = { 'M', "33" },
	[HF_CHANGE_DELETED] = { 'D', "31" },
	[HF_CHANGE_TYPE] = { 'T', "35" },
	[HF_CHANGE_MODE] = { 'm', "36" },
	[HF_CHANGE_SKIPPED] = { 'S', "1;30" },
};

static void print_shown(const char *text)
{
	AUTO(hf_buf_done) struct hf_buf shown = HF_BUF_INIT;

	hf_buf_add_shown(&shown, text, strlen(text));
	if (shown.err)
		cli_die_oom();
	fputs(shown.s, stdout);
}

/* Prints the sandbox of the following lines. */
static void print_sandbox(struct diff *diff, const struct hf_change *c)
{
	if (diff->sandbox && strcmp(diff->sandbox, c->sandbox) == 0)
		return;
	free(diff->sandbox);
	diff->sandbox = strdup(c->sandbox);
	if (!diff->sandbox)
		cli_die_oom();
	cli_colour(diff->cli, "1");
	fputs("# ", stdout);
	print_shown(c->sandbox);
	cli_colour(diff->cli, NULL);
	putchar('\n');
}

static void print_line(struct diff *diff, const struct hf_change *c)
{
	print_sandbox(diff, c);
	cli_colour(diff->cli, kinds[c->kind].colour);
	printf("%c ", kinds[c->kind].letter);
	print_shown(c->path);
	cli_colour(diff->cli, NULL);
	if (diff->o->stat && (c->old_bytes >= 0 || c->new_bytes >= 0))
		printf("  %lld -> %lld bytes", (long long)(c->old_bytes < 0 ? 0 : c->old_bytes),
		       (long long)(c->new_bytes < 0 ? 0 : c->new_bytes));
	if (c->kind == HF_CHANGE_MODE || (diff->o->stat && c->old_mode && c->new_mode &&
					  c->old_mode != c->new_mode))
		printf("  mode %06o -> %06o", (unsigned)c->old_mode, (unsigned)c->new_mode);
	putchar('\n');
}

static int take(void *arg, const struct hf_change *c)
{
	struct diff *diff = arg;

	if (diff->o->sandbox && strcmp(diff->o->sandbox, c->sandbox) != 0)
		return 0;
	diff->n[c->kind]++;
	if (c->kind != HF_CHANGE_SKIPPED)
		diff->bytes += (c->new_bytes < 0 ? 0 : c->new_bytes) - (c->old_bytes < 0 ? 0 : c->old_bytes);
	if (diff->changes) {
		if (json_array_append_new(diff->changes, hf_view_plan_change(c)) < 0)
			cli_die_oom();
	} else if (diff->o->name_only) {
		if (c->kind == HF_CHANGE_SKIPPED)
			return 0;
		(void)fwrite(c->path, 1, strlen(c->path), stdout);
		putchar(diff->o->zero ? '\0' : '\n');
	} else if (diff->o->patch) {
		int status;

		if (!diff->o->sandbox)
			print_sandbox(diff, c);
		status = plan_patch(diff->cli, c);
		if (status == PLAN_PATCH_UNREAD || ferror(stdout))
			return -EPIPE;

		if (status != HF_EXIT_DONE && diff->status == HF_EXIT_DONE)
			diff->status = status;
	} else {
		print_line(diff, c);
	}
	return 0;
}

static void print_totals(const struct diff *diff)
{
	printf("%llu added, %llu changed, %llu deleted, %llu other", (unsigned long long)diff->n[HF_CHANGE_ADDED],
	       (unsigned long long)diff->n[HF_CHANGE_CHANGED],
	       (unsigned long long)diff->n[HF_CHANGE_DELETED],
	       (unsigned long long)(diff->n[HF_CHANGE_TYPE] + diff->n[HF_CHANGE_MODE]));
	printf(", %+lld bytes\n", (long long)diff->bytes);
}

static int finish(struct diff *diff, const char *plan, int r, const struct hf_err *err)
{
	json_t *object;

	free(diff->sandbox);
	if (!diff->changes) {
		if (r < 0)
			return cli_fail(diff->cli, err);
		if (diff->o->stat)
			print_totals(diff);
		if (diff->n[HF_CHANGE_SKIPPED] && !diff->o->patch && !diff->o->name_only)
			cli_say(diff->cli, "S: sockets, FIFOs and devices are never committed");
		return diff->status;
	}
	object = hf_view_plan_changes(plan, diff->changes);
	if (r < 0)
		return cli_fail_beside(diff->cli, err, object);
	cli_print_json(object);
	return diff->status;
}

int cmd_plan_diff(struct cli *cli, int argc, char **argv)
{
	AUTO(plan_done) struct plan_context context = PLAN_CONTEXT_INIT;
	AUTO_FREE char *path = NULL;
	struct diff_options o = { 0 };
	struct diff diff = { .cli = cli, .o = &o };
	struct hf_plan_diff_opts opts = { .size = sizeof(opts) };
	struct hf_err err = HF_ERR_INIT;
	const struct option_spec specs[] = {
		{ "stat", 0, OPTION_FLAG, &o.stat, NULL, "show sizes and totals" },
		{ "patch", 'p', OPTION_FLAG, &o.patch, NULL, "print a patch for git apply" },
		{ "name-only", 0, OPTION_FLAG, &o.name_only, NULL, "paths only" },
		{ "null", 'z', OPTION_FLAG, &o.zero, NULL, "with --name-only: end each path with NUL, not newline" },
		{ "sandbox", 0, OPTION_TEXT, &o.sandbox, "NAME", "only this sandbox" },
		{ "ignore", 0, OPTION_LIST, &o.ignore, "GLOB", "leave out matching paths" },
		{ "ignore-from", 0, OPTION_TEXT, &o.ignore_from, "FILE", "read globs from FILE, one per line" },
		{ "wait", 'w', OPTION_DURATION, &o.wait_ns, "DUR", "wait for a commit in progress" },
		{ 0 },
	};
	int r, pager, status, n = cli_options(cli, specs, argc, argv, 1, 1);

	if (n < 0)
		return cli_options_status(n);
	if (o.stat + o.patch + o.name_only > 1 || (o.zero && !o.name_only))
		return cli_usage(cli, "--stat, --patch and --name-only cannot be combined; -z needs "
				      "--name-only");
	status = plan_read_ignore(cli, o.ignore_from, &o.ignore);
	if (status == HF_EXIT_DONE)
		status = plan_open(cli, &context);
	if (status == HF_EXIT_DONE && o.sandbox && hf_plan_path(context.plans, argv[0], o.sandbox, &path, &err) < 0)
		status = cli_fail(cli, &err);
	if (status != HF_EXIT_DONE)
		return status;
	opts.wait_ns = o.wait_ns;
	opts.ignore = (const char *const *)o.ignore;
	diff.changes = cli->json ? json_array() : NULL;
	pager = o.patch && !cli->json ? plan_pager_begin() : -1;
	r = hf_plan_diff(context.plans, argv[0], &opts, take, &diff, &err);
	if (r == -EPIPE && pager >= 0)
		r = 0;
	status = finish(&diff, argv[0], r, &err);
	plan_pager_end(pager);
	free(o.ignore);
	return status;
}
