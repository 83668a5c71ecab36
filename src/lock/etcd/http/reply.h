/*
 * lock/etcd/http/reply.h - reading the answer to one request of HTTP/1.1, as its bytes come.
 *
 * What it takes is what etcd's gateway sends: a status of 200 or more, and a body with its length or in chunks. Everything else is
 * an error: a body that ends with its connection cannot be told from one that was cut off.
 */
#ifndef LOCK_ETCD_HTTP_REPLY_H
#define LOCK_ETCD_HTTP_REPLY_H

#include <stddef.h>
#include <stdint.h>

#define HF_REPLY_LINE_MAX  4096
#define HF_REPLY_LINES_MAX 100 /* headers, and trailers */

enum hf_reply_part {
	HF_REPLY_STATUS,
	HF_REPLY_HEADERS,
	HF_REPLY_BODY,       /* `left` bytes of it are to come */
	HF_REPLY_CHUNK_SIZE, /* a line with the size of the next chunk */
	HF_REPLY_CHUNK,      /* `left` bytes of it are to come */
	HF_REPLY_CHUNK_END,  /* the empty line behind it */
	HF_REPLY_TRAILERS,
	HF_REPLY_DONE,
};

struct hf_reply {
	enum hf_reply_part part;
	long status;
	int64_t date;     /* of the server, seconds since 1970; 0: it does not say */
	int closes;       /* the connection is of no use after it */
	char *body;       /* with a NUL behind it; NULL: nothing came */
	size_t len, cap;
	/* On the way. */
	char line[HF_REPLY_LINE_MAX];
	size_t n_line, n_lines, left;
	int has_length, chunked;
};

/* Frees the body. An empty one begins with { 0 }. */
void hf_reply_done(struct hf_reply *reply);

/*
 * Reads `n` bytes. 0: more are to come; 1: it is whole. -EPROTO: it is no answer; -EMSGSIZE: it has more than
 * HF_HTTP_ANSWER_MAX; -ENOMEM.
 */
int hf_reply_read(struct hf_reply *reply, const char *bytes, size_t n);

#endif
