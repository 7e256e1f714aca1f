/* SPDX-License-Identifier: Apache-2.0 */
/* udp.h: reads the address of the UDP port of datagrams, and binds it. */
#pragma once

#include <stddef.h>
#include <sys/socket.h>

struct statsd_address {
	struct sockaddr_storage address;
	socklen_t length;
};

/* "127.0.0.1:8125" or "[::1]:8125". UDP does not say who sends, so an address that other machines
 * reach is only accepted with the word "anyone" after it. 0; -EINVAL: not such an address; -EPERM:
 * not a loopback address, and without that word. */
int statsd_address_parse(const char *text, struct statsd_address *ret);

/* Binds a UDP socket that reports what the kernel dropped. The descriptor or -errno. */
int statsd_bind_udp(const struct statsd_address *address);
