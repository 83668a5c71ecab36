/*
 * cli/lock/fd.c - lock fd: flocks a descriptor that the shell has opened, with a deadline
 * and events. It serves shell functions, which no other program can run:
 *
 *     exec 9<>FILE; holdfast lock fd 9 -w 5; ...; exec 9>&-
 *
 * The lock belongs to the open file, so it outlives this command and excludes flock(1) and
 * every other user of flock(2). The file does not change.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "hf/base/parse.h"
#include "command.h"
#include "lock/lock.h"

/* Gets the file's path, which is the name in the event. */
static void name_of(int fd, char *out, size_t cap)
{
	char link[32];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, out, cap - 1);
	if (n < 0)
		n = snprintf(out, cap, "descriptor %d", fd);
	out[n] = '\0';
}

/* Returns 1 if the journal could be opened for the event. */
static int journal_timeout(struct cli *cli, enum hf_event event, const char *name, int64_t waited,
			   const struct hf_holder *holder, const struct hf_err *err)
{
	struct lock_context context = { 0 };
	int journalled;

	(void)lock_open(cli, &context);
	journalled = context.journal != NULL;
	lock_journal_timeout(&context, event, name, waited, holder, err);
	lock_close(&context);
	return journalled;
}

static int done(const struct cli *cli, int fd, int locked)
{
	json_t *object;

	if (!cli->json)
		return HF_EXIT_DONE;
	object = json_object();
	cli_set(object, "fd", json_integer(fd));
	cli_set(object, "locked", json_boolean(locked));
	cli_print_json(object);
	return HF_EXIT_DONE;
}

/* Executes the command, if any. It inherits the descriptor and so holds the lock while it keeps the descriptor open. */
static int become(const struct cli *cli, char **command, int fd, int locked)
{
	return command[0] ? command_become(cli, command) : done(cli, fd, locked);
}

static int unlock(const struct cli *cli, int fd)
{
	int r = flock(fd, LOCK_UN) == 0 ? 0 : -errno;

	return r == 0 ? done(cli, fd, 0) : cli_fail_words(cli, r, HF_EXIT_OS, "descriptor %d: %s", fd, strerrordesc_np(-r));
}

int cmd_lock_fd(struct cli *cli, int argc, char **argv)
{
	struct lock_options o = LOCK_OPTIONS_INIT;
	int undo = 0;
	const struct option_spec specs[] = {
		{ "nonblock", 'n', OPTION_FLAG, &o.no_wait, NULL, "do not wait" },
		{ "wait", 'w', OPTION_DURATION, &o.wait_ns, "DUR", "wait at most DUR (default: no limit)" },
		{ "shared", 's', OPTION_FLAG, &o.shared, NULL, "share it with other shared holders" },
		{ "unlock", 'u', OPTION_FLAG, &undo, NULL, "release the lock; the descriptor stays open" },
		{ "on-timeout", 0, OPTION_TEXT, &o.on_timeout_word, "fail|skip|proceed", "what to do if it stays busy (fail)" },
		{ "conflict-exit-code", 'E', OPTION_COUNT, &o.busy_status, "N", "exit status if it stays busy (1)" },
		{ 0 },
	};
	struct hf_mono start = hf_mono_now();
	struct hf_lock_opts opts = { .size = sizeof(opts) };
	struct hf_holder holder = { 0 };
	struct hf_err err = HF_ERR_INIT;
	char name[512];
	uint64_t fd;
	int64_t waited;
	int r, status, n = cli_options(cli, specs, argc, argv, 1, OPTIONS_THEN_COMMAND);

	if (n < 0)
		return cli_options_status(n);
	status = lock_options_check(cli, &o);
	if (status != HF_EXIT_DONE)
		return status;
	if (hf_parse_u64(argv[0], strlen(argv[0]), INT32_MAX, &fd) < 0 ||
	    fcntl((int)fd, F_GETFD) < 0)
		return cli_usage(cli, "descriptor %s is not open; in a shell: exec 9<>FILE", argv[0]);
	argv[n] = NULL; /* n <= argc, so argv has room */
	if (undo)
		return n > 1 ? cli_usage(cli, "--unlock cannot be combined with a command") : unlock(cli, (int)fd);
	name_of((int)fd, name, sizeof(name));
	opts.mode = o.shared ? HF_LOCK_SHARED : HF_LOCK_EXCLUSIVE;
	opts.wait_ns = o.wait_ns;
	r = hf_lock_fd((int)fd, &opts, &holder, &err);
	if (r >= 0)
		return become(cli, argv + 1, (int)fd, 1);
	if (r != HF_E_BUSY && r != HF_E_TIMEOUT)
		return cli_fail(cli, &err);
	waited = hf_mono_now().ns - start.ns;
	if (o.on_timeout == ON_TIMEOUT_PROCEED &&
	    journal_timeout(cli, HF_EV_LOCK_FAIL_OPEN, name, waited, &holder, &err)) {
		cli_say(cli, "%s: continuing WITHOUT the lock", name);
		return become(cli, argv + 1, (int)fd, 0);
	}
	if (o.on_timeout == ON_TIMEOUT_SKIP)
		(void)journal_timeout(cli, HF_EV_LOCK_SKIPPED, name, waited, &holder, &err);
	/* With "skip" a command is not run, exit 0. A shell without a command must learn from the status that it has no lock. */
	return lock_say_busy(cli, HF_LOCK_KIND_NAME, name, &holder, &err,
			     o.on_timeout == ON_TIMEOUT_SKIP && argv[1] ? HF_EXIT_DONE : (int)o.busy_status);
}
