/* SPDX-License-Identifier: Apache-2.0 */
/* archive_scan.c: reads what an archive holds, page by page, and finds what writing to it costs
 * where it lies. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "daemon/persist/archive_disk.h"
#include "daemon/util/sysops.h"

enum {
	WINDOW = 256 * 1024,  /* read at a time; holds a block of any length */
	UNREADABLE_MOST = 64, /* pages; more: the medium is gone */
	BLOCKS_USUAL = 4,
};

/*
 * What a file system writes for one fdatasync'd overwrite of preallocated pages in addition to
 * them, in its blocks. Measured on loop devices with Linux 6.18 (tests/bench/bench_persist.py,
 * writes 40 s apart): ext4 with blocks of 4 KiB 15.2 KiB, of 1 KiB 3.8 KiB (descriptor, inode,
 * commit; the inode's block in its place), with lazytime no less: since Linux 6.1 a write also
 * counts the inode's version up. XFS 18.7 KiB, Btrfs 306 KiB. Not measured, and taken to be like
 * ext4: f2fs and all others; what is below an overlay is not visible.
 */
static const struct {
	uint32_t type; /* of statfs(2) */
	uint32_t blocks;
} costs[] = {
	{0xEF53, 4},	  /* ext2, ext3, ext4 */
	{0x58465342, 5},  /* XFS */
	{0x9123683E, 80}, /* Btrfs */
	{0xF2F52010, 4},  /* f2fs */
};

void archive_disk_costs(int fd, uint32_t *overhead, uint32_t *unit)
{
	struct statfs fs;
	uint32_t block = 4096, blocks = BLOCKS_USUAL;
	if (fstatfs(fd, &fs) == 0) {
		/* Some report their preferred size, not what they write. */
		block = fs.f_bsize >= 512 && fs.f_bsize <= 65536 ? (uint32_t)fs.f_bsize : 4096;
		for (size_t i = 0; i < sizeof(costs) / sizeof(costs[0]); i++) {
			blocks = (uint32_t)fs.f_type == costs[i].type ? costs[i].blocks : blocks;
		}
	}
	*unit = block;
	*overhead = block * blocks;
}

/* Reads what it can: pages that the medium refuses are zeros. */
static int read_window(
	struct archive_disk *disk, uint8_t *bytes, size_t size, uint64_t at, unsigned *unreadable)
{
	size_t have = 0;
	while (have < size) {
		ssize_t n =
			sysops()->pread(disk->fd, bytes + have, size - have, (off_t)(at + have));
		if (n == 0) {
			n = -EIO; /* it had this length a moment ago */
		}
		if (n < 0 && (n != -EIO || ++*unreadable > UNREADABLE_MOST)) {
			return (int)n;
		}
		if (n < 0) {
			size_t rest = ARCHIVE_PAGE - have % ARCHIVE_PAGE;
			n = (ssize_t)(rest < size - have ? rest : size - have);
			memset(bytes + have, 0, (size_t)n);
		}
		have += (size_t)n;
	}
	return 0;
}

/* Blocks that begin in the window; how many pages of it are done. */
static int scan_window(struct archive_index *index, uint64_t at, const uint8_t *bytes, size_t size)
{
	uint32_t first = (uint32_t)(at / ARCHIVE_PAGE), pages = (uint32_t)(size / ARCHIVE_PAGE);
	uint32_t page = 0;
	while (page < pages) {
		size_t offset = (size_t)page * ARCHIVE_PAGE;
		int n = archive_index_scan(index, first + page, bytes + offset, size - offset);
		if (n == -EAGAIN && page > 0) {
			break; /* the next window begins here */
		}
		if (n < 0 && n != -EAGAIN) {
			return n;
		}
		page += n > 0 ? (uint32_t)n : 1;
	}
	return (int)page;
}

static int scan(struct archive_disk *disk, struct archive_index *index, uint8_t *bytes)
{
	unsigned unreadable = 0;
	uint64_t at = ARCHIVE_PAGE; /* behind the header */
	while (at < disk->size) {
		size_t size = disk->size - at < WINDOW ? (size_t)(disk->size - at) : WINDOW;
		int r = __atomic_load_n(&disk->cancel, __ATOMIC_RELAXED) ? -ECANCELED : 0;
		r = r < 0 ? r : read_window(disk, bytes, size, at, &unreadable);
		r = r < 0 ? r : scan_window(index, at, bytes, size);
		if (r < 0) {
			return r;
		}
		at += (uint64_t)r * ARCHIVE_PAGE;
	}
	return archive_index_finish(index);
}

int archive_disk_scan(struct archive_disk *disk, struct archive_index **ret)
{
	struct archive_index *index = NULL;
	uint8_t *bytes = mem_zalloc(WINDOW);
	int r = bytes ? archive_index_create(disk->size, disk->identity, &index) : -ENOMEM;
	if (r == 0) {
		/* What is in memory may never have come to the medium: after a failed write. */
		posix_fadvise(disk->fd, 0, 0, POSIX_FADV_DONTNEED);
		posix_fadvise(disk->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
		r = disk->fresh ? archive_index_finish(index) : scan(disk, index, bytes);
		posix_fadvise(disk->fd, 0, 0, POSIX_FADV_DONTNEED);
		posix_fadvise(disk->fd, 0, 0, POSIX_FADV_RANDOM);
	}
	free(bytes);
	if (r < 0) {
		archive_index_destroy(index);
		return archive_disk_fail(disk, r, "%s/history cannot be read", disk->dir);
	}
	*ret = index;
	return 0;
}
