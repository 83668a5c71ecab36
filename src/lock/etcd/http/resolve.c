/* lock/etcd/http/resolve.c - names of servers to addresses, within a time. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/parse.h"
#include "hf/lock/etcd/http/http.h"
#include "hf/lock/etcd/http/resolve.h"

/* "h1:2379" or "[::1]:2379" into its two parts. */
static int split(const char *server, char host[HF_HTTP_SERVER_MAX], uint16_t *ret_port)
{
	const char *colon = strrchr(server, ':');
	size_t n = colon ? (size_t)(colon - server) : 0;
	uint64_t port;

	if (n == 0 || n >= HF_HTTP_SERVER_MAX || hf_parse_u64(colon + 1, strlen(colon + 1), 65535, &port) < 0)
		return -EINVAL;
	if (server[0] == '[' && colon[-1] == ']') {
		server++;
		n -= 2;
	}
	memcpy(host, server, n);
	host[n] = '\0';
	*ret_port = (uint16_t)port;
	return 0;
}

/* 1 when it is an address. */
static int read_address(const char *host, uint16_t port, struct hf_addresses *ret)
{
	struct sockaddr_in *four = (struct sockaddr_in *)&ret->of[0];
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&ret->of[0];

	memset(&ret->of[0], 0, sizeof(ret->of[0]));
	ret->n = 1;
	if (inet_pton(AF_INET, host, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port = htons(port);
		ret->len[0] = sizeof(*four);
		return 1;
	}
	if (inet_pton(AF_INET6, host, &six->sin6_addr) == 1) {
		six->sin6_family = AF_INET6;
		six->sin6_port = htons(port);
		ret->len[0] = sizeof(*six);
		return 1;
	}
	ret->n = 0;
	return 0;
}

#ifdef HF_STATIC
static int look_up(const char *host, uint16_t port, struct hf_mono deadline, struct hf_addresses *ret)
{
	(void)host;
	(void)port;
	(void)deadline;
	(void)ret;
	return -EHOSTUNREACH; /* a static program has no look-up of names */
}
#else
/* What asks and what looks up may end in either order: the last one frees it. */
struct look_up {
	pthread_mutex_t mutex;
	pthread_cond_t ready;
	int users, done, result;
	char host[HF_HTTP_SERVER_MAX];
	uint16_t port;
	struct hf_addresses found;
};

static void leave(struct look_up *look)
{
	int last = --look->users == 0;

	(void)pthread_mutex_unlock(&look->mutex);
	if (!last)
		return;
	(void)pthread_mutex_destroy(&look->mutex);
	(void)pthread_cond_destroy(&look->ready);
	free(look);
}

static void take(const struct addrinfo *from, uint16_t port, struct hf_addresses *ret)
{
	for (; from && ret->n < HF_ADDRESSES_MAX; from = from->ai_next) {
		struct sockaddr_storage *to = &ret->of[ret->n];

		if ((from->ai_family != AF_INET && from->ai_family != AF_INET6) || from->ai_addrlen > sizeof(*to))
			continue;
		memcpy(to, from->ai_addr, from->ai_addrlen);
		if (from->ai_family == AF_INET)
			((struct sockaddr_in *)to)->sin_port = htons(port);
		else
			((struct sockaddr_in6 *)to)->sin6_port = htons(port);
		ret->len[ret->n++] = from->ai_addrlen;
	}
}

static void *ask_resolver(void *arg)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
	struct look_up *look = arg;
	struct addrinfo *list = NULL;
	int r = getaddrinfo(look->host, NULL, &hints, &list);

	(void)pthread_mutex_lock(&look->mutex);
	if (r == 0)
		take(list, look->port, &look->found);
	look->result = look->found.n > 0 ? 0 : -EHOSTUNREACH;
	look->done = 1;
	(void)pthread_cond_signal(&look->ready);
	if (list)
		freeaddrinfo(list);
	leave(look);
	return NULL;
}

/* A thread without the program's signals (L13), which nobody waits for. */
static int start_thread(struct look_up *look)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	(void)sigfillset(&all);
	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&thread, &attr, ask_resolver, look);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)pthread_attr_destroy(&attr);
	return -r;
}

static struct look_up *new_look_up(const char *host, uint16_t port)
{
	struct look_up *look = calloc(1, sizeof(*look));
	pthread_condattr_t attr;

	if (!look)
		return NULL;
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_mutex_init(&look->mutex, NULL);
	(void)pthread_cond_init(&look->ready, &attr);
	(void)pthread_condattr_destroy(&attr);
	memcpy(look->host, host, strlen(host) + 1);
	look->port = port;
	look->users = 2;
	return look;
}

static int look_up(const char *host, uint16_t port, struct hf_mono deadline, struct hf_addresses *ret)
{
	const struct timespec until = { deadline.ns / HF_SEC, deadline.ns % HF_SEC };
	struct look_up *look = new_look_up(host, port);
	int r;

	if (!look)
		return -ENOMEM;
	r = start_thread(look);
	(void)pthread_mutex_lock(&look->mutex);
	if (r < 0) {
		look->users = 1;
		leave(look);
		return r;
	}
	while (!look->done && pthread_cond_timedwait(&look->ready, &look->mutex, &until) != ETIMEDOUT)
		continue;
	r = look->done ? look->result : -ETIMEDOUT;
	if (r == 0)
		*ret = look->found;
	leave(look);
	return r;
}
#endif

int hf_resolve(const char *server, struct hf_mono deadline, struct hf_addresses *ret)
{
	char host[HF_HTTP_SERVER_MAX];
	uint16_t port;
	int r = split(server, host, &port);

	*ret = (struct hf_addresses){ .n = 0 };
	if (r < 0)
		return r;
	return read_address(host, port, ret) ? 0 : look_up(host, port, deadline, ret);
}
