/* Descriptors that stay open between events: the socket, the memfd, the threads' schedstat. */
#include "client/libedgeprof/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int descriptor_set(struct descriptor *d, int fd)
{
	if (fd >= 0 && fd <= 2) {
		int moved = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		close(fd);
		fd = moved;
	}
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0) {
		return -EBADF;
	}
	*d = (struct descriptor){fd, st.st_dev, st.st_ino};
	return 0;
}

bool descriptor_ours(const struct descriptor *d)
{
	struct stat st;
	return d->fd >= 0 && fstat(d->fd, &st) == 0 && st.st_dev == d->dev && st.st_ino == d->ino;
}

void descriptor_close(struct descriptor *d)
{
	if (descriptor_ours(d)) {
		close(d->fd);
	}
	d->fd = -1;
}
