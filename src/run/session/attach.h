/*
 * run/session/attach.h - what a viewer and the keeper of a session with a terminal say to each other.
 *
 * Through `sessions/<key>/attach`, a socket (SOCK_SEQPACKET) in the state directory: whole messages. Output does not go through it: a
 * viewer reads the log, so one that is slow or stuck holds up nobody. What is typed comes from one viewer at a time, the writer.
 */
#ifndef RUN_SESSION_ATTACH_H
#define RUN_SESSION_ATTACH_H

#include <stdint.h>
#include <sys/un.h>

#define HF_ATTACH_NAME    "attach"
#define HF_ATTACH_VERSION 1
#define HF_ATTACH_KEYS    512 /* that one message has at most */

enum hf_attach_kind {
	HF_ATTACH_HELLO = 1, /* the first one: version, how, size */
	HF_ATTACH_TYPED = 2,
	HF_ATTACH_SIZE = 3,
	HF_ATTACH_ROLE = 4,  /* from the keeper: may it type? */
};

struct hf_attach_message {
	uint32_t kind;
	uint32_t version;       /* HELLO */
	uint32_t how;           /* HELLO: enum hf_attach_flags; ROLE: 1 when it may type */
	int32_t writer;         /* ROLE: pid of the viewer that may; 0: none */
	uint16_t rows, columns; /* HELLO, SIZE; 0: not known */
	uint32_t len;           /* TYPED */
	char keys[HF_ATTACH_KEYS];
};

/* How long a message is on the wire. */
#define HF_ATTACH_SIZE_OF(len) (offsetof(struct hf_attach_message, keys) + (len))

/* The socket's address below the session's directory, whatever the length of its path. */
void hf_attach_address(int dirfd, struct sockaddr_un *ret);

#endif
