/* Between the collectors and util/root: which descriptors stay open, and what to do when the file
 * behind one has gone. */
#include "daemon/collect/lib/device_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon/core/metrics/metrics.h"

int device_file_init(struct device_file *file, bool keep, const char *format, ...)
{
	file->fd = -1;
	file->keep = keep;
	file->missed = 0;
	va_list ap;
	va_start(ap, format);
	int n = vsnprintf(file->path, sizeof(file->path), format, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(file->path)) {
		file->path[0] = '\0';
		return -ENAMETOOLONG;
	}
	return 0;
}

static int open_it(struct device_file *file, const struct root *root)
{
	if (file->fd >= 0) {
		return 0;
	}
	if (file->path[0] == '\0') {
		return -ENAMETOOLONG;
	}
	enum { PATIENCE = DEVICE_FILE_PATIENCE };
	bool look = file->missed <= PATIENCE;
	int fd = look ? root_open(root, file->path, O_RDONLY) : -ENOENT;
	if (fd == -ENOENT) {
		file->missed = file->missed + 1 < 2 * PATIENCE ? file->missed + 1 : PATIENCE;
	}
	if (fd < 0) {
		return fd;
	}
	file->missed = 0;
	file->fd = fd;
	return 0;
}

/* A kernfs file whose device was removed answers -ENODEV for ever, also when the device is back:
 * only a new open finds the new one. */
static void after_read(struct device_file *file, ssize_t result)
{
	if (!file->keep || result == -ENODEV || result == -ENOENT || result == -EBADF) {
		device_file_close(file);
	}
}

ssize_t device_file_read(struct device_file *file, const struct root *root, char *buf, size_t size)
{
	int r = open_it(file, root);
	if (r < 0) {
		return r;
	}
	ssize_t n = file_read(file->fd, buf, size);
	after_read(file, n);
	return n;
}

int device_file_read_i64(struct device_file *file, const struct root *root, long long *ret)
{
	int r = open_it(file, root);
	if (r < 0) {
		return r;
	}
	r = file_read_i64(file->fd, ret);
	after_read(file, r);
	return r;
}

const char *device_file_reason(int error)
{
	switch (-error) {
	case EAGAIN:
	case ENODATA:
	case EIO:
	case EINVAL:
	case ENXIO:
	case ENOENT:
	case ENODEV:
		return "offline";
	case EBADMSG:
		return "malformed";
	case ERANGE:
		return "out of range";
	default:
		return errno_reason(error);
	}
}

void device_file_close(struct device_file *file)
{
	if (file->fd >= 0) {
		close(file->fd);
	}
	file->fd = -1;
}
