/* The one packet that attaches a process: receiving and judging it. */
#pragma once

#include <stdint.h>
#include <sys/stat.h>

#include "proto/mapping.h"

struct closer;

/* Receives one packet. 0 with *ret and *memfd (the caller closes it); -EAGAIN: nothing there;
 * -ECONNRESET: closed; -EBADMSG with *reason (static text): not a hello. Never leaves a descriptor
 * open on failure: the closer has it. */
int hello_receive(
	int fd, struct closer *closer, struct proto_hello *ret, int *memfd, const char **reason);

/* The fields against this machine at now_ns. 0, or -EBADMSG with *reason. */
int hello_check(const struct proto_hello *hello, uint64_t now_ns, const char **reason);

/* Sealed, of that size, all blocks present: reading it can't fault. 0 and *st, or -EBADMSG with
 * *reason. */
int hello_check_memfd(int memfd, uint32_t size, struct stat *st, const char **reason);
