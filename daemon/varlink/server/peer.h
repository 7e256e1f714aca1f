/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer.h: says who is at the other end of a connection, and handles descriptors that it sends
 * although no call takes any. libuv reads without room for them, so the kernel would close them in
 * the loop, and close(2) of a descriptor that a peer made waits as long as the peer likes. Kernels
 * since 6.16 refuse such messages; on older ones each read peeks first.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* uid of the peer when it connected (SO_PEERCRED). 0 or -errno. */
int peer_uid(int fd, uid_t *ret);

/* True when the peer's group or one of its supplementary groups is gid. */
bool peer_in_group(int fd, gid_t gid);

/* The bytes, at most size, that may be read without taking descriptors along; 0 at the end of the
 * stream, -EAGAIN when nothing is there. -EPROTO: descriptors are next: the connection is to be
 * closed without waiting. Other -errno of recvmsg(2). */
ssize_t peer_peek(int fd, void *buffer, size_t size);
