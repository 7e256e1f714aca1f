/* SPDX-License-Identifier: Apache-2.0 */
/* udp.c: parses an address of the configuration without asking a resolver, and binds the UDP port
 * with SO_RXQ_OVFL, so that each datagram brings the number of those that the kernel dropped. */
#include "daemon/ingest/statsd/udp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "daemon/util/parse.h"
#include "proto/text.h"

/* Splits "host:port" or "[host]:port"; *host points into text. */
static int split_address(char *text, char **host, uint16_t *port)
{
	char *colon = strrchr(text, ':');
	uint64_t number;
	if (!colon || parse_u64(colon + 1, &number) < 0 || number < 1 || number > 65535) {
		return -EINVAL;
	}
	*colon = '\0';
	*host = text;
	if (text[0] == '[') {
		if (colon[-1] != ']') {
			return -EINVAL;
		}
		colon[-1] = '\0';
		*host = text + 1;
	}
	*port = (uint16_t)number;
	return 0;
}

static int resolve(
	const char *host, bool brackets, uint16_t port, struct statsd_address *ret, bool *loopback)
{
	*ret = (struct statsd_address){0};
	if (brackets) {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&ret->address;
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		ret->length = sizeof(*in6);
		if (inet_pton(AF_INET6, host, &in6->sin6_addr) != 1) {
			return -EINVAL;
		}
		*loopback = IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
		return 0;
	}
	struct sockaddr_in *in = (struct sockaddr_in *)&ret->address;
	in->sin_family = AF_INET;
	in->sin_port = htons(port);
	ret->length = sizeof(*in);
	if (inet_pton(AF_INET, host, &in->sin_addr) != 1) {
		return -EINVAL;
	}
	*loopback = ntohl(in->sin_addr.s_addr) >> 24 == 127;
	return 0;
}

int statsd_address_parse(const char *text, struct statsd_address *ret)
{
	static const char anyone[] = " anyone";
	char copy[96], *host;
	size_t length = strlen(text);
	uint16_t port;
	bool loopback = false, allowed = false;
	if (length >= sizeof(copy)) {
		return -EINVAL;
	}
	memcpy(copy, text, length + 1);
	if (length >= sizeof(anyone) && text_ends_with(copy, anyone)) {
		copy[length - (sizeof(anyone) - 1)] = '\0';
		allowed = true;
	}
	struct statsd_address address;
	int r = split_address(copy, &host, &port);
	r = r < 0 ? r : resolve(host, host != copy, port, &address, &loopback);
	if (r < 0) {
		return r;
	}
	if (!loopback && !allowed) {
		return -EPERM;
	}
	*ret = address;
	return 0;
}

int statsd_bind_udp(const struct statsd_address *address)
{
	const int on = 1;
	int fd = socket(address->address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		return -errno;
	}
	if (setsockopt(fd, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof(on)) < 0 ||
		bind(fd, (const struct sockaddr *)&address->address, address->length) < 0) {
		int r = -errno;
		close(fd);
		return r;
	}
	return fd;
}
