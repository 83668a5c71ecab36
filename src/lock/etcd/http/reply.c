/* lock/etcd/http/reply.c - an answer of HTTP/1.1: status, headers, and a body of a known length or in chunks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/types.h>

#include "hf/base/parse.h"
#include "hf/lock/etcd/http/http.h"
#include "hf/lock/etcd/http/reply.h"

void hf_reply_done(struct hf_reply *reply)
{
	free(reply->body);
	reply->body = NULL;
	reply->len = reply->cap = 0;
}

static int keep(struct hf_reply *reply, const char *bytes, size_t n)
{
	if (n > HF_HTTP_ANSWER_MAX - reply->len)
		return -EMSGSIZE;
	if (reply->len + n + 1 > reply->cap) {
		size_t cap = (reply->len + n + 1) * 2;
		char *grown = realloc(reply->body, cap);

		if (!grown)
			return -ENOMEM;
		reply->body = grown;
		reply->cap = cap;
	}
	memcpy(reply->body + reply->len, bytes, n);
	reply->len += n;
	reply->body[reply->len] = '\0';
	return 0;
}

/* -- lines ------------------------------------------------------------------------------ */

/* "HTTP/1.1 200 OK" */
static int read_status(struct hf_reply *reply)
{
	const char *line = reply->line;
	uint64_t status;

	if (reply->n_line < 12 || memcmp(line, "HTTP/1.", 7) != 0 || line[8] != ' ' || (line[12] != ' ' && line[12] != '\0') ||
	    hf_parse_u64(line + 9, 3, 999, &status) < 0 || status < 200)
		return -EPROTO;
	reply->closes = line[7] == '0';
	reply->status = (long)status;
	reply->part = HF_REPLY_HEADERS;
	return 0;
}

static int two_digits(const char *text)
{
	if (text[0] < '0' || text[0] > '9' || text[1] < '0' || text[1] > '9')
		return -1;
	return (text[0] - '0') * 10 + text[1] - '0';
}

/* Of the Gregorian calendar, since 1970. timegm(3) would read the time zone from disk first. */
static int64_t days_until(int64_t year, int64_t month, int64_t day)
{
	int64_t y = month <= 2 ? year - 1 : year; /* a year that begins in March ends with the leap day */
	int64_t m = month <= 2 ? month + 9 : month - 3;

	return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 719469;
}

/* "Sun, 06 Nov 1994 08:49:37 GMT" */
static int64_t read_date(const char *text)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	int month = 0, day, hour, minute, second;
	uint64_t year;

	if (strlen(text) != 29 || hf_parse_u64(text + 12, 4, 9999, &year) < 0 || year < 1970)
		return 0;
	while (month < 12 && strncmp(months + (size_t)month * 3, text + 8, 3) != 0)
		month++;
	day = two_digits(text + 5);
	hour = two_digits(text + 17);
	minute = two_digits(text + 20);
	second = two_digits(text + 23);
	if (month == 12 || day < 1 || hour < 0 || minute < 0 || second < 0)
		return 0;
	return ((days_until((int64_t)year, month + 1, day) * 24 + hour) * 60 + minute) * 60 + second;
}

static int read_header(struct hf_reply *reply)
{
	char *value = strchr(reply->line, ':');
	uint64_t length;

	if (!value || value == reply->line)
		return -EPROTO;
	*value++ = '\0';
	value += strspn(value, " \t");
	if (strcasecmp(reply->line, "Content-Length") == 0) {
		if (reply->has_length || hf_parse_u64(value, strlen(value), UINT64_MAX, &length) < 0)
			return -EPROTO;
		if (length > HF_HTTP_ANSWER_MAX)
			return -EMSGSIZE;
		reply->has_length = 1;
		reply->left = (size_t)length;
	} else if (strcasecmp(reply->line, "Transfer-Encoding") == 0) {
		if (reply->chunked || strcasecmp(value, "chunked") != 0)
			return -EPROTO;
		reply->chunked = 1;
	} else if (strcasecmp(reply->line, "Connection") == 0) {
		reply->closes |= strcasecmp(value, "close") == 0;
	} else if (strcasecmp(reply->line, "Date") == 0) {
		reply->date = read_date(value);
	}
	return 0;
}

static int end_headers(struct hf_reply *reply)
{
	/* Both would leave open which one the next reader of this connection believes. */
	if (reply->chunked == reply->has_length)
		return -EPROTO;
	reply->n_lines = 0;
	if (reply->chunked)
		reply->part = HF_REPLY_CHUNK_SIZE;
	else
		reply->part = reply->left > 0 ? HF_REPLY_BODY : HF_REPLY_DONE;
	return 0;
}

/* Hexadecimal digits, and extensions that mean nothing. */
static int read_chunk_size(struct hf_reply *reply)
{
	size_t digits = strspn(reply->line, "0123456789abcdefABCDEF"), size = 0;

	if (digits == 0 || !strchr(" ;", reply->line[digits])) /* also the end of the line */
		return -EPROTO;
	if (digits > 7)
		return -EMSGSIZE;
	for (size_t i = 0; i < digits; i++) {
		char c = reply->line[i];

		size = size * 16 + (size_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
	}
	reply->left = size;
	reply->part = size > 0 ? HF_REPLY_CHUNK : HF_REPLY_TRAILERS;
	return 0;
}

/* A line has come, without its end. */
static int take_line(struct hf_reply *reply)
{
	if (reply->n_line > 0 && reply->line[reply->n_line - 1] == '\r')
		reply->n_line--;
	reply->line[reply->n_line] = '\0';
	if (strlen(reply->line) != reply->n_line || ++reply->n_lines > HF_REPLY_LINES_MAX)
		return -EPROTO;
	switch (reply->part) {
	case HF_REPLY_STATUS:
		return read_status(reply);
	case HF_REPLY_HEADERS:
		return reply->n_line > 0 ? read_header(reply) : end_headers(reply);
	case HF_REPLY_CHUNK_SIZE:
		reply->n_lines = 0;
		return read_chunk_size(reply);
	case HF_REPLY_CHUNK_END:
		reply->part = HF_REPLY_CHUNK_SIZE;
		return reply->n_line > 0 ? -EPROTO : 0;
	case HF_REPLY_TRAILERS:
		if (reply->n_line == 0)
			reply->part = HF_REPLY_DONE;
		return 0;
	case HF_REPLY_BODY:
	case HF_REPLY_CHUNK:
	case HF_REPLY_DONE:
		break;
	}
	return -EPROTO;
}

/* -- bytes ------------------------------------------------------------------------------ */

/* As many as belong to the body or to this chunk. Returns how many, or a failure. */
static ssize_t read_body(struct hf_reply *reply, const char *bytes, size_t n)
{
	int r;

	if (n > reply->left)
		n = reply->left;
	r = keep(reply, bytes, n);
	if (r < 0)
		return r;
	reply->left -= n;
	if (reply->left == 0)
		reply->part = reply->part == HF_REPLY_BODY ? HF_REPLY_DONE : HF_REPLY_CHUNK_END;
	return (ssize_t)n;
}

/* Up to the end of a line. */
static ssize_t read_line(struct hf_reply *reply, const char *bytes, size_t n)
{
	const char *end = memchr(bytes, '\n', n);
	size_t part = end ? (size_t)(end - bytes) : n;
	int r = 0;

	if (reply->n_line + part >= sizeof(reply->line))
		return -EPROTO;
	memcpy(reply->line + reply->n_line, bytes, part);
	reply->n_line += part;
	if (end) {
		r = take_line(reply);
		reply->n_line = 0;
	}
	return r < 0 ? r : (ssize_t)(part + (end != NULL));
}

int hf_reply_read(struct hf_reply *reply, const char *bytes, size_t n)
{
	while (n > 0 && reply->part != HF_REPLY_DONE) {
		int in_body = reply->part == HF_REPLY_BODY || reply->part == HF_REPLY_CHUNK;
		ssize_t used = in_body ? read_body(reply, bytes, n) : read_line(reply, bytes, n);

		if (used < 0)
			return (int)used;
		bytes += used;
		n -= (size_t)used;
	}
	/* Nothing was asked for that could follow: what comes next on this connection is not to be believed. */
	if (n > 0)
		reply->closes = 1;
	return reply->part == HF_REPLY_DONE;
}
