/* Datagrams to the daemon: the socket lies beside the one for queries, and is never waited for
 * longer than asked: what is measured must not stand still because the profiler does. */
#include "client/edgeprofctl/verbs/emit_socket.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/edgeprofctl/link/address.h"

/* ".../io.edgeprof" becomes ".../statsd". False: no room for it. */
static bool beside(char path[ADDRESS_SIZE])
{
	static const char name[] = "statsd";
	char *slash = strrchr(path, '/');
	char *at = slash != NULL ? slash + 1 : path;
	if ((size_t)(at - path) + sizeof(name) > ADDRESS_SIZE) {
		return false;
	}
	memcpy(at, name, sizeof(name));
	return true;
}

static int try_path(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	memcpy(address.sun_path, path, strlen(path));
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		return -errno;
	}
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		int error = errno;
		close(fd);
		return -error;
	}
	return fd;
}

int emit_connect(struct ctl *ctl, int *ret)
{
	struct address_list list;
	bool runs = false;
	int result = -ENOENT;
	if (address_search(ctl->options.socket, &list) < 0) {
		return ctl_fail(
			ctl, CTL_UNREACHABLE, "the path of the socket is too long (107 bytes)");
	}
	for (size_t i = 0; i < list.count; i++) {
		char query[ADDRESS_SIZE];
		memcpy(query, list.entries[i].path, sizeof(query));
		int fd = beside(list.entries[i].path) ? try_path(list.entries[i].path)
						      : -ENAMETOOLONG;
		if (fd >= 0) {
			*ret = fd;
			return CTL_FINE;
		}
		list.entries[i].error = -fd;
		runs = runs || (fd == -ENOENT && access(query, F_OK) == 0);
		result = result == -EACCES ? result : fd;
	}
	address_explain(&list, result, stderr);
	if (runs) {
		fputs("Or it runs without datagrams: [statsd] enabled = no, see edgeprofctl "
		      "self.\n",
			stderr);
	}
	return result == -EACCES ? CTL_NOT_PERMITTED : CTL_UNREACHABLE;
}

int emit_send(struct ctl *ctl, int fd, const char *lines, size_t length, int wait_ms)
{
	struct pollfd poller = {.fd = fd, .events = POLLOUT};
	for (int tries = 0; tries < 100; tries++) {
		if (send(fd, lines, length, MSG_NOSIGNAL) >= 0) {
			return CTL_FINE;
		}
		if (errno == EINTR) {
			continue;
		}
		if (errno != EAGAIN) {
			return ctl_fail(ctl, CTL_UNREACHABLE, "edgeprofd does not take it: %s",
				strerror(errno));
		}
		if (poll(&poller, 1, wait_ms) == 0) {
			break;
		}
	}
	return ctl_fail(
		ctl, CTL_UNREACHABLE, "edgeprofd is behind: %zu bytes were not sent", length);
}
