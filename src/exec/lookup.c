/* exec/lookup.c - find the program that a command line begins with. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hf/base/fail.h"
#include "hf/exec/lookup.h"

#define WORD_MAX_BYTES 256

/* Builtins and reserved words of the shells that are installed as sh. */
static const char *const builtins[] = {
	".",	  ":",	     "[",	 "[[",	    "alias",   "bg",	   "bind",    "break",	 "builtin", "caller", "case",
	"cd",	  "chdir",   "command", "compgen", "continue", "coproc", "declare", "dirs",	 "do",	    "done",   "echo",
	"elif",	  "else",    "enable",	 "esac",    "eval",    "exec",	   "exit",    "export",	 "false",   "fc",     "fg",
	"fi",	  "for",     "function", "getopts", "hash",    "help",	   "history", "if",	 "in",	    "jobs",   "kill",
	"let",	  "local",   "mapfile",	 "popd",    "print",   "printf",   "pushd",   "pwd",	 "read",    "readonly", "return",
	"select", "set",     "shift",	 "shopt",   "source",  "suspend",  "test",    "then",	 "time",    "times",  "trap",
	"true",	  "type",    "typeset",	 "ulimit",  "umask",   "unalias",  "unset",   "until",	 "wait",    "whence", "while",
};

int hf_lookup_is_builtin(const char *word)
{
	for (size_t i = 0; i < sizeof(builtins) / sizeof(builtins[0]); i++)
		if (strcmp(word, builtins[i]) == 0)
			return 1;
	return 0;
}

static int is_assignment(const char *word, size_t len)
{
	size_t name = strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");

	return name > 0 && name < len && word[name] == '=' && (word[0] < '0' || word[0] > '9');
}

/* The line may succeed although its first program is missing: a list, a pipe, a job in the background. */
static int is_list(const char *line)
{
	for (const char *at = line; *at; at++) {
		if (strchr(";|\n`", *at) || strncmp(at, "$(", 2) == 0)
			return 1;
		if (*at == '&' && at[1] != '&')
			return 1;
		at += *at == '&';
	}
	return 0;
}

/* The first word behind assignments. 0: not found, or not plain text. */
static int first_word(const char *line, char word[WORD_MAX_BYTES])
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.+:@%,=[]";

	for (const char *at = line + strspn(line, " \t");; at += strspn(at, " \t")) {
		size_t len = strcspn(at, " \t&");

		if (len == 0 || len >= WORD_MAX_BYTES || strspn(at, plain) < len)
			return 0;
		if (is_assignment(at, len)) {
			/* It may set the PATH. */
			if (strncmp(at, "PATH=", 5) == 0)
				return 0;
			at += len;
			continue;
		}
		memcpy(word, at, len);
		word[len] = '\0';
		return 1;
	}
}

static const char *path_of(const char *const *env)
{
	for (size_t i = 0; env && env[i]; i++)
		if (strncmp(env[i], "PATH=", 5) == 0)
			return env[i] + 5;
	return getenv("PATH");
}

/* The length of what an agent that works in `dir` may fill: the work tree that it is in, or itself. */
static size_t own_length(const char *dir)
{
	char path[PATH_MAX];
	struct stat st;

	for (size_t len = strlen(dir); len > 1; len = (size_t)((const char *)memrchr(dir, '/', len) - dir)) {
		if ((size_t)snprintf(path, sizeof(path), "%.*s/.git", (int)len, dir) < sizeof(path) && lstat(path, &st) == 0)
			return len;
	}
	return strlen(dir);
}

/* In a directory of `path`, or perhaps later. */
static int may_be_found(const char *path, const char *word, const char *dir)
{
	size_t own = own_length(dir);

	for (const char *at = path;; at++) {
		size_t len = strcspn(at, ":");
		char file[PATH_MAX];
		struct stat st;

		if (len == 0 || at[0] != '/' || (len >= own && strncmp(at, dir, own) == 0 && (len == own || at[own] == '/')))
			return 1;
		if ((size_t)snprintf(file, sizeof(file), "%.*s/%s", (int)len, at, word) >= sizeof(file))
			return 1;
		if (access(file, X_OK) == 0 && stat(file, &st) == 0 && S_ISREG(st.st_mode))
			return 1;
		at += len;
		if (!*at)
			return 0;
	}
}

int hf_lookup_line(const char *what, const char *line, const char *const *env, const char *dir, struct hf_err *err)
{
	const char *path = path_of(env);
	char word[WORD_MAX_BYTES], subject[WORD_MAX_BYTES + 32];

	if (!line || !line[0] || !path || !dir || dir[0] != '/' || is_list(line) || !first_word(line, word) || hf_lookup_is_builtin(word) ||
	    may_be_found(path, word, dir))
		return 0;
	(void)snprintf(subject, sizeof(subject), "%s '%s'", what, word);
	return FAIL(err, -ENOENT, "PATH", subject, "it is not found, so nothing was started; if the command installs it, write 'command %s'",
		    word);
}
