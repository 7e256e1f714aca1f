/*
 * unsolicited_fds.h: handles descriptors that a client sends although no call takes any. libuv
 * reads without room for them, so the kernel would close them in the loop, and close(2) of a
 * descriptor that a peer made waits as long as the peer likes. Kernels since 6.16 refuse such
 * messages; on older ones each read peeks first.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

struct account;
struct deferred_close;

/* The bytes, at most size, that may be read without taking descriptors along; 0 at the end of the
 * stream, -EAGAIN when nothing is there. -EPROTO: descriptors are next: the connection is to be
 * closed by unsolicited_fds_close(). Other -errno of recvmsg(2). */
ssize_t unsolicited_fds_peek(int fd, void *buffer, size_t size);

/* A duplicate of a socket that is about to be closed, for unsolicited_fds_close(). -1 without one.
 */
int unsolicited_fds_dup(int fd);

/* Closes the duplicate, the last reference, and what nobody has read from it, without waiting. */
void unsolicited_fds_close(struct deferred_close *deferred, struct account *account, int fd);
