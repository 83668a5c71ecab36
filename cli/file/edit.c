/*
 * cli/file/edit.c - file edit: a command reads the old content and writes the new content.
 *
 * The command writes to a pipe, not to the temporary file. So a process that it leaves behind cannot
 * write into the new file.
 */
#include <string.h>
#include <sys/stat.h>

#include "command.h"
#include "file/file.h"
#include "hf/base/cleanup.h"

struct edit {
	char **command;
	int allow_empty;
};

static int64_t size_of(int fd)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 ? (int64_t)st.st_size : 0;
}

/* Returns 0 to accept the output. Otherwise reports why it is rejected and returns the exit status. */
static int judge(const struct file_work *work, const struct edit *edit,
		 const struct filter_result *result, int old_fd, int new_fd)
{
	const char *name = edit->command[0];

	if (result->write_error)
		return file_abandon(work, HF_EXIT_OS, "cannot write the new content: %s",
				    strerrordesc_np(-result->write_error));
	if (result->timed_out)
		return file_abandon(work, result->status, "%s took too long and was ended; --deadline "
				    "sets the limit", name);
	if (result->signal)
		return file_abandon(work, result->status, "signal %d arrived, %s was ended",
				    result->signal, name);
	if (result->status > HF_EXIT_SIGNAL)
		return file_abandon(work, result->status, "%s was killed by signal %d", name,
				    result->status - HF_EXIT_SIGNAL);
	if (result->status != 0)
		return file_abandon(work, result->status, "%s failed with exit status %d", name,
				    result->status);
	if (size_of(new_fd) == 0 && size_of(old_fd) > 0 && !edit->allow_empty)
		return file_abandon(work, HF_EXIT_NO, "%s wrote nothing; --allow-empty permits that", name);
	return 0;
}

static enum file_made make_edit(struct file_work *work, void *arg, int *ret_status)
{
	struct edit *edit = arg;
	struct filter filter = { .command = edit->command, .limit_ns = work->o.limit_ns };
	struct filter_result result;

	if (hf_file_read(work->file, &filter.in, &work->err) < 0 ||
	    hf_file_write(work->file, &filter.out, &work->err) < 0)
		return FILE_FAILED;
	result = command_filter(work->cli, &filter);
	*ret_status = judge(work, edit, &result, filter.in, filter.out);
	return *ret_status ? FILE_STOPPED : FILE_WRITTEN;
}

int cmd_file_edit(struct cli *cli, int argc, char **argv)
{
	AUTO(file_end) struct file_work work = { .cli = cli, .o = FILE_OPTIONS_INIT };
	struct edit edit = { 0 };
	const struct option_spec specs[] = {
		FILE_WRITE_SPECS(work.o),
		{ "allow-empty", 0, OPTION_FLAG, &edit.allow_empty, NULL,
		  "accept empty output" },
		{ 0 },
	};
	int status, go, n = cli_options(cli, specs, argc, argv, 2, OPTIONS_THEN_COMMAND);

	if (n < 0)
		return cli_options_status(n);
	argv[n] = NULL; /* n <= argc, so argv has room */
	cli->around = 1;
	work.path = argv[0];
	edit.command = argv + 1;
	status = file_begin(&work, 0, &go);
	if (go)
		status = file_replace(&work, make_edit, &edit);
	return command_status_around(status);
}
