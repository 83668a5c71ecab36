/* sys/fd/fdpass.h - messages of a local socket with a descriptor beside them. */
#ifndef SYS_FD_FDPASS_H
#define SYS_FD_FDPASS_H

#include <stddef.h>
#include <sys/types.h>

/* sendmsg(2) with `fd` (-1: none) and MSG_NOSIGNAL. Returns how much went, or -errno. */
ssize_t hf_send_fd(int socket, const void *from, size_t len, int flags, int fd);

/* recvmsg(2). *ret_fd is the descriptor that came, with CLOEXEC, or -1. Returns how much came, or -errno. */
ssize_t hf_recv_fd(int socket, void *to, size_t len, int flags, int *ret_fd);

#endif
