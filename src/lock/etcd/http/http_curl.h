/* lock/etcd/http/http_curl.h - what the files of the module share. */
#ifndef LOCK_ETCD_HTTP_HTTP_CURL_H
#define LOCK_ETCD_HTTP_HTTP_CURL_H

#include <curl/curl.h>
#include <pthread.h>
#include <signal.h>

#include "hf/lock/etcd/http/http.h"
#include "holdfast/clock.h"

#define IDLE_MAX 4 /* connections that are kept */

struct hf_http {
	pthread_mutex_t mutex;
	CURL *idle[IDLE_MAX];
	int n_idle;
	char *ca_file, *cert_file, *key_file;
	long connect_ms;
};

struct body {
	char *bytes;
	size_t len, cap;
	int too_large;
};

/* A write to a connection that the server closed: OpenSSL has no MSG_NOSIGNAL. */
struct quiet {
	sigset_t before;
	int pending;
};

void hf_quiet_begin(struct quiet *quiet);
void hf_quiet_end(const struct quiet *quiet);

/* A handle with everything that is the same for calls and streams; its headers. NULL without memory. */
CURL *hf_curl_new(const struct hf_http *http);
struct curl_slist *hf_curl_headers(const struct hf_http_request *request);

/* The function of the table that is about certificates. */
int hf_curl_certificate(struct hf_http *http, const char *url, int64_t timeout_ns, struct hf_http_certificate *ret);

/* The functions of the table that are about streams. */
int hf_stream_open(struct hf_http *http, const struct hf_http_request *request, struct hf_http_stream **ret);
int hf_stream_await(struct hf_http_stream *stream, struct pollfd *fds, nfds_t n, int64_t timeout_ns);
const char *hf_stream_bytes(struct hf_http_stream *stream, size_t *ret_len);
void hf_stream_take(struct hf_http_stream *stream, size_t len);
void hf_stream_close(struct hf_http_stream *stream);

#endif
