/* lock/etcd/http/http_stream.c - answers that have no end: a handle and a connection for each. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "hf/lock/etcd/http/http_curl.h"

struct hf_http_stream {
	CURLM *multi;
	CURL *easy;
	struct curl_slist *headers;
	char *request;
	struct body body;
	int ended;
};

void hf_stream_close(struct hf_http_stream *stream)
{
	struct quiet quiet;

	if (!stream)
		return;
	hf_quiet_begin(&quiet);
	if (stream->multi && stream->easy)
		(void)curl_multi_remove_handle(stream->multi, stream->easy);
	if (stream->easy)
		curl_easy_cleanup(stream->easy);
	if (stream->multi)
		(void)curl_multi_cleanup(stream->multi);
	hf_quiet_end(&quiet);
	curl_slist_free_all(stream->headers);
	free(stream->request);
	free(stream->body.bytes);
	free(stream);
}

int hf_stream_open(struct hf_http *http, const struct hf_http_request *request,
		       struct hf_http_stream **ret)
{
	struct hf_http_stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return -ENOMEM;
	stream->multi = curl_multi_init();
	stream->easy = hf_curl_new(http);
	stream->headers = hf_curl_headers(request);
	stream->request = strdup(request->body);
	if (!stream->multi || !stream->easy || !stream->headers || !stream->request) {
		hf_stream_close(stream);
		return -ENOMEM;
	}
	(void)curl_easy_setopt(stream->easy, CURLOPT_URL, request->url);
	(void)curl_easy_setopt(stream->easy, CURLOPT_POSTFIELDS, stream->request);
	(void)curl_easy_setopt(stream->easy, CURLOPT_HTTPHEADER, stream->headers);
	(void)curl_easy_setopt(stream->easy, CURLOPT_WRITEDATA, &stream->body);
	(void)curl_easy_setopt(stream->easy, CURLOPT_FORBID_REUSE, 1L);
	if (curl_multi_add_handle(stream->multi, stream->easy) != CURLM_OK) {
		hf_stream_close(stream);
		return -ENOMEM;
	}
	*ret = stream;
	return 0;
}

static int stream_step(struct hf_http_stream *stream)
{
	size_t before = stream->body.len;
	struct quiet quiet;
	int running = 0;

	hf_quiet_begin(&quiet);
	if (curl_multi_perform(stream->multi, &running) != CURLM_OK || running == 0)
		stream->ended = 1;
	hf_quiet_end(&quiet);
	return stream->body.len > before ? 1 : stream->ended ? -1 : 0;
}

static short wait_events(short events)
{
	return (short)((events & POLLIN ? CURL_WAIT_POLLIN : 0) | (events & POLLOUT ? CURL_WAIT_POLLOUT : 0));
}

#define WAIT_FDS_MAX 80

int hf_stream_await(struct hf_http_stream *stream, struct pollfd *fds, nfds_t n, int64_t timeout_ns)
{
	struct curl_waitfd wait[WAIT_FDS_MAX];
	int64_t ms = timeout_ns / HF_MSEC + 1;
	unsigned used = 0;
	int r, ready = 0;

	for (nfds_t i = 0; i < n; i++)
		fds[i].revents = 0;
	r = stream->ended ? -1 : stream_step(stream);
	if (r != 0)
		return r;
	for (nfds_t i = 0; i < n && used < WAIT_FDS_MAX; i++)
		if (fds[i].fd >= 0)
			wait[used++] = (struct curl_waitfd){ .fd = fds[i].fd, .events = wait_events(fds[i].events) };
	if (curl_multi_poll(stream->multi, wait, used, ms < 3600000 ? (int)ms : 3600000, &ready) != CURLM_OK) {
		stream->ended = 1;
		return -1;
	}
	(void)poll(fds, n, 0);
	return stream_step(stream);
}

const char *hf_stream_bytes(struct hf_http_stream *stream, size_t *ret_len)
{
	*ret_len = stream->body.len;
	return stream->body.bytes ? stream->body.bytes : "";
}

void hf_stream_take(struct hf_http_stream *stream, size_t len)
{
	stream->body.len -= len;
	if (stream->body.bytes)
		memmove(stream->body.bytes, stream->body.bytes + len, stream->body.len + 1);
}
