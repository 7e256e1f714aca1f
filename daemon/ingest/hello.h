/* SPDX-License-Identifier: Apache-2.0 */
/* hello.h: receives and checks the packet that attaches a process. */
#pragma once

#include <stdint.h>
#include <sys/stat.h>

#include "proto/mapping.h"

struct account;
struct deferred_close;

/* Receives one packet. 0 with *ret and *memfd (the caller closes it); -EAGAIN: nothing yet;
 * -ECONNRESET: closed; -EBADMSG with *reason (static text): not a hello. It may still be in the
 * socket then, with its descriptors: close that with deferred_close_socket(). Copies of them are
 * closed later, on the sender's account. */
int hello_receive(int fd, struct deferred_close *deferred, struct account *account,
	struct proto_hello *ret, int *memfd, const char **reason);

/* Receives one wake-up. 0; -EAGAIN, -ECONNRESET likewise; -EBADMSG: it carries descriptors, and
 * stays in the socket. */
int hello_receive_wake(int fd);

/* Compares the fields with this machine. 0, or -EBADMSG with *reason; -ESTALE with *reason: it was
 * made over a second ago, or by another clock. */
int hello_check(const struct proto_hello *hello, uint64_t now_ns, const char **reason);

/* Checks that it is sealed, of that size, and has all blocks: reading it can't fault. 0 and *st, or
 * -EBADMSG with *reason. */
int hello_check_memfd(int memfd, uint32_t size, struct stat *st, const char **reason);
