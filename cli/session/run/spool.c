/* cli/session/run/spool.c - what stands on standard input of `run --detach`, kept for the command. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "session/run/run.h"

/* A pipe that nothing comes from for so long was not meant for the command. */
#define FIRST_MS 2000

/* Is there something to read, or an end? A pipe that stays open and says nothing is no input. */
static int has_input(const struct run *run)
{
	struct pollfd fd = { .fd = STDIN_FILENO, .events = POLLIN };
	struct stat st;

	if (fstat(STDIN_FILENO, &st) < 0 || !(S_ISREG(st.st_mode) || S_ISFIFO(st.st_mode)))
		return 0;
	if (poll(&fd, 1, FIRST_MS) > 0)
		return 1;
	cli_say(run->cli, "standard input is a pipe that stays open and has nothing in it; the command gets none (say so with </dev/null)");
	return 0;
}

/* Copies all of it. 0, -EFBIG when it is too much, -errno. */
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

int run_spool(struct run *run)
{
	AUTO_FD fd = -1;
	size_t total;
	int r;

	if (!run->detach || run->terminal || !has_input(run))
		return HF_EXIT_DONE;
	fd = memfd_create("holdfast-input", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	r = fd < 0 ? -errno : copy(fd, &total);
	if (r == -EFBIG)
		return cli_usage(run->cli, "standard input has more than %d MiB; let the command read it from a file", HF_RUN_INPUT_MAX >> 20);
	if (r < 0) {
		cli_say(run->cli, "standard input cannot be kept: %s", strerrordesc_np(-r));
		return HF_EXIT_AROUND;
	}
	/* What the command does to it does not change what the next attempt reads. */
	(void)fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	if (total > 0)
		run->o.input_fd = fd_take(&fd);
	return HF_EXIT_DONE;
}
