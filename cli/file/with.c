/*
 * cli/file/with.c - file with: runs a command under the file's locks.
 *
 * This process becomes the command. The process owns the named lock, so its exit releases it. The lock
 * file stays open across exec, as with flock(1).
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "command.h"
#include "file/file.h"
#include "hf/base/cleanup.h"

int cmd_file_with(struct cli *cli, int argc, char **argv)
{
	AUTO(file_end) struct file_work work = { .cli = cli, .o = FILE_OPTIONS_INIT };
	const struct option_spec specs[] = { FILE_LOCK_SPECS(work.o), { 0 } };
	int status, go, fd, n = cli_options(cli, specs, argc, argv, 2, OPTIONS_THEN_COMMAND);

	if (n < 0)
		return cli_options_status(n);
	argv[n] = NULL; /* n <= argc, so argv has room */
	cli->around = 1;
	work.path = argv[0];
	work.o.create = 1; /* a missing file can be locked, too */
	status = file_begin(&work, HF_FILE_FREE_ON_EXIT, &go);
	if (!go)
		return command_status_around(status);
	fd = hf_file_lock_fd(work.file);
	if (fd >= 0 && fcntl(fd, F_SETFD, 0) < 0) {
		cli_say(cli, "cannot keep the lock file open: %s", strerrordesc_np(errno));
		return HF_EXIT_AROUND;
	}
	command_environment(cli, HF_LOCK_KIND_FILE, hf_file_lock_name(work.file), hf_file_token(work.file));
	return command_become(cli, argv + 1);
}
