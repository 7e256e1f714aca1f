/* The files under the live history and the timeline. They are looked at as if anybody could have
 * put them there: the run directory may be one that the user configured. */
#include "daemon/store/runfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/util/seam.h"

/* A descriptor of DIR/name that only this process has locked, or -errno. */
static int open_locked(const char *dir, const char *name)
{
	int dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0) {
		return -errno;
	}
	/* O_NONBLOCK: a FIFO in its place must not hold us. */
	int fd = openat(dir_fd, name,
		O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
	int r = fd < 0 ? -errno : fd;
	close(dir_fd);
	if (r == -EISDIR || r == -ENXIO || r == -EACCES) {
		return -EPERM;
	}
	if (r < 0) {
		return r;
	}
	struct stat st;
	if (fstat(fd, &st) < 0) {
		r = -errno;
	} else if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1 ||
		   (st.st_mode & 077) != 0) {
		r = -EPERM;
	} else if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		r = errno == EWOULDBLOCK ? -EBUSY : -errno;
	}
	if (r < 0) {
		close(fd);
	}
	return r;
}

/* Makes the file exactly so long, with every block there: a write to a hole in a full tmpfs would
 * be SIGBUS. What a file of this size holds stays. */
static int make_size(int fd, off_t size)
{
	struct stat st;
	if (fstat(fd, &st) < 0) {
		return -errno;
	}
	bool fresh = st.st_size != size;
	if (fresh && ftruncate(fd, 0) < 0) {
		return -errno;
	}
	int r;
	do {
		r = posix_fallocate(fd, 0, size);
	} while (r == EINTR);
	if (r != 0 && fresh && ftruncate(fd, 0) < 0) {
		/* Room is not given back; the first failure is the one to tell. */
		return -r;
	}
	return -r;
}

int runfile_open(const char *dir, const char *name, size_t size, struct runfile *ret)
{
	off_t length = (off_t)size;
	if (length <= 0 || (uintmax_t)length != size) {
		return -EINVAL;
	}
	int fd = open_locked(dir, name);
	if (fd < 0) {
		return fd;
	}
	int r = make_size(fd, length);
	if (r < 0) {
		goto error;
	}
	void *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (data == MAP_FAILED) {
		r = -errno;
		goto error;
	}
	*ret = (struct runfile){.data = data, .size = size, .fd = fd};
	return 0;
error:
	close(fd);
	return r;
}

int runfile_memory(size_t size, struct runfile *ret)
{
	void *data = mem_zalloc(size);
	if (!data) {
		return -ENOMEM;
	}
	*ret = (struct runfile){.data = data, .size = size, .fd = -1};
	return 0;
}

void runfile_close(struct runfile *file)
{
	if (!file || !file->data) {
		return;
	}
	if (file->fd < 0) {
		free(file->data);
	} else {
		munmap(file->data, file->size);
		close(file->fd);
	}
	*file = (struct runfile){.fd = -1};
}
