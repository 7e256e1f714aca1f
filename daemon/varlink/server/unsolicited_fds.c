/* unsolicited_fds.c: peeks at what a read would consume, before libuv does. */
#include "daemon/varlink/server/unsolicited_fds.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "daemon/util/deferred_close.h"

/* Without room for descriptors none is received; the kernel reports only that there were some. */
ssize_t unsolicited_fds_peek(int fd, void *buffer, size_t size)
{
	struct iovec iov = {buffer, size};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n = recvmsg(fd, &msg, MSG_PEEK | MSG_DONTWAIT);
	if (n < 0) {
		return -errno;
	}
	return msg.msg_flags & MSG_CTRUNC ? -EPROTO : n;
}

int unsolicited_fds_dup(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

void unsolicited_fds_close(struct deferred_close *deferred, struct account *account, int fd)
{
	if (fd >= 0) {
		deferred_close_socket(deferred, account, fd);
	}
}
