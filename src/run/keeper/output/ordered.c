/* run/keeper/output/ordered.c - two pipes that are read in the order in which they were written. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/run/keeper/output/ordered.h"
#include "hf/sys/calls.h"

/* Blocked in the keeper as all others; commands have the mask of the caller. */
#define WRITTEN (SIGRTMAX - 1)

#define PIPE_SIZE (1 << 20) /* what any user may have */

static int open_order(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, WRITTEN);
	sigaddset(&set, SIGIO); /* comes instead when no more can be queued */
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* One pipe, which has shown that it signals: a stream that never said that it was written would be stuck. */
static int open_one(int order, int *ret_from, int *ret_to)
{
	int ends[2];
	char byte = 0;

	if (pipe2(ends, O_CLOEXEC | O_DIRECT) < 0)
		return -errno;
	*ret_from = ends[0];
	*ret_to = ends[1];
	(void)fcntl(ends[0], F_SETPIPE_SZ, PIPE_SIZE); /* the order is exact until it is full */
	if (fcntl(ends[0], F_SETOWN, getpid()) < 0 || fcntl(ends[0], F_SETSIG, WRITTEN) < 0 ||
	    fcntl(ends[0], F_SETFL, O_NONBLOCK | O_ASYNC) < 0)
		return -errno;
	if (write(ends[1], &byte, 1) != 1 || hf_ordered_next(order) != ends[0] || read(ends[0], &byte, 1) != 1)
		return -ENOSYS;
	return 0;
}

int hf_ordered_open(int from[2], int to[2], int *ret_order)
{
	AUTO_FD order = open_order();
	int ends[4] = { -1, -1, -1, -1 }, r;

	if (order < 0)
		return -errno;
	/* What was written to pipes before these. */
	while (hf_ordered_next(order) != HF_ORDERED_NONE)
		continue;
	r = open_one(order, &ends[0], &ends[1]);
	if (r == 0)
		r = open_one(order, &ends[2], &ends[3]);
	for (int i = 0; r < 0 && i < 4; i++)
		hf_auto_close(&ends[i]);
	if (r < 0)
		return r;
	from[0] = ends[0];
	to[0] = ends[1];
	from[1] = ends[2];
	to[1] = ends[3];
	*ret_order = fd_take(&order);
	return 0;
}

int hf_ordered_next(int order)
{
	struct signalfd_siginfo info;

	if (hf_sys.read(order, &info, sizeof(info)) != sizeof(info))
		return HF_ORDERED_NONE;
	return info.ssi_signo == (uint32_t)SIGIO ? HF_ORDERED_LOST : info.ssi_fd;
}
