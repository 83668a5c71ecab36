/* sys/fd/fdpass.c - SCM_RIGHTS, once. */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "hf/sys/fd/fdpass.h"

union control {
	struct cmsghdr header; /* for its alignment */
	char bytes[CMSG_SPACE(sizeof(int))];
};

ssize_t hf_send_fd(int socket, const void *from, size_t len, int flags, int fd)
{
	struct iovec data = { .iov_base = (void *)(uintptr_t)from, .iov_len = len };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1 };
	union control control = { 0 };
	ssize_t n;

	if (fd >= 0) {
		struct cmsghdr *header;

		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	}
	n = sendmsg(socket, &message, flags | MSG_NOSIGNAL);
	return n < 0 ? -errno : n;
}

ssize_t hf_recv_fd(int socket, void *to, size_t len, int flags, int *ret_fd)
{
	struct iovec data = { .iov_base = to, .iov_len = len };
	union control control = { 0 };
	struct msghdr message = { .msg_iov = &data,
				  .msg_iovlen = 1,
				  .msg_control = control.bytes,
				  .msg_controllen = sizeof(control.bytes) };
	struct cmsghdr *header;
	ssize_t n = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);

	*ret_fd = -1;
	if (n < 0)
		return -errno;
	header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
	    header->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_fd, CMSG_DATA(header), sizeof(*ret_fd));
	return n;
}
