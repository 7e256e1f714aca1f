/* SPDX-License-Identifier: Apache-2.0 */
/* socket.h: binds the sockets of the run directory. A stale path is replaced, one
 * that another process serves is not. */
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

/* One that another process bound has path "". */
struct run_socket {
	int fd;	   /* -1 = closed */
	dev_t dev; /* of the path, so that only our own is removed */
	ino_t ino;
	uid_t owner; /* of the folder it is in */
	char path[108];
};

/* Binds a non-blocking socket of this type; SOCK_DGRAM passes the
 * senders' credentials and refuses descriptors. group NULL: mode 0666, else 0660 and this group.
 * 0; -EADDRINUSE: another process serves the path; -EEXIST: the path is not a socket; -ENOENT: no
 * such group or folder; -ENAMETOOLONG; other -errno, with *ret closed. */
int run_socket_open(struct run_socket *ret, const char *path, int type, const char *group);

/* Closes it, and removes the path if it is still ours. Idempotent. */
void run_socket_close(struct run_socket *socket);
