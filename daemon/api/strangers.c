/* Looks at what a read would take, before libuv takes it. */
#include "daemon/api/strangers.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/util/closer.h"

/* True when there were descriptors, or signs of some. */
static bool take_descriptors(struct closer *closer, struct msghdr *msg)
{
	bool any = (msg->msg_flags & MSG_CTRUNC) != 0;
	for (struct cmsghdr *header = CMSG_FIRSTHDR(msg); header;
		header = CMSG_NXTHDR(msg, header)) {
		if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) {
			continue;
		}
		size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(header) + i * sizeof(fd), sizeof(fd));
			closer_take(closer, fd);
		}
		any = true;
	}
	return any;
}

ssize_t strangers_peek(struct closer *closer, int fd, void *buffer, size_t size)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(CLOSER_FDS * sizeof(int))];
	struct iovec iov = {buffer, size};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(fd, &msg, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0) {
		return -errno;
	}
	return take_descriptors(closer, &msg) ? -EPROTO : n;
}

int strangers_keep(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

void strangers_close(struct closer *closer, int fd)
{
	if (fd >= 0) {
		closer_take_socket(closer, fd);
	}
}
