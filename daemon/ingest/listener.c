/* Makes the events socket. Nobody can connect between bind and listen, so the mode and group set in
 * between hold from the first connection, whatever the umask. */
#include "daemon/ingest/listener.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/ingest/socket_path.h"
#include "daemon/util/parse.h"

enum { BACKLOG = 64 };

static uid_t owner_of_folder(const char *path)
{
	char folder[sizeof(((struct listener *)0)->path)];
	struct stat st;
	snprintf(folder, sizeof(folder), "%s", path);
	char *slash = strrchr(folder, '/');
	if (slash) {
		slash[slash == folder] = '\0';
	}
	return stat(slash ? folder : ".", &st) == 0 ? st.st_uid : geteuid();
}

int listener_open(struct listener *listener, const char *path, const char *group)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	*listener = (struct listener){.fd = -1};
	size_t length = strlen(path);
	if (length >= sizeof(address.sun_path)) {
		return -ENAMETOOLONG;
	}
	memcpy(address.sun_path, path, length);
	gid_t gid = (gid_t)-1;
	int r = group ? parse_group(group, &gid) : 0;
	if (r < 0) {
		return r;
	}
	r = socket_path_free(&address, SOCK_SEQPACKET);
	if (r < 0) {
		return r;
	}
	listener->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (listener->fd < 0) {
		return -errno;
	}
	struct stat st;
	if (bind(listener->fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		r = -errno;
		goto error;
	}
	memcpy(listener->path, path, length);
	if (lstat(path, &st) < 0 || (group && lchown(path, (uid_t)-1, gid) < 0) ||
		chmod(path, group ? 0660 : 0666) < 0 || listen(listener->fd, BACKLOG) < 0) {
		r = -errno;
		goto error;
	}
	listener->dev = st.st_dev;
	listener->ino = st.st_ino;
	listener->owner = owner_of_folder(path);
	return 0;
error:
	listener_close(listener);
	return r;
}

void listener_close(struct listener *listener)
{
	struct stat st;
	if (listener->path[0] && lstat(listener->path, &st) == 0 &&
		(listener->ino == 0 ||
			(st.st_dev == listener->dev && st.st_ino == listener->ino))) {
		unlink(listener->path);
	}
	listener->path[0] = '\0';
	if (listener->fd >= 0) {
		close(listener->fd);
		listener->fd = -1;
	}
}
