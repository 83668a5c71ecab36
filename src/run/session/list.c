/* run/session/list.c - all sessions there are, in the order of their names, or those of late. */
#include <errno.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/name/names.h"
#include "hf/run/session/inspect.h"
#include "hf/run/session/notes/recent.h"
#include "hf/run/session/remove.h"

struct missing {
	struct hf_names *names;
	size_t n_sorted; /* those of directories */
};

/* A session runs on when its directory is deleted. */
static int add_missing(void *arg, const char *name)
{
	struct missing *missing = arg;

	return hf_names_has(missing->names, missing->n_sorted, name) ? 0 : hf_names_add(missing->names, name);
}

int hf_session_each(struct hf_sessions *sessions, int kept, int (*fn)(void *arg, const char *name), void *arg,
		    struct hf_err *err)
{
	AUTO(hf_names_done) struct hf_names names = { 0 };
	struct missing missing = { .names = &names };
	int r = 0;

	if (!sessions || sessions->process != getpid())
		return FAIL(err, sessions ? HF_E_FORKED : -EINVAL, "list", "sessions",
			    "open the sessions again in this process");
	if (sessions->dirfd >= 0)
		r = hf_names_read(sessions->dirfd, &names);
	if (r < 0)
		return hf_fail_sys(err, -r, "readdir", "sessions");
	missing.n_sorted = names.n;
	if (kept)
		(void)!hf_recent_each_there(sessions, add_missing, &missing);
	if (names.n > missing.n_sorted)
		hf_names_sort(&names);
	for (size_t i = 0; i < names.n && r >= 0; i++)
		r = fn(arg, names.list[i]);
	return r < 0 ? r : 0;
}

/* -- shown ------------------------------------------------------------------------------ */

#define DAY_NS (INT64_C(86400) * HF_SEC)

struct list {
	struct hf_sessions *sessions;
	int64_t age_ns;
	hf_session_fn *fn;
	void *arg;
};

static int list_one(void *arg, const char *name)
{
	struct list *list = arg;
	int r = hf_session_show_one(list->sessions, name, list->fn, list->arg, NULL);

	(void)r; /* one that cannot be read does not hide the others; it was put away, with an event */
	return 0;
}

int hf_session_list(struct hf_sessions *sessions, hf_session_fn *fn, void *arg, struct hf_err *err)
{
	struct list list = { .sessions = sessions, .fn = fn, .arg = arg };

	if (!fn)
		return FAIL(err, -EINVAL, "arguments", "hf_session_list", "NULL");
	return hf_session_each(sessions, 1, list_one, &list, err);
}

static int list_recent_one(void *arg, const char *name)
{
	struct list *list = arg;
	struct hf_session_record record;
	struct hf_session_owner owner;
	int64_t now = hf_wall_now().ns;
	int r = hf_session_load_kept(list->sessions, name, &record, &owner, NULL);
	int64_t ago = r == 0 && record.phase == HF_PHASE_ENDED ? now - (record.ended.ns ? record.ended.ns : record.started.ns) : -1;

	/* Work that has not landed needs a person, however old it is. */
	if (ago > DAY_NS && hf_session_holds_work(list->sessions, name))
		return list->age_ns > 0 ? list_one(arg, name) : 0;
	if (r == HF_E_NO_SESSION || ago > DAY_NS)
		hf_recent_drop(list->sessions, name, (struct hf_wall){ now - DAY_NS });
	else if (ago <= list->age_ns)
		return list_one(arg, name);
	return 0;
}

int hf_session_list_recent(struct hf_sessions *sessions, int64_t age_ns, hf_session_fn *fn, void *arg, struct hf_err *err)
{
	struct list list = { .sessions = sessions, .age_ns = age_ns < DAY_NS ? age_ns : DAY_NS, .fn = fn, .arg = arg };

	if (!fn || !sessions || sessions->process != getpid())
		return FAIL(err, fn && sessions ? HF_E_FORKED : -EINVAL, "list", "sessions", "open the sessions again in this process");
	return hf_recent_each(sessions, list_recent_one, &list, err);
}
