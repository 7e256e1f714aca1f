/* SPDX-License-Identifier: Apache-2.0 */
/* archive_disk.c: finds the archive's file and writes to it; making and scanning it are files of
 * their own. */
#include "daemon/persist/archive_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/util/sysops.h"
#include "proto/text.h"

#define FILE_NAME "history"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1u
#endif

const struct archive_disk_calls archive_disk_calls = {pwrite, fdatasync};

void archive_disk_init(struct archive_disk *disk, const char *dir, bool parents, uint64_t size)
{
	*disk = (struct archive_disk){.parents = parents,
		.size = size,
		.calls = &archive_disk_calls,
		.dir_fd = -1,
		.fd = -1,
		.new_fd = -1};
	snprintf(disk->dir, sizeof(disk->dir), "%s", dir);
}

int archive_disk_fail(struct archive_disk *disk, int error, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	struct text why = TEXT_IN(disk->why);
	text_vadd(&why, format, arguments);
	va_end(arguments);
	if (error != 0) {
		text_add(&why, ": %s", strerror(-error));
	}
	return error;
}

/* Like archive_disk_fail, of what the words alone tell. */
static int refuse(struct archive_disk *disk, int error, const char *name, const char *what)
{
	archive_disk_fail(disk, 0, "%s/%s %s", disk->dir, name, what);
	return error;
}

static void close_fd(int *fd)
{
	if (*fd >= 0) {
		close(*fd);
	}
	*fd = -1;
}

/* The folders above the last one, as XDG wants them. */
static void make_parents(const char *dir)
{
	char path[ARCHIVE_DIR_SIZE];
	snprintf(path, sizeof(path), "%s", dir);
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0700); /* the last one reports a failure */
		*slash = '/';
	}
}

static int open_dir(struct archive_disk *disk)
{
	struct stat st;
	if (disk->parents) {
		make_parents(disk->dir);
	}
	if (mkdir(disk->dir, 0700) < 0 && errno != EEXIST && access(disk->dir, F_OK) < 0) {
		return archive_disk_fail(disk, -errno, "%s", disk->dir);
	}
	disk->dir_fd = open(disk->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (disk->dir_fd < 0 && (errno == ELOOP || errno == ENOTDIR)) {
		archive_disk_fail(
			disk, 0, "%s is not a directory (links are not followed)", disk->dir);
		return -EPERM;
	}
	if (disk->dir_fd < 0 || fstat(disk->dir_fd, &st) < 0) {
		return archive_disk_fail(disk, -errno, "%s", disk->dir);
	}
	if (st.st_uid != geteuid() || (st.st_mode & 022) != 0) {
		archive_disk_fail(disk, 0, "%s belongs to another user, or others may write to it",
			disk->dir);
		return -EPERM;
	}
	return 0;
}

/* A regular file of ours with one link that nobody else writes to? 0, or -EPERM with why. */
static int archive_disk_check(struct archive_disk *disk, const struct stat *st, const char *name)
{
	if (S_ISLNK(st->st_mode)) {
		return refuse(disk, -EPERM, name, "is a symbolic link");
	}
	if (!S_ISREG(st->st_mode)) {
		return refuse(disk, -EPERM, name, "is not a regular file");
	}
	if (st->st_uid != geteuid()) {
		return refuse(disk, -EPERM, name, "belongs to another user");
	}
	if (st->st_nlink != 1) {
		return refuse(disk, -EPERM, name, "has another link");
	}
	if ((st->st_mode & 022) != 0) {
		return refuse(disk, -EPERM, name, "can be written by others");
	}
	return 0;
}

/* A locked descriptor in disk->fd. -ENOENT: there is none. */
static int open_file(struct archive_disk *disk, struct stat *st)
{
	if (fstatat(disk->dir_fd, FILE_NAME, st, AT_SYMLINK_NOFOLLOW) < 0) {
		return errno == ENOENT
			       ? -ENOENT
			       : archive_disk_fail(disk, -errno, "%s/%s", disk->dir, FILE_NAME);
	}
	/* Looked at before it is opened: opening a device may do something. */
	int r = archive_disk_check(disk, st, FILE_NAME);
	if (r < 0) {
		return r;
	}
	disk->fd = openat(
		disk->dir_fd, FILE_NAME, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (disk->fd < 0 || fstat(disk->fd, st) < 0) {
		return archive_disk_fail(disk, -errno, "%s/%s", disk->dir, FILE_NAME);
	}
	r = archive_disk_check(disk, st, FILE_NAME);
	if (r == 0 && flock(disk->fd, LOCK_EX | LOCK_NB) < 0) {
		r = errno == EWOULDBLOCK
			    ? refuse(disk, -EBUSY, FILE_NAME, "is used by another edgeprofd")
			    : archive_disk_fail(disk, -errno, "%s/%s", disk->dir, FILE_NAME);
	}
	return r;
}

/* Never over something else. */
static int rename_noreplace(int dir_fd, const char *from, const char *to)
{
	struct stat st;
	if (syscall(SYS_renameat2, dir_fd, from, dir_fd, to, RENAME_NOREPLACE) == 0) {
		return 0;
	}
	if (errno != EINVAL && errno != ENOSYS) {
		return -errno;
	}
	if (fstatat(dir_fd, to, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		return -EEXIST;
	}
	return renameat(dir_fd, from, dir_fd, to) < 0 ? -errno : 0;
}

/* What is not an archive of this kind keeps its bytes, under another name. */
static int set_aside(struct archive_disk *disk, const char *what)
{
	char name[32];
	int r = -EEXIST;
	for (int i = 1; i <= ARCHIVE_ASIDE_MAX && r == -EEXIST; i++) {
		snprintf(name, sizeof(name), "%s.%d", FILE_NAME, i);
		r = rename_noreplace(disk->dir_fd, FILE_NAME, name);
	}
	if (r == -EEXIST) {
		archive_disk_fail(disk, 0, "%s/%s: %s, and %s.1 to .%d are all taken", disk->dir,
			FILE_NAME, what, FILE_NAME, ARCHIVE_ASIDE_MAX);
		return r;
	}
	if (r < 0) {
		return archive_disk_fail(
			disk, r, "%s/%s cannot be set aside", disk->dir, FILE_NAME);
	}
	snprintf(disk->aside, sizeof(disk->aside), "%s: %s", name, what);
	close_fd(&disk->fd);
	return 0;
}

int archive_disk_head(struct archive_disk *disk, uint8_t page[ARCHIVE_PAGE])
{
	uint8_t id[16];
	char why[96];
	if (getrandom(id, sizeof(id), 0) != sizeof(id)) {
		return -errno;
	}
	archive_header_make(disk->size, id, page);
	archive_header_check(page, disk->size, &disk->identity, why, sizeof(why));
	return 0;
}

/* Whether the open file is ours; else it is set aside, and -ENOENT. */
static int look_at(struct archive_disk *disk, const struct stat *st)
{
	uint8_t page[ARCHIVE_PAGE];
	char why[96] = "it is not an archive";
	enum archive_found found = ARCHIVE_FOREIGN;
	ssize_t n = sysops()->pread(disk->fd, page, sizeof(page), 0);
	if (n < 0) {
		return archive_disk_fail(disk, (int)n, "%s/%s", disk->dir, FILE_NAME);
	}
	if (n == (ssize_t)sizeof(page)) {
		found = archive_header_check(page, disk->size, &disk->identity, why, sizeof(why));
	}
	if ((found == ARCHIVE_OURS || found == ARCHIVE_EMPTY) &&
		(uint64_t)st->st_size != disk->size) {
		snprintf(why, sizeof(why), "it has %lld bytes", (long long)st->st_size);
		found = ARCHIVE_OTHER;
	}
	int r = 0;
	switch (found) {
	case ARCHIVE_OURS:
		return 0;
	case ARCHIVE_EMPTY:
		r = archive_disk_head(disk, page);
		r = r < 0 ? r : archive_disk_pwrite(disk, disk->fd, page, sizeof(page), 0);
		return r < 0 ? archive_disk_fail(disk, r, "%s/%s", disk->dir, FILE_NAME) : 0;
	case ARCHIVE_OTHER:
	case ARCHIVE_FOREIGN:
		break;
	}
	r = set_aside(disk, why);
	return r < 0 ? r : -ENOENT;
}

int archive_disk_open(struct archive_disk *disk, struct archive_index **ret)
{
	struct stat st;
	close_fd(&disk->fd);
	close_fd(&disk->dir_fd);
	disk->why[0] = disk->aside[0] = '\0';
	disk->fresh = false;
	int r = open_dir(disk);
	if (r == 0) {
		r = open_file(disk, &st);
		r = r < 0 ? r : look_at(disk, &st);
		disk->fresh = r == -ENOENT;
		r = disk->fresh ? archive_disk_make(disk) : r;
	}
	if (r == 0) {
		archive_disk_costs(disk->fd, &disk->overhead, &disk->unit);
		r = archive_disk_scan(disk, ret);
	}
	if (r < 0) {
		close_fd(&disk->fd);
		close_fd(&disk->dir_fd);
	}
	return r;
}

/* Replaced, removed, or hidden by another mount: a write would go nowhere. */
static bool at_its_place(const struct archive_disk *disk)
{
	struct stat there, ours;
	if (stat(disk->dir, &there) < 0 || fstat(disk->dir_fd, &ours) < 0 ||
		there.st_dev != ours.st_dev || there.st_ino != ours.st_ino) {
		return false;
	}
	return fstatat(disk->dir_fd, FILE_NAME, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
	       fstat(disk->fd, &ours) == 0 && there.st_dev == ours.st_dev &&
	       there.st_ino == ours.st_ino && ours.st_nlink == 1 &&
	       (uint64_t)ours.st_size == disk->size;
}

int archive_disk_pwrite(
	struct archive_disk *disk, int fd, const uint8_t *bytes, size_t size, uint64_t at)
{
	while (size > 0) {
		ssize_t n = disk->calls->pwrite(fd, bytes, size, (off_t)at);
		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n <= 0) {
			return n < 0 ? -errno : -EIO;
		}
		bytes += n;
		size -= (size_t)n;
		at += (uint64_t)n;
	}
	return disk->calls->fdatasync(fd) < 0 ? -errno : 0;
}

int archive_disk_write(struct archive_disk *disk, uint32_t page, const uint8_t *bytes, size_t size)
{
	uint64_t at = (uint64_t)page * ARCHIVE_PAGE;
	if (disk->fd < 0 || at + size > disk->size) {
		return archive_disk_fail(disk, -EBADF, "%s/%s", disk->dir, FILE_NAME);
	}
	if (!at_its_place(disk)) {
		return refuse(disk, -ESTALE, FILE_NAME, "was removed, replaced or resized");
	}
	int r = archive_disk_pwrite(disk, disk->fd, bytes, size, at);
	return r < 0 ? archive_disk_fail(disk, r, "%s/%s", disk->dir, FILE_NAME) : 0;
}

void archive_disk_close(struct archive_disk *disk)
{
	if (disk->new_fd >= 0 && disk->dir_fd < 0) {
		disk->dir_fd = open(disk->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	}
	if (disk->new_fd >= 0 && disk->dir_fd >= 0) {
		unlinkat(disk->dir_fd, FILE_NAME ".new", 0);
	}
	close_fd(&disk->new_fd);
	close_fd(&disk->fd);
	close_fd(&disk->dir_fd);
}
