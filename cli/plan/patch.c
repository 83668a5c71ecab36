/*
 * cli/plan/patch.c - prints a change in the format of `git diff`, and runs the pager.
 *
 * diff(1) compares the text. It reads both versions through our descriptors in /proc, so that no path must be trusted
 * or quoted. The lines of git's format for modes, new files, deleted files and links are added here. A patch shows
 * everything that a commit would change, and `git apply` accepts its text.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "plan/plan.h"

/* The old or the new version. */
struct side {
	const char *letter; /* "a/" */
	mode_t mode;        /* 0: this version does not exist */
	int fd;
	const char *link;
};

static int exists(const struct side *side)
{
	return S_ISREG(side->mode) || S_ISLNK(side->mode);
}

/* Adds a name. Like git, quotes it as in C if it has quotes, backslashes or control characters. */
static void add_name(struct hf_buf *out, const char *letter, const char *path)
{
	int quote = strpbrk(path, "\"\\") != NULL;

	for (const char *c = path; *c; c++)
		quote |= (unsigned char)*c < 0x20 || *c == 0x7f;
	if (!quote) {
		hf_buf_add_format(out, "%s%s", letter, path);
		return;
	}
	hf_buf_add_format(out, "\"%s", letter);
	for (const char *c = path; *c; c++) {
		if (*c == '"' || *c == '\\')
			hf_buf_add_format(out, "\\%c", *c);
		else if ((unsigned char)*c < 0x20 || *c == 0x7f)
			hf_buf_add_format(out, "\\%03o", (unsigned)(unsigned char)*c);
		else
			hf_buf_add_char(out, *c);
	}
	hf_buf_add_char(out, '"');
}

/* Adds the name for a "---" or "+++" line. A name with a blank needs a tab at its end. */
static void add_label(struct hf_buf *out, const struct side *side, const char *path)
{
	if (!exists(side)) {
		hf_buf_add_text(out, "/dev/null");
		return;
	}
	add_name(out, side->letter, path);
	if (strchr(path, ' '))
		hf_buf_add_char(out, '\t');
}

static void print_bold(const struct cli *cli, const char *text)
{
	cli_colour(cli, "1");
	fputs(text, stdout);
	cli_colour(cli, NULL);
	putchar('\n');
}

/* Returns the mode that git shows: links have no permissions. */
static unsigned git_mode(mode_t mode)
{
	return S_ISLNK(mode) ? S_IFLNK : (unsigned)mode;
}

static void print_head(const struct cli *cli, const char *path, const struct side *old, const struct side *new)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;

	hf_buf_add_text(&out, "diff --git ");
	add_name(&out, "a/", path);
	hf_buf_add_char(&out, ' ');
	add_name(&out, "b/", path);
	if (!exists(old))
		hf_buf_add_format(&out, "\nnew file mode %06o", git_mode(new->mode));
	else if (!exists(new))
		hf_buf_add_format(&out, "\ndeleted file mode %06o", git_mode(old->mode));
	else if (old->mode != new->mode)
		hf_buf_add_format(&out, "\nold mode %06o\nnew mode %06o", (unsigned)old->mode, (unsigned)new->mode);
	if (out.err)
		cli_die_oom();
	print_bold(cli, out.s);
}

/* Prints a link's target, which is its content: one line without a newline. */
static void print_link_line(const struct cli *cli, char sign, const char *link)
{
	if (!link)
		return;
	cli_colour(cli, sign == '-' ? "31" : "32");
	printf("%c%s", sign, link);
	cli_colour(cli, NULL);
	fputs("\n\\ No newline at end of file\n", stdout);
}

static void print_links(const struct cli *cli, const char *path, const struct side *old, const struct side *new)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;

	hf_buf_add_text(&out, "--- ");
	add_label(&out, old, path);
	hf_buf_add_text(&out, "\n+++ ");
	add_label(&out, new, path);
	hf_buf_add_format(&out, "\n@@ -%s +%s @@", old->link ? "1" : "0,0", new->link ? "1" : "0,0");
	if (out.err)
		cli_die_oom();
	print_bold(cli, out.s);
	print_link_line(cli, '-', old->link);
	print_link_line(cli, '+', new->link);
}

static void name_fd(char *out, size_t cap, int fd)
{
	if (fd < 0)
		(void)snprintf(out, cap, "/dev/null");
	else
		(void)snprintf(out, cap, "/proc/%ld/fd/%d", (long)getpid(), fd);
}

static void set_sigpipe(void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler };

	(void)sigaction(SIGPIPE, &action, NULL);
}

/* Its exit status; 128 and the number for a signal. */
static int reap(pid_t pid)
{
	siginfo_t info = { 0 };

	while (waitid(P_PID, (id_t)pid, &info, WEXITED) < 0 && errno == EINTR)
		;
	return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

static int print_text(const struct cli *cli, const char *path, const struct side *old, const struct side *new)
{
	/* Made here: the names in /proc are those of this process, which keeps the files open. */
	char old_file[48], new_file[48];
	AUTO(hf_buf_done) struct hf_buf old_label = HF_BUF_INIT;
	AUTO(hf_buf_done) struct hf_buf new_label = HF_BUF_INIT;
	pid_t pid;
	int status;

	name_fd(old_file, sizeof(old_file), old->fd);
	name_fd(new_file, sizeof(new_file), new->fd);
	hf_buf_add_text(&old_label, "--label=");
	add_label(&old_label, old, path);
	hf_buf_add_text(&new_label, "--label=");
	add_label(&new_label, new, path);
	if (old_label.err || new_label.err)
		cli_die_oom();
	(void)fflush(stdout);
	pid = fork();
	if (pid == 0) {
		set_sigpipe(SIG_DFL);
		(void)execlp("diff", "diff", "-u", cli->colour ? "--color=always" : "--color=never",
			     old_label.s, new_label.s, "--", old_file, new_file, (char *)NULL);
		_exit(errno == ENOENT ? 127 : 126);
	}
	if (pid < 0)
		return HF_EXIT_OS;
	status = reap(pid);
	if (status == 128 + SIGPIPE)
		return PLAN_PATCH_UNREAD;
	if (status == 127)
		cli_say(cli, "diff is not installed (package diffutils); --patch needs it");
	return status <= 1 ? HF_EXIT_DONE : HF_EXIT_OS;
}

/* Returns 1 if two files of the same size have the same bytes. */
static int is_same(int a, int b)
{
	char x[4096], y[4096];
	ssize_t n;

	for (off_t at = 0;; at += n) {
		n = pread(a, x, sizeof(x), at);
		if (n < 0 || pread(b, y, sizeof(y), at) != n || memcmp(x, y, (size_t)n) != 0)
			return 0;
		if (n == 0)
			return 1;
	}
}

/* Prints a change that git's format cannot express, as a comment for `git apply`. */
static void print_note(const struct cli *cli, const struct hf_change *c)
{
	AUTO(hf_buf_done) struct hf_buf out = HF_BUF_INIT;

	hf_buf_add_text(&out, "# ");
	hf_buf_add_shown(&out, c->path, strlen(c->path));
	if (c->old_mode != c->new_mode)
		hf_buf_add_format(&out, ": mode %06o -> %06o", (unsigned)c->old_mode, (unsigned)c->new_mode);
	else
		hf_buf_add_text(&out, ": only its times, owner or attributes");
	if (out.err)
		cli_die_oom();
	print_bold(cli, out.s);
}

static int print_pair(const struct cli *cli, const char *path, const struct side *old, const struct side *new)
{
	if (!exists(old) && !exists(new))
		return HF_EXIT_DONE;
	print_head(cli, path, old, new);
	if (S_ISLNK(old->mode) || S_ISLNK(new->mode)) {
		print_links(cli, path, old, new);
		return HF_EXIT_DONE;
	}
	/* An unreadable file has no descriptor. */
	if ((exists(old) && old->fd < 0) || (exists(new) && new->fd < 0)) {
		cli_say(cli, "cannot read %s", path);
		return HF_EXIT_OS;
	}
	return print_text(cli, path, old, new);
}

int plan_patch(const struct cli *cli, const struct hf_change *c)
{
	const struct side old = { "a/", c->old_mode, c->old_fd, c->old_link };
	const struct side new = { "b/", c->new_mode, c->new_fd, c->new_link };
	static const struct side none = { "", 0, -1, NULL };
	int status;

	if (c->kind == HF_CHANGE_SKIPPED)
		return HF_EXIT_DONE;
	if (exists(&old) && exists(&new) && (old.mode & S_IFMT) != (new.mode & S_IFMT)) {
		status = print_pair(cli, c->path, &old, &none);
		return status == HF_EXIT_DONE ? print_pair(cli, c->path, &none, &new) : status;
	}
	if (S_ISDIR(c->old_mode) && S_ISDIR(c->new_mode)) {
		print_note(cli, c);
		return HF_EXIT_DONE;
	}
	if (c->old_mode == c->new_mode && c->old_bytes == c->new_bytes &&
	    (S_ISLNK(c->old_mode) ? old.link && new.link && strcmp(old.link, new.link) == 0 :
				    c->old_fd >= 0 && c->new_fd >= 0 && is_same(c->old_fd, c->new_fd))) {
		print_note(cli, c);
		return HF_EXIT_DONE;
	}
	return print_pair(cli, c->path, &old, &new);
}

/* -- the pager ------------------------------------------------------------------------------- */

int plan_pager_begin(void)
{
	/* Without less, print the text directly. */
	static const char usual[] = "if command -v less >/dev/null; then exec less -FRX; else exec cat; fi";
	const char *pager = getenv("PAGER");
	int ends[2];
	pid_t pid;

	if (!isatty(STDOUT_FILENO) || (pager && (!pager[0] || strcmp(pager, "cat") == 0)))
		return -1;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	set_sigpipe(SIG_IGN); /* leaving the pager early is not an error */
	pid = fork();
	if (pid == 0) {
		(void)dup2(ends[0], STDIN_FILENO);
		set_sigpipe(SIG_DFL);
		(void)execl("/bin/sh", "sh", "-c", pager ? pager : usual, (char *)NULL);
		_exit(127);
	}
	if (pid > 0)
		(void)dup2(ends[1], STDOUT_FILENO);
	(void)close(ends[0]);
	(void)close(ends[1]);
	return pid > 0 ? (int)pid : -1;
}

void plan_pager_end(int pager)
{
	if (pager < 0)
		return;
	(void)fflush(stdout);
	(void)close(STDOUT_FILENO);
	(void)open("/dev/null", O_WRONLY);
	clearerr(stdout);
	(void)reap(pager);
}
