/* SPDX-License-Identifier: Apache-2.0 */
/*
 * archive_make.c: makes a new archive: all of it zeros that were really written, so that later
 * writes change no block map, next to its place until it is complete. It goes to the medium in
 * slices, with the lowest I/O priority where that is permitted. After a failure the next attempt
 * goes on where it stopped: a medium that fails is not written to from the start again and again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "daemon/persist/archive_disk.h"
#include "daemon/util/sysops.h"

#define NEW_NAME "history.new"

enum {
	SLICE = 1024 * 1024,
	SPARE_BYTES = 1024 * 1024, /* that stay free for others */
	IOPRIO_THREAD = 1,
	IOPRIO_IDLE = 3 << 13,
};

static void set_priority(int priority)
{
	syscall(SYS_ioprio_set, IOPRIO_THREAD, 0, priority); /* the sandbox may refuse it */
}

/* Before anything is written for nothing. */
static int check_room(struct archive_disk *disk)
{
	struct statvfs fs;
	if (fstatvfs(disk->dir_fd, &fs) == 0 && fs.f_blocks > 0 &&
		(uint64_t)fs.f_bavail * fs.f_frsize < disk->size + SPARE_BYTES) {
		archive_disk_fail(disk, 0, "%s: no space: %llu MiB free, a new file needs %llu MiB",
			disk->dir, (unsigned long long)fs.f_bavail * fs.f_frsize >> 20,
			(unsigned long long)(disk->size + SPARE_BYTES) >> 20);
		return -ENOSPC;
	}
	return 0;
}

/* The one that an earlier attempt left in this process, or a new one. */
static int open_new(struct archive_disk *disk)
{
	struct stat there, ours;
	if (disk->new_fd >= 0 &&
		fstatat(disk->dir_fd, NEW_NAME, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
		fstat(disk->new_fd, &ours) == 0 && there.st_dev == ours.st_dev &&
		there.st_ino == ours.st_ino && ours.st_nlink == 1) {
		return 0;
	}
	if (disk->new_fd >= 0) {
		close(disk->new_fd);
	}
	disk->made = 0;
	disk->new_fd = -1;
	int r = check_room(disk);
	if (r < 0) {
		return r;
	}
	unlinkat(disk->dir_fd, NEW_NAME, 0); /* of a process that was killed */
	disk->new_fd = openat(
		disk->dir_fd, NEW_NAME, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (disk->new_fd < 0) {
		return archive_disk_fail(disk, -errno, "%s/%s", disk->dir, NEW_NAME);
	}
	/* Whether there is room for all of it; file systems that cannot tell are written to. */
	if (fallocate(disk->new_fd, 0, 0, (off_t)disk->size) < 0 && errno == ENOSPC) {
		return archive_disk_fail(disk, -ENOSPC, "%s/%s", disk->dir, NEW_NAME);
	}
	return 0;
}

static int fill(struct archive_disk *disk)
{
	uint8_t *zeros = mem_zalloc(SLICE);
	int r = zeros ? 0 : -ENOMEM;
	set_priority(IOPRIO_IDLE);
	while (r == 0 && disk->made < disk->size) {
		uint64_t left = disk->size - disk->made;
		size_t size = left < SLICE ? (size_t)left : SLICE;
		r = __atomic_load_n(&disk->cancel, __ATOMIC_RELAXED) ? -ECANCELED : 0;
		r = r < 0 ? r : archive_disk_pwrite(disk, disk->new_fd, zeros, size, disk->made);
		disk->made += r == 0 ? size : 0;
	}
	if (r == 0) {
		r = archive_disk_head(disk, zeros);
	}
	if (r == 0) {
		r = archive_disk_pwrite(disk, disk->new_fd, zeros, ARCHIVE_PAGE, 0);
	}
	set_priority(0);
	free(zeros);
	r = r == 0 && fsync(disk->new_fd) < 0 ? -errno : r;
	return r < 0 ? archive_disk_fail(disk, r, "%s/%s", disk->dir, NEW_NAME) : 0;
}

static int put_in_place(struct archive_disk *disk)
{
	struct stat st;
	if (fstatat(disk->dir_fd, "history", &st, AT_SYMLINK_NOFOLLOW) == 0) {
		archive_disk_fail(disk, 0, "%s/history appeared meanwhile", disk->dir);
		return -EEXIST;
	}
	int r = flock(disk->new_fd, LOCK_EX | LOCK_NB) < 0 ||
				renameat(disk->dir_fd, NEW_NAME, disk->dir_fd, "history") < 0
			? -errno
			: 0;
	if (r < 0) {
		return archive_disk_fail(disk, r, "%s/history", disk->dir);
	}
	disk->fd = disk->new_fd;
	disk->new_fd = -1;
	if (fsync(disk->dir_fd) < 0 && errno != EINVAL) { /* some cannot sync folders */
		return archive_disk_fail(disk, -errno, "%s", disk->dir);
	}
	return 0;
}

int archive_disk_make(struct archive_disk *disk)
{
	int r = open_new(disk);
	r = r < 0 ? r : fill(disk);
	r = r < 0 ? r : put_in_place(disk);
	if ((r == -ENOSPC || r == -ECANCELED || r == -EEXIST) && disk->new_fd >= 0) {
		unlinkat(disk->dir_fd, NEW_NAME, 0); /* its room is for others */
		close(disk->new_fd);
		disk->new_fd = -1;
	}
	return r;
}
