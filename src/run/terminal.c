/* run/terminal.c - keys and window size, from the caller's terminal to the command's pty. */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/run/supervise.h"
#include "hf/sys/io.h"

void hf_terminal_raw(struct hf_terminal *t)
{
	struct termios raw;

	if (t->pty < 0 || tcgetattr(STDIN_FILENO, &t->modes) < 0)
		return;
	raw = t->modes;
	cfmakeraw(&raw);
	t->is_raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
	hf_terminal_resize(t);
}

void hf_terminal_restore(struct hf_terminal *t)
{
	if (t->is_raw)
		(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &t->modes);
	t->is_raw = 0;
}

void hf_terminal_take(struct hf_terminal *t, int pty)
{
	hf_terminal_restore(t);
	hf_auto_close(&t->pty);
	t->pty = pty;
	hf_terminal_raw(t);
}

void hf_terminal_resize(struct hf_terminal *t)
{
	struct winsize size;

	if (t->pty >= 0 && ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0)
		(void)ioctl(t->pty, TIOCSWINSZ, &size);
}

void hf_terminal_done(struct hf_terminal *t)
{
	hf_auto_close(&t->pty);
}

nfds_t hf_terminal_poll(const struct hf_terminal *t, struct pollfd *fd)
{
	if (t->pty < 0)
		return 0;
	*fd = (struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN };
	return 1;
}

/*
 * Was Ctrl-Z typed to the command itself? On its pty it leads a session, whose groups have no
 * parent that could continue them, so the kernel ignores the stop; we have to do it.
 * Where a shell on the pty has put something else in front, it sees to that.
 */
static int is_suspend(const struct hf_terminal *t, const char *keys, size_t n, pid_t leader)
{
	struct termios modes;

	return tcgetattr(t->pty, &modes) == 0 && modes.c_lflag & ISIG &&
	       modes.c_cc[VSUSP] != _POSIX_VDISABLE && memchr(keys, modes.c_cc[VSUSP], n) &&
	       tcgetpgrp(t->pty) == leader;
}

int hf_terminal_copy(struct hf_terminal *t, pid_t leader)
{
	char keys[512];
	ssize_t n = read(STDIN_FILENO, keys, sizeof(keys));
	int suspend = n > 0 && is_suspend(t, keys, (size_t)n, leader);

	if (n > 0)
		(void)hf_write_all(t->pty, keys, (size_t)n);
	/* The terminal is gone: SIGHUP comes as well, and ends the session. */
	if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
		hf_auto_close(&t->pty);
	return suspend;
}
