/* run/supervisor/terminal.c - keys and window size, from the caller's terminal to the command's pty. */
#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/run/keeper/output/keys.h"
#include "hf/run/supervisor/supervise.h"

/* A job in the background of a shell neither reads the terminal nor changes it. */
static int is_in_front(void)
{
	return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

void hf_terminal_raw(struct hf_terminal *t)
{
	struct termios raw;

	if (t->pty < 0 || t->is_raw || !is_in_front() || tcgetattr(STDIN_FILENO, &t->modes) < 0)
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
	t->len = 0;
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
	if (t->pty < 0 || (t->len == 0 && !t->is_raw))
		return 0;
	*fd = t->len > 0 ? (struct pollfd){ .fd = t->pty, .events = POLLOUT }
			 : (struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN };
	return 1;
}

/* Hands over what the command's side takes now; it may be slower than a paste. */
static void hand_over(struct hf_terminal *t)
{
	ssize_t n = write(t->pty, t->keys + t->at, t->len);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		t->len = 0;
		return;
	}
	t->at += (size_t)n;
	t->len -= (size_t)n;
}

int hf_terminal_read(struct hf_terminal *t, pid_t *ret_group)
{
	ssize_t n;

	if (t->len > 0)
		return 0;
	n = read(STDIN_FILENO, t->keys, sizeof(t->keys));
	/* The terminal is gone: SIGHUP comes as well, and ends the session. */
	if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
		hf_auto_close(&t->pty);
	if (n <= 0)
		return 0;
	t->at = 0;
	t->len = (size_t)n;
	return hf_keys_signal(t->pty, t->keys, t->len, ret_group);
}

void hf_terminal_copy(struct hf_terminal *t)
{
	if (t->pty >= 0 && t->len > 0)
		hand_over(t);
}
