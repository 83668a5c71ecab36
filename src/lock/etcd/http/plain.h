/*
 * lock/etcd/http/plain.h - HTTP without TLS, by sockets alone.
 *
 * The gateway needs one POST at a time and answers that are streamed, no more; libcurl would take 6 of the 4 ms that a whole
 * `lock run` has. So it is loaded for TLS only. There is no proxy, no redirect and no other protocol here.
 */
#ifndef LOCK_ETCD_HTTP_PLAIN_H
#define LOCK_ETCD_HTTP_PLAIN_H

#include "hf/lock/etcd/http/http.h"

extern const struct hf_http_module hf_http_plain;

#endif
