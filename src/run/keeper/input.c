/* run/keeper/input.c - what the command reads as its standard input, where that is not the caller's own. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/run/keeper/keeper.h"

int hf_keeper_resume_input(struct hf_keeper *k, struct hf_err *err)
{
	AUTO_FD dirfd = -1;
	int r;

	/* Another one is given now; or it is what is typed at its terminal from now on. */
	if (k->given.input_fd > 0 || (k->detached && k->given.flags & HF_RUN_TERMINAL))
		k->given.input = NULL;
	if (!k->given.input)
		return 0;
	r = hf_session_dir(k->sessions, k->name, 0, &dirfd, err);
	if (r == 0)
		r = hf_input_open(dirfd, k->given.input, &k->given.input_fd, err);
	return r;
}

int hf_keeper_keep_input(struct hf_keeper *k, struct hf_err *err)
{
	int is_resumed = k->given.input && k->given.flags & HF_RUN_RESUME;
	AUTO_FD dirfd = -1;
	int r;

	/* One that is forgotten at its end is never resumed. */
	if (k->given.input_fd <= 0 || k->given.flags & HF_RUN_REMOVE) {
		k->given.input = NULL;
		return 0;
	}
	if (is_resumed)
		return 0;
	r = hf_session_dir(k->sessions, k->name, 1, &dirfd, err);
	if (r == 0)
		r = hf_input_keep(dirfd, k->given.input_fd, k->input, err);
	if (r < 0)
		return r;
	k->input_is_new = r > 0;
	k->given.input = k->input;
	return 0;
}

void hf_keeper_input_done(struct hf_keeper *k, int is_on_record)
{
	AUTO_FD dirfd = -1;

	if (hf_session_dir(k->sessions, k->name, 0, &dirfd, NULL) < 0)
		return;
	if (is_on_record)
		hf_input_delete_others(dirfd, k->given.input);
	else if (k->input_is_new)
		hf_input_delete(dirfd, k->input);
}

int hf_keeper_give_input(struct hf_keeper *k)
{
	char path[40];
	int fd;

	if (k->o.input_fd <= 0 || (k->detached && k->own_session))
		return 0;
	/* Anew, so that each attempt reads from the beginning. */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", k->o.input_fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* On a terminal that was the pty, which the output keeps open. */
	k->output.child[0] = fd;
	return 0;
}
