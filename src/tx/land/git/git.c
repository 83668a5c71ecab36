/* tx/land/git/git.c - git as a command: sandbox, input, output, limit. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/exec/command.h"
#include "hf/exec/spawn.h"
#include "hf/plan/enter/enter.h"
#include "hf/plan/git/git_env.h"
#include "hf/sys/io.h"
#include "hf/tx/land/git/git.h"
#include "holdfast/clock.h"
#include "holdfast/exit.h"

#define LIMIT_NS (10 * 60 * HF_SEC)
#define GRACE_NS (2 * HF_SEC)
#define OUT_MAX  ((off_t)64 << 20)

/* -- one command --------------------------------------------------------------------- */

/* What the child needs, and what it leaves in memory that both see. */
struct way {
	struct hf_enter *enter; /* NULL: outside */
	const char *dir;
	int err_fd;             /* -1: as it is */
	int both;               /* 1: standard error goes where standard output goes */
	const struct hf_git *git;
	int is_act;             /* 1: nothing is executed */
	struct hf_inside_fail *fail;
};

static void way_done(struct way *way)
{
	hf_enter_free(way->enter);
	hf_auto_close(&way->err_fd);
	if (way->fail)
		(void)munmap(way->fail, sizeof(*way->fail));
}

void hf_git_umask(void)
{
	(void)umask(umask(0) & (S_IRWXG | S_IRWXO));
}

/* In the child, last before exec. */
static int enter_child(void *arg)
{
	const struct way *way = arg;
	int r = 0;

	if ((way->err_fd >= 0 && dup2(way->err_fd, STDERR_FILENO) < 0) ||
	    (way->both && dup2(STDOUT_FILENO, STDERR_FILENO) < 0))
		return -errno;
	/* The verifier's is the user's. */
	if (!way->both)
		hf_git_umask();
	if (way->enter)
		r = hf_enter_child(way->enter, way->fail);
	if (r == 0 && chdir(way->dir) < 0)
		r = -errno;
	if (r == 0 && way->git->before)
		r = way->git->before(way->git->before_arg);
	if (r == 0 && way->is_act)
		_exit(0);
	return r;
}

int hf_git_memory(const char *bytes, size_t len)
{
	AUTO_FD fd = memfd_create("holdfast", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (len > 0 && (hf_write_all(fd, bytes, len) < 0 || lseek(fd, 0, SEEK_SET) < 0))
		return -EIO;
	return fd_take(&fd);
}

static int read_back(int fd, struct hf_buf *out)
{
	off_t size = lseek(fd, 0, SEEK_END);
	ssize_t n;

	hf_buf_reset(out);
	if (size < 0 || size > OUT_MAX)
		return size < 0 ? -errno : -E2BIG;
	if (hf_buf_reserve(out, (size_t)size) < 0)
		return -ENOMEM;
	n = hf_pread_all(fd, out->s, (size_t)size, 0);
	if (n < 0)
		return (int)n;
	if (n > 0) {
		out->len = (size_t)n;
		out->s[n] = '\0';
	}
	return 0;
}

/* The line that says most: the first that begins with "fatal: " or "error: ", else the last. */
static void keep_line(struct hf_buf *text, struct hf_buf *out)
{
	const char *best = NULL;

	hf_buf_reset(out);
	for (char *line = text->s, *end; *line; line = end) {
		size_t len = strcspn(line, "\n");

		end = line + len + (line[len] == '\n');
		line[len] = '\0';
		if (len == 0 || strncmp(line, "hint: ", 6) == 0)
			continue;
		if (!best || (strncmp(best, "fatal: ", 7) != 0 && strncmp(best, "error: ", 7) != 0))
			best = line;
	}
	if (best)
		hf_buf_add_text(out, strncmp(best, "fatal: ", 7) == 0 || strncmp(best, "error: ", 7) == 0 ? best + 7 : best);
}

int hf_git_read_back(int out_fd, int said_fd, struct hf_buf *out, struct hf_buf *said)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;
	int r = out ? read_back(out_fd, out) : 0;

	if (r == 0 && said) {
		r = read_back(said_fd, &text);
		keep_line(&text, said);
	}
	return r;
}

static int begin(const struct hf_git *git, struct way *way, struct hf_err *err)
{
	int r;

	way->dir = git->dir;
	if (!git->plan)
		return 0;
	way->fail = mmap(NULL, sizeof(*way->fail), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (way->fail == MAP_FAILED) {
		way->fail = NULL;
		return FAIL_SYS(err, "mmap", git->plan);
	}
	r = hf_enter_begin(git->plans, git->plan, HF_PLAN_ENTER_NO_CENSUS | HF_PLAN_ENTER_QUIET, 10 * HF_SEC,
			   &way->enter, err);
	/* The agent may have moved the directory that it was started in. */
	if (r == 0)
		hf_enter_go_to(way->enter, git->dir);
	return r;
}

/* What became of it: the exit status, or an error. */
static int judge(const struct hf_git *git, struct way *way, const struct hf_command_result *result,
		 const char *word, struct hf_err *err)
{
	int inside_failed = way->fail && way->fail->step[0], r = 0;

	if (way->enter)
		r = hf_enter_mounted(way->enter, 0, inside_failed ? way->fail : NULL, err);
	if (way->enter && r == 0 && result->error == 0)
		hf_enter_end(way->enter);
	if (r < 0)
		return r;
	if (result->error < 0)
		return hf_fail_sys(err, -result->error, "fork", word);
	if (result->exec_error < 0)
		return hf_fail_sys(err, -result->exec_error, "exec", result->exec_error == -ENOENT ? word : git->dir);
	if (result->write_error < 0)
		return hf_fail_sys(err, -result->write_error, "write", word);
	if (result->signal)
		return FAIL(err, HF_E_CANCELLED, "signal", word, "ended by signal %d", result->signal);
	if (result->timed_out)
		return HF_GIT_TIMED_OUT;
	return result->code == CLD_EXITED ? result->status : HF_EXIT_SIGNAL + result->status;
}

static char **environment(const struct hf_git *git, char *const *inside)
{
	static const char *const unset[] = { "HOLDFAST_PLAN", NULL };
	static char *const none[] = { NULL };

	if (!git->as_user)
		return hf_git_environment(inside, git->env);
	return hf_spawn_environment(inside ? inside : none, (char *const *)(uintptr_t)git->env, unset);
}

/* Without `argv` only git->before is called. */
static int run(const struct hf_git *git, const char *const *argv, int capture, struct hf_err *err)
{
	static const char *const nothing[] = { "holdfast", NULL };
	AUTO(way_done) struct way way = { .err_fd = -1, .both = !capture, .git = git, .is_act = !argv };
	AUTO_FREE char **envp = NULL;
	AUTO_FD in = -1;
	AUTO_FD out = -1;
	struct hf_command_result result;
	struct hf_command command = { .argv = (char *const *)(uintptr_t)(argv ? argv : nothing),
				      .in = git->in_fd > 0 ? git->in_fd : -1,
				      .out = git->out_fd > 0 ? git->out_fd : -1,
				      .limit_ns = git->limit_ns > 0 ? git->limit_ns : LIMIT_NS,
				      .grace_ns = GRACE_NS,
				      /* A git that is told to end takes its lock files along. */
				      .orphan_grace_ns = capture ? GRACE_NS : 0,
				      .enter = enter_child,
				      .enter_arg = &way };
	int r, status;

	argv = argv ? argv : nothing;
	if (git->in) {
		in = hf_git_memory(git->in, git->in_len);
		if (in < 0)
			return hf_fail_sys(err, -in, "memfd_create", argv[0]);
		command.in = in;
	}
	if (capture || git->out) {
		way.err_fd = capture ? hf_git_memory(NULL, 0) : -1;
		out = hf_git_memory(NULL, 0);
		if ((capture && way.err_fd < 0) || out < 0)
			return hf_fail_sys(err, EMFILE, "memfd_create", argv[0]);
		if (command.out < 0)
			command.out = out;
	}
	r = begin(git, &way, err);
	if (r < 0)
		return r;
	envp = environment(git, way.enter ? hf_enter_environment(way.enter) : NULL);
	if (!envp)
		return hf_fail_sys(err, ENOMEM, "memory", argv[0]);
	command.envp = envp;
	hf_command_run(&command, &result);
	status = judge(git, &way, &result, argv[0], err);
	if (status < 0 || out < 0)
		return status;
	r = hf_git_read_back(out, way.err_fd, git->out, capture ? git->said : NULL);
	return r < 0 ? hf_fail_sys(err, -r, "read", argv[0]) : status;
}

int hf_git_argv(const char *dir, int hooks, int checks_owner, const char *const *words, const char *argv[HF_GIT_ARGV_MAX], struct hf_err *err)
{
	/* An index is one file: of what it would be split into, only that one is brought over. */
	static const char *const always[] = { "git", "-c", "core.fsmonitor=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false",
					      "-c", "submodule.recurse=false", "-c", "core.splitIndex=false" };
	size_t n = sizeof(always) / sizeof(always[0]);

	memcpy(argv, always, sizeof(always));
	/* The user's safe.directory names the work tree, and git also runs in its git directories. */
	if (!checks_owner) {
		argv[n++] = "-c";
		argv[n++] = "safe.directory=*";
	}
	if (!hooks) {
		argv[n++] = "-c";
		argv[n++] = "core.hooksPath=/dev/null";
	}
	if (dir) {
		argv[n++] = "-C";
		argv[n++] = dir;
	}
	for (; *words && n < HF_GIT_ARGV_MAX - 1; words++)
		argv[n++] = *words;
	argv[n] = NULL;
	return *words ? FAIL(err, -E2BIG, "git", words[0], "too many words") : 0;
}

int hf_git_words(const struct hf_git *git, const char *const *words, struct hf_err *err)
{
	const char *argv[HF_GIT_ARGV_MAX];
	int r = hf_git_argv(NULL, git->hooks && git->plan, git->checks_owner, words, argv, err);

	return r < 0 ? r : run(git, argv, 1, err);
}

int hf_git(const struct hf_git *git, struct hf_err *err, ...)
{
	const char *words[HF_GIT_WORDS_MAX + 1];
	size_t n = 0;
	va_list list;

	va_start(list, err);
	while (n < HF_GIT_WORDS_MAX && (words[n] = va_arg(list, const char *)))
		n++;
	va_end(list);
	words[n] = NULL;
	return hf_git_words(git, words, err);
}

int hf_git_other(const struct hf_git *git, const char *const *argv, struct hf_err *err)
{
	return run(git, argv, 0, err);
}

int hf_git_act(const struct hf_git *git, const char *what, struct hf_err *err)
{
	struct hf_err why = HF_ERR_INIT;
	int r = run(git, NULL, 0, &why);

	/* What `before` returned is told as the error of an exec. */
	if (r < 0 && strcmp(why.op, "exec") == 0)
		return hf_fail_sys(err, why.sys ? why.sys : -r, what, git->dir);
	if (r < 0 && err)
		*err = why;
	return r > 0 ? FAIL(err, HF_E_LAND, what, git->dir, "its process ended with %d", r) : r;
}

int hf_git_failed(const struct hf_buf *said, const char *dir, const char *what, struct hf_err *err)
{
	return FAIL(err, HF_E_LAND, "git", dir, "git %s: %.180s", what, said->len ? said->s : "failed without a message");
}

int hf_git_mark(const struct hf_git *git, const char *option, const struct hf_buf *paths, struct hf_err *err)
{
	struct hf_git call = *git;

	if (paths->err)
		return hf_fail_sys(err, ENOMEM, "memory", option);
	call.in = paths->s;
	call.in_len = paths->len;
	return paths->len ? hf_git(&call, err, "update-index", "-z", option, "--stdin", NULL) : 0;
}

int hf_git_is_oid(const char *text)
{
	size_t len = strspn(text, "0123456789abcdef");

	return (len == 40 || len == 64) && !text[len];
}

int hf_git_oid(const struct hf_git *git, const char *rev, char out[65], struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;
	struct hf_git call = *git;
	int status;

	call.out = &text;
	status = hf_git(&call, err, "rev-parse", "--quiet", "--verify", "--end-of-options", rev, NULL);
	if (status != 0)
		return status < 0 ? status : 1;
	if (text.len && text.s[text.len - 1] == '\n')
		text.s[text.len - 1] = '\0';
	if (!hf_git_is_oid(text.s))
		return 1;
	hf_copy_text(out, 65, text.s);
	return 0;
}
