/* lock/etcd/wire/config.c - reading the URL of a store and the files that belong to it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/cleanup.h"
#include "hf/base/fail.h"
#include "hf/base/parse.h"
#include "hf/lock/etcd/wire/config.h"
#include "hf/sys/io.h"

#define FORM "a store must be etcd://HOST:PORT,…/PREFIX?ttl=30s; local: has no server"

static int is_host_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       strchr(".-_:[]", c) != NULL;
}

static int add_endpoint(struct hf_etcd_config *config, const char *text, size_t len, int tls, struct hf_err *err)
{
	const char *colon = memchr(text, ':', len);
	char *to;
	int n;

	if (config->n_endpoints == HF_ETCD_ENDPOINTS_MAX)
		return FAIL(err, -EINVAL, "store", "etcd", "at most %d servers", HF_ETCD_ENDPOINTS_MAX);
	/* A name with '@' would carry a password. It is not repeated in the message. */
	if (memchr(text, '@', len))
		return FAIL(err, -EINVAL, "store", "etcd",
			    "user and password are not part of the URL; HOLDFAST_ETCD_USER and HOLDFAST_ETCD_PASSWORD_FILE name them");
	for (size_t i = 0; i < len; i++)
		if (!text[i] || !is_host_char(text[i]))
			return FAIL(err, -EINVAL, "store", "etcd", "'%.*s' is not a server; " FORM, (int)len, text);
	if (len == 0)
		return FAIL(err, -EINVAL, "store", "etcd", "no server given; " FORM);
	/* [::1] has colons of its own. */
	if (text[0] == '[') {
		const char *end = memchr(text, ']', len);

		colon = end && end + 1 < text + len && end[1] == ':' ? end + 1 : NULL;
	}
	to = config->endpoints[config->n_endpoints];
	n = snprintf(to, HF_ETCD_HOST_MAX, "%s://%.*s%s", tls ? "https" : "http", (int)len, text, colon ? "" : ":2379");
	if (n < 0 || n >= HF_ETCD_HOST_MAX)
		return FAIL(err, -EINVAL, "store", "etcd", "the name of a server is too long");
	config->n_endpoints++;
	return 0;
}

static int read_endpoints(struct hf_etcd_config *config, const char *text, size_t len, int tls, struct hf_err *err)
{
	int r = 0;

	while (r == 0) {
		const char *comma = memchr(text, ',', len);
		size_t n = comma ? (size_t)(comma - text) : len;

		r = add_endpoint(config, text, n, tls, err);
		if (!comma)
			break;
		text = comma + 1;
		len -= n + 1;
	}
	return r;
}

static int read_prefix(struct hf_etcd_config *config, const char *text, size_t len, struct hf_err *err)
{
	int n;

	while (len > 0 && text[len - 1] == '/')
		len--;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] <= ' ' || text[i] == 0x7f || text[i] == '%')
			return FAIL(err, -EINVAL, "store", "etcd", "the prefix '%.*s' has a byte that keys cannot have",
				    (int)len, text);
	n = snprintf(config->prefix, sizeof(config->prefix), "/%.*s/1/", (int)(len ? len : 8), len ? text : "holdfast");
	return n > 0 && (size_t)n < sizeof(config->prefix)
		       ? 0
		       : FAIL(err, -EINVAL, "store", "etcd", "the prefix is too long");
}

static int read_option(struct hf_etcd_config *config, const char *text, size_t len, struct hf_err *err)
{
	const struct {
		const char *key;
		int64_t *to, min, max;
	} table[] = {
		{ "ttl", &config->ttl_ns, 2 * HF_SEC, 3600 * HF_SEC },
		{ "call-timeout", &config->call_ns, 50 * HF_MSEC, 60 * HF_SEC },
		{ "connect-timeout", &config->connect_ns, 50 * HF_MSEC, 60 * HF_SEC },
	};
	const char *equal = memchr(text, '=', len);
	size_t key = equal ? (size_t)(equal - text) : len;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		int64_t ns;

		if (strlen(table[i].key) != key || memcmp(table[i].key, text, key) != 0)
			continue;
		if (!equal || hf_parse_duration(equal + 1, len - key - 1, &ns) < 0 || ns < table[i].min ||
		    ns > table[i].max)
			return FAIL(err, -EINVAL, "store", "etcd", "%s must be from %lld ms to %lld s", table[i].key,
				    (long long)(table[i].min / HF_MSEC), (long long)(table[i].max / HF_SEC));
		*table[i].to = ns;
		return 0;
	}
	return FAIL(err, -EINVAL, "store", "etcd", "'%.*s' is not an option; use ttl, call-timeout or connect-timeout",
		    (int)key, text);
}

static int read_options(struct hf_etcd_config *config, const char *text, struct hf_err *err)
{
	int r = 0;

	while (r == 0 && *text) {
		size_t n = strcspn(text, "&");

		r = read_option(config, text, n, err);
		text += n + (text[n] == '&');
	}
	return r;
}

static int read_variable(const char *name, char *to, size_t cap, struct hf_err *err)
{
	const char *value = secure_getenv(name);

	if (!value)
		return 0;
	if (strlen(value) >= cap)
		return FAIL(err, -EINVAL, "store", name, "is too long");
	hf_copy_text(to, cap, value);
	return 0;
}

/* The file must be closed to others; its last newline is not part of the password. */
static int read_password(struct hf_etcd_config *config, struct hf_err *err)
{
	char path[HF_ETCD_PATH_MAX] = "";
	AUTO_FD fd = -1;
	ssize_t n;
	int r = read_variable("HOLDFAST_ETCD_PASSWORD_FILE", path, sizeof(path), err);

	if (r < 0 || !path[0])
		return r < 0 || !config->user[0]
			       ? r
			       : FAIL(err, -EINVAL, "store", "HOLDFAST_ETCD_USER",
				      "HOLDFAST_ETCD_PASSWORD_FILE must name the file with the password");
	r = hf_open_as_it_is(AT_FDCWD, path, O_RDONLY, path, &fd, NULL, err);
	if (r < 0)
		return r;
	n = hf_read_all(fd, config->password, sizeof(config->password) - 1);
	if (n < 0)
		return hf_fail_sys(err, (int)-n, "read", path);
	config->password[n] = '\0';
	config->password[strcspn(config->password, "\r\n")] = '\0';
	return 0;
}

int hf_etcd_configure(const char *rest, int tls, struct hf_etcd_config *ret, struct hf_err *err)
{
	const char *begin = rest + 2, *path, *query;
	int r;

	*ret = (struct hf_etcd_config){ .ttl_ns = HF_ETCD_TTL_NS, .call_ns = HF_ETCD_CALL_NS,
					.connect_ns = HF_ETCD_CONNECT_NS };
	if (strncmp(rest, "//", 2) != 0)
		return FAIL(err, -EINVAL, "store", "etcd", "%s", FORM);
	query = begin + strcspn(begin, "?");
	path = begin + strcspn(begin, "/?");
	r = read_endpoints(ret, begin, (size_t)(path - begin), tls, err);
	if (r == 0)
		r = read_prefix(ret, path + (path < query), (size_t)(query - path) - (path < query), err);
	if (r == 0 && *query)
		r = read_options(ret, query + 1, err);
	if (r == 0 && ret->ttl_ns < HF_ETCD_TTL_CALLS * ret->call_ns)
		return FAIL(err, -EINVAL, "store", "etcd",
			    "a lease of %lld ms is too short for a call-timeout of %lld ms: one server that hangs would end it; "
			    "choose a ttl of at least %d times call-timeout",
			    (long long)(ret->ttl_ns / HF_MSEC), (long long)(ret->call_ns / HF_MSEC), HF_ETCD_TTL_CALLS);
	if (r == 0)
		r = read_variable("HOLDFAST_ETCD_CACERT", ret->ca_file, sizeof(ret->ca_file), err);
	if (r == 0)
		r = read_variable("HOLDFAST_ETCD_CERT", ret->cert_file, sizeof(ret->cert_file), err);
	if (r == 0)
		r = read_variable("HOLDFAST_ETCD_KEY", ret->key_file, sizeof(ret->key_file), err);
	if (r == 0)
		r = read_variable("HOLDFAST_ETCD_USER", ret->user, sizeof(ret->user), err);
	return r < 0 ? r : read_password(ret, err);
}
