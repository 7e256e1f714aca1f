/* The one packet that attaches a process: receiving and judging it. */
#pragma once

#include <stdint.h>
#include <sys/stat.h>

#include "proto/mapping.h"

struct account;
struct deferred_close;

/* Receives one packet. 0 with *ret and *memfd (the caller closes it); -EAGAIN: nothing there;
 * -ECONNRESET: closed; -EBADMSG with *reason (static text): not a hello. It may still be in the
 * socket then, with descriptors that it carries: to be closed by deferred_close_socket(). What was
 * seen of them is closed later, on the sender's account. */
int hello_receive(int fd, struct deferred_close *deferred, struct account *account,
	struct proto_hello *ret, int *memfd, const char **reason);

/* Takes a wake-up off the socket. 0; -EAGAIN, -ECONNRESET likewise; -EBADMSG: it carries
 * descriptors, and is still there. */
int hello_take_wake(int fd);

/* The fields against this machine. from_ns, now_ns: when the kernel received it at the earliest; a
 * stalled daemon sees it late. 0, or -EBADMSG with *reason. */
int hello_check(
	const struct proto_hello *hello, uint64_t from_ns, uint64_t now_ns, const char **reason);

/* Sealed, of that size, all blocks present: reading it can't fault. 0 and *st, or -EBADMSG with
 * *reason. */
int hello_check_memfd(int memfd, uint32_t size, struct stat *st, const char **reason);
