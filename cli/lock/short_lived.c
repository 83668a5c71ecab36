/*
 * cli/lock/short_lived.c - lock acquire: warns about an owner that ends at once.
 *
 * Without --pid the lock belongs to the parent. In `sh -c 'cd app; holdfast lock acquire build'` the parent is a shell that
 * ends right after the call, and the lock ends with it. The warning appears if the parent is a shell whose -c text ends with
 * this call. It does not appear in a script, in an interactive shell, or if the text continues after the call.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "lock/lock.h"

#define CALL "lock acquire"

static int is_shell(const char *program)
{
	static const char *const shells[] = { "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", NULL };
	const char *slash = strrchr(program, '/'), *name = slash ? slash + 1 : program;

	for (size_t i = 0; shells[i]; i++)
		if (strcmp(shells[i], name) == 0)
			return 1;
	return 0;
}

/* Returns the text after -c, -ec, -lc … in the words from `word` to `end`, or NULL. */
static const char *text_of(const char *word, const char *end)
{
	for (word += strlen(word) + 1; word < end && word[0] == '-'; word += strlen(word) + 1)
		if (word[1] != '-' && strchr(word, 'c'))
			return word + strlen(word) + 1 < end ? word + strlen(word) + 1 : NULL;
	return NULL;
}

/* Returns 1 if another command follows. The & of a redirection is not a separator. */
static int goes_on(const char *rest)
{
	for (; *rest; rest++) {
		if (strchr(";|\n)`}", *rest) && rest[strspn(rest, "; \n\t")] != '\0')
			return 1;
		if (*rest == '&' && rest[-1] != '>' && rest[1] != '>')
			return 1;
	}
	return 0;
}

void lock_warn_short_lived(const struct cli *cli, const char *name)
{
	char path[32], words[8192];
	const char *text, *call = NULL;
	AUTO_FD fd = -1;
	pid_t parent = getppid();
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)parent);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, words, sizeof(words) - 1);
	/* A longer command line is truncated, so its end is unknown. */
	if (n <= 0 || n == (ssize_t)sizeof(words) - 1)
		return;
	words[n] = '\0';
	text = is_shell(words) ? text_of(words, words + n) : NULL;
	for (const char *next = text; next && (next = strstr(next, CALL)); next++)
		call = next;
	if (!call || goes_on(call + strlen(CALL)))
		return;
	cli_say(cli, "lock '%s' belongs to pid %d, a shell that ends right after this command (-c) and frees the lock; use "
		"'holdfast lock run %s -- CMD', or --pid PID with a process that keeps running", name, (int)parent, cli_word(name));
}
