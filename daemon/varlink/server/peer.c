/* SPDX-License-Identifier: Apache-2.0 */
/* peer.c: asks the kernel about peers: credentials as of the connect (SO_PEERCRED, SO_PEERGROUPS),
 * and what a read would consume, before libuv does. */
#include "daemon/varlink/server/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "daemon/util/sysops.h"

enum { GROUPS_USUAL = 64, GROUPS_LIMIT = 65536 };

int peer_uid(int fd, uid_t *ret)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0) {
		return -errno;
	}
	*ret = peer.uid;
	return 0;
}

static bool contains(const gid_t *groups, size_t count, gid_t gid)
{
	for (size_t i = 0; i < count; i++) {
		if (groups[i] == gid) {
			return true;
		}
	}
	return false;
}

bool peer_in_group(int fd, gid_t gid)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.gid == gid) {
		return true;
	}
	gid_t few[GROUPS_USUAL];
	size = sizeof(few);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, few, &size) == 0) {
		return contains(few, size / sizeof(gid_t), gid);
	}
	/* ERANGE: size is what the kernel needs */
	size_t count = size / sizeof(gid_t);
	if (errno != ERANGE || count > GROUPS_LIMIT) {
		return false;
	}
	gid_t *many = mem_calloc(count, sizeof(gid_t));
	bool found = many && getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, many, &size) == 0 &&
		     contains(many, size / sizeof(gid_t), gid);
	free(many);
	return found;
}

/* Without room for descriptors none is received; the kernel reports only that there were some. */
ssize_t peer_peek(int fd, void *buffer, size_t size)
{
	struct iovec iov = {buffer, size};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n = recvmsg(fd, &msg, MSG_PEEK | MSG_DONTWAIT);
	if (n < 0) {
		return -errno;
	}
	return msg.msg_flags & MSG_CTRUNC ? -EPROTO : n;
}
