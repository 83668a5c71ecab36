/* hook/background.c - records that a stopped client waits for its user or its background tasks, and ends these tasks. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/buf.h"
#include "hf/base/cleanup.h"
#include "hf/base/escapes.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/exec/ptable.h"
#include "hf/hook/own.h"
#include "hf/sys/io.h"
#include "holdfast/proc.h"

#define ENDED_MAX 512            /* processes in one round; the session ends the others */
#define LOOK_NS   (20 * HF_MSEC) /* between two checks of their end */

/* -- the session ---------------------------------------------------------------------- */

int hf_own_open(struct hf_hooks *hooks, struct hf_own *ret, struct hf_err *err)
{
	const char *name = getenv("HOLDFAST_SESSION"), *text = getenv("HOLDFAST_TOKEN");
	int r;

	if (!name || !name[0] || !text || hf_parse_u64(text, strlen(text), UINT64_MAX, &ret->token) < 0)
		return 0;
	r = hf_sessions_open(hooks->state, NULL, &ret->sessions, err);
	ret->name = name;
	return r < 0 ? r : 1;
}

void hf_own_done(struct hf_own *own)
{
	hf_sessions_free(own->sessions);
	own->sessions = NULL;
}

/* -- its user -------------------------------------------------------------------------- */

/* Claude sets a variable. Other clients are interactive if their standard input is a terminal. */
static int has_user(const struct hf_hook_event *event)
{
	const char *attended = getenv("CLAUDE_CODE_SESSION_ATTENDED"), *entry = getenv("CLAUDE_CODE_ENTRYPOINT"), *proof;
	char path[40], target[64] = "";
	struct hf_proc_id id;

	if (attended)
		return strcmp(attended, "0") != 0;
	if (entry)
		return strcmp(entry, "cli") == 0;
	if (hf_hook_client_process(hf_client_here(), event->session, &id, &proof, NULL) < 0)
		return 0;
	(void)snprintf(path, sizeof(path), "/proc/%d/fd/0", (int)id.pid);
	return readlink(path, target, sizeof(target) - 1) > 0 && strncmp(target, "/dev/pts/", 9) == 0;
}

int hf_hook_asks(struct hf_hooks *hooks, const struct hf_hook_event *event, struct hf_err *err)
{
	AUTO(hf_own_done) struct hf_own own = HF_OWN_INIT;
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;
	int r = event->kind == HF_HOOK_ASKS || event->kind == HF_HOOK_WAITS ? hf_own_open(hooks, &own, err) : 0;

	if (r <= 0 || !has_user(event))
		return r < 0 ? r : 0;
	if (event->kind == HF_HOOK_WAITS)
		return hf_session_set_activity(own.sessions, own.name, own.token, HF_ACTIVITY_DONE, NULL, err);
	if (event->message[0])
		hf_buf_add_text(&text, event->message);
	else if (event->tool[0])
		hf_buf_add_format(&text, "approve %s%s%s", event->tool, event->command[0] ? ": " : event->path[0] ? " " : "",
				  event->command[0] ? event->command : event->path);
	else
		hf_buf_add_text(&text, "a permission");
	return hf_session_set_activity(own.sessions, own.name, own.token, HF_ACTIVITY_BLOCKED, text.s, err);
}

/* -- which processes are a task ---------------------------------------------------------- */

/* Its standard output or error is a file ".../ID" or ".../ID.output". */
static int has_output_of(int32_t pid, const char *id)
{
	for (int fd = 1; fd <= 2; fd++) {
		char path[40], target[4096];
		const char *name;
		size_t len = strlen(id);
		ssize_t n;

		(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
		n = readlink(path, target, sizeof(target) - 1);
		if (n <= 0)
			continue;
		target[n] = '\0';
		name = strrchr(target, '/');
		if (name && strncmp(name + 1, id, len) == 0 && (name[len + 1] == '\0' || name[len + 1] == '.'))
			return 1;
	}
	return 0;
}

/* Removes quotes and blanks, which differ where a client quotes the command for a shell. */
static size_t squeeze(char *text, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		if (!strchr("'\"\\ \t\n", text[i]))
			text[n++] = text[i];
	text[n] = '\0';
	return n;
}

/* Its command line contains the whole command, as for "sh -c". */
static int has_command(int32_t pid, const char *command)
{
	AUTO_FREE char *wanted = strdup(command);
	AUTO_FREE char *found = malloc(65536);
	char path[32];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	n = wanted && found ? hf_read_file(AT_FDCWD, path, found, 65535) : -1;
	if (n <= 0 || squeeze(wanted, strlen(wanted)) == 0)
		return 0;
	(void)squeeze(found, (size_t)n);
	return strstr(found, wanted) != NULL;
}

/* The client starts each shell in a new session, unlike its servers. */
static int is_task(int32_t pid, const struct hf_hook_task *task)
{
	if (strlen(task->id) >= 4 && !strchr(task->id, '/') && has_output_of(pid, task->id))
		return 1;
	return getsid(pid) == pid && has_command(pid, task->command);
}

static int is_any_task(int32_t pid, const struct hf_hook_event *event)
{
	for (int i = 0; i < event->background && i < HF_HOOK_TASKS_MAX; i++)
		if (is_task(pid, &event->tasks[i]))
			return 1;
	return 0;
}

/* -- ending them ------------------------------------------------------------------------- */

struct ended {
	struct hf_proc_id list[ENDED_MAX];
	size_t n;
};

static void add(struct ended *ended, int32_t pid)
{
	if (ended->n < ENDED_MAX && hf_proc_identify(pid, &ended->list[ended->n], NULL) == 0)
		ended->n++;
}

/* Collects the current processes of the tasks. */
static void collect(int32_t client, const struct hf_hook_event *event, struct ended *ret)
{
	AUTO(hf_ptable_done) struct hf_ptable all = { 0 };

	ret->n = 0;
	if (hf_ptable_read(&all) < 0)
		return;
	for (size_t i = 0; i < all.n; i++) {
		AUTO(hf_ptable_done) struct hf_ptable below = { 0 };

		if (all.stats[i].ppid != client || hf_stat_is_dead(&all.stats[i]) || hf_ptable_is_above(all.stats[i].pid) ||
		    !is_any_task(all.stats[i].pid, event))
			continue;
		add(ret, all.stats[i].pid);
		if (hf_ptable_read(&below) < 0)
			continue;
		hf_ptable_keep_descendants(&below, all.stats[i].pid, NULL, 0);
		for (size_t k = 0; k < below.n; k++)
			add(ret, below.stats[k].pid);
	}
}

/* Returns the number of signalled processes. */
static int signal_all(const struct ended *ended, int sig)
{
	int n = 0;

	for (size_t i = 0; i < ended->n; i++)
		n += hf_proc_signal(&ended->list[i], sig, 0, NULL) == 0;
	return n;
}

static int is_any_alive(const struct ended *ended)
{
	char evidence[HF_EVIDENCE_MAX];

	for (size_t i = 0; i < ended->n; i++)
		if (hf_proc_liveness(&ended->list[i], 0, evidence) == HF_ALIVE)
			return 1;
	return 0;
}

/* Returns the number of signalled processes. */
static int end_tasks(const struct hf_hook_event *event)
{
	AUTO_FREE struct ended *ended = calloc(1, sizeof(*ended));
	struct hf_mono limit = hf_mono_in(HF_HOOK_TASK_GRACE_NS);
	struct hf_proc_id client;
	const char *proof;
	int n;

	if (!ended || hf_hook_client_process(hf_client_here(), event->session, &client, &proof, NULL) < 0)
		return 0;
	collect(client.pid, event, ended);
	n = signal_all(ended, SIGTERM);
	while (is_any_alive(ended) && hf_mono_left(limit) > 0)
		hf_pause(LOOK_NS);
	/* Processes that ignore TERM, and new ones. */
	(void)signal_all(ended, SIGKILL);
	collect(client.pid, event, ended);
	return n + signal_all(ended, SIGKILL);
}

static int are_all_shells(const struct hf_hook_event *event)
{
	for (int i = 0; i < event->background; i++)
		if (i >= HF_HOOK_TASKS_MAX || strcmp(event->tasks[i].type, "shell") != 0)
			return 0;
	return 1;
}

/* -- a client that stopped --------------------------------------------------------------- */

/* "'npm run dev' and 2 more" */
static void describe(const struct hf_hook_event *event, char out[HF_ACTIVITY_TEXT_MAX + 1])
{
	char first[HF_ACTIVITY_TEXT_MAX - 40], more[32] = "";

	(void)hf_plain_text(first, sizeof(first), event->tasks[0].command, strlen(event->tasks[0].command));
	if (event->background > 1)
		(void)snprintf(more, sizeof(more), " and %d more", event->background - 1);
	(void)snprintf(out, HF_ACTIVITY_TEXT_MAX + 1, "'%s'%s", first, more);
}

static void note_end_wanted(void *arg, const struct hf_session_info *info)
{
	*(int *)arg = info->end_background;
}

int hf_hook_stopped(struct hf_hooks *hooks, const struct hf_hook_event *event, struct hf_err *err)
{
	AUTO(hf_own_done) struct hf_own own = HF_OWN_INIT;
	struct hf_activity_note note = { .activity = HF_ACTIVITY_DONE };
	int r = event->kind == HF_HOOK_STOP ? hf_own_open(hooks, &own, err) : 0, wanted = 0, ended = 0;

	if (r <= 0)
		return r;
	if (has_user(event))
		return hf_session_set_activity(own.sessions, own.name, own.token, HF_ACTIVITY_DONE, NULL, err);
	if (event->background == 0)
		return 0;
	describe(event, note.text);
	r = hf_session_set_activity(own.sessions, own.name, own.token, HF_ACTIVITY_BACKGROUND, note.text, err);
	if (r == 0)
		r = hf_session_look(own.sessions, own.name, note_end_wanted, &wanted, err);
	if (r < 0)
		return r;
	if (wanted && are_all_shells(event) && hf_activity_read(own.sessions, own.name, own.token, &note) && note.ended < HF_HOOK_END_TASKS_MAX) {
		ended = end_tasks(event);
		note.ended++;
		r = hf_activity_write(own.sessions, own.name, own.token, &note, err);
	}
	struct hf_field fields[] = { HF_FIELD_INT("count", event->background), HF_FIELD_TEXT("tasks", note.text), HF_FIELD_INT("killed", ended) };

	hf_hook_tell(hooks, HF_EV_BACKGROUND_LEFT, own.name, fields, 3);
	return r < 0 ? r : ended;
}
