/*
 * Descriptors that a client sends although none belongs here. libuv reads without room for any, so
 * the kernel would close them in the loop, and close(2) of a stranger's descriptor waits as long as
 * the stranger likes. Kernels since 6.16 refuse such messages; on older ones each read looks first.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

struct account;
struct deferred_close;

/* The bytes, at most size, that may be read without taking descriptors along; 0 at the end of the
 * stream, -EAGAIN when nothing is there. -EPROTO: descriptors are next: the connection is to be
 * closed by strangers_close(). Other -errno of recvmsg(2). */
ssize_t strangers_peek(int fd, void *buffer, size_t size);

/* A duplicate of a socket that is about to be closed, for strangers_close(). -1 without one. */
int strangers_keep(int fd);

/* Closes the duplicate, the last reference, and what nobody has read from it, without waiting. */
void strangers_close(struct deferred_close *deferred, struct account *account, int fd);
