/* cli/session/run/spool.c - run --stdin: standard input for commands in the background and for resumed commands. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "session/run/run.h"

/* A pipe that is silent for this long is not meant for the command. */
#define FIRST_MS 2000

/* Kinds of standard input. */
enum input {
	INPUT_NONE,  /* a terminal, a device, an empty file, a pipe that has ended */
	INPUT_FILE,  /* a file with data left */
	INPUT_PIPE,
};

static enum input look(struct stat *ret)
{
	struct pollfd fd = { .fd = STDIN_FILENO, .events = POLLIN };

	if (fstat(STDIN_FILENO, ret) < 0)
		return INPUT_NONE;
	if (S_ISREG(ret->st_mode))
		return lseek(STDIN_FILENO, 0, SEEK_CUR) < ret->st_size ? INPUT_FILE : INPUT_NONE;
	if (!S_ISFIFO(ret->st_mode) && !S_ISSOCK(ret->st_mode))
		return INPUT_NONE;
	/* A pipe that is closed and empty. */
	if (S_ISFIFO(ret->st_mode) && poll(&fd, 1, 0) > 0 && !(fd.revents & POLLIN))
		return INPUT_NONE;
	return INPUT_PIPE;
}

/* Returns 1 if our caller has the same standard input, as a shell has in a loop that reads from it. */
static int is_callers(const struct stat *st)
{
	struct stat callers;
	char path[40];

	(void)snprintf(path, sizeof(path), "/proc/%d/fd/0", (int)getppid());
	return stat(path, &callers) == 0 && callers.st_dev == st->st_dev && callers.st_ino == st->st_ino;
}

/* Decides, without --stdin, whether standard input is for the command. Reports input that is not. */
static int is_for_command(const struct run *run)
{
	struct pollfd fd = { .fd = STDIN_FILENO, .events = POLLIN };
	struct stat st;
	enum input input = look(&st);

	if (input == INPUT_NONE)
		return 0;
	/* A loop over the lines of a file has read a part of it. For a pipe the caller's descriptor is the only sign. */
	if (input == INPUT_FILE ? lseek(STDIN_FILENO, 0, SEEK_CUR) > 0 : is_callers(&st)) {
		cli_say(run->cli, "the caller keeps standard input, because it may read it, too; --stdin yes gives it to the command");
		return 0;
	}
	if (input == INPUT_FILE || poll(&fd, 1, FIRST_MS) > 0)
		return 1;
	cli_say(run->cli, "standard input stays open but is empty, so the command gets none (--stdin yes waits for input, --stdin no hides this message)");
	return 0;
}

/* Copies all of standard input. Returns 0, -EFBIG if it is too large, or -errno. */
static int copy(int to, size_t *ret_total)
{
	char chunk[65536];
	ssize_t n;

	for (*ret_total = 0;; *ret_total += (size_t)n) {
		n = read(STDIN_FILENO, chunk, sizeof(chunk));
		if (n < 0 && errno == EINTR) {
			n = 0;
			continue;
		}
		if (n <= 0)
			return n < 0 ? -errno : 0;
		if (*ret_total + (size_t)n > HF_RUN_INPUT_MAX)
			return -EFBIG;
		if (write(to, chunk, (size_t)n) != n)
			return -EIO;
	}
}

static int spool(struct run *run)
{
	AUTO_FD fd = memfd_create("holdfast-input", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	size_t total = 0;
	int r = fd < 0 ? -errno : copy(fd, &total);

	if (r == -EFBIG)
		return cli_usage(run->cli, "standard input is larger than %d MiB; let the command read a file instead", HF_RUN_INPUT_MAX >> 20);
	if (r < 0) {
		cli_say(run->cli, "cannot store standard input: %s", strerrordesc_np(-r));
		return HF_EXIT_AROUND;
	}
	/* The command must not change the input of the next attempt. */
	(void)fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	if (total > 0)
		run->o.input_fd = fd_take(&fd);
	else if (run->stdin_word)
		run->o.input = "";
	return HF_EXIT_DONE;
}

int run_stdin_check(const struct run *run)
{
	const char *word = run->stdin_word;

	if (word && strcmp(word, "yes") != 0 && strcmp(word, "no") != 0)
		return cli_usage(run->cli, "--stdin must be yes or no, not '%s'", word);
	if (word && run->terminal && strcmp(word, "yes") == 0)
		return cli_usage(run->cli, "--terminal and --stdin yes cannot be combined: the command reads its terminal");
	return HF_EXIT_DONE;
}

/* --stdin no in the foreground: replaces standard input, so that no process of this run can read it. */
static int close_stdin(const struct run *run)
{
	AUTO_FD null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (null >= 0 && dup2(null, STDIN_FILENO) >= 0)
		return HF_EXIT_DONE;
	cli_say(run->cli, "/dev/null: %s", strerrordesc_np(errno));
	return HF_EXIT_AROUND;
}

int run_stdin(struct run *run)
{
	int is_yes = run->stdin_word && strcmp(run->stdin_word, "yes") == 0;
	struct stat st;

	if (run->stdin_word && !is_yes)
		return run->detach ? HF_EXIT_DONE : close_stdin(run);
	/* In the foreground the command inherits standard input. A resumed command reads it instead of the stored input, unless it is empty. */
	if (!run->detach && run->resume && (is_yes || look(&st) != INPUT_NONE))
		run->o.input = "";
	if (!run->detach || run->terminal || !(is_yes || is_for_command(run)))
		return HF_EXIT_DONE;
	return spool(run);
}
