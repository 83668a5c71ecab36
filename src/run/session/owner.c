/* run/session/owner.c - asking the lock of a session which keeper holds it. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/exec/ptable.h"
#include "hf/proc/blocked.h"
#include "hf/proc/here.h"
#include "hf/run/session/owner.h"
#include "hf/sys/io.h"

/* Is the process of that identity a keeper? Its number is read while a pidfd pins it. */
static int is_keeper(const struct hf_sessions *sessions, const struct hf_proc_id *id, int32_t *ret_number)
{
	AUTO_FD pidfd = -1;
	char path[40], comm[32];
	ssize_t n;

	if (hf_proc_open(id, sessions->judge_flags, &pidfd, NULL) < 0 ||
	    hf_proc_number(pidfd, id->pid, ret_number) < 0)
		return 0;
	(void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)*ret_number);
	n = hf_read_file(AT_FDCWD, path, comm, sizeof(comm) - 1);
	comm[n > 0 ? n : 0] = '\0';
	comm[strcspn(comm, "\n")] = '\0';
	return hf_comm_is_keeper(comm) && hf_pidfd_exited(pidfd) == 0;
}

/* A child that still has the keeper's name is held, and is let go only when the record is written. */
static int has_child(int32_t number)
{
	AUTO(hf_ptable_done) struct hf_ptable scan = { 0 };
	char comm[HF_COMM_MAX];

	if (hf_ptable_read(&scan) < 0)
		return 0;
	for (size_t i = 0; i < scan.n; i++) {
		if (scan.stats[i].ppid != number || hf_stat_is_dead(&scan.stats[i]))
			continue;
		hf_comm_read(scan.stats[i].pid, comm);
		if (comm[0] && !hf_comm_is_keeper(comm))
			return 1;
	}
	return 0;
}

struct search {
	const struct hf_sessions *sessions;
	struct hf_session_owner *owner;
	int32_t number;
	int found;
};

/* The index of the holder that is a keeper, or n_holders. */
static size_t find_keeper(const struct hf_sessions *sessions, const struct hf_lock_info *info, int32_t *ret_number)
{
	size_t i = 0;

	while (i < info->n_holders && (info->holders[i].mode != HF_LOCK_EXCLUSIVE ||
				       !is_keeper(sessions, &info->holders[i].id, ret_number)))
		i++;
	return i;
}

int hf_session_holds_lock(struct hf_sessions *sessions, const struct hf_lock_info *info)
{
	int32_t number;

	return find_keeper(sessions, info, &number) < info->n_holders;
}

static void look_at_holders(void *arg, const struct hf_lock_info *info)
{
	struct search *search = arg;
	struct hf_session_owner *owner = search->owner;
	size_t keeper = find_keeper(search->sessions, info, &search->number);

	if (keeper == info->n_holders)
		return;
	search->found = 1;
	owner->keeper = info->holders[keeper].id;
	owner->token = info->holders[keeper].token;
	owner->since = info->holders[keeper].since;
	memcpy(owner->evidence, info->holders[keeper].evidence, sizeof(owner->evidence));
	for (size_t i = 0; i < info->n_holders; i++)
		if (i != keeper && info->holders[i].token == owner->token)
			owner->supervisor = info->holders[i].id;
}

int hf_session_find_owner(struct hf_sessions *sessions, const char *name,
			  struct hf_session_owner *ret)
{
	struct search search = { .sessions = sessions, .owner = ret };

	memset(ret, 0, sizeof(*ret));
	if (hf_lock_look(sessions->locks, name, look_at_holders, &search, NULL) < 0 || !search.found)
		return 0;
	ret->has_child = has_child(search.number);
	return 1;
}
