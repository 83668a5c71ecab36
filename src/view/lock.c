/* view/lock.c - what is shown of a lock. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "hf/base/parse.h"
#include "hf/proc/blocked.h"
#include "hf/run/session/owner.h"
#include "hf/sys/io.h"
#include "hf/view/lock.h"

const char *hf_view_mode(enum hf_lock_mode mode)
{
	return mode == HF_LOCK_SHARED ? "shared" : mode == HF_LOCK_SLOTS ? "slots" : "exclusive";
}

const char *hf_view_liveness(enum hf_liveness liveness)
{
	return liveness == HF_ALIVE ? "alive" : liveness == HF_DEAD ? "dead" : "unknown";
}

/* -- JSON -------------------------------------------------------------------------- */

#define COMM_MAX 32

/* The name of the process, for show: by number, so it may be another's by now. "": not known. */
static void read_comm(int32_t pid, char out[COMM_MAX])
{
	char path[40];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	n = hf_read_file(AT_FDCWD, path, out, COMM_MAX - 1);
	out[n > 0 ? n : 0] = '\0';
	out[strcspn(out, "\n")] = '\0';
}

/* Adds what the process is: the session, where a keeper has or wants its own name, the pid, its command. */
static void set_who(json_t **object, enum hf_lock_kind kind, const char *lock,
		    const struct hf_proc_id *id, const char *host, int lives)
{
	char comm[COMM_MAX] = "", text[HF_PROC_TEXT_MAX];

	if (lives)
		read_comm(id->pid, comm);
	(void)hf_proc_format(id, text);
	hf_view_set(object, "session",
		    hf_view_text(hf_comm_is_keeper(comm) && kind == HF_LOCK_KIND_NAME ? lock : NULL));
	hf_view_set(object, "pid", json_integer(id->pid));
	hf_view_set(object, "id", json_string(text));
	hf_view_set(object, "comm", hf_view_text(comm[0] ? comm : NULL));
	hf_view_set(object, "host", hf_view_text(host[0] ? host : NULL));
}

static json_t *holder_json(enum hf_lock_kind kind, const char *lock, const struct hf_holder *holder)
{
	json_t *object = json_object();

	set_who(&object, kind, lock, &holder->id, holder->host, holder->liveness == HF_ALIVE);
	hf_view_set(&object, "token", json_integer((json_int_t)holder->token));
	hf_view_set(&object, "mode", json_string(hf_view_mode(holder->mode)));
	hf_view_set(&object, "since", hf_view_time(holder->since));
	hf_view_set(&object, "held_ms", hf_view_since(holder->since));
	hf_view_set(&object, "lease_ms", json_null());
	hf_view_set(&object, "lease_left_ms", hf_view_number(holder->lease_left_ns, HF_MSEC));
	hf_view_set(&object, "renewed_ms", json_null());
	hf_view_set(&object, "liveness", json_string(hf_view_liveness(holder->liveness)));
	hf_view_set(&object, "evidence", hf_view_text(holder->evidence));
	return object;
}

static json_t *waiter_json(enum hf_lock_kind kind, const char *lock, const struct hf_waiter *waiter,
			   size_t place)
{
	json_t *object = json_object();

	set_who(&object, kind, lock, &waiter->id, waiter->host, waiter->host[0] == '\0');
	hf_view_set(&object, "place", json_integer((json_int_t)place));
	hf_view_set(&object, "mode", json_string(hf_view_mode(waiter->mode)));
	hf_view_set(&object, "waited_ms", hf_view_number(waiter->waited_ns, HF_MSEC));
	return object;
}

json_t *hf_view_lock(const struct hf_lock_info *info)
{
	json_t *object = json_object(), *holders = json_array(), *waiters = json_array();

	for (size_t i = 0; i < info->n_holders; i++)
		hf_view_add(&holders, holder_json(info->kind, info->name, &info->holders[i]));
	for (size_t i = 0; i < info->n_waiters; i++)
		hf_view_add(&waiters, waiter_json(info->kind, info->name, &info->waiters[i], i + 1));
	hf_view_set_name(&object, info->name);
	hf_view_set(&object, "kind", json_string(hf_lock_kind_word(info->kind)));
	hf_view_set(&object, "mode",
		    hf_view_text(info->n_holders > 0 ? hf_view_mode(info->holders[0].mode) : NULL));
	hf_view_set(&object, "slots", info->slots ? json_integer(info->slots) : json_null());
	hf_view_set(&object, "token", info->token ? json_integer((json_int_t)info->token) : json_null());
	hf_view_set(&object, "holders", holders);
	hf_view_set(&object, "waiters", waiters);
	return object;
}

json_t *hf_view_conflict(enum hf_lock_kind kind, const char *name, const struct hf_holder *blocker,
			 const struct hf_err *err, int exit_status)
{
	json_t *object = json_object();
	int known = blocker->id.pid > 0;

	hf_view_set(&object, "conflict", json_true());
	hf_view_set(&object, "name", hf_view_text(name));
	hf_view_set(&object, "kind", json_string(hf_lock_kind_word(kind)));
	hf_view_set(&object, "holder_pid", known ? json_integer(blocker->id.pid) : json_null());
	/* The one figure in seconds: scripts that knew no other way have it from here. */
	hf_view_set(&object, "age_seconds",
		    known ? hf_view_number(hf_wall_now().ns - blocker->since.ns, HF_SEC) : json_null());
	hf_view_set(&object, "holder", known ? holder_json(kind, name, blocker) : json_null());
	hf_view_set(&object, "error", hf_view_error(err, exit_status));
	return object;
}

/* -- columns ----------------------------------------------------------------------- */

const struct hf_view_column hf_view_lock_columns[HF_VIEW_LOCK_COLUMNS] = {
	{ "NAME", -20 }, { "KIND", -6 },   { "MODE", -9 },    { "PID", 8 },   { "AGE", 8 },
	{ "LEASE", 8 },	 { "WAITERS", 7 }, { "TOKEN", -16 }, { "OWNER", 0 },
};

void hf_view_lease(struct hf_buf *out, int64_t left_ns)
{
	if (left_ns == 0)
		hf_buf_add_text(out, "expired");
	else
		hf_view_duration(out, left_ns);
}

void hf_view_lock_cells(const struct hf_lock_info *info, const struct hf_holder *holder,
			struct hf_buf cells[HF_VIEW_LOCK_COLUMNS])
{
	hf_buf_add_shown(&cells[0], info->name, strlen(info->name));
	hf_buf_add_text(&cells[1], hf_lock_kind_word(info->kind));
	hf_buf_add_text(&cells[2], holder ? hf_view_mode(holder->mode) : "free");
	hf_view_count(&cells[3], holder ? holder->id.pid : -1);
	hf_view_duration(&cells[4], holder ? hf_wall_now().ns - holder->since.ns : -1);
	hf_view_lease(&cells[5], holder ? holder->lease_left_ns : -1);
	hf_view_count(&cells[6], (int64_t)info->n_waiters);
	hf_buf_add_u64(&cells[7], holder ? holder->token : info->token);
	hf_buf_add_text(&cells[HF_VIEW_LOCK_STATE], holder ? hf_view_liveness(holder->liveness) : "-");
	if (holder && holder->host[0]) {
		hf_buf_add_text(&cells[HF_VIEW_LOCK_STATE], " on ");
		hf_buf_add_shown(&cells[HF_VIEW_LOCK_STATE], holder->host, strlen(holder->host));
	}
}

enum hf_view_tone hf_view_lock_tone(const struct hf_holder *holder)
{
	return holder && holder->liveness == HF_ALIVE ? HF_TONE_GOOD : HF_TONE_CARE;
}

void hf_view_waiting(struct hf_buf *out, const struct hf_lock_waiting *where, int in_background)
{
	char comm[HF_COMM_MAX] = "";

	hf_buf_add_text(out, where->kind == HF_LOCK_KIND_GROUP ? "waiting for a place in '" : "waiting for '");
	hf_buf_add_shown(out, where->name, strlen(where->name));
	hf_buf_add_text(out, "' (");
	if (where->kind == HF_LOCK_KIND_GROUP)
		hf_buf_add_format(out, "all %u taken, ", where->slots);
	if (where->kind != HF_LOCK_KIND_GROUP && where->holder.pid > 0) {
		hf_comm_read(where->holder.pid, comm);
		hf_buf_add_format(out, "pid %d ", (int)where->holder.pid);
		hf_buf_add_shown(out, comm, strlen(comm));
		hf_buf_add_text(out, comm[0] ? ", " : "");
	}
	hf_buf_add_format(out, "%lld s)", (long long)(where->waited_ns / HF_SEC));
	if (where->place > 0)
		hf_buf_add_format(out, ", place %u", where->place);
	if (where->place > 0 && where->of > where->place)
		hf_buf_add_format(out, " of %u", where->of);
	hf_buf_add_text(out, in_background ? "; Ctrl-C leaves it waiting in the background" : "; Ctrl-C gives up");
}
