/*
 * proc/pid_ns.c - proves that a pid namespace has ended.
 *
 * /proc lists a living process from its birth to its death. A listing without any process of the
 * namespace therefore proves that its holder is dead. The proof needs a /proc that shows every process
 * of the machine: the /proc of the first pid namespace, mounted without hidepid. A caller in another
 * namespace may not see the holder at all. The kernel reuses the numbers of namespaces, but a reused
 * number can only make a dead holder look alive. A process that cannot be judged counts as a process
 * of the namespace.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/proc/here.h"
#include "hf/proc/stat.h"
#include "hf/sys/calls.h"
#include "hf/sys/fd/numbers.h"
#include "hf/sys/io.h"

/* The kernel gives later namespaces inodes from here on (PROC_DYNAMIC_FIRST). */
#define FIRST_MADE_NS 0xF0000000

#define MOUNTS_PATH "/proc/self/mountinfo"

struct search {
	const struct hf_proc_id *id;
	int met_self; /* else the listing is not of this /proc, or was cut short */
};

static int in_text(const char *text, size_t len, const char *word)
{
	return memmem(text, len, word, strlen(word)) != NULL;
}

/* 1 when a mount of /proc may hide processes, and in any doubt. */
static int is_proc_hiding(void)
{
	AUTO_FD fd = hf_open_at(AT_FDCWD, MOUNTS_PATH, O_RDONLY, 0);
	char text[4096];
	size_t kept = 0;
	ssize_t n;

	if (fd < 0)
		return 1;
	while ((n = hf_sys.read(fd, text + kept, sizeof(text) - kept)) > 0) {
		size_t len = kept + (size_t)n;

		if (in_text(text, len, "hidepid=") || in_text(text, len, "subset="))
			return 1;
		/* The word may continue in the next piece. */
		kept = len < sizeof("hidepid=") ? len : sizeof("hidepid=");
		memmove(text, text + len - kept, kept);
	}
	return n < 0;
}

/* 1 when the process has certainly ended, zombies included. */
static int has_ended(int32_t number)
{
	struct hf_stat st;

	return hf_stat_read(number, &st) == 0 ? hf_stat_is_dead(&st) : hf_pid_is_free(number);
}

/*
 * 1 when the process may be the holder or in its namespace. The namespaces of other users cannot be read,
 * but the pids in them can.
 */
static int may_be_inside(void *arg, int32_t number)
{
	struct search *search = arg;
	uint64_t pid_ns;
	char path[64];
	int r;

	search->met_self |= number == getpid();
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)number);
	if (hf_ns_read(path, &pid_ns) == 0)
		r = pid_ns == search->id->pid_ns;
	else
		r = hf_status_has_inner_pid(number, search->id->pid);
	return r != 0 && !has_ended(number);
}

int hf_pid_ns_has_ended(const struct hf_proc_id *id, const struct hf_here *here)
{
	struct search search = { .id = id };

	return here->pid_ns == HF_FIRST_PID_NS && id->pid_ns >= FIRST_MADE_NS && hf_proc_is_ours() && !is_proc_hiding() &&
	       hf_numbers_in("/proc", may_be_inside, &search) == 0 && search.met_self;
}
