/* SPDX-License-Identifier: Apache-2.0 */
/* state_file.c: reads and replaces small files of the state directory. Nothing there is followed or
 * waited for: links, FIFOs and files of other users are refused. */
#include "daemon/persist/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/util/file.h"

static int open_dir(const char *dir)
{
	struct stat st;
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 || fstat(fd, &st) < 0 ? -errno : 0;
	if (r == 0 && (st.st_uid != geteuid() || (st.st_mode & 022) != 0)) {
		r = -EPERM;
	}
	if (r < 0 && fd >= 0) {
		close(fd);
	}
	return r < 0 ? r : fd;
}

int state_file_write(const char *dir, const char *name, const uint8_t *bytes, size_t size)
{
	char temporary[64];
	int n = snprintf(temporary, sizeof(temporary), "%s.new", name);
	if (n < 0 || (size_t)n >= sizeof(temporary)) {
		return -ENAMETOOLONG;
	}
	int folder = open_dir(dir);
	if (folder < 0) {
		return folder;
	}
	int r = file_replace(folder, temporary, name, 0600, bytes, size);
	close(folder);
	return r;
}

int state_file_read(const char *dir, const char *name, uint8_t *bytes, size_t size)
{
	struct stat st;
	int folder = open_dir(dir);
	if (folder < 0) {
		return folder;
	}
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	int r = fd < 0 ? (errno == ELOOP ? -EPERM : -errno) : 0;
	close(folder);
	if (r == 0 && fstat(fd, &st) < 0) {
		r = -errno;
	} else if (r == 0 && (!S_ISREG(st.st_mode) || st.st_uid != geteuid())) {
		r = -EPERM;
	} else if (r == 0 && (st.st_size < 0 || (size_t)st.st_size > size)) {
		r = -EFBIG;
	}
	size_t length = 0;
	while (r == 0 && length < size) {
		ssize_t n = read(fd, bytes + length, size - length);
		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n <= 0) {
			r = n < 0 ? -errno : 0;
			break;
		}
		length += (size_t)n;
	}
	if (fd >= 0) {
		close(fd);
	}
	return r < 0 ? r : (int)length;
}
