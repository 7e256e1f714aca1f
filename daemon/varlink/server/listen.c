/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listen.c: binds the listening socket. A stale socket of a killed daemon is distinguished from a
 * live one by connecting to it, and another daemon's socket is never unlinked (uv_pipe_bind does
 * neither).
 */
#include "daemon/varlink/server/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/util/deferred_close.h"
#include "daemon/util/parse.h"
#include "daemon/varlink/server/peer.h"

enum { BACKLOG = 128 };

/* Somebody listens at the address, or it is not for us to say that nobody does. */
static bool is_live(const struct sockaddr_un *address)
{
	struct stat st;
	if (lstat(address->sun_path, &st) < 0) {
		return errno != ENOENT;
	}
	if (!S_ISSOCK(st.st_mode)) {
		return true;
	}
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		return true;
	}
	bool live = connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ||
		    errno != ECONNREFUSED;
	close(fd);
	return live;
}

static int set_access(const char *path, const char *group)
{
	gid_t gid;
	if (!group) {
		return chmod(path, 0666) < 0 ? -errno : 0;
	}
	int r = parse_group(group, &gid);
	if (r < 0) {
		return r;
	}
	if (chown(path, (uid_t)-1, gid) < 0 || chmod(path, 0660) < 0) {
		return -errno;
	}
	return 0;
}

int listen_bind(const char *path, const char *group, int *ret, ino_t *inode)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = strlen(path);
	if (length == 0 || length >= sizeof(address.sun_path)) {
		return -ENAMETOOLONG;
	}
	memcpy(address.sun_path, path, length + 1);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		return -errno;
	}
	int r = bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
	if (r == -EADDRINUSE && !is_live(&address)) {
		unlink(path);
		r = bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
	}
	if (r < 0) {
		close(fd);
		return r;
	}
	struct stat st = {0};
	if (lstat(path, &st) < 0) {
		r = -errno;
	} else {
		r = set_access(path, group);
	}
	if (r < 0) {
		listen_end(fd, path, st.st_ino);
		return r;
	}
	*inode = st.st_ino;
	*ret = fd;
	return 0;
}

int listen_prepare(int fd, bool *refuses_descriptors)
{
	int flags = fcntl(fd, F_GETFL);
	*refuses_descriptors = socket_refuse_fds(fd);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
		fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || listen(fd, BACKLOG) < 0) {
		return -errno;
	}
	return 0;
}

void listen_end(int fd, const char *path, ino_t inode)
{
	struct stat st;
	if (path[0] != '\0' && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) &&
		st.st_ino == inode) {
		unlink(path);
	}
	if (fd >= 0) {
		close(fd);
	}
}
