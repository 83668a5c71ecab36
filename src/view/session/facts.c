/* view/session/facts.c - the queues that sessions stand in, and their candidates. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/run/session/attach.h"
#include "hf/run/session/record/store.h"
#include "hf/sys/io.h"
#include "hf/tx/unlanded.h"
#include "hf/view/session/facts.h"
#include "hf/view/session/needs.h"

#define ENVIRONMENT_MAX (256 << 10)

/* One process in a queue. */
struct waiter {
	struct hf_view_wait wait;
	int32_t pid;
	char session[HF_NAME_MAX + 1]; /* that it belongs to; "": none */
};

struct hf_facts {
	struct hf_state *state;
	struct hf_sessions *sessions;
	struct waiter *waiters;
	size_t n;
	struct hf_plans *plans;
	struct hf_landings *landings;
	int tried_landings;
};

/* The session that the process runs in, by its environment: for show, and by number. "" when that cannot be read. */
static void session_of(int32_t pid, char out[HF_NAME_MAX + 1])
{
	static const char variable[] = "HOLDFAST_SESSION=";
	AUTO_FREE char *text = malloc(ENVIRONMENT_MAX);
	char path[40];
	ssize_t n;

	out[0] = '\0';
	(void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	n = text ? hf_read_file(AT_FDCWD, path, text, ENVIRONMENT_MAX - 1) : -1;
	if (n <= 0)
		return;
	text[n] = '\0';
	for (const char *at = text; at < text + n; at += strlen(at) + 1)
		if (strncmp(at, variable, sizeof(variable) - 1) == 0)
			hf_copy_text(out, HF_NAME_MAX + 1, at + sizeof(variable) - 1);
}

static void note_silent(void *arg, const struct hf_session_info *info)
{
	*(int *)arg = hf_session_is_silent(info);
}

static void note_queue(void *arg, const struct hf_lock_info *info)
{
	struct hf_facts *facts = arg;
	const struct hf_holder *holder = info->n_holders > 0 ? &info->holders[0] : NULL;
	struct hf_view_wait wait = { .is_known = 1, .kind = info->kind, .of = info->n_waiters, .holder_held_ns = -1 };
	struct waiter *grown;

	/* A lock whose last waiter has just gone. */
	if (info->n_waiters == 0)
		return;
	grown = reallocarray(facts->waiters, facts->n + info->n_waiters, sizeof(*grown));
	if (!grown)
		return;
	facts->waiters = grown;
	hf_copy_text(wait.name, sizeof(wait.name), info->name);
	if (holder) {
		wait.holder_pid = holder->id.pid;
		wait.holder_held_ns = hf_wall_now().ns - holder->since.ns;
		session_of(holder->id.pid, wait.holder);
		/* Where others wait so long, it matters whether it works. */
		if (wait.holder[0] && info->waiters[0].waited_ns >= HF_NEED_STUCK_NS)
			(void)!hf_session_look(facts->sessions, wait.holder, note_silent, &wait.holder_silent, NULL);
	}
	for (size_t i = 0; i < info->n_waiters; i++) {
		struct waiter *waiter = &facts->waiters[facts->n++];

		*waiter = (struct waiter){ .wait = wait, .pid = info->waiters[i].id.pid };
		waiter->wait.place = i + 1;
		waiter->wait.waited_ns = info->waiters[i].waited_ns;
		session_of(waiter->pid, waiter->session);
	}
}

struct hf_facts *hf_facts_open(struct hf_state *state, struct hf_sessions *sessions)
{
	struct hf_facts *facts = calloc(1, sizeof(*facts));

	if (!facts)
		return NULL;
	facts->state = state;
	facts->sessions = sessions;
	(void)!hf_lock_list_waited(sessions->locks, note_queue, facts, NULL);
	return facts;
}

void hf_facts_free(struct hf_facts *facts)
{
	if (!facts)
		return;
	hf_landings_free(facts->landings);
	hf_plans_free(facts->plans);
	free(facts->waiters);
	free(facts);
}

static void open_landings(struct hf_facts *facts)
{
	if (facts->tried_landings)
		return;
	facts->tried_landings = 1;
	if (hf_plans_open(facts->state, NULL, &facts->plans, NULL) < 0)
		facts->plans = NULL;
	else if (hf_landings_open(facts->state, NULL, facts->plans, &facts->landings, NULL) < 0)
		facts->landings = NULL;
}

/* Finds the work that the run left. */
static void find_work(struct hf_facts *facts, const struct hf_session_info *info, struct hf_view_facts *ret)
{
	struct hf_unlanded work;
	int r, is_own, is_landed, is_resolved;

	if (info->seen || info->token == 0 || info->outcome == HF_OUTCOME_NONE)
		return;
	open_landings(facts);
	r = facts->plans ? hf_unlanded_look(facts->plans, facts->landings, info->name, HF_UNLANDED_BRANCH, &work, NULL) : -1;
	if (r < 0)
		return;
	/* An earlier run of the name may have left the candidate. */
	is_own = work.land && work.token == info->token;
	/* A run that failed although it landed, or had nothing to land, is not resolved. A killed keeper could not record that it left work. */
	is_landed = is_own && work.land == HF_LAND_LANDED && work.changed.ns > info->ended.ns;
	is_resolved = info->kept || is_landed || (is_own && work.land == HF_LAND_DROPPED && info->outcome == HF_OUTCOME_ABANDONED);
	ret->work = r > 0 ? HF_WORK_UNLANDED : is_resolved ? HF_WORK_RESOLVED : HF_WORK_NONE;
	if (is_own && (work.land == HF_LAND_REJECTED || work.land == HF_LAND_CONFLICT))
		ret->land = work.land;
	ret->has_landed = is_own && work.land == HF_LAND_LANDED;
}

/* The keeper of a session with a terminal listens in the session's directory. */
static int has_no_terminal(const struct hf_facts *facts, const char *name)
{
	AUTO_FD dirfd = -1;
	struct stat st;

	return hf_session_dir(facts->sessions, name, 0, &dirfd, NULL) == 0 &&
	       fstatat(dirfd, HF_ATTACH_NAME, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

void hf_facts_of(struct hf_facts *facts, const struct hf_session_info *info, struct hf_view_facts *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (!facts)
		return;
	for (size_t i = 0; i < facts->n && info->outcome == HF_OUTCOME_NONE; i++) {
		const struct waiter *waiter = &facts->waiters[i];
		int is_own = waiter->pid == info->keeper.pid || strcmp(waiter->session, info->name) == 0;

		/* Of several waits the one that lasts longest. */
		if (is_own && (!ret->wait.is_known || waiter->wait.waited_ns > ret->wait.waited_ns))
			ret->wait = waiter->wait;
	}
	find_work(facts, info, ret);
	ret->no_terminal = info->outcome == HF_OUTCOME_NONE && has_no_terminal(facts, info->name);
}

json_t *hf_view_wait(const struct hf_view_wait *wait)
{
	json_t *object;

	if (!wait->is_known)
		return json_null();
	object = json_object();
	hf_view_set(&object, "kind", json_string(wait->kind == HF_LOCK_KIND_GROUP ? "group" : "lock"));
	hf_view_set(&object, "lock_kind", json_string(hf_lock_kind_word(wait->kind)));
	hf_view_set(&object, "name", hf_view_text(wait->name));
	hf_view_set(&object, "place", json_integer((json_int_t)wait->place));
	hf_view_set(&object, "of", json_integer((json_int_t)wait->of));
	hf_view_set(&object, "waited_ms", hf_view_number(wait->waited_ns, HF_MSEC));
	hf_view_set(&object, "holder", hf_view_text(wait->holder[0] ? wait->holder : NULL));
	hf_view_set(&object, "holder_pid", wait->holder_pid ? json_integer(wait->holder_pid) : json_null());
	hf_view_set(&object, "holder_held_ms", hf_view_number(wait->holder_held_ns, HF_MSEC));
	return object;
}
