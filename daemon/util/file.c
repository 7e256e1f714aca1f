/* SPDX-License-Identifier: Apache-2.0 */
/* file.c: writes files completely or not at all, and opens folders without trusting what may lie
 * there. A power cut leaves the previous file or the new one. */
#include "daemon/util/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/util/sysops.h"

int file_watch(int epoll_fd, int fd)
{
	struct epoll_event none = {.data = {.fd = fd}}; /* as libuv wants it */
	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &none) < 0 && errno != EEXIST ? -errno : 0;
}

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

bool file_line(FILE *stream, char *line, size_t size)
{
	line[0] = '\0';
	return fgets(line, (int)size, stream) && strlen(line) > 0 && line[strlen(line) - 1] == '\n';
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

ssize_t file_read_own(int folder, const char *name, void *bytes, size_t size, struct stat *st)
{
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (fd < 0) {
		return errno == ELOOP ? -EPERM : -errno;
	}
	ssize_t length = fstat(fd, st) < 0 ? -errno : 0;
	if (length == 0 && (!S_ISREG(st->st_mode) || st->st_uid != geteuid())) {
		length = -EPERM;
	} else if (length == 0 && (st->st_size < 0 || (uintmax_t)st->st_size > size)) {
		length = -EFBIG;
	} else if (length == 0) {
		length = sysops()->pread(fd, bytes, size, 0);
	}
	close(fd);
	return length;
}

bool file_precedes(struct timespec a, struct timespec b)
{
	return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

int folder_open(const char *path, mode_t mode)
{
	struct stat st;
	if (mode != 0 && mkdir(path, mode) < 0 && errno != EEXIST) {
		return -errno;
	}
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		return -errno;
	}
	int r = fstat(fd, &st) < 0 ? -errno : 0;
	if (r == 0 && (st.st_uid != geteuid() || (st.st_mode & 022) != 0)) {
		r = -EPERM;
	}
	if (r < 0) {
		close(fd);
	}
	return r < 0 ? r : fd;
}

void folder_list(
	int folder, size_t max, bool (*each)(void *ctx, int folder, const char *name), void *ctx)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	if (!list) {
		if (fd >= 0) {
			close(fd);
		}
		return;
	}
	for (size_t i = 0; i < max && (entry = readdir(list)); i++) {
		if (!each(ctx, folder, entry->d_name)) {
			break;
		}
	}
	closedir(list);
}
