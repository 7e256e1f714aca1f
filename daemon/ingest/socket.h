/* SPDX-License-Identifier: Apache-2.0 */
/* socket.h: binds the sockets of the run directory that apps send to. A stale path is replaced, one
 * that another process serves is not. */
#pragma once

#include <sys/types.h>

struct ingest_socket {
	int fd;	   /* -1 = closed */
	dev_t dev; /* of the path, so that only our own is removed */
	ino_t ino;
	uid_t owner; /* of the folder it is in */
	char path[108];
};

/* Binds a non-blocking socket of this type; SOCK_SEQPACKET also listens, SOCK_DGRAM passes the
 * senders' credentials and refuses descriptors. group NULL: mode 0666, else 0660 and this group.
 * 0; -EADDRINUSE: another process serves the path; -EEXIST: the path is not a socket; -ENOENT: no
 * such group or folder; -ENAMETOOLONG; other -errno, with *ret closed. */
int ingest_socket_open(struct ingest_socket *ret, const char *path, int type, const char *group);

/* Closes it, and removes the path if it is still ours. Idempotent. */
void ingest_socket_close(struct ingest_socket *socket);
