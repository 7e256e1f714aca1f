/* Paths of sockets: who may use them, and what an earlier daemon left there. */
#include "daemon/ingest/socket_path.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

int socket_path_free(const struct sockaddr_un *address, int type)
{
	struct stat st;
	if (lstat(address->sun_path, &st) < 0) {
		return errno == ENOENT ? 0 : -errno;
	}
	if (!S_ISSOCK(st.st_mode)) {
		return -EEXIST;
	}
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		return -errno;
	}
	int r = connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ? -errno : 0;
	close(fd);
	if (r != -ECONNREFUSED) {
		return r == -ENOENT ? 0 : -EADDRINUSE; /* EAGAIN, EPROTOTYPE: it lives */
	}
	return unlink(address->sun_path) < 0 && errno != ENOENT ? -errno : 0;
}
