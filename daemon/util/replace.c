#include "daemon/util/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

static int write_all(int fd, const uint8_t *bytes, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, bytes, size);
		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n <= 0) {
			return n < 0 ? -errno : -EIO;
		}
		bytes += n;
		size -= (size_t)n;
	}
	return fdatasync(fd) < 0 ? -errno : 0;
}

int file_replace(int folder, const char *temporary, const char *name, mode_t mode,
	const void *bytes, size_t size)
{
	unlinkat(folder, temporary, 0);
	int fd = openat(
		folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd < 0) {
		return -errno;
	}
	int r = write_all(fd, bytes, size);
	if (close(fd) < 0 && r == 0) {
		r = -errno;
	}
	if (r == 0 && renameat(folder, temporary, folder, name) < 0) {
		r = -errno;
	}
	if (r < 0) {
		unlinkat(folder, temporary, 0);
	} else if (fsync(folder) < 0 && errno != EINVAL) { /* some cannot sync folders */
		r = -errno;
	}
	return r;
}
