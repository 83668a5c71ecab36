/* run/fleet/agent.c - the agent: its start, its watcher, and the worker that acquires, renews and releases. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/lock/etcd/renewing.h"
#include "hf/run/fleet/agent.h"
#include "hf/run/session/record/store.h"
#include "hf/sys/calls.h"
#include "hf/sys/fd/poll.h"
#include "hf/sys/program.h"
#include "holdfast/exit.h"

#define AGAIN_NS (100 * HF_MSEC)

int hf_fleet_is_store(const char *url)
{
	return url && url[0] && strcmp(url, "local:") != 0;
}

int hf_fleet_spawn(const char *name, int *ret_socket, struct hf_err *err)
{
	char *argv[] = { (char[]){ HF_RENEW_PROGRAM }, (char *)(uintptr_t)name, (char[]){ "session" }, NULL };
	AUTO_FD ours = -1;
	pid_t pid;
	int r = hf_renewer_spawn(argv, "a session in a store of several machines needs this program", &ours, &pid, err);

	if (r < 0)
		return r;
	/* It forks the watcher and exits. */
	while (waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 }, WEXITED) < 0 && errno == EINTR)
		continue;
	*ret_socket = fd_take(&ours);
	return 0;
}

/* -- the worker ------------------------------------------------------------------------------ */

/* What outlives a worker. */
struct kept {
	_Atomic uint64_t token; /* 0: not acquired yet */
	int64_t since, ttl_ns, margin_ns;
};

struct agent {
	struct hf_renewing w;
	struct kept *kept;
	struct hf_state *state;
	struct hf_journal *journal;
	struct hf_sessions *sessions;
};

static void heard(void *arg, const char *text, size_t len)
{
	struct agent *a = arg;

	(void)len;
	if (text[0] == 'F')
		(void)hf_board_put(a->w.locks, a->w.name, a->w.token, text + 1, NULL);
}

static void asked(void *arg, const char *text)
{
	struct agent *a = arg;

	(void)text;
	hf_renewing_tell(&a->w, HF_RENEWER_ASKED, NULL);
}

static void publish(struct agent *a, const struct hf_session_record *record)
{
	AUTO(hf_buf_done) struct hf_buf text = HF_BUF_INIT;

	hf_fleet_facts(record, &text);
	if (text.err == 0)
		(void)hf_board_put(a->w.locks, a->w.name, a->w.token, text.s, NULL);
}

/*
 * The keeper has gone. Where it was killed, the supervisor ends the tree and completes the record; where that was killed as well, it is for us. A
 * session of this machine that waits for the name has done the same before it waits.
 */
static int gone(void *arg)
{
	struct agent *a = arg;
	struct hf_session_record record;
	int r = hf_session_load(a->sessions, a->w.name, &record, NULL);

	if (r == 0 && record.token == a->w.token && record.phase != HF_PHASE_ENDED)
		r = hf_session_reap_run(a->sessions, a->w.name, a->w.token, NULL) < 0 ? -1
		    : hf_session_load(a->sessions, a->w.name, &record, NULL);
	else if (r < 0 && r != HF_E_NO_SESSION)
		return hf_lock_check_token(a->sessions->locks, a->w.name, a->w.token, NULL) == HF_E_STALE;
	if (r == 0 && record.token == a->w.token)
		publish(a, &record);
	return r == 0 || r == HF_E_NO_SESSION;
}

static const struct hf_renewing_hooks hooks = { .heard = heard, .asked = asked, .gone = gone };

/* The keeper says nothing while it waits for the name: what comes is its end. */
static int goes_on(void *arg)
{
	const struct agent *a = arg;
	char byte;

	return recv(a->w.socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EINTR);
}

static int refuse(struct agent *a, const struct hf_holder *holder, const struct hf_err *err)
{
	struct hf_renewer_news news = { .word = HF_RENEWER_BUSY, .code = err->code < 0 ? err->code : HF_E_STORE, .holder = *holder };

	hf_copy_text(news.text, sizeof(news.text), err->detail[0] ? err->detail : err->op);
	(void)send(a->w.socket, &news, sizeof(news), MSG_NOSIGNAL);
	return HF_EXIT_NO;
}

/* 0: it is held. */
static int acquire(struct agent *a, struct hf_err *err)
{
	struct hf_renewing *w = &a->w;
	struct hf_lock_opts opts = { .size = sizeof(opts), .wait_ns = w->wait_ns, .ttl_ns = w->ttl_ns, .owner = &w->owner,
				     .cancel_fd = w->socket, .go_on = goes_on, .go_on_arg = a };
	struct hf_holder holder = { 0 };
	struct hf_lock *lock = NULL;
	struct hf_proc_id watcher;
	int r;

	if (opts.ttl_ns == 0)
		opts.ttl_ns = hf_locks_lease(w->locks);
	r = hf_lock_acquire_above(w->locks, w->name, &opts, w->above, &lock, &holder, err);
	if (r < 0) {
		(void)refuse(a, &holder, err);
		return r;
	}
	w->token = hf_lock_token(lock);
	w->since = hf_lock_since(lock);
	w->ttl_ns = (opts.ttl_ns + HF_SEC - 1) / HF_SEC * HF_SEC; /* as the store rounds it */
	w->margin_ns = hf_locks_store(w->locks)->margin(w->ttl_ns);
	a->kept->since = w->since.ns;
	a->kept->ttl_ns = w->ttl_ns;
	a->kept->margin_ns = w->margin_ns;
	atomic_store(&a->kept->token, w->token);
	hf_renewing_tell(w, HF_RENEWER_HELD, NULL);
	/* While we live, no process of this machine takes it from a keeper that was killed. */
	if (hf_proc_identify((int32_t)getppid(), &watcher, NULL) == 0)
		(void)!hf_lock_add_owner(lock, &watcher, NULL);
	hf_lock_free(lock);
	return 0;
}

static int work(struct agent *a)
{
	struct hf_renewing *w = &a->w;
	struct hf_err err = HF_ERR_INIT;
	struct hf_holder nobody = { 0 };
	int status, r = hf_state_open(w->dir, 0, &a->state, &err);

	if (r == 0 && hf_journal_open(a->state, NULL, &a->journal, NULL) < 0)
		a->journal = NULL;
	if (r == 0)
		r = hf_sessions_open(a->state, a->journal, &a->sessions, &err);
	if (r == 0)
		r = hf_renewing_open(w, a->journal, &err);
	if (r < 0)
		return refuse(a, &nobody, &err);
	w->token = atomic_load(&a->kept->token);
	if (w->token == 0 && acquire(a, &err) < 0)
		return HF_EXIT_NO;
	w->since.ns = a->kept->since;
	w->ttl_ns = a->kept->ttl_ns;
	w->margin_ns = a->kept->margin_ns;
	w->hooks = &hooks;
	w->arg = a;
	status = hf_renewing_run(w);
	/* Lost: keeper and supervisor end the tree; what they leave behind is for us. */
	while (status == HF_EXIT_REFUSED && w->socket >= 0 && goes_on(a))
		(void)hf_poll_until(&(struct pollfd){ .fd = w->socket, .events = POLLIN }, 1, hf_mono_in(HF_SEC));
	while (status == HF_EXIT_REFUSED && !gone(a))
		(void)hf_poll_until(NULL, 0, hf_mono_in(AGAIN_NS));
	return status;
}

/* -- the watcher ----------------------------------------------------------------------------- */

int hf_fleet_main(int socket)
{
	static struct agent a = { .w = HF_RENEWING_INIT };
	siginfo_t end = { 0 };
	pid_t pid = fork();

	if (pid != 0)
		return pid < 0 ? HF_EXIT_OS : HF_EXIT_DONE;
	hf_renewing_stand_alone();
	/* Descriptor 0 says "none" where one is given. */
	a.w.socket = fcntl(socket, F_DUPFD_CLOEXEC, 3);
	(void)close(socket);
	a.kept = mmap(NULL, sizeof(*a.kept), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (a.w.socket < 0 || a.kept == MAP_FAILED)
		return HF_EXIT_OS;
	/* The keeper waits for the name on this machine first, and that may take long. */
	(void)hf_sys.poll(&(struct pollfd){ .fd = a.w.socket, .events = POLLIN }, 1, -1);
	if (hf_renewing_read_order(&a.w) < 0)
		return HF_EXIT_USAGE;
	for (;;) {
		pid = fork();
		if (pid == 0)
			_exit(work(&a));
		while (pid > 0 && waitid(P_PID, (id_t)pid, &end, WEXITED) < 0 && errno == EINTR)
			continue;
		if (pid > 0 && end.si_code == CLD_EXITED)
			return end.si_status;
		(void)hf_poll_until(NULL, 0, hf_mono_in(AGAIN_NS));
	}
}
