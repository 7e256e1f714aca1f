/* file.c: writes files completely or not at all. A power cut leaves the previous file or the new
 * one. */
#include "daemon/util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

int file_write_all(int fd, const void *bytes, size_t size)
{
	for (const uint8_t *at = bytes; size > 0;) {
		ssize_t n = write(fd, at, size);
		if (n == 0 || (n < 0 && errno != EINTR)) {
			return n < 0 ? -errno : -EIO;
		}
		at += n < 0 ? 0 : n;
		size -= n < 0 ? 0 : (size_t)n;
	}
	return 0;
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
	int r = file_write_all(fd, bytes, size);
	if (r == 0 && fdatasync(fd) < 0) {
		r = -errno;
	}
	if (close(fd) < 0 && r == 0) {
		r = -errno;
	}
	if (r == 0 && renameat(folder, temporary, folder, name) < 0) {
		r = -errno;
	}
	if (r < 0) {
		unlinkat(folder, temporary, 0);
	} else if (fsync(folder) < 0 &&
		   errno != EINVAL) { /* Some file systems cannot sync folders. */
		r = -errno;
	}
	return r;
}
