/* run/keeper/output/keys.c - keys that a terminal turns into signals. */
#include <signal.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "hf/run/keeper/output/keys.h"

int hf_keys_signal(int pty, const char *keys, size_t n, pid_t *ret_group)
{
	struct termios modes;

	/* The master's side shows the modes of the other one, and the group that is in front there. */
	*ret_group = tcgetpgrp(pty);
	if (tcgetattr(pty, &modes) < 0 || !(modes.c_lflag & ISIG) || *ret_group <= 0)
		return 0;
	if (memchr(keys, modes.c_cc[VINTR], n))
		return SIGINT;
	return memchr(keys, modes.c_cc[VQUIT], n) ? SIGQUIT : 0;
}
