/*
 * lock/etcd/http/http.h - what the etcd store needs of HTTP, and nothing of how it is done.
 *
 * Two tables do it. plain.h is a part of the library, for http: sockets alone. TLS needs libcurl; that and what it loads (33 shared
 * objects) would make every start of holdfast eight times as slow, so it is in a module, libholdfast-etcd.so, that is
 * loaded when a store is opened whose URL says etcds:. Neither knows anything of etcd or of locks. Tests give a third table.
 *
 * Threads: a client may be shared; a stream is used by one thread. Fork: a child only calls free with
 * `forked`, which touches no connection.
 */
#ifndef LOCK_ETCD_HTTP_HTTP_H
#define LOCK_ETCD_HTTP_HTTP_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

#define HF_HTTP_MODULE  "libholdfast-etcd.so"
#define HF_HTTP_SYMBOL  "hf_http_module"
#define HF_HTTP_VERSION 3

/* No answer of etcd to a question of ours is larger; a server that sends more is cut off. */
#define HF_HTTP_ANSWER_MAX ((size_t)16 << 20)

/* How a request failed, as far as it can be told. */
enum hf_http_result {
	HF_HTTP_DONE = 0,
	HF_HTTP_NOT_SENT = -1, /* no connection: the server has certainly not seen it */
	HF_HTTP_UNKNOWN = -2,  /* sent in whole or in part, and no answer */
	HF_HTTP_TOO_LARGE = -3,
};

#define HF_HTTP_ERROR_MAX  256
#define HF_HTTP_SERVER_MAX 272 /* a name with its port */
#define HF_HTTP_NAMES_MAX  200

struct hf_http_answer {
	long status;
	char *body; /* with a NUL behind it; to be freed with free(3) */
	size_t len;
	int64_t date; /* of the server, seconds since 1970; 0: it does not say */
	char error[HF_HTTP_ERROR_MAX];
};

/* The certificate that a server shows, and what a call would make of it. */
struct hf_http_certificate {
	int64_t begins, ends; /* seconds since 1970; of several in a chain the latest begin and the earliest end; 0: not told */
	int is_accepted;      /* a call would go on */
	char names[HF_HTTP_NAMES_MAX];  /* for which it was made; "": it does not say */
	char error[HF_HTTP_ERROR_MAX];  /* why it is not accepted, or why there is no connection */
};

/* NULL or "": not given. Read when the client is opened, not kept. */
struct hf_http_options {
	const char *ca_file;
	const char *cert_file;
	const char *key_file;
	int64_t connect_timeout_ns;
};

struct hf_http;
struct hf_http_stream;

struct hf_http_request {
	const char *url;
	const char *body;
	const char *token;  /* of the header Authorization; NULL: none */
	int has_leader;     /* the server ends it when its member has no leader */
	int64_t timeout_ns; /* of a stream: for the connection only */
};

struct hf_http_module {
	unsigned version; /* HF_HTTP_VERSION */
	int (*open)(const struct hf_http_options *options, struct hf_http **ret); /* 0 or -errno */
	void (*free)(struct hf_http *http, int forked);
	/* POST. `ret` is written in every case. */
	enum hf_http_result (*post)(struct hf_http *http, const struct hf_http_request *request,
				    struct hf_http_answer *ret);
	/* POST whose answer is of no interest: it may still be on its way when this returns. 0: begun; -1: not. NULL: it cannot. */
	int (*tell)(struct hf_http *http, const struct hf_http_request *request);
	/* Nothing is asked for a while: its connections are closed. NULL: it keeps them. */
	void (*rest)(struct hf_http *http);
	/* Asks that server for its certificate, also one that is not accepted, and sends nothing. 0: there is one; -1: no connection. NULL: no TLS. */
	int (*certificate)(struct hf_http *http, const char *url, int64_t timeout_ns, struct hf_http_certificate *ret);
	/* POST whose answer has no end. 0 or -errno; nothing is sent before the first await. */
	int (*stream)(struct hf_http *http, const struct hf_http_request *request,
		      struct hf_http_stream **ret);
	/*
	 * Sleeps until the stream has something, one of `fds` is ready, or the time is over. Returns 1
	 * when the stream has more bytes than before, -1 when it has ended, else 0.
	 */
	int (*await)(struct hf_http_stream *stream, struct pollfd *fds, nfds_t n, int64_t timeout_ns);
	/* What came and was not taken yet; the next await may move it. Taking drops the first bytes. */
	const char *(*bytes)(struct hf_http_stream *stream, size_t *ret_len);
	void (*take)(struct hf_http_stream *stream, size_t len);
	void (*close)(struct hf_http_stream *stream);
};

/* Loads the module, once for the process; it stays. Returns 0 or a failure with what to do. */
struct hf_err;
int hf_http_load(const struct hf_http_module **ret, struct hf_err *err);

#endif
