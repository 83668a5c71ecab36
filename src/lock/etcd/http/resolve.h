/*
 * lock/etcd/http/resolve.h - the addresses of a server.
 *
 * An address needs no look-up. A name is looked up by a thread of its own, because getaddrinfo(3) has no time limit.
 */
#ifndef LOCK_ETCD_HTTP_RESOLVE_H
#define LOCK_ETCD_HTTP_RESOLVE_H

#include <sys/socket.h>

#include "holdfast/clock.h"

#define HF_ADDRESSES_MAX 8

struct hf_addresses {
	struct sockaddr_storage of[HF_ADDRESSES_MAX];
	socklen_t len[HF_ADDRESSES_MAX];
	unsigned n;
};

/* Of "h1:2379", "10.0.0.1:2379" or "[::1]:2379". 0; -ETIMEDOUT; -EHOSTUNREACH: there is no such name; another -errno. */
int hf_resolve(const char *server, struct hf_mono deadline, struct hf_addresses *ret);

#endif
