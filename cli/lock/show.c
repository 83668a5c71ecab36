/* cli/lock/show.c - lock list and why: holders, their ages, and waiters. */
#include <stdio.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/parse.h"
#include "hf/view/lock.h"
#include "holdfast/file.h"
#include "lock/lock.h"
#include "session/fleet/elsewhere.h"

struct show {
	const struct cli *cli;
	json_t *list;
	int all;   /* include free locks and locks whose holder has ended */
	const char *kind;
	int count;
};

static void print_row(const struct show *show, const struct hf_lock_info *info,
		      const struct hf_holder *holder)
{
	struct hf_buf cells[HF_VIEW_LOCK_COLUMNS];

	for (int i = 0; i < HF_VIEW_LOCK_COLUMNS; i++)
		cells[i] = (struct hf_buf)HF_BUF_INIT;
	hf_view_lock_cells(info, holder, cells);
	cli_print_row(show->cli, hf_view_lock_columns, cells, HF_VIEW_LOCK_COLUMNS, HF_VIEW_LOCK_STATE,
		      hf_view_lock_tone(holder));
}

/* Returns 1 if a holder is not dead. A lock whose holders have ended counts as free. */
static int has_living(const struct hf_lock_info *info)
{
	for (size_t i = 0; i < info->n_holders; i++)
		if (info->holders[i].liveness != HF_DEAD)
			return 1;
	return 0;
}

static void list_one(void *arg, const struct hf_lock_info *info)
{
	struct show *show = arg;

	if (!has_living(info) && info->n_waiters == 0 && !show->all)
		return;
	if (show->cli->json) {
		if (json_array_append_new(show->list, hf_view_lock(info)) < 0)
			cli_die_oom();
		return;
	}
	if (show->count++ == 0)
		cli_print_head(hf_view_lock_columns, HF_VIEW_LOCK_COLUMNS);
	if (info->n_holders == 0)
		print_row(show, info, NULL);
	for (size_t i = 0; i < info->n_holders; i++)
		print_row(show, info, &info->holders[i]);
}

/* Lists all kinds and returns the first error. Locks of the kind "name" may be in another store. */
static int list_every(struct hf_locks *locks, struct hf_locks *here, struct show *show, struct hf_err *err)
{
	int first = 0;

	for (int kind = 0; kind < HF_LOCK_KINDS; kind++) {
		int r = hf_lock_list(hf_locks_kind(kind == HF_LOCK_KIND_NAME ? locks : here, (enum hf_lock_kind)kind), list_one, show,
				     first == 0 ? err : NULL);

		if (first == 0)
			first = r;
	}
	return first;
}

int cmd_lock_list(struct cli *cli, int argc, char **argv)
{
	struct show show = { .cli = cli };
	const struct option_spec specs[] = {
		{ "all", 'a', OPTION_FLAG, &show.all, NULL, "include free locks, and locks whose holder has ended" },
		{ "kind", 0, OPTION_TEXT, &show.kind, "KIND",
		  "name (default), group, file, plan, target, land, or all" },
		{ 0 },
	};
	AUTO(lock_close) struct lock_context context = { 0 }, here = { 0 };
	struct hf_err err = HF_ERR_INIT;
	json_t *object = NULL;
	int status, r, every, n = cli_options(cli, specs, argc, argv, 0, 0);

	if (n < 0)
		return cli_options_status(n);
	every = show.kind && strcmp(show.kind, "all") == 0;
	status = lock_open_kind(cli, every ? NULL : show.kind, &context);
	if (status == HF_EXIT_DONE && every)
		status = lock_open_here(cli, &here);
	if (status != HF_EXIT_DONE)
		return status;
	if (cli->json) {
		object = json_object();
		show.list = json_array();
		cli_set(object, "locks", show.list);
	}
	r = every ? list_every(context.locks, here.locks, &show, &err)
		  : hf_lock_list(context.locks, list_one, &show, &err);
	if (r < 0)
		return cli_fail_beside(cli, &err, object); /* the others were shown */
	if (cli->json)
		cli_print_json(object);
	return HF_EXIT_DONE;
}

static void explain_holder(const struct hf_holder *holder)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;

	hf_buf_add_format(&text, "held by pid %d ", (int)holder->id.pid);
	if (holder->host[0]) {
		hf_buf_add_text(&text, "on ");
		hf_buf_add_shown(&text, holder->host, strlen(holder->host));
		hf_buf_add_char(&text, ' ');
	}
	hf_buf_add_text(&text, "for ");
	hf_view_duration(&text, hf_wall_now().ns - holder->since.ns);
	hf_buf_add_format(&text, " (%s, token %llu)\n  ", hf_view_mode(holder->mode),
			  (unsigned long long)holder->token);
	hf_buf_add_format(&text, "%s: ", hf_view_liveness(holder->liveness));
	hf_buf_add_shown(&text, holder->evidence, strlen(holder->evidence));
	hf_buf_add_char(&text, '\n');
	if (holder->lease_left_ns >= 0) {
		hf_buf_add_text(&text, "  lease: ");
		hf_view_lease(&text, holder->lease_left_ns);
		hf_buf_add_text(&text, holder->lease_left_ns ? " left\n" : "; the next waiter gets the lock\n");
	}
	if (holder->liveness == HF_DEAD)
		hf_buf_add_text(&text, "  the next request gets the lock at once\n");
	else if (holder->liveness == HF_UNKNOWN)
		hf_buf_add_text(&text, "  its state is unknown from here, so it counts as alive\n");
	fputs(text.s, stdout);
}

static void print_free(const char *name, const char *how)
{
	putchar('\'');
	cli_print_shown(name);
	printf("' %s\n", how);
}

static void explain(void *arg, const struct hf_lock_info *info)
{
	struct show *show = arg;

	if (show->cli->json) {
		show->list = hf_view_lock(info);
		return;
	}
	if (info->n_holders == 0)
		print_free(info->name, "is free");
	for (size_t i = 0; i < info->n_holders; i++)
		explain_holder(&info->holders[i]);
	for (size_t i = 0; i < info->n_waiters; i++) {
		AUTO(hf_buf_done) struct hf_buf waited = HF_BUF_INIT;

		hf_buf_add_duration(&waited, info->waiters[i].waited_ns);
		printf("%zu. in queue: pid %d%s", i + 1, (int)info->waiters[i].id.pid,
		       info->waiters[i].host[0] ? " on " : "");
		cli_print_shown(info->waiters[i].host);
		printf(", waiting for %s (%s)\n", waited.s, hf_view_mode(info->waiters[i].mode));
	}
}

/* Prints one of the last events about the name. */
static void print_event(void *arg, const char *line, size_t len)
{
	struct show *show = arg;

	if (show->cli->json) {
		json_t *event = json_loadb(line, len, 0, NULL);

		if (event && json_array_append_new(show->list, event) < 0)
			cli_die_oom();
		return;
	}
	if (show->count++ == 0)
		puts("\nlast events:");
	(void)fwrite(line, 1, len, stdout);
}

static void close_file(struct hf_file *file)
{
	if (file)
		(void)hf_file_close(file, NULL);
}

/* Opens the file at `path`, if it exists, and switches `context` to locks of files. */
static int find_file(struct lock_context *context, const char *path, struct hf_file **ret)
{
	const struct hf_file_opts opts = { .size = sizeof(opts) };

	if (hf_file_open(context->locks, path, &opts, ret, NULL) < 0) {
		*ret = NULL;
		return -1;
	}
	context->kind = HF_LOCK_KIND_FILE;
	context->locks = hf_locks_kind(context->locks, context->kind);
	return 0;
}

int cmd_why(struct cli *cli, int argc, char **argv)
{
	struct show show = { .cli = cli };
	const struct option_spec specs[] = { LOCK_KIND_SPEC(show.kind), { 0 } };
	AUTO(lock_close) struct lock_context context = { 0 };
	struct hf_err err = HF_ERR_INIT;
	struct hf_file *file = NULL;
	json_t *object = NULL;
	const char *name;
	int r, status, n = cli_options(cli, specs, argc, argv, 1, 1);

	if (n < 0)
		return cli_options_status(n);
	status = lock_open_kind(cli, show.kind, &context);
	if (status != HF_EXIT_DONE)
		return status;
	name = argv[0];
	r = hf_lock_look(context.locks, name, explain, &show, &err);
	/* No lock has this name, but a file may. */
	if (r == HF_E_NOT_HELD && !show.kind && cli_store(cli)) {
		lock_close(&context);
		context = (struct lock_context){ 0 };
		status = lock_open_here(cli, &context);
		if (status != HF_EXIT_DONE)
			return status;
	}
	if (r == HF_E_NOT_HELD && !show.kind && find_file(&context, name, &file) == 0) {
		name = hf_file_lock_name(file);
		r = hf_lock_look(context.locks, name, explain, &show, &err);
	}
	if (r < 0 && r != HF_E_NOT_HELD) {
		close_file(file);
		return cli_fail(cli, &err);
	}
	if (r == HF_E_NOT_HELD && !cli->json)
		print_free(name, "is free: no recent holder is known here");
	if (cli->json) {
		const struct hf_lock_info never = { .kind = context.kind, .name = name };

		object = r == HF_E_NOT_HELD ? hf_view_lock(&never) : show.list;
		show.list = json_array();
	}
	if (context.kind == HF_LOCK_KIND_NAME)
		land_why(cli, name, object);
	if (context.kind == HF_LOCK_KIND_NAME)
		elsewhere_why(cli, context.locks, name, object);
	journal_history(cli, name, hf_lock_kind_word(context.kind), 5, print_event, &show);
	if (cli->json) {
		cli_set(object, "events", show.list);
		cli_print_json(object);
	}
	close_file(file);
	return HF_EXIT_DONE;
}

int cmd_lock_status(struct cli *cli, int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		if (argv[i][0] != '-')
			return cmd_why(cli, argc, argv);
	return cmd_lock_list(cli, argc, argv);
}
