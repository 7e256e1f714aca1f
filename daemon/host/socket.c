/* SPDX-License-Identifier: Apache-2.0 */
/* socket.c: binds the sockets of the run directory. Nobody can send or connect before the mode and
 * group are set: a stream is accepted only from listen() on, and a datagram that comes in earlier
 * already carries credentials, because SO_PASSCRED is set before bind(). */
#include "daemon/host/socket.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/util/deferred_close.h"
#include "daemon/util/parse.h"

static uid_t owner_of_folder(const char *path)
{
	char folder[sizeof(((struct run_socket *)0)->path)];
	struct stat st;
	snprintf(folder, sizeof(folder), "%s", path);
	char *slash = strrchr(folder, '/');
	if (slash) {
		slash[slash == folder] = '\0';
	}
	return stat(slash ? folder : ".", &st) == 0 ? st.st_uid : geteuid();
}

/* Removes a socket of this type that nobody serves. 0 when the path is free now. */
static int remove_stale(const struct sockaddr_un *address, int type)
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
		return r == -ENOENT ? 0 : -EADDRINUSE; /* EAGAIN, EPROTOTYPE: it is served */
	}
	return unlink(address->sun_path) < 0 && errno != ENOENT ? -errno : 0;
}

/* Binds the path, and remembers in *ret which file that made. */
static int bind_path(struct run_socket *ret, const struct sockaddr_un *address, int type)
{
	const int on = 1;
	struct stat st;
	if (type == SOCK_DGRAM) {
		socket_refuse_fds(ret->fd);
		if (setsockopt(ret->fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0) {
			return -errno;
		}
	}
	if (bind(ret->fd, (const struct sockaddr *)address, sizeof(*address)) < 0) {
		return -errno;
	}
	memcpy(ret->path, address->sun_path, sizeof(ret->path));
	if (lstat(ret->path, &st) < 0) {
		return -errno;
	}
	ret->dev = st.st_dev;
	ret->ino = st.st_ino;
	ret->owner = owner_of_folder(ret->path);
	return 0;
}

int run_socket_open(struct run_socket *ret, const char *path, int type, const char *group)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	*ret = (struct run_socket){.fd = -1};
	size_t length = strlen(path);
	if (length >= sizeof(address.sun_path)) {
		return -ENAMETOOLONG;
	}
	memcpy(address.sun_path, path, length);
	gid_t gid = (gid_t)-1;
	int r = group ? parse_group(group, &gid) : 0;
	r = r < 0 ? r : remove_stale(&address, type);
	if (r < 0) {
		return r;
	}
	ret->fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (ret->fd < 0) {
		return -errno;
	}
	r = bind_path(ret, &address, type);
	if (r == 0 && ((group && lchown(path, (uid_t)-1, gid) < 0) ||
			      chmod(path, group ? 0660 : 0666) < 0)) {
		r = -errno;
	}
	if (r < 0) {
		run_socket_close(ret);
	}
	return r;
}

void run_socket_close(struct run_socket *socket)
{
	struct stat st;
	if (socket->path[0] && lstat(socket->path, &st) == 0 && st.st_dev == socket->dev &&
		st.st_ino == socket->ino) {
		unlink(socket->path);
	}
	socket->path[0] = '\0';
	if (socket->fd >= 0) {
		close(socket->fd);
		socket->fd = -1;
	}
}
