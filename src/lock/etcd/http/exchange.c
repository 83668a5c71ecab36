/* lock/etcd/http/exchange.c - a request over TCP: connecting, sending, reading. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/lock/etcd/http/exchange.h"

static void write_request(struct hf_buf *out, const char *server, const char *path, const struct hf_http_request *request)
{
	size_t len = strlen(request->body);

	(void)hf_buf_reserve(out, len + 512);
	hf_buf_add_format(out, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n", path,
			  server, len);
	if (request->has_leader)
		hf_buf_add_text(out, "Grpc-Metadata-hasleader: true\r\n");
	if (request->token)
		hf_buf_add_format(out, "Authorization: %s\r\n", request->token);
	hf_buf_add_text(out, "\r\n");
	hf_buf_add(out, request->body, len);
}

/* -- connecting ------------------------------------------------------------------------- */

/* Begins with the next address that lets itself be begun with. 0 or the failure of the last. */
static int connect_next(struct hf_exchange *x)
{
	const int on = 1;
	int r = -EHOSTUNREACH;

	while (x->n_tried < x->addresses.n) {
		unsigned i = x->n_tried++;

		hf_auto_close(&x->fd);
		x->fd = socket(x->addresses.of[i].ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (x->fd < 0) {
			r = -errno;
			continue;
		}
		(void)setsockopt(x->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		(void)setsockopt(x->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
		if (connect(x->fd, (const struct sockaddr *)&x->addresses.of[i], x->addresses.len[i]) == 0 ||
		    errno == EINPROGRESS)
			return 0;
		r = -errno;
	}
	return r;
}

/* 1: connected; 0: not yet; or the failure of the last address. */
static int step_connect(struct hf_exchange *x)
{
	struct pollfd fd = { .fd = x->fd, .events = POLLOUT };
	int failure = 0, r;
	socklen_t len = sizeof(failure);

	if (poll(&fd, 1, 0) <= 0)
		return hf_mono_left(x->connect_until) > 0 ? 0 : -ETIMEDOUT;
	if (getsockopt(x->fd, SOL_SOCKET, SO_ERROR, &failure, &len) < 0)
		failure = errno;
	if (failure == 0) {
		x->phase = HF_EXCHANGE_SENDS;
		return 1;
	}
	r = x->n_tried < x->addresses.n ? connect_next(x) : -failure;
	return r;
}

/* -- sending and reading ------------------------------------------------------------------- */

static int step_send(struct hf_exchange *x)
{
	while (x->sent < x->out.len) {
		ssize_t n = send(x->fd, x->out.s + x->sent, x->out.len - x->sent, MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		x->sent += (size_t)n;
	}
	x->phase = HF_EXCHANGE_READS;
	return 1;
}

static int step_read(struct hf_exchange *x)
{
	char bytes[16384];
	int r = 0;

	while (r == 0) {
		ssize_t n = recv(x->fd, bytes, sizeof(bytes), 0);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		if (n == 0)
			return -ECONNRESET; /* before the end of the answer */
		r = hf_reply_read(&x->reply, bytes, (size_t)n);
		/* There is rarely more; poll tells. */
		if (r == 0 && n < (ssize_t)sizeof(bytes))
			return 0;
	}
	return r;
}

int hf_exchange_step(struct hf_exchange *x)
{
	int r = 1;

	if (x->phase == HF_EXCHANGE_CONNECTS)
		r = step_connect(x);
	if (r == 1 && x->phase == HF_EXCHANGE_SENDS)
		r = step_send(x);
	if (r == 1 && x->phase == HF_EXCHANGE_READS)
		r = step_read(x);
	return r;
}

short hf_exchange_events(const struct hf_exchange *x)
{
	return x->phase == HF_EXCHANGE_READS ? POLLIN : POLLOUT;
}

int hf_exchange_begin(struct hf_exchange *x, const char *server, const char *path, const struct hf_http_request *request,
		      int fd, struct hf_mono connect_until)
{
	int r;

	*x = (struct hf_exchange){ .phase = fd < 0 ? HF_EXCHANGE_CONNECTS : HF_EXCHANGE_SENDS, .fd = fd,
				   .connect_until = connect_until, .out = HF_BUF_INIT };
	write_request(&x->out, server, path, request);
	if (x->out.err < 0)
		return x->out.err;
	if (fd >= 0)
		return 0;
	r = hf_resolve(server, connect_until, &x->addresses);
	return r < 0 ? r : connect_next(x);
}

void hf_exchange_done(struct hf_exchange *x)
{
	hf_auto_close(&x->fd);
	hf_buf_done(&x->out);
	hf_reply_done(&x->reply);
}
