/* SPDX-License-Identifier: Apache-2.0 */
/* runfile.c: opens, locks and maps files of the run directory, and checks their headers. A file is
 * treated as if anybody could have put it there: the user may have configured the run directory.
 * The magic of a header is cleared first and written last, so that a kill in between leaves a file
 * that belongs to nobody. */
#include "daemon/util/runfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/util/crc32c.h"
#include "daemon/util/sysops.h"

static uint32_t sum_of(const struct runhead *head)
{
	return crc32c(0, head, offsetof(struct runhead, crc));
}

struct runhead runhead_of(uint64_t magic, uint64_t bytes, const uint32_t *shape, size_t shapes,
	const uint8_t boot_id[16])
{
	struct runhead head = {.magic = magic, .bytes = bytes};
	memcpy(head.shape, shape, shapes * sizeof(head.shape[0]));
	memcpy(head.boot_id, boot_id, sizeof(head.boot_id));
	head.crc = sum_of(&head);
	return head;
}

enum runhead_found runhead_look(const void *bytes, const struct runhead *wanted)
{
	struct runhead head;
	memcpy(&head, bytes, sizeof(head));
	if (memcmp(&head, wanted, sizeof(head)) == 0) {
		return RUNHEAD_OURS;
	}
	if (head.magic == 0) {
		return RUNHEAD_NOTHING;
	}
	return head.crc == sum_of(&head) && head.reserved == 0 ? RUNHEAD_OTHER : RUNHEAD_DAMAGED;
}

void runhead_clear(void *bytes)
{
	__atomic_store_n((uint64_t *)bytes, 0, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void runhead_write(void *bytes, const struct runhead *wanted)
{
	struct runhead unnamed = *wanted;
	unnamed.magic = 0;
	memcpy(bytes, &unnamed, sizeof(unnamed));
	__atomic_store_n((uint64_t *)bytes, wanted->magic, __ATOMIC_RELEASE);
}

bool runhead_attach(void *bytes, const struct runhead *wanted)
{
	static const struct runhead zeros;
	if (runhead_look(bytes, wanted) == RUNHEAD_OURS) {
		return true;
	}
	const bool is_new = memcmp(bytes, &zeros, sizeof(zeros)) == 0;
	runhead_clear(bytes);
	if (!is_new) { /* else its pages would be touched, all at once */
		memset((struct runhead *)bytes + 1, 0, wanted->bytes - sizeof(*wanted));
	}
	runhead_write(bytes, wanted);
	return false;
}

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

/* True when the file begins with neither zeros nor a valid header that states its length. */
static bool is_damaged(int fd, off_t length, off_t wanted)
{
	struct runhead head = {0};
	ssize_t n = sysops()->pread(fd, &head, sizeof(head), 0);
	if (length == 0 || n == 0) {
		return false;
	}
	uint64_t stated = head.bytes > 0 ? head.bytes : (uint64_t)wanted;
	return n != (ssize_t)sizeof(head) ||
	       (head.magic != 0 && (head.crc != sum_of(&head) || stated != (uint64_t)length));
}

/* 0 or an errno. */
static int fallocate_all(int fd, off_t offset, off_t size)
{
	int r;
	do {
		r = posix_fallocate(fd, offset, size);
	} while (r == EINTR);
	return r;
}

/* Makes the file exactly so long, with every block there: a write to a hole in a full tmpfs would
 * be SIGBUS. What a file of this size holds stays. */
static int make_size(int fd, off_t size, bool sparse, bool *damaged)
{
	struct stat st;
	if (fstat(fd, &st) < 0) {
		return -errno;
	}
	bool fresh = st.st_size != size;
	*damaged = is_damaged(fd, st.st_size, size);
	if (fresh && (ftruncate(fd, 0) < 0 || (sparse && ftruncate(fd, size) < 0))) {
		return -errno;
	}
	int r = sparse ? 0 : fallocate_all(fd, 0, size);
	if (r != 0 && fresh && ftruncate(fd, 0) < 0) {
		/* Reserved space is not returned; the first failure is the one to report. */
		return -r;
	}
	return -r;
}

static int open_file(
	const char *dir, const char *name, size_t size, bool sparse, struct runfile *ret)
{
	off_t length = (off_t)size;
	/* Nothing larger can be mapped: no file of 4 GiB is allocated before that fails. */
	if (size == 0 || size > PTRDIFF_MAX) {
		return -EINVAL;
	}
	int fd = open_locked(dir, name);
	if (fd < 0) {
		return fd;
	}
	bool damaged = false;
	int r = make_size(fd, length, sparse, &damaged);
	if (r < 0) {
		goto error;
	}
	void *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (data == MAP_FAILED) {
		r = -errno;
		goto error;
	}
	*ret = (struct runfile){.data = data, .size = size, .fd = fd, .damaged = damaged};
	return 0;
error:
	close(fd);
	return r;
}

void runfile_why(const char *dir, const char *name, int error, char *why, size_t size)
{
	struct stat st;
	const char *what = strerror(-error);
	int dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd >= 0 && fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		what = S_ISLNK(st.st_mode)	 ? "it is a symbolic link"
		       : S_ISDIR(st.st_mode)	 ? "it is a directory"
		       : S_ISFIFO(st.st_mode)	 ? "it is a FIFO"
		       : !S_ISREG(st.st_mode)	 ? "it is not a regular file"
		       : st.st_uid != geteuid()	 ? "it belongs to another user"
		       : st.st_nlink != 1	 ? "it has more than one hard link"
		       : (st.st_mode & 077) != 0 ? "its mode grants access to other users"
		       : (st.st_mode & 0600) != 0600
			       ? "its mode denies its owner to read or write it"
			       : what;
	}
	if (dir_fd >= 0) {
		close(dir_fd);
	}
	snprintf(why, size, "%s", error == -EBUSY ? "another process has locked it" : what);
}

int runfile_open(const char *dir, const char *name, size_t size, struct runfile *ret)
{
	return open_file(dir, name, size, false, ret);
}

int runfile_open_sparse(const char *dir, const char *name, size_t size, struct runfile *ret)
{
	return open_file(dir, name, size, true, ret);
}

int runfile_reserve(const struct runfile *file, size_t offset, size_t length)
{
	return -fallocate_all(file->fd, (off_t)offset, (off_t)length);
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
