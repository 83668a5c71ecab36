/* run/session/attach.c - a viewer's side of a session's terminal. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/run/session/attach.h"
#include "hf/run/session/record/store.h"

struct hf_attach {
	int fd;
	int types;      /* the keeper said so */
	int32_t writer; /* the viewer that may, if it is another */
};

void hf_attach_address(int dirfd, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	(void)snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/" HF_ATTACH_NAME, dirfd);
}

void hf_attach_free(struct hf_attach *attach)
{
	if (!attach)
		return;
	hf_auto_close(&attach->fd);
	free(attach);
}

/* Is what listens there the keeper on record, of this user? */
static int is_keeper(int fd, const struct hf_session_record *record)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.uid == geteuid() &&
	       peer.pid == record->keeper.pid;
}

static int fail_connect(const char *name, const struct hf_session_record *record, int error, struct hf_err *err)
{
	if (record->phase == HF_PHASE_ENDED || error == ECONNREFUSED)
		return FAIL(err, HF_E_GONE, "attach", name, "'logs' shows its output");
	if (error == ENOENT)
		return FAIL(err, HF_E_NO_TERMINAL, "attach", name, "run it with --detach --terminal; 'logs -f' shows its output");
	return hf_fail_sys(err, error, "attach", name);
}

static int connect_to(struct hf_sessions *sessions, const char *name, int *ret_fd, struct hf_err *err)
{
	struct hf_session_record record;
	struct sockaddr_un address;
	AUTO_FD dirfd = -1;
	AUTO_FD fd = -1;
	int r = hf_session_load(sessions, name, &record, err);

	if (r == 0)
		r = hf_session_dir(sessions, name, 0, &dirfd, err);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return hf_fail_sys(err, errno, "socket", name);
	hf_attach_address(dirfd, &address);
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return fail_connect(name, &record, errno, err);
	if (!is_keeper(fd, &record))
		return FAIL(err, HF_E_UNTRUSTED, "attach", name, "a process that is not its keeper listens there");
	*ret_fd = fd_take(&fd);
	return 0;
}

int hf_session_attach(struct hf_sessions *sessions, const char *name, const struct hf_attach_opts *opts,
		      struct hf_attach **ret_attach, struct hf_err *err)
{
	struct hf_attach_message hello = { .kind = HF_ATTACH_HELLO, .version = HF_ATTACH_VERSION };
	AUTO_FD fd = -1;
	int r;

	if (!sessions || !name || !opts || opts->size != sizeof(*opts) || opts->rows > UINT16_MAX ||
	    opts->columns > UINT16_MAX || !ret_attach)
		return FAIL(err, -EINVAL, "arguments", "hf_session_attach", "NULL, a wrong size, or a window that is too large");
	r = connect_to(sessions, name, &fd, err);
	if (r < 0)
		return hf_err_wrap(err, r, "session", name);
	hello.how = opts->flags;
	hello.rows = (uint16_t)opts->rows;
	hello.columns = (uint16_t)opts->columns;
	if (send(fd, &hello, HF_ATTACH_SIZE_OF(0), MSG_NOSIGNAL) < 0)
		return hf_fail_sys(err, errno, "attach", name);
	*ret_attach = calloc(1, sizeof(**ret_attach));
	if (!*ret_attach)
		return hf_fail_sys(err, ENOMEM, "memory", name);
	(*ret_attach)->fd = fd_take(&fd);
	return 0;
}

int hf_attach_fd(const struct hf_attach *attach)
{
	return attach->fd;
}

int hf_attach_types(const struct hf_attach *attach, int32_t *ret_writer)
{
	if (ret_writer)
		*ret_writer = attach->writer;
	return attach->types;
}

int hf_attach_hear(struct hf_attach *attach)
{
	struct hf_attach_message message;
	int heard = 0;
	ssize_t n;

	while ((n = recv(attach->fd, &message, sizeof(message), 0)) >= (ssize_t)HF_ATTACH_SIZE_OF(0)) {
		if (message.kind != HF_ATTACH_ROLE)
			continue;
		attach->types = message.how == 1;
		attach->writer = message.writer;
		heard = 1;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return heard;
	return HF_E_GONE;
}

/* 0; -EAGAIN: not now; HF_E_GONE. */
static int send_message(struct hf_attach *attach, const struct hf_attach_message *message)
{
	if (send(attach->fd, message, HF_ATTACH_SIZE_OF(message->len), MSG_NOSIGNAL) >= 0)
		return 0;
	return errno == EAGAIN || errno == EINTR || errno == ENOBUFS ? -EAGAIN : HF_E_GONE;
}

int hf_attach_type(struct hf_attach *attach, const void *keys, size_t n)
{
	struct hf_attach_message message = { .kind = HF_ATTACH_TYPED };
	int r;

	message.len = n < HF_ATTACH_KEYS ? (uint32_t)n : HF_ATTACH_KEYS;
	memcpy(message.keys, keys, message.len);
	r = send_message(attach, &message);
	return r < 0 ? r : (int)message.len;
}

int hf_attach_resize(struct hf_attach *attach, uint32_t rows, uint32_t columns)
{
	struct hf_attach_message message = { .kind = HF_ATTACH_SIZE, .rows = (uint16_t)rows, .columns = (uint16_t)columns };

	return send_message(attach, &message);
}
