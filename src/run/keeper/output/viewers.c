/* run/keeper/output/viewers.c - viewers of a session's terminal: coming, typing, resizing, leaving. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/run/keeper/output/keys.h"
#include "hf/run/keeper/output/viewers.h"
#include "hf/sys/calls.h"

/* Messages of one viewer in one turn: one that floods holds up nothing. */
#define MESSAGES 16

int hf_viewers_open(struct hf_viewers *v, struct hf_sessions *sessions, const char *name)
{
	struct sockaddr_un address;
	AUTO_FD fd = -1;
	int r = hf_session_dir(sessions, name, 1, &v->dirfd, NULL);

	for (int i = 0; i < HF_VIEWERS_MAX; i++)
		v->all[i].fd = -1;
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* One that a keeper left which was killed. We hold the session's lock: none that lives is there. */
	(void)hf_sys.unlinkat(v->dirfd, HF_ATTACH_NAME, 0);
	hf_attach_address(v->dirfd, &address);
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	/* The umask is the command's; one that takes our own write permission would let no viewer in. The directory is 0700. */
	if (fchmodat(v->dirfd, HF_ATTACH_NAME, 0600, 0) < 0 || listen(fd, 64) < 0)
		return -errno;
	v->listener = fd_take(&fd);
	return 0;
}

void hf_viewers_done(struct hf_viewers *v)
{
	if (v->listener < 0)
		return;
	for (int i = 0; i < HF_VIEWERS_MAX; i++)
		hf_auto_close(&v->all[i].fd);
	hf_auto_close(&v->listener);
	(void)hf_sys.unlinkat(v->dirfd, HF_ATTACH_NAME, 0);
	hf_auto_close(&v->dirfd);
}

/* -- the writer ------------------------------------------------------------------- */

static void drop(struct hf_viewers *v, int i);

static void tell_role(struct hf_viewers *v, int i)
{
	struct hf_attach_message message = { .kind = HF_ATTACH_ROLE, .how = i == v->writer };

	message.writer = v->writer >= 0 ? v->all[v->writer].pid : 0;
	/* One whose queue is full reads nothing: it is let go. */
	if (send(v->all[i].fd, &message, HF_ATTACH_SIZE_OF(0), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		drop(v, i);
}

static void set_size(struct hf_viewers *v, uint16_t rows, uint16_t columns)
{
	if (rows == 0 || columns == 0)
		return;
	v->size.ws_row = rows;
	v->size.ws_col = columns;
	if (v->pty >= 0)
		(void)ioctl(v->pty, TIOCSWINSZ, &v->size);
}

static void set_writer(struct hf_viewers *v, int i)
{
	int before = v->writer;

	v->writer = i;
	if (before >= 0 && before != i && v->all[before].fd >= 0)
		tell_role(v, before);
	if (i < 0)
		return;
	set_size(v, v->all[i].rows, v->all[i].columns);
	tell_role(v, i);
}

/* The one that has waited longest. */
static int next_writer(const struct hf_viewers *v)
{
	int next = -1;

	for (int i = 0; i < HF_VIEWERS_MAX; i++)
		if (v->all[i].fd >= 0 && v->all[i].wants && (next < 0 || v->all[i].came < v->all[next].came))
			next = i;
	return next;
}

static void drop(struct hf_viewers *v, int i)
{
	hf_auto_close(&v->all[i].fd);
	v->all[i].wants = 0;
	if (v->writer != i)
		return;
	v->writer = -1;
	set_writer(v, next_writer(v));
}

/* -- what comes ------------------------------------------------------------------- */

/* A place; where all are taken, that of one that has said nothing yet. -1: there is none. */
static int find_place(struct hf_viewers *v)
{
	for (int i = 0; i < HF_VIEWERS_MAX; i++)
		if (v->all[i].fd < 0)
			return i;
	for (int i = 0; i < HF_VIEWERS_MAX; i++)
		if (!v->all[i].greeted) {
			drop(v, i);
			return i;
		}
	return -1;
}

static void accept_viewers(struct hf_viewers *v)
{
	for (int turn = 0; turn < HF_VIEWERS_MAX; turn++) {
		AUTO_FD fd = accept4(v->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct ucred peer;
		socklen_t len = sizeof(peer);
		int i;

		if (fd < 0)
			return;
		if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || peer.uid != geteuid())
			continue;
		i = find_place(v);
		if (i >= 0)
			v->all[i] = (struct hf_viewer){ .fd = fd_take(&fd), .pid = peer.pid, .came = ++v->came };
	}
}

static int is_valid(const struct hf_viewer *viewer, const struct hf_attach_message *m, ssize_t n)
{
	if (n < (ssize_t)HF_ATTACH_SIZE_OF(0) || (size_t)n != HF_ATTACH_SIZE_OF(m->kind == HF_ATTACH_TYPED ? m->len : 0) ||
	    m->len > HF_ATTACH_KEYS)
		return 0;
	if (!viewer->greeted)
		return m->kind == HF_ATTACH_HELLO && m->version == HF_ATTACH_VERSION;
	return m->kind == HF_ATTACH_TYPED || m->kind == HF_ATTACH_SIZE;
}

static void greet(struct hf_viewers *v, int i, uint32_t how)
{
	v->all[i].greeted = 1;
	v->all[i].wants = !(how & HF_ATTACH_READ_ONLY);
	if (v->all[i].wants && (v->writer < 0 || how & HF_ATTACH_TAKE))
		set_writer(v, i);
	else
		tell_role(v, i);
}

/* Keys for the pty; what a viewer types that is not the writer is dropped. A signal as for hf_viewers_take. */
static int type(struct hf_viewers *v, int i, const struct hf_attach_message *m, pid_t *ret_group)
{
	if (i != v->writer || v->pty < 0 || m->len == 0)
		return 0;
	v->typed = hf_boot_now();
	v->at = 0;
	v->len = m->len;
	memcpy(v->keys, m->keys, m->len);
	return hf_keys_signal(v->pty, v->keys, v->len, ret_group);
}

/* Its keys are still to be handed over. */
static int is_waiting(const struct hf_viewers *v, int i)
{
	return i == v->writer && v->len > 0;
}

static int take_from(struct hf_viewers *v, int i, pid_t *ret_group)
{
	struct hf_attach_message message;
	int sig = 0;

	for (int turn = 0; turn < MESSAGES && sig == 0 && !is_waiting(v, i) && v->all[i].fd >= 0; turn++) {
		ssize_t n = recv(v->all[i].fd, &message, sizeof(message), 0);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (n <= 0 || !is_valid(&v->all[i], &message, n)) {
			drop(v, i);
			break;
		}
		if (message.kind != HF_ATTACH_TYPED) {
			v->all[i].rows = message.rows;
			v->all[i].columns = message.columns;
		}
		if (message.kind == HF_ATTACH_HELLO)
			greet(v, i, message.how);
		else if (message.kind == HF_ATTACH_SIZE && i == v->writer)
			set_size(v, message.rows, message.columns);
		else if (message.kind == HF_ATTACH_TYPED)
			sig = type(v, i, &message, ret_group);
	}
	return sig;
}

int hf_viewers_take(struct hf_viewers *v, pid_t *ret_group)
{
	int sig = 0;

	if (v->listener < 0)
		return 0;
	/* A writer that has left is known by that alone, while its keys wait. */
	if (v->writer >= 0 && v->len > 0 && hf_sys.poll(&(struct pollfd){ .fd = v->all[v->writer].fd }, 1, 0) > 0)
		drop(v, v->writer);
	for (int i = 0; i < HF_VIEWERS_MAX && sig == 0; i++)
		if (v->all[i].fd >= 0)
			sig = take_from(v, i, ret_group);
	accept_viewers(v);
	return sig;
}

void hf_viewers_answer(struct hf_viewers *v, const char *text)
{
	size_t at = v->len > 0 ? v->at : 0, len = strlen(text);

	if (v->pty < 0 || at + v->len + len > sizeof(v->keys))
		return;
	memcpy(v->keys + at + v->len, text, len);
	v->at = at;
	v->len += len;
}

void hf_viewers_copy(struct hf_viewers *v)
{
	ssize_t n;

	if (v->pty < 0)
		v->len = 0;
	if (v->len == 0)
		return;
	n = hf_sys.write(v->pty, v->keys + v->at, v->len);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		v->len = 0;
		return;
	}
	v->at += (size_t)n;
	v->len -= (size_t)n;
}

nfds_t hf_viewers_poll(const struct hf_viewers *v, struct pollfd *fds)
{
	nfds_t n = 0;

	if (v->listener < 0)
		return 0;
	fds[n++] = (struct pollfd){ .fd = v->listener, .events = POLLIN };
	if (v->len > 0)
		fds[n++] = (struct pollfd){ .fd = v->pty, .events = POLLOUT };
	/* While its keys wait, nothing is read from the writer. */
	for (int i = 0; i < HF_VIEWERS_MAX; i++)
		if (v->all[i].fd >= 0)
			fds[n++] = (struct pollfd){ .fd = v->all[i].fd, .events = i == v->writer && v->len > 0 ? 0 : POLLIN };
	return n;
}
