/*
 * lock/etcd/http/http_curl.c - the module libholdfast-etcd.so: HTTP with TLS, by libcurl.
 *
 * Calls take a handle from a small pool, so that a connection is used again, and threads do not wait
 * for each other. A stream has a handle and a connection of its own, which its end closes. No proxy,
 * no .netrc, no redirect and no other protocol than https: the address that was given is
 * the only one that is spoken to. HTTP/1.1, because the gateway answers streams only when the
 * request has ended. No signal is used; SIGPIPE is kept from the program (L13).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "hf/lock/etcd/http/http_curl.h"

/* -- SIGPIPE ------------------------------------------------------------------------- */

void hf_quiet_begin(struct quiet *quiet)
{
	sigset_t pipe_only, pending;

	(void)sigemptyset(&pipe_only);
	(void)sigaddset(&pipe_only, SIGPIPE);
	(void)sigpending(&pending);
	quiet->pending = sigismember(&pending, SIGPIPE);
	(void)pthread_sigmask(SIG_BLOCK, &pipe_only, &quiet->before);
}

void hf_quiet_end(const struct quiet *quiet)
{
	const struct timespec now = { 0 };
	sigset_t pipe_only;

	(void)sigemptyset(&pipe_only);
	(void)sigaddset(&pipe_only, SIGPIPE);
	/* Only one that came meanwhile is ours. */
	while (!quiet->pending && sigtimedwait(&pipe_only, NULL, &now) == SIGPIPE)
		continue;
	(void)pthread_sigmask(SIG_SETMASK, &quiet->before, NULL);
}

/* -- what is the same for calls and streams ---------------------------------------------- */

static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	(void)arg;
	(void)purpose;
	return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static size_t keep_bytes(char *from, size_t size, size_t n, void *arg)
{
	struct body *body = arg;
	size_t len = size * n;

	if (len > HF_HTTP_ANSWER_MAX || body->len + len > HF_HTTP_ANSWER_MAX) {
		body->too_large = 1;
		return 0;
	}
	if (body->len + len + 1 > body->cap) {
		size_t cap = (body->len + len + 1) * 2;
		char *grown = realloc(body->bytes, cap);

		if (!grown)
			return 0;
		body->bytes = grown;
		body->cap = cap;
	}
	memcpy(body->bytes + body->len, from, len);
	body->len += len;
	body->bytes[body->len] = '\0';
	return len;
}

static struct curl_slist *add_header(struct curl_slist *list, const char *text)
{
	struct curl_slist *longer = list ? curl_slist_append(list, text) : NULL;

	if (!longer)
		curl_slist_free_all(list);
	return longer;
}

/* NULL without memory. */
struct curl_slist *hf_curl_headers(const struct hf_http_request *request)
{
	struct curl_slist *list = curl_slist_append(NULL, "Content-Type: application/json");
	char line[512];

	list = add_header(list, "Expect:");
	if (request->has_leader)
		list = add_header(list, "Grpc-Metadata-hasleader: true");
	if (request->token) {
		(void)snprintf(line, sizeof(line), "Authorization: %s", request->token);
		list = add_header(list, line);
	}
	return list;
}

static void set_file(CURL *easy, CURLoption option, const char *path)
{
	if (path)
		(void)curl_easy_setopt(easy, option, path);
}

CURL *hf_curl_new(const struct hf_http *http)
{
	CURL *easy = curl_easy_init();

	if (!easy)
		return NULL;
	(void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_PROXY, "");
	(void)curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	(void)curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	(void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "https");
	(void)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	(void)curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, http->connect_ms);
	(void)curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	(void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, keep_bytes);
	(void)curl_easy_setopt(easy, CURLOPT_FILETIME, 0L);
	set_file(easy, CURLOPT_CAINFO, http->ca_file);
	set_file(easy, CURLOPT_SSLCERT, http->cert_file);
	set_file(easy, CURLOPT_SSLKEY, http->key_file);
	return easy;
}

static CURL *take_handle(struct hf_http *http)
{
	CURL *easy = NULL;

	(void)pthread_mutex_lock(&http->mutex);
	if (http->n_idle > 0)
		easy = http->idle[--http->n_idle];
	(void)pthread_mutex_unlock(&http->mutex);
	return easy ? easy : hf_curl_new(http);
}

static void give_handle(struct hf_http *http, CURL *easy)
{
	(void)pthread_mutex_lock(&http->mutex);
	if (http->n_idle < IDLE_MAX) {
		http->idle[http->n_idle++] = easy;
		easy = NULL;
	}
	(void)pthread_mutex_unlock(&http->mutex);
	if (easy)
		curl_easy_cleanup(easy);
}

/* -- a call -------------------------------------------------------------------------------- */

/* Did the server certainly not get the request? */
static int was_not_sent(CURL *easy, CURLcode code)
{
	curl_off_t sent = 0;

	(void)curl_easy_getinfo(easy, CURLINFO_SIZE_UPLOAD_T, &sent);
	switch ((int)code) {
	case CURLE_COULDNT_CONNECT:
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CACERT_BADFILE:
		return 1;
	case CURLE_OPERATION_TIMEDOUT: {
		double connected = 0;

		(void)curl_easy_getinfo(easy, CURLINFO_PRETRANSFER_TIME, &connected);
		return sent == 0 && connected <= 0;
	}
	default:
		return 0;
	}
}

static size_t read_header(char *from, size_t size, size_t n, void *arg)
{
	struct hf_http_answer *answer = arg;
	char line[80];
	time_t date;

	if (size * n > 6 && size * n < sizeof(line) && strncasecmp(from, "date: ", 6) == 0) {
		memcpy(line, from + 6, size * n - 6);
		line[size * n - 6] = '\0';
		date = curl_getdate(line, NULL);
		answer->date = date > 0 ? (int64_t)date : 0;
	}
	return size * n;
}

static enum hf_http_result post_by(CURL *easy, const struct hf_http_request *request,
				   struct curl_slist *headers, struct hf_http_answer *ret)
{
	char why[CURL_ERROR_SIZE] = "";
	struct body body = { 0 };
	struct quiet quiet;
	CURLcode code;

	(void)curl_easy_setopt(easy, CURLOPT_URL, request->url);
	(void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->body);
	(void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
	(void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, &body);
	(void)curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, read_header);
	(void)curl_easy_setopt(easy, CURLOPT_HEADERDATA, ret);
	(void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, why);
	(void)curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)(request->timeout_ns / HF_MSEC) + 1);
	hf_quiet_begin(&quiet);
	code = curl_easy_perform(easy);
	hf_quiet_end(&quiet);
	(void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, NULL);
	(void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, NULL);
	if (code == CURLE_OK) {
		(void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &ret->status);
		ret->body = body.bytes ? body.bytes : calloc(1, 1);
		ret->len = body.len;
		return ret->body ? HF_HTTP_DONE : HF_HTTP_UNKNOWN;
	}
	free(body.bytes);
	(void)snprintf(ret->error, sizeof(ret->error), "%.200s", why[0] ? why : curl_easy_strerror(code));
	if (body.too_large)
		return HF_HTTP_TOO_LARGE;
	return was_not_sent(easy, code) ? HF_HTTP_NOT_SENT : HF_HTTP_UNKNOWN;
}

static enum hf_http_result post(struct hf_http *http, const struct hf_http_request *request,
				struct hf_http_answer *ret)
{
	struct curl_slist *headers = hf_curl_headers(request);
	CURL *easy = headers ? take_handle(http) : NULL;
	enum hf_http_result result;

	*ret = (struct hf_http_answer){ 0 };
	if (!easy) {
		curl_slist_free_all(headers);
		(void)snprintf(ret->error, sizeof(ret->error), "out of memory");
		return HF_HTTP_NOT_SENT;
	}
	result = post_by(easy, request, headers, ret);
	curl_slist_free_all(headers);
	give_handle(http, easy);
	return result;
}

/* -- the client ---------------------------------------------------------------------------- */

static void free_client(struct hf_http *http, int forked)
{
	struct quiet quiet;

	if (!http)
		return;
	/* A child that said good-bye over TLS would end its parent's connection. */
	if (!forked) {
		hf_quiet_begin(&quiet);
		while (http->n_idle > 0)
			curl_easy_cleanup(http->idle[--http->n_idle]);
		hf_quiet_end(&quiet);
		(void)pthread_mutex_destroy(&http->mutex);
	}
	free(http->ca_file);
	free(http->cert_file);
	free(http->key_file);
	free(http);
}

static int copy_path(char **to, const char *from)
{
	if (!from || !from[0])
		return 0;
	*to = strdup(from);
	return *to ? 0 : -ENOMEM;
}

static int open_client(const struct hf_http_options *options, struct hf_http **ret)
{
	struct hf_http *http = calloc(1, sizeof(*http));

	if (!http || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
		free(http);
		return -ENOMEM;
	}
	(void)pthread_mutex_init(&http->mutex, NULL);
	http->connect_ms = (long)(options->connect_timeout_ns / HF_MSEC) + 1;
	if (copy_path(&http->ca_file, options->ca_file) < 0 ||
	    copy_path(&http->cert_file, options->cert_file) < 0 ||
	    copy_path(&http->key_file, options->key_file) < 0) {
		free_client(http, 0);
		return -ENOMEM;
	}
	*ret = http;
	return 0;
}

extern const struct hf_http_module hf_http_module;

__attribute__((visibility("default"))) const struct hf_http_module hf_http_module = {
	.version = HF_HTTP_VERSION,
	.open = open_client,
	.free = free_client,
	.post = post,
	.certificate = hf_curl_certificate,
	.stream = hf_stream_open,
	.await = hf_stream_await,
	.bytes = hf_stream_bytes,
	.take = hf_stream_take,
	.close = hf_stream_close,
};
