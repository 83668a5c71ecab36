/* exec/tree.c - ending the tree below this process. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/escapes.h"
#include "hf/proc/here.h"
#include "hf/exec/tree.h"
#include "hf/sys/calls.h"
#include "hf/sys/io.h"
#include "hf/sys/fd/poll.h"

void hf_tree_done(struct hf_tree *tree)
{
	hf_cgroup_done(&tree->group);
	hf_victims_done(&tree->victims);
	free(tree->others);
	tree->others = NULL;
	tree->n_others = 0;
}

int hf_tree_note_others(struct hf_tree *tree)
{
	siginfo_t info = { 0 };
	struct hf_ptable scan;
	size_t kept = 0;
	int r;

	/* The rule: no children at all, and then the table need not be read. */
	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 && errno == ECHILD)
		return 0;
	r = hf_ptable_read(&scan);
	if (r < 0)
		return r;
	for (size_t i = 0; i < scan.n; i++)
		if (scan.stats[i].ppid == getpid())
			scan.stats[kept++] = scan.stats[i];
	tree->others = scan.stats;
	tree->n_others = kept;
	return 0;
}

void hf_tree_add_beside(struct hf_tree *tree, int32_t pid)
{
	if (tree->n_beside < HF_TREE_BESIDE_MAX)
		tree->beside[tree->n_beside++] = pid;
}

/* Our children that are not reaped yet, so their numbers are their own. */
static int is_beside(const struct hf_tree *tree, int32_t pid)
{
	for (size_t i = 0; i < tree->n_beside; i++)
		if (tree->beside[i] == pid)
			return 1;
	return 0;
}

static int is_ours(const struct hf_tree *tree, int32_t pid)
{
	return (tree->attendant != 0 && pid == tree->attendant) || is_beside(tree, pid);
}

/* Only they have no signal at their end: whatever loses its parent gets the usual one with us. */
static void reap_beside(struct hf_tree *tree)
{
	for (size_t i = 0; i < tree->n_beside;) {
		siginfo_t info = { 0 };
		int r = waitid(P_PID, (id_t)tree->beside[i], &info, WEXITED | WNOHANG | __WCLONE);

		if (r < 0 || info.si_pid != 0)
			tree->beside[i] = tree->beside[--tree->n_beside];
		else
			i++;
	}
}

/* A child of ours: of the tree, or of those that were there before? */
static int is_of_tree(const struct hf_tree *tree, const struct hf_stat *st)
{
	for (size_t i = 0; i < tree->n_others; i++)
		if (tree->others[i].pid == st->pid && tree->others[i].start_ticks == st->start_ticks)
			return 0;
	/* Orphans of those come to us as well. */
	return tree->n_others == 0 || st->pid == tree->leader ||
	       hf_mark_found(st->pid, tree->mark, 0, 0) ||
	       (tree->limit && hf_limit_mark_of(st->pid) == tree->limit) ||
	       (tree->group.fd >= 0 && hf_cgroup_has(&tree->group, st->pid));
}

/* With other children about, an empty tree has to be looked for in the table. */
static int has_living_child(const struct hf_tree *tree)
{
	AUTO(hf_ptable_done) struct hf_ptable scan = { 0 };

	if (hf_ptable_read(&scan) < 0)
		return 1;
	for (size_t i = 0; i < scan.n; i++) {
		struct hf_stat now;

		if (scan.stats[i].ppid != getpid())
			continue;
		/*
		 * All that had exited were reaped before: a zombie has died since, its mark can no
		 * longer be read, and its children may have been read before they became ours.
		 * Then nothing is proven, and the table is read again.
		 */
		if (is_of_tree(tree, &scan.stats[i]) || hf_stat_read(scan.stats[i].pid, &now) < 0 ||
		    hf_stat_is_dead(&now))
			return 1;
	}
	return 0;
}

/* The process that the tree's orphans come to. */
static int32_t reaper_of(const struct hf_tree *tree)
{
	return tree->reaper > 0 ? tree->reaper : (int32_t)getpid();
}

/* 1 while the reaper lives: it ends when nobody is below it. One that was killed leaves them to us. */
static int has_reaper(struct hf_tree *tree)
{
	siginfo_t info = { 0 };
	int r;

	if (tree->reaper == 0)
		return 0;
	do
		r = waitid(P_PID, (id_t)tree->reaper, &info, WEXITED | WNOHANG);
	while (r < 0 && errno == EINTR);
	if (r == 0 && info.si_pid == 0)
		return 1;
	tree->reaper = 0;
	return 0;
}

int hf_tree_reap(struct hf_tree *tree)
{
	int which = tree->n_beside > 0 ? 0 : __WALL;

	if (has_reaper(tree))
		return 1;
	reap_beside(tree);
	for (;;) {
		siginfo_t info = { 0 };

		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | which) < 0) {
			if (errno == EINTR)
				continue;
			/* Nobody left; a group may still hold one that was moved there. */
			if (tree->group.fd >= 0 && hf_cgroup_populated(&tree->group) > 0)
				return 1;
			tree->group_struck = 0;
			return 0;
		}
		if (info.si_pid == 0)
			return tree->n_others == 0 || has_living_child(tree) ||
			       (tree->group.fd >= 0 && hf_cgroup_populated(&tree->group) > 0);
		if (info.si_pid == tree->leader) {
			tree->leader = 0;
			tree->leader_exited = 1;
			tree->leader_code = info.si_code;
			tree->leader_status = info.si_status;
		}
		if (info.si_pid == tree->attendant)
			tree->attendant = 0;
	}
}

/*
 * The process of that number, if it is still the one that was scanned: the pidfd first, what
 * the number says after, and that it had not exited by then last (L6).
 */
static int open_scanned(const struct hf_tree *tree, const struct hf_stat *st)
{
	AUTO_FD pidfd = hf_sys.pidfd_open(st->pid, 0);
	struct hf_stat now;

	if (pidfd < 0 || hf_stat_read(st->pid, &now) < 0 || now.start_ticks != st->start_ticks ||
	    (now.ppid != st->ppid && now.ppid != reaper_of(tree)) || hf_pidfd_exited(pidfd) != 0)
		return -1;
	return fd_take(&pidfd);
}

/*
 * Keeps what is of the tree: all descendants, but for those beside it, the children that were there before,
 * their orphans, which are our children now, and everybody below any of them.
 */
static void keep_tree(const struct hf_tree *tree, struct hf_ptable *scan)
{
	AUTO_FREE struct hf_stat *not = NULL;
	size_t n = 0;

	if ((tree->n_others > 0 || tree->n_beside > 0) && tree->reaper == 0) {
		not = malloc(scan->n * sizeof(*not));
		if (!not) {
			scan->n = 0;
			return;
		}
		for (size_t i = 0; i < scan->n; i++)
			if (scan->stats[i].ppid == getpid() &&
			    (is_beside(tree, scan->stats[i].pid) || !is_of_tree(tree, &scan->stats[i])))
				not[n++] = scan->stats[i];
	}
	hf_ptable_keep_descendants(scan, reaper_of(tree), not, n);
}

int hf_tree_await_attendant(const struct hf_tree *tree, int64_t wait_ns)
{
	AUTO_FD pidfd = tree->attendant > 0 ? hf_sys.pidfd_open(tree->attendant, 0) : -1;
	struct pollfd fd = { .fd = pidfd, .events = POLLIN };

	return pidfd >= 0 && hf_poll_until(&fd, 1, hf_mono_in(wait_ns)) > 0;
}

/* The attendant has nobody left to serve, and did not end by itself. */
static void kill_attendant(struct hf_tree *tree)
{
	/* Our child, not reaped: the number is its own. */
	AUTO_FD pidfd = tree->attendant > 0 ? hf_sys.pidfd_open(tree->attendant, 0) : -1;

	if (pidfd >= 0)
		(void)hf_sys.pidfd_send_signal(pidfd, SIGKILL);
}

/* Sends to all descendants that live. Returns how many; of SIGKILL how many for the first time. */
static unsigned signal_all(struct hf_tree *tree, int sig, int also, int32_t spared)
{
	AUTO(hf_ptable_done) struct hf_ptable scan = { 0 };
	unsigned count = 0, sent = 0;

	if (hf_ptable_read(&scan) < 0)
		return 0;
	keep_tree(tree, &scan);
	for (size_t i = 0; i < scan.n; i++) {
		const struct hf_stat *st = &scan.stats[i];
		AUTO_FD pidfd = hf_stat_is_dead(st) || st->pid == spared || is_ours(tree, st->pid)
					? -1
					: open_scanned(tree, st);

		if (pidfd < 0)
			continue;
		sent++;
		if (hf_sys.pidfd_send_signal(pidfd, sig) == 0)
			count += sig != SIGKILL ||
				 hf_victims_add(&tree->victims, st->pid, st->start_ticks);
		if (also)
			(void)hf_sys.pidfd_send_signal(pidfd, also);
	}
	if (sig == SIGKILL && sent == 0)
		kill_attendant(tree);
	return count;
}

int hf_tree_term(struct hf_tree *tree, int32_t spared)
{
	/* One that is stopped could not act on TERM alone. */
	return (int)signal_all(tree, SIGTERM, SIGCONT, spared);
}

/* -- for people ------------------------------------------------------------------- */

#define NAME_MAX_LEN 15 /* of a process, as the kernel keeps it */
#define NAMES_MAX    8  /* different ones; the count tells of the others */

struct name {
	char text[NAME_MAX_LEN + 1];
	unsigned count;
};

/* As plain text, or empty if it cannot be read. */
static void read_name(int32_t pid, char out[NAME_MAX_LEN + 1])
{
	char path[32], name[NAME_MAX_LEN + 1];
	AUTO_FD fd = -1;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	fd = hf_open_at(AT_FDCWD, path, O_RDONLY, 0);
	n = fd < 0 ? 0 : hf_sys.read(fd, name, NAME_MAX_LEN);
	name[n > 0 ? n : 0] = '\0';
	(void)hf_plain_text(out, NAME_MAX_LEN + 1, name, strcspn(name, "\n"));
}

static void add_name(struct name *names, size_t *n, int32_t pid)
{
	char text[NAME_MAX_LEN + 1];
	size_t i = 0;

	read_name(pid, text);
	while (i < *n && strcmp(names[i].text, text) != 0)
		i++;
	if (i == NAMES_MAX || !text[0])
		return;
	if (i == *n) {
		memcpy(names[i].text, text, sizeof(text));
		names[i].count = 0;
		(*n)++;
	}
	names[i].count++;
}

void hf_tree_describe(struct hf_tree *tree, struct hf_tree_names *ret)
{
	AUTO(hf_ptable_done) struct hf_ptable scan = { 0 };
	struct name names[NAMES_MAX];
	size_t n = 0, at = 0;

	memset(ret, 0, sizeof(*ret));
	if (hf_ptable_read(&scan) < 0)
		return;
	keep_tree(tree, &scan);
	for (size_t i = 0; i < scan.n; i++)
		if (!hf_stat_is_dead(&scan.stats[i]) && scan.stats[i].pid != tree->leader &&
		    !is_ours(tree, scan.stats[i].pid)) {
			ret->count++;
			add_name(names, &n, scan.stats[i].pid);
		}
	for (size_t i = 0; i < n && at < sizeof(ret->names) - NAME_MAX_LEN - 16; i++) {
		at += (size_t)snprintf(ret->names + at, sizeof(ret->names) - at, "%s%s", at ? ", " : "",
				       names[i].text);
		if (names[i].count > 1)
			at += (size_t)snprintf(ret->names + at, sizeof(ret->names) - at, " (%u)",
					       names[i].count);
	}
}

/* -- other signals ---------------------------------------------------------------- */

void hf_tree_signal(struct hf_tree *tree, int sig)
{
	(void)signal_all(tree, sig, 0, 0);
}

static void count_member(void *arg, int32_t pid)
{
	struct hf_tree *tree = arg;
	struct hf_stat st;

	if (!is_ours(tree, pid) && hf_stat_read(pid, &st) == 0 && !hf_stat_is_dead(&st))
		tree->killed += (unsigned)hf_victims_add(&tree->victims, pid, st.start_ticks);
}

void hf_tree_kill_but(struct hf_tree *tree, int32_t spared)
{
	tree->killed += signal_all(tree, SIGKILL, 0, spared);
}

void hf_tree_kill(struct hf_tree *tree)
{
	/*
	 * The group first: one call for all that are in it, whatever they fork meanwhile. That
	 * spares a process that moved out of it, and one that lives on in threads after its first
	 * thread has ended. The walk finds these when one round was not enough.
	 */
	if (tree->group.fd >= 0) {
		(void)hf_cgroup_each(&tree->group, count_member, tree);
		tree->group.is_killed = 1;
		if (hf_cgroup_kill(&tree->group) == 0 && !tree->group_struck) {
			tree->group_struck = 1;
			return;
		}
	}
	hf_tree_kill_but(tree, 0);
}
