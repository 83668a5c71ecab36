/*
 * unit/lock/test_http_plain.c - HTTP by sockets: answers byte by byte, and a server that does what servers do.
 *
 * The server is a thread of this program; what it does with each connection is a list that a test writes.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper/test.h"
#include "hf/base/cleanup.h"
#include "hf/lock/etcd/http/plain.h"
#include "hf/lock/etcd/http/reply.h"
#include "holdfast/clock.h"

/* -- answers ----------------------------------------------------------------------------------- */

#define OK "HTTP/1.1 200 OK\r\n"
#define CHUNKED OK "Transfer-Encoding: chunked\r\n\r\n"

/* Read in pieces of `step` bytes. */
static int read_in_steps(struct hf_reply *reply, const char *text, size_t len, size_t step)
{
	int r = 0;

	for (size_t i = 0; i < len && r == 0; i += step)
		r = hf_reply_read(reply, text + i, len - i < step ? len - i : step);
	return r;
}

static void answer_is_the_same_in_pieces_of_any_length(void **state)
{
	static const struct {
		const char *text;
		long status;
		const char *body;
	} table[] = {
		{ OK "Content-Length: 5\r\n\r\nhello", 200, "hello" },
		{ OK "content-length:   0\r\n\r\n", 200, "" },
		{ "HTTP/1.1 404\r\nContent-Length: 1\r\n\r\nx", 404, "x" },
		{ "HTTP/1.0 503 Service Unavailable\nContent-Length: 2\n\nno", 503, "no" },
		{ CHUNKED "3\r\nabc\r\n0010;x=y\r\n0123456789abcdef\r\n0\r\n\r\n", 200, "abc0123456789abcdef" },
		{ CHUNKED "1\r\na\r\n0\r\nX-Trailer: 1\r\n\r\n", 200, "a" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++)
		for (size_t step = 1; step <= strlen(table[i].text); step++) {
			struct hf_reply reply = { 0 };

			assert_int_equal(read_in_steps(&reply, table[i].text, strlen(table[i].text), step), 1);
			assert_int_equal(reply.status, table[i].status);
			assert_string_equal(reply.body ? reply.body : "", table[i].body);
			hf_reply_done(&reply);
		}
}

static void what_is_no_answer_is_refused(void **state)
{
	static const struct {
		const char *text;
		int expected;
	} table[] = {
		{ "HTTP/2 200 OK\r\n", -EPROTO },
		{ "HTTP/1.1 100 Continue\r\n", -EPROTO },
		{ "HTTP/1.1 20\r\n", -EPROTO },
		{ "<html>\r\n", -EPROTO },
		/* A body that ends with the connection could have been cut off. */
		{ OK "\r\n", -EPROTO },
		/* Two lengths: which one is believed would be open. */
		{ OK "Content-Length: 5\r\nContent-Length: 5\r\n", -EPROTO },
		{ OK "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", -EPROTO },
		{ OK "Transfer-Encoding: gzip\r\n", -EPROTO },
		{ OK "Content-Length: -5\r\n", -EPROTO },
		{ OK "Content-Length: 5x\r\n", -EPROTO },
		{ OK "Content-Length: 99999999999\r\n", -EMSGSIZE },
		{ OK "no colon\r\n", -EPROTO },
		{ OK ": no name\r\n", -EPROTO },
		{ CHUNKED "x\r\n", -EPROTO },
		{ CHUNKED "-1\r\n", -EPROTO },
		{ CHUNKED "\r\n", -EPROTO },
		{ CHUNKED "fffffffffffffffff\r\n", -EMSGSIZE },
		{ CHUNKED "1\r\nab", -EPROTO }, /* the chunk goes on where it should end; seen at the end of that line */
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct hf_reply reply = { 0 };
		int r = read_in_steps(&reply, table[i].text, strlen(table[i].text), 1);

		if (r == 0)
			r = hf_reply_read(&reply, "\n", 1);
		if (r != table[i].expected)
			print_message("# %s\n", table[i].text);
		assert_int_equal(r, table[i].expected);
		hf_reply_done(&reply);
	}
}

static void hostile_answers_are_bounded(void **state)
{
	static char zeros[1 << 16];
	struct hf_reply reply = { 0 };
	int r = hf_reply_read(&reply, OK, strlen(OK));

	(void)state;
	/* Headers without end, a line without end, a NUL. */
	for (int i = 0; i <= HF_REPLY_LINES_MAX && r == 0; i++)
		r = hf_reply_read(&reply, "a: b\r\n", 6);
	assert_int_equal(r, -EPROTO);
	reply = (struct hf_reply){ 0 };
	memset(zeros, 'x', sizeof(zeros));
	assert_int_equal(hf_reply_read(&reply, zeros, sizeof(zeros)), -EPROTO);
	reply = (struct hf_reply){ 0 };
	assert_int_equal(hf_reply_read(&reply, OK "Content-Length: 3\0\r\n", strlen(OK) + 20), -EPROTO);
	/* Chunks without end. */
	reply = (struct hf_reply){ 0 };
	ASSERT_OK(hf_reply_read(&reply, CHUNKED, strlen(CHUNKED)));
	for (r = 0; r == 0;) {
		r = hf_reply_read(&reply, "10000\r\n", 7);
		if (r == 0)
			r = hf_reply_read(&reply, zeros, sizeof(zeros));
		if (r == 0)
			r = hf_reply_read(&reply, "\r\n", 2);
	}
	assert_int_equal(r, -EMSGSIZE);
	assert_true(reply.len <= HF_HTTP_ANSWER_MAX);
	hf_reply_done(&reply);
}

static void date_of_the_server_is_read_in_any_locale_and_year(void **state)
{
	static const struct {
		const char *text;
		int64_t date;
	} table[] = {
		{ "Thu, 01 Jan 1970 00:00:00 GMT", 0 },          { "Sun, 06 Nov 1994 08:49:37 GMT", 784111777 },
		{ "Tue, 29 Feb 2000 23:59:59 GMT", 951868799 },  { "Wed, 01 Mar 2000 00:00:00 GMT", 951868800 },
		{ "Wed, 18 Nov 2026 11:00:00 GMT", 1794999600 }, { "Mon, 01 Mar 2100 00:00:00 GMT", 4107542400 },
		{ "Sun, 06 Foo 1994 08:49:37 GMT", 0 },          { "yesterday", 0 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++) {
		struct hf_reply reply = { 0 };
		char text[128];

		snprintf(text, sizeof(text), OK "Date: %s\r\nContent-Length: 0\r\n\r\n", table[i].text);
		assert_int_equal(hf_reply_read(&reply, text, strlen(text)), 1);
		assert_int_equal(reply.date, table[i].date);
		hf_reply_done(&reply);
	}
}

/* -- a server ------------------------------------------------------------------------------------ */

enum act { ANSWER, ANSWER_AND_CLOSE, CUT, CLOSE, SILENCE, STREAM };

static struct {
	int listener;
	uint16_t port;
	pthread_t thread;
	const enum act *acts; /* one for each request */
	int n_acts, n_connections, n_requests;
	int stop[2], closed[2];
} server;

/* Until the whole request is there; all of ours are one packet of at most this. */
static int hear_request(int fd)
{
	char text[2048] = "";
	size_t n = 0;

	while (n + 1 < sizeof(text)) {
		ssize_t r = recv(fd, text + n, sizeof(text) - 1 - n, 0);
		const char *end;

		if (r <= 0)
			return 0;
		n += (size_t)r;
		text[n] = '\0';
		end = strstr(text, "\r\n\r\n");
		if (end && strlen(end + 4) == 2)
			return 1;
	}
	return 0;
}

static void send_text(int fd, const char *text)
{
	(void)!send(fd, text, strlen(text), MSG_NOSIGNAL);
}

/* 1: the connection goes on. */
static int act_once(int fd, enum act act)
{
	struct pollfd stopped = { .fd = server.stop[0], .events = POLLIN };

	switch (act) {
	case ANSWER:
		send_text(fd, OK "Content-Length: 2\r\n\r\n{}");
		return 1;
	case ANSWER_AND_CLOSE:
		send_text(fd, OK "Content-Length: 2\r\n\r\n{}");
		return 0;
	case CUT:
		send_text(fd, OK "Content-Length: 10\r\n\r\n{");
		return 0;
	case STREAM:
		send_text(fd, CHUNKED "3\r\none\r\n");
		poll(&stopped, 1, 300);
		send_text(fd, "3\r\ntwo\r\n0\r\n\r\n");
		return 0;
	case SILENCE:
		poll(&stopped, 1, -1);
		return 0;
	case CLOSE:
		break;
	}
	return 0;
}

static void *serve(void *arg)
{
	(void)arg;
	for (int done = 0; done < server.n_acts;) {
		AUTO_FD fd = accept4(server.listener, NULL, NULL, SOCK_CLOEXEC);

		server.n_connections++;
		while (done < server.n_acts && hear_request(fd)) {
			server.n_requests++;
			if (!act_once(fd, server.acts[done++]))
				break;
		}
		/* On one machine the other end sees it from now on. */
		hf_auto_close(&fd);
		(void)!write(server.closed[1], "x", 1);
	}
	return NULL;
}

static struct hf_http *http;
static char url[64];

static void begin(const enum act *acts, int n)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);

	memset(&server, 0, sizeof(server));
	server.acts = acts;
	server.n_acts = n;
	assert_int_equal(pipe(server.stop), 0);
	assert_int_equal(pipe(server.closed), 0);
	server.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(server.listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(server.listener, 8), 0);
	assert_int_equal(getsockname(server.listener, (struct sockaddr *)&address, &len), 0);
	server.port = ntohs(address.sin_port);
	snprintf(url, sizeof(url), "http://127.0.0.1:%d/v3/kv/range", server.port);
	if (n > 0)
		assert_int_equal(pthread_create(&server.thread, NULL, serve, NULL), 0);
	ASSERT_OK(hf_http_plain.open(&(struct hf_http_options){ .connect_timeout_ns = HF_SEC }, &http));
}

static void end(void)
{
	hf_http_plain.free(http, 0);
	assert_int_equal(write(server.stop[1], "x", 1), 1);
	if (server.n_acts > 0)
		pthread_join(server.thread, NULL);
	close(server.listener);
	close(server.stop[0]);
	close(server.stop[1]);
	close(server.closed[0]);
	close(server.closed[1]);
}

static enum hf_http_result post(int64_t timeout_ns)
{
	struct hf_http_request request = { .url = url, .body = "{}", .timeout_ns = timeout_ns };
	struct hf_http_answer answer;
	enum hf_http_result result = hf_http_plain.post(http, &request, &answer);

	if (result == HF_HTTP_DONE) {
		assert_int_equal(answer.status, 200);
		assert_string_equal(answer.body, "{}");
	} else {
		assert_true(answer.error[0] != '\0');
	}
	free(answer.body);
	return result;
}

static void connection_is_used_again_and_one_that_was_closed_is_not(void **state)
{
	static const enum act acts[] = { ANSWER, ANSWER, ANSWER_AND_CLOSE, ANSWER };

	(void)state;
	begin(acts, COUNT(acts));
	for (size_t i = 0; i < COUNT(acts); i++) {
		char byte;

		assert_int_equal(post(10 * HF_SEC), HF_HTTP_DONE);
		if (acts[i] == ANSWER_AND_CLOSE)
			assert_int_equal(read(server.closed[0], &byte, 1), 1);
	}
	end();
	assert_int_equal(server.n_requests, 4);
	assert_int_equal(server.n_connections, 2);
}

static void what_was_sent_and_not_answered_is_unknown_and_what_was_not_sent_is_not(void **state)
{
	static const enum act acts[] = { CUT, CLOSE, SILENCE };
	struct hf_mono before;

	(void)state;
	begin(acts, COUNT(acts));
	assert_int_equal(post(10 * HF_SEC), HF_HTTP_UNKNOWN);
	assert_int_equal(post(10 * HF_SEC), HF_HTTP_UNKNOWN);
	before = hf_mono_now();
	assert_int_equal(post(50 * HF_MSEC), HF_HTTP_UNKNOWN);
	assert_true(hf_mono_now().ns - before.ns >= 50 * HF_MSEC);
	end();
	begin(NULL, 0);
	close(server.listener);
	server.listener = dup(server.stop[0]);
	assert_int_equal(post(10 * HF_SEC), HF_HTTP_NOT_SENT);
	snprintf(url, sizeof(url), "http://no-such-host.invalid:1/");
	assert_int_equal(post(10 * HF_SEC), HF_HTTP_NOT_SENT);
	snprintf(url, sizeof(url), "https://127.0.0.1:1/");
	assert_int_equal(post(10 * HF_SEC), HF_HTTP_NOT_SENT);
	end();
}

static void name_of_a_server_is_looked_up(void **state)
{
	static const enum act acts[] = { ANSWER };

	(void)state;
	begin(acts, COUNT(acts));
	/* The resolver knows this form of 127.0.0.1, and we do not: so it is asked, and needs no hosts file. */
	snprintf(url, sizeof(url), "http://127.1:%d/", server.port);
	assert_int_equal(post(10 * HF_SEC), HF_HTTP_DONE);
	end();
}

static void what_is_told_is_sent_and_its_answer_is_not_taken_for_that_of_the_next_call(void **state)
{
	static const enum act acts[] = { ANSWER, ANSWER, ANSWER, ANSWER };
	struct hf_http_request request = { .url = url, .body = "{}", .timeout_ns = HF_SEC };

	(void)state;
	begin(acts, COUNT(acts));
	/* Without a connection, with one, and one behind the other. */
	ASSERT_OK(hf_http_plain.tell(http, &request));
	assert_int_equal(post(10 * HF_SEC), HF_HTTP_DONE);
	ASSERT_OK(hf_http_plain.tell(http, &request));
	assert_int_equal(post(10 * HF_SEC), HF_HTTP_DONE);
	end();
	assert_int_equal(server.n_requests, 4);
	assert_int_equal(server.n_connections, 1);
}

static void rest_closes_what_is_kept(void **state)
{
	static const enum act acts[] = { ANSWER, ANSWER };
	char byte;

	(void)state;
	begin(acts, COUNT(acts));
	assert_int_equal(post(10 * HF_SEC), HF_HTTP_DONE);
	hf_http_plain.rest(http);
	assert_int_equal(read(server.closed[0], &byte, 1), 1);
	assert_int_equal(post(10 * HF_SEC), HF_HTTP_DONE);
	end();
	assert_int_equal(server.n_connections, 2);
}

static void child_that_frees_its_copy_leaves_the_connection_to_its_parent(void **state)
{
	static const enum act acts[] = { ANSWER, ANSWER };
	int status = -1;
	pid_t child;

	(void)state;
	begin(acts, COUNT(acts));
	assert_int_equal(post(10 * HF_SEC), HF_HTTP_DONE);
	child = fork();
	if (child == 0) {
		hf_http_plain.free(http, 1);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(post(10 * HF_SEC), HF_HTTP_DONE);
	end();
	assert_int_equal(server.n_connections, 1);
}

static void stream_gives_what_comes_and_other_descriptors_wake_it(void **state)
{
	static const enum act acts[] = { STREAM };
	struct hf_http_request request = { .url = url, .body = "{}" };
	struct hf_http_stream *stream;
	int wake[2], r;
	size_t len;

	(void)state;
	begin(acts, COUNT(acts));
	assert_int_equal(pipe(wake), 0);
	ASSERT_OK(hf_http_plain.stream(http, &request, &stream));
	do
		r = hf_http_plain.await(stream, NULL, 0, 10 * HF_SEC);
	while (r == 0);
	assert_int_equal(r, 1);
	assert_memory_equal(hf_http_plain.bytes(stream, &len), "one", 3);
	hf_http_plain.take(stream, 2);
	assert_memory_equal(hf_http_plain.bytes(stream, &len), "e", 2);
	assert_int_equal(len, 1);
	assert_int_equal(write(wake[1], "x", 1), 1);
	{
		struct pollfd fds[] = { { .fd = -1 }, { .fd = wake[0], .events = POLLIN } };

		r = hf_http_plain.await(stream, fds, 2, 10 * HF_SEC);
		assert_true(fds[1].revents & POLLIN || r == 1);
	}
	while (r >= 0)
		r = hf_http_plain.await(stream, NULL, 0, 10 * HF_SEC);
	assert_memory_equal(hf_http_plain.bytes(stream, &len), "etwo", 4);
	hf_http_plain.close(stream);
	close(wake[0]);
	close(wake[1]);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HF_TEST(answer_is_the_same_in_pieces_of_any_length),
		HF_TEST(what_is_no_answer_is_refused),
		HF_TEST(hostile_answers_are_bounded),
		HF_TEST(date_of_the_server_is_read_in_any_locale_and_year),
		HF_TEST(connection_is_used_again_and_one_that_was_closed_is_not),
		HF_TEST(what_was_sent_and_not_answered_is_unknown_and_what_was_not_sent_is_not),
		HF_TEST(name_of_a_server_is_looked_up),
		HF_TEST(what_is_told_is_sent_and_its_answer_is_not_taken_for_that_of_the_next_call),
		HF_TEST(rest_closes_what_is_kept),
		HF_TEST(child_that_frees_its_copy_leaves_the_connection_to_its_parent),
		HF_TEST(stream_gives_what_comes_and_other_descriptors_wake_it),
	};

	return hf_run_tests("http-plain", tests);
}
