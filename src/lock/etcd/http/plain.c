/* lock/etcd/http/plain.c - the table of http.h over sockets: calls with connections that are kept, and streams. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hf/base/cleanup.h"
#include "hf/lock/etcd/http/exchange.h"
#include "hf/lock/etcd/http/plain.h"
#include "hf/sys/fd/poll.h"

#define IDLE_MAX 4
#define FDS_MAX  160

struct idle {
	int fd;
	char server[HF_HTTP_SERVER_MAX];
};

/* What was sent without waiting for the answer. */
struct told {
	struct hf_exchange x;
	char server[HF_HTTP_SERVER_MAX];
};

static void free_told(struct told *told)
{
	if (told)
		hf_exchange_done(&told->x);
	free(told);
}

struct hf_http {
	pthread_mutex_t mutex;
	struct idle idle[IDLE_MAX];
	int n_idle;
	struct told *told; /* its answer is still to come */
	int64_t connect_ns;
};

struct hf_http_stream {
	struct hf_exchange x;
	int ended;
};

/* "http://h1:2379/v3/kv/txn" into its parts. 0 or -EINVAL. */
static int split_url(const char *url, char server[HF_HTTP_SERVER_MAX], const char **ret_path)
{
	static const char scheme[] = "http://";
	size_t n;

	if (strncmp(url, scheme, sizeof(scheme) - 1) != 0)
		return -EINVAL;
	url += sizeof(scheme) - 1;
	n = strcspn(url, "/");
	if (url[n] != '/' || n >= HF_HTTP_SERVER_MAX)
		return -EINVAL;
	memcpy(server, url, n);
	server[n] = '\0';
	*ret_path = url + n;
	return 0;
}

/* -- connections that are kept --------------------------------------------------------------- */

/* One that is open and silent: the server has neither closed it nor said what nobody asked for. */
static int is_fresh(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

/* -1: none to that server. */
static int take_idle(struct hf_http *http, const char *server)
{
	AUTO_FD fd = -1;

	(void)pthread_mutex_lock(&http->mutex);
	for (int i = http->n_idle - 1; i >= 0 && fd < 0; i--)
		if (strcmp(http->idle[i].server, server) == 0) {
			fd = http->idle[i].fd;
			http->idle[i] = http->idle[--http->n_idle];
		}
	(void)pthread_mutex_unlock(&http->mutex);
	return fd >= 0 && is_fresh(fd) ? fd_take(&fd) : -1;
}

static int run_exchange(struct hf_exchange *x, struct hf_mono until)
{
	int r;

	while ((r = hf_exchange_step(x)) == 0) {
		struct pollfd fd = { .fd = x->fd, .events = hf_exchange_events(x) };
		int connects = x->phase == HF_EXCHANGE_CONNECTS;

		if (hf_mono_left(until) == 0)
			return -ETIMEDOUT;
		(void)hf_poll_until(&fd, 1, connects ? hf_mono_earlier(until, x->connect_until) : until);
	}
	return r;
}

/* The connection over which something was told last, when the answer to that has come; -1: there is none. */
static int take_told(struct hf_http *http, const char *server, struct hf_mono until)
{
	struct told *told = NULL;
	int fd = -1;

	(void)pthread_mutex_lock(&http->mutex);
	if (http->told && strcmp(http->told->server, server) == 0) {
		told = http->told;
		http->told = NULL;
	}
	(void)pthread_mutex_unlock(&http->mutex);
	if (told && run_exchange(&told->x, until) == 1 && !told->x.reply.closes)
		fd = fd_take(&told->x.fd);
	free_told(told);
	return fd;
}

static int take_connection(struct hf_http *http, const char *server, struct hf_mono until)
{
	int fd = take_idle(http, server);

	return fd >= 0 ? fd : take_told(http, server, until);
}

static void keep_idle(struct hf_http *http, const char *server, int *fd)
{
	AUTO_FD old = -1;

	(void)pthread_mutex_lock(&http->mutex);
	if (http->n_idle == IDLE_MAX) {
		old = http->idle[0].fd;
		http->idle[0] = http->idle[--http->n_idle];
	}
	http->idle[http->n_idle].fd = fd_take(fd);
	memcpy(http->idle[http->n_idle++].server, server, strlen(server) + 1);
	(void)pthread_mutex_unlock(&http->mutex);
}

/* -- a call ----------------------------------------------------------------------------------- */

static const char *why(int r)
{
	if (r == -EPROTO)
		return "the answer is not HTTP";
	if (r == -ECONNRESET)
		return "the connection was closed before the answer";
	if (r == -ETIMEDOUT)
		return "no answer in time";
	return r == -EHOSTUNREACH ? "no such server" : strerrordesc_np(-r);
}

static enum hf_http_result post(struct hf_http *http, const struct hf_http_request *request, struct hf_http_answer *ret)
{
	struct hf_mono until = hf_mono_in(request->timeout_ns);
	AUTO(hf_exchange_done) struct hf_exchange x = { .fd = -1, .out = HF_BUF_INIT };
	char server[HF_HTTP_SERVER_MAX];
	const char *path;
	int r = split_url(request->url, server, &path);

	*ret = (struct hf_http_answer){ 0 };
	if (r == 0)
		r = hf_exchange_begin(&x, server, path, request, take_connection(http, server, until),
				      hf_mono_earlier(until, hf_mono_in(http->connect_ns)));
	if (r == 0)
		r = run_exchange(&x, until);
	if (r == 1) {
		ret->status = x.reply.status;
		ret->date = x.reply.date;
		ret->len = x.reply.len;
		ret->body = x.reply.body ? x.reply.body : calloc(1, 1);
		x.reply.body = NULL;
		if (!x.reply.closes)
			keep_idle(http, server, &x.fd);
		return ret->body ? HF_HTTP_DONE : HF_HTTP_UNKNOWN;
	}
	(void)snprintf(ret->error, sizeof(ret->error), "%s", why(r));
	if (r == -EMSGSIZE)
		return HF_HTTP_TOO_LARGE;
	return x.sent == 0 ? HF_HTTP_NOT_SENT : HF_HTTP_UNKNOWN;
}

/* Sends as much of it as goes without waiting; what is left, and the answer, are for the next call. */
static int tell(struct hf_http *http, const struct hf_http_request *request)
{
	struct told *told = calloc(1, sizeof(*told)), *before;
	const char *path;
	int r = told ? split_url(request->url, told->server, &path) : -ENOMEM;

	if (r < 0) {
		free(told);
		return -1;
	}
	r = hf_exchange_begin(&told->x, told->server, path, request, take_idle(http, told->server), hf_mono_in(http->connect_ns));
	if (r == 0)
		r = hf_exchange_step(&told->x);
	if (r == 1 && !told->x.reply.closes)
		keep_idle(http, told->server, &told->x.fd);
	if (r != 0) {
		free_told(told);
		return r == 1 ? 0 : -1;
	}
	(void)pthread_mutex_lock(&http->mutex);
	before = http->told;
	http->told = told;
	(void)pthread_mutex_unlock(&http->mutex);
	free_told(before);
	return 0;
}

/* -- a stream ------------------------------------------------------------------------------------ */

static void close_stream(struct hf_http_stream *stream)
{
	if (!stream)
		return;
	hf_exchange_done(&stream->x);
	free(stream);
}

static int open_stream(struct hf_http *http, const struct hf_http_request *request, struct hf_http_stream **ret)
{
	struct hf_http_stream *stream = calloc(1, sizeof(*stream));
	char server[HF_HTTP_SERVER_MAX];
	const char *path;
	int r = split_url(request->url, server, &path);

	if (!stream || r < 0) {
		free(stream);
		return r < 0 ? r : -ENOMEM;
	}
	r = hf_exchange_begin(&stream->x, server, path, request, -1, hf_mono_in(http->connect_ns));
	if (r == -ENOMEM) {
		close_stream(stream);
		return r;
	}
	stream->ended = r < 0;
	*ret = stream;
	return 0;
}

/* 1: more bytes than before; -1: it has ended; 0: neither. */
static int step_stream(struct hf_http_stream *stream)
{
	size_t before = stream->x.reply.len;

	if (!stream->ended && hf_exchange_step(&stream->x) != 0)
		stream->ended = 1;
	return stream->x.reply.len > before ? 1 : stream->ended ? -1 : 0;
}

static int await(struct hf_http_stream *stream, struct pollfd *fds, nfds_t n, int64_t timeout_ns)
{
	struct hf_mono until = hf_mono_in(timeout_ns);
	struct pollfd all[FDS_MAX + 1];
	int r = step_stream(stream);

	for (nfds_t i = 0; i < n; i++)
		fds[i].revents = 0;
	while (r == 0) {
		int connects = stream->x.phase == HF_EXCHANGE_CONNECTS, ready;

		n = n < FDS_MAX ? n : FDS_MAX;
		for (nfds_t i = 0; i < n; i++)
			all[i] = fds[i];
		all[n] = (struct pollfd){ .fd = stream->x.fd, .events = hf_exchange_events(&stream->x) };
		ready = hf_poll_until(all, n + 1, connects ? hf_mono_earlier(until, stream->x.connect_until) : until);
		for (nfds_t i = 0; i < n && ready > 0; i++)
			fds[i].revents = all[i].revents;
		r = step_stream(stream);
		if (ready < 0 || hf_mono_left(until) == 0 || (ready > 0 && !(ready == 1 && all[n].revents)))
			break;
	}
	return r;
}

static const char *stream_bytes(struct hf_http_stream *stream, size_t *ret_len)
{
	*ret_len = stream->x.reply.len;
	return stream->x.reply.body ? stream->x.reply.body : "";
}

static void take_bytes(struct hf_http_stream *stream, size_t len)
{
	struct hf_reply *reply = &stream->x.reply;

	reply->len -= len;
	if (reply->body)
		memmove(reply->body, reply->body + len, reply->len + 1);
}

/* -- the client ------------------------------------------------------------------------------------ */

static void rest(struct hf_http *http)
{
	struct idle idle[IDLE_MAX];
	struct told *told;
	int n;

	(void)pthread_mutex_lock(&http->mutex);
	n = http->n_idle;
	memcpy(idle, http->idle, sizeof(idle));
	told = http->told;
	http->n_idle = 0;
	http->told = NULL;
	(void)pthread_mutex_unlock(&http->mutex);
	while (n > 0)
		(void)close(idle[--n].fd);
	free_told(told);
}

static int open_client(const struct hf_http_options *options, struct hf_http **ret)
{
	struct hf_http *http = calloc(1, sizeof(*http));

	if (!http)
		return -ENOMEM;
	(void)pthread_mutex_init(&http->mutex, NULL);
	http->connect_ns = options->connect_timeout_ns;
	*ret = http;
	return 0;
}

static void free_client(struct hf_http *http, int forked)
{
	if (!http)
		return;
	/* A child's copies are only descriptors: closing them ends nothing. */
	while (http->n_idle > 0)
		(void)close(http->idle[--http->n_idle].fd);
	free_told(http->told);
	if (!forked)
		(void)pthread_mutex_destroy(&http->mutex);
	free(http);
}

const struct hf_http_module hf_http_plain = {
	.version = HF_HTTP_VERSION,
	.open = open_client,
	.free = free_client,
	.post = post,
	.tell = tell,
	.rest = rest,
	.stream = open_stream,
	.await = await,
	.bytes = stream_bytes,
	.take = take_bytes,
	.close = close_stream,
};
