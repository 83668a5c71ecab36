/* tx/land/git/transaction.c - the ref transaction, and what a killed one leaves. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hf/base/buf.h"
#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/plan/git/git_env.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/tx/land/candidate/land.h"
#include "hf/tx/land/git/refs.h"

#define ANSWER_NS (60 * HF_SEC)
#define LOCKED_NS (5 * HF_SEC) /* for another git that has a lock; each try waits a second by itself */
#define SWEEP_NS  (2 * HF_SEC)

struct way {
	const char *dir;
	int said;
};

/* It must outlive us for the moment that it takes to give its locks back. */
static int enter_child(void *arg)
{
	const struct way *way = arg;

	(void)prctl(PR_SET_PDEATHSIG, 0);
	hf_git_umask();
	if (dup2(way->said, STDERR_FILENO) < 0 || chdir(way->dir) < 0)
		return -errno;
	return 0;
}

/* What git said before it ended, for a message. */
static void keep_words(struct hf_land_transaction *t)
{
	static const char step[] = "prepare: ";
	AUTO(hf_buf_done) struct hf_buf said = HF_BUF_INIT;

	if (t->said < 0)
		return;
	t->words[0] = '\0';
	if (hf_git_read_back(-1, t->said, NULL, &said) == 0 && said.len)
		hf_copy_text(t->words, sizeof(t->words), strncmp(said.s, step, sizeof(step) - 1) == 0 ? said.s + sizeof(step) - 1 : said.s);
	hf_auto_close(&t->said);
}

void hf_land_transaction_done(struct hf_land_transaction *t)
{
	siginfo_t info;

	hf_auto_close(&t->in);
	hf_auto_close(&t->out);
	hf_auto_close(&t->child.go);
	while (t->child.pid > 0 && waitid(P_PID, (id_t)t->child.pid, &info, WEXITED) < 0 && errno == EINTR)
		continue;
	t->child.pid = 0;
	hf_child_done(&t->child);
	keep_words(t);
}

/* Reads until `answer` has come, or the end. 0 or -EAGAIN. */
static int await(struct hf_land_transaction *t, const char *answer)
{
	struct hf_mono until = hf_mono_in(ANSWER_NS);
	char text[256];
	size_t n = 0;

	while (n < sizeof(text) - 1 && hf_mono_left(until) > 0) {
		struct pollfd fd = { .fd = t->out, .events = POLLIN };
		ssize_t got;

		if (hf_sys.poll(&fd, 1, 1000) <= 0)
			continue;
		got = hf_sys.read(t->out, text + n, sizeof(text) - 1 - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return -EAGAIN;
		n += (size_t)got;
		text[n] = '\0';
		if (strstr(text, answer))
			return 0;
	}
	return -EAGAIN;
}

static int start(const struct hf_landing *landing, struct hf_land_transaction *t, struct hf_err *err)
{
	char message[HF_NAME_MAX + 32] = "holdfast: land ";
	char *argv[] = { (char *)"git", (char *)"-c", (char *)"core.hooksPath=/dev/null", (char *)"-c", (char *)"safe.directory=*", (char *)"update-ref", (char *)"-m",
			 message, (char *)"--stdin", NULL };
	AUTO_FD in = -1;
	AUTO_FD out = -1;
	struct way way = { landing->common, hf_git_memory(NULL, 0) };
	struct hf_cgroup none = HF_CGROUP_INIT;
	AUTO_FREE char **envp = hf_git_environment(NULL, NULL);
	sigset_t mask;
	struct hf_spawn spawn = { .argv = argv, .envp = envp, .mask = &mask, .cgroup = &none, .enter = enter_child,
				  .enter_arg = &way };
	int ends[2], r;

	t->said = way.said;
	(void)hf_name_sanitize(landing->name, strlen(landing->name), message + 15, sizeof(message) - 15);
	(void)sigprocmask(SIG_SETMASK, NULL, &mask);
	if (!envp || way.said < 0 || pipe2(ends, O_CLOEXEC) < 0)
		return hf_fail_sys(err, envp ? errno : ENOMEM, "pipe2", landing->name);
	in = ends[0];
	t->in = ends[1];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return FAIL_SYS(err, "pipe2", landing->name);
	t->out = ends[0];
	out = ends[1];
	spawn.stdio[0] = in;
	spawn.stdio[1] = out;
	spawn.stdio[2] = -1;
	r = hf_spawn(&spawn, &t->child);
	if (r == 0)
		r = hf_spawn_go(&t->child);
	if (r == 0)
		r = hf_spawn_result(&t->child);
	return r < 0 ? hf_fail_sys(err, -r, "exec", "git") : 0;
}

static int say(struct hf_land_transaction *t, const char *text)
{
	sigset_t pipe_only, old;
	const struct timespec now = { 0 };
	int r;

	/* A git that has ended is an answer, not a reason to die. */
	sigemptyset(&pipe_only);
	sigaddset(&pipe_only, SIGPIPE);
	(void)pthread_sigmask(SIG_BLOCK, &pipe_only, &old);
	r = hf_write_all(t->in, text, strlen(text));
	if (r == -EPIPE)
		(void)sigtimedwait(&pipe_only, NULL, &now);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r < 0 ? -EAGAIN : 0;
}

/* What was said and not answered as it should be ends that git: its locks are given back. */
static int ask(const struct hf_landing *landing, struct hf_land_transaction *t, const struct hf_buf *text, const char *answer,
	       struct hf_err *err)
{
	int r = text->err ? hf_fail_sys(err, ENOMEM, "memory", landing->name) : 0;

	if (r == 0 && t->child.pid == 0)
		r = start(landing, t, err);
	if (r == 0)
		r = say(t, text->s);
	if (r == 0)
		r = await(t, answer);
	if (r < 0)
		hf_land_transaction_done(t);
	return r;
}

int hf_land_transaction_keep(const struct hf_landing *landing, struct hf_land_transaction *t, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;
	char ref[HF_NAME_KEY_MAX + 32];
	int r;

	hf_land_ref(landing->name, ref);
	hf_buf_add_format(&text, "start\nupdate %s %s\nprepare\ncommit\n", ref, landing->tip);
	r = ask(landing, t, &text, "commit: ok\n", err);
	return r == -EAGAIN ? 1 : r;
}

static int prepare(const struct hf_landing *landing, struct hf_land_transaction *t, struct hf_err *err)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;
	char ref[HF_NAME_KEY_MAX + 32];

	hf_land_ref(landing->name, ref);
	hf_buf_add_format(&text, "start\nupdate %s %s %s\ndelete %s\nprepare\n", landing->branch, landing->commit, landing->from, ref);
	return ask(landing, t, &text, "prepare: ok\n", err);
}

/* 1: the branch is at `oid`; 0: it is not, or no more; or an error. */
static int is_at(const struct hf_landing *landing, const char *oid, struct hf_err *err)
{
	struct hf_git git = { .dir = landing->common };
	char now[HF_LAND_OID_MAX];
	int r = hf_git_commit_of(&git, landing->common, landing->branch, oid, now, err);

	return r < 0 ? r : r == 0 && strcmp(now, oid) == 0;
}

/* A file that a git has, or that a git which was killed has left. NULL: there is none. */
static char *find_lock(const struct hf_landing *landing)
{
	char ref[HF_NAME_KEY_MAX + 32];
	const struct {
		const char *dir, *name;
	} all[] = { { landing->common, "packed-refs" }, { landing->common, landing->branch }, { landing->common, ref },
		    { landing->common, "HEAD" }, { landing->git_dir, "HEAD" }, { landing->common, "reftable/tables.list" } };

	hf_land_ref(landing->name, ref);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		AUTO_FREE char *path = NULL;
		struct stat st;

		if (asprintf(&path, "%s/%s.lock", all[i].dir, all[i].name) < 0)
			path = NULL;
		if (path && hf_sys.fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
			return ptr_take(&path);
	}
	return NULL;
}

/*
 * It is for people to remove the lock. Nothing proves that it is not another git's: it is empty, or may have come after ours was started, and that git may
 * run in another container or on another machine.
 */
static int tell_locked(const struct hf_landing *landing, const struct hf_land_transaction *t, struct hf_err *err)
{
	AUTO_FREE char *lock = find_lock(landing);
	char word[HF_SHELL_WORD_MAX];
	const char *words = t->words[0] ? t->words : "git failed without a message";

	if (lock)
		return FAIL(err, HF_E_TIMEOUT, "git", lock, "remove it if no git is running, then 'holdfast land %s' continues; git: %.110s", hf_shell_word(landing->name, word), words);
	return FAIL(err, HF_E_LAND, "git", landing->common, "the branch cannot be moved: %.180s", words);
}

int hf_land_transaction_prepare(const struct hf_landing *landing, struct hf_land_transaction *t, struct hf_err *err)
{
	struct hf_mono until = hf_mono_in(LOCKED_NS);
	int r;

	while ((r = prepare(landing, t, err)) == -EAGAIN) {
		int is = is_at(landing, landing->from, err);

		if (is <= 0)
			return is < 0 ? is : -EAGAIN;
		if (hf_mono_left(until) == 0)
			return tell_locked(landing, t, err);
		hf_pause(50 * HF_MSEC);
	}
	return r;
}

int hf_land_transaction_failed(const struct hf_landing *landing, struct hf_land_transaction *t, struct hf_err *err)
{
	int is;

	hf_land_transaction_done(t);
	is = is_at(landing, landing->commit, err);
	if (is != 0)
		return is < 0 ? is : 0;
	is = is_at(landing, landing->from, err);
	return is < 0 ? is : is ? tell_locked(landing, t, err) : -EAGAIN;
}

int hf_land_transaction_commit(struct hf_land_transaction *transaction)
{
	int r = say(transaction, "commit\n");

	return r < 0 ? r : await(transaction, "commit: ok\n");
}

/* -- what a killed git leaves ---------------------------------------------------------- */

/* Its lock file holds what the ref was to become. */
static int is_ours(const char *path, const char *commit)
{
	char text[HF_LAND_OID_MAX + 2];
	ssize_t n = hf_read_file(AT_FDCWD, path, text, sizeof(text) - 1);

	if (n <= 0)
		return 0;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return strcmp(text, commit) == 0;
}

static int is_empty_of_ours(const char *path)
{
	struct stat st;

	return hf_sys.fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) && st.st_size == 0 &&
	       st.st_uid == geteuid();
}

void hf_land_transaction_sweep(const struct hf_landing *landing)
{
	struct hf_mono until = hf_mono_in(SWEEP_NS);
	AUTO_FREE char *lock = NULL;
	AUTO_FREE char *head = NULL;
	AUTO_FREE char *kept = NULL;
	char ref[HF_NAME_KEY_MAX + 32];

	if (!landing->commit[0] || asprintf(&lock, "%s/%s.lock", landing->common, landing->branch) < 0)
		return;
	/* One that lives gives it back by itself, as soon as it sees that we are gone. */
	while (is_ours(lock, landing->commit) && hf_mono_left(until) > 0)
		hf_pause(20 * HF_MSEC);
	if (!is_ours(lock, landing->commit))
		return;
	/* git locks HEAD for its reflog as well, where HEAD is the branch: an empty file. */
	if (asprintf(&head, "%s/HEAD.lock", landing->common) >= 0 && is_empty_of_ours(head))
		(void)hf_sys.unlinkat(AT_FDCWD, head, 0);
	/* And that of the ref which goes with it. */
	hf_land_ref(landing->name, ref);
	if (asprintf(&kept, "%s/%s.lock", landing->common, ref) >= 0 && is_empty_of_ours(kept))
		(void)hf_sys.unlinkat(AT_FDCWD, kept, 0);
	(void)hf_sys.unlinkat(AT_FDCWD, lock, 0);
}
