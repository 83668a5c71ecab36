/*
 * lock/etcd/wire/config.h - which cluster, and how to speak to it.
 *
 *     etcd://HOST[:PORT][,HOST[:PORT]...][/PREFIX][?ttl=30s&call-timeout=2s&connect-timeout=1s]
 *     etcds://…                                     the same over TLS
 *
 * A password is in no URL, no argument and no environment variable: HOLDFAST_ETCD_PASSWORD_FILE names the
 * file that has it, beside HOLDFAST_ETCD_USER. HOLDFAST_ETCD_CACERT, _CERT and _KEY are files of TLS.
 */
#ifndef LOCK_ETCD_WIRE_CONFIG_H
#define LOCK_ETCD_WIRE_CONFIG_H

#include <stdint.h>

#include "holdfast/clock.h"
#include "holdfast/err.h"

#define HF_ETCD_ENDPOINTS_MAX 16
#define HF_ETCD_HOST_MAX      288 /* "https://" and a name with its port */
#define HF_ETCD_PREFIX_MAX    128
#define HF_ETCD_SECRET_MAX    256
#define HF_ETCD_PATH_MAX      512

#define HF_ETCD_TTL_NS     (30 * HF_SEC)
#define HF_ETCD_CALL_NS    (2 * HF_SEC)
#define HF_ETCD_CONNECT_NS (1 * HF_SEC)

/* A lease lasts that many times a call's limit at least: a third of it passes before the renewal, and the work needs time to end. */
#define HF_ETCD_TTL_CALLS 3

struct hf_etcd_config {
	char endpoints[HF_ETCD_ENDPOINTS_MAX][HF_ETCD_HOST_MAX]; /* "http://h1:2379" */
	unsigned n_endpoints;
	char prefix[HF_ETCD_PREFIX_MAX]; /* "/holdfast/1/": every key begins with it */
	int64_t ttl_ns;                  /* of a lock whose lease is not said */
	int64_t call_ns;                 /* one try of one call */
	int64_t connect_ns;
	char user[HF_ETCD_SECRET_MAX];
	char password[HF_ETCD_SECRET_MAX];
	char ca_file[HF_ETCD_PATH_MAX], cert_file[HF_ETCD_PATH_MAX], key_file[HF_ETCD_PATH_MAX];
};

/* Reads what stands behind "etcd:" or "etcds:", and the environment. -EINVAL with what is wrong. */
int hf_etcd_configure(const char *rest, int tls, struct hf_etcd_config *ret, struct hf_err *err);

#endif
