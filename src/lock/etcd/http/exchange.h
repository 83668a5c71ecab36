/*
 * lock/etcd/http/exchange.h - one request over TCP and its answer, step by step, without ever blocking.
 *
 *     hf_exchange_begin(&x, "h1:2379", "/v3/kv/txn", &request, -1, hf_mono_in(HF_SEC));
 *     while ((r = hf_exchange_step(&x)) == 0)
 *             poll on x.fd for hf_exchange_events(&x), until x.connect_until as long as it is not connected
 */
#ifndef LOCK_ETCD_HTTP_EXCHANGE_H
#define LOCK_ETCD_HTTP_EXCHANGE_H

#include <poll.h>

#include "hf/base/buf.h"
#include "hf/lock/etcd/http/http.h"
#include "hf/lock/etcd/http/reply.h"
#include "hf/lock/etcd/http/resolve.h"

enum hf_exchange_phase {
	HF_EXCHANGE_CONNECTS,
	HF_EXCHANGE_SENDS,
	HF_EXCHANGE_READS,
};

struct hf_exchange {
	enum hf_exchange_phase phase;
	int fd;
	struct hf_addresses addresses; /* of the server */
	unsigned n_tried;
	struct hf_mono connect_until;
	struct hf_buf out;
	size_t sent;
	struct hf_reply reply;
};

/*
 * With `fd` a connection to that server, which is its from now on; -1: it makes one. 0 or -errno of what failed at once; done is to be
 * called in every case.
 */
int hf_exchange_begin(struct hf_exchange *x, const char *server, const char *path, const struct hf_http_request *request,
		      int fd, struct hf_mono connect_until);

/* Does what can be done now. 0: poll; 1: the answer is whole; or -errno: of the connection, or of hf_reply_read. */
int hf_exchange_step(struct hf_exchange *x);

short hf_exchange_events(const struct hf_exchange *x);

/* Closes and frees. */
void hf_exchange_done(struct hf_exchange *x);

#endif
