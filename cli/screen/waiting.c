/* cli/screen/waiting.c - shows a line on the terminal while a command waits. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/view/lock.h"
#include "screen/table.h"
#include "screen/waiting.h"

struct waiting {
	atomic_int is_shown;
	int in_background;
	pid_t group; /* our process group: a background job of the shell does not draw */
};

struct waiting *waiting_begin(const struct cli *cli, int in_background)
{
	const char *term = getenv("TERM");
	struct waiting *waiting;

	if (cli->quiet || !isatty(STDERR_FILENO) || !term || !term[0] || strcmp(term, "dumb") == 0)
		return NULL;
	waiting = mmap(NULL, sizeof(*waiting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (waiting == MAP_FAILED)
		return NULL;
	waiting->in_background = in_background;
	waiting->group = getpgrp();
	return waiting;
}

/* Draws with a single write, because other processes write to the terminal, too. */
static void draw(const struct waiting *waiting, const char *text, size_t len)
{
	pid_t foreground = tcgetpgrp(STDERR_FILENO);
	struct cli_talk talk;

	if (foreground >= 0 && foreground != waiting->group)
		return;
	cli_talk_begin(&talk);
	(void)!write(STDERR_FILENO, text, len);
	cli_talk_end(&talk);
}

static void erase(struct waiting *waiting)
{
	static const char clear[] = "\r\033[K";

	if (atomic_exchange(&waiting->is_shown, 0))
		draw(waiting, clear, sizeof(clear) - 1);
}

void waiting_show(void *arg, const struct hf_lock_waiting *where)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf line = HF_BUF_INIT;
	struct waiting *waiting = arg;
	struct winsize size;
	int width = 79;

	if (!where) {
		erase(waiting);
		return;
	}
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1)
		width = size.ws_col - 1;
	hf_view_waiting(&text, where, waiting->in_background);
	hf_buf_add_char(&line, '\r');
	(void)table_cut(&line, text.s ? text.s : "", width);
	hf_buf_add_text(&line, "\033[K");
	if (line.err)
		return;
	atomic_store(&waiting->is_shown, 1);
	draw(waiting, line.s, line.len);
}

void waiting_end(struct waiting *waiting)
{
	if (!waiting)
		return;
	erase(waiting);
	(void)munmap(waiting, sizeof(*waiting));
}
