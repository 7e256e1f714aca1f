/* The sockets that datagrams come in by. */
#pragma once

#include <stddef.h>
#include <sys/socket.h>

struct statsd_address {
	struct sockaddr_storage address;
	socklen_t length;
};

/* "127.0.0.1:8125" or "[::1]:8125". Nobody says who sends over UDP, so an address that others reach
 * is only taken with the word "anyone" behind it. 0; -EINVAL: not such an address; -EPERM: not a
 * loopback address and nobody said anyone. */
int statsd_address_parse(const char *text, struct statsd_address *ret);

/* Binds a datagram socket at path that tells who sends; a stale one is replaced. group NULL: mode
 * 0666, else 0660. The descriptor, or -EADDRINUSE: somebody receives there; -EEXIST: the path is
 * something else; -ENOENT: no such group or folder; -ENAMETOOLONG; other -errno. */
int statsd_bind_path(const char *path, const char *group);

/* Binds a UDP socket that tells what the kernel dropped. The descriptor or -errno. */
int statsd_bind_udp(const struct statsd_address *address);
