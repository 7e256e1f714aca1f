/* Looks at what a read would take, before libuv takes it. */
#include "daemon/varlink/server/unsolicited_fds.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "daemon/util/deferred_close.h"

/* Without room for descriptors none is received: that some were there is all that is told. */
ssize_t strangers_peek(int fd, void *buffer, size_t size)
{
	struct iovec iov = {buffer, size};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n = recvmsg(fd, &msg, MSG_PEEK | MSG_DONTWAIT);
	if (n < 0) {
		return -errno;
	}
	return msg.msg_flags & MSG_CTRUNC ? -EPROTO : n;
}

int strangers_keep(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

void strangers_close(struct deferred_close *deferred, struct account *account, int fd)
{
	if (fd >= 0) {
		deferred_close_socket(deferred, account, fd);
	}
}
