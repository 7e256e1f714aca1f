/*
 * The account of what the archive writes to the medium, with what the file system writes for it.
 * Measured (ext4 of 4 KiB blocks, loop device): an fdatasync'd overwrite of one preallocated page
 * costs 4 KiB of data and 16 KiB more: the new mtime goes through the journal (descriptor, inode
 * block, commit) and to its place. With 1 KiB blocks 4 KiB more, with lazytime nothing.
 * So 16 MiB a day are not enough for a block a minute everywhere. The account decides the length of
 * the buckets (10 s or 60 s) and the time between blocks so that a rolling day never exceeds the
 * limit, and loses as little as that allows at a power cut. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ARCHIVE_HOURS = 24 };

#define ARCHIVE_DAY_LIMIT (UINT64_C(16) << 20)

/* In every block, so that a restart or reboot does not forget what was written. */
struct archive_account_memory {
	int64_t hour;		       /* wall hour (time_us / 3600e6) of bytes[0] */
	uint32_t bytes[ARCHIVE_HOURS]; /* this hour, the one before, … */
};

struct archive_account {
	struct archive_account_memory memory;
	uint64_t limit;	   /* bytes of a rolling day */
	uint32_t overhead; /* bytes that the file system writes of its own for each write */
	uint32_t unit;	   /* writes are rounded up to it (ARCHIVE_PAGE or the fs block) */
	double row_bytes;  /* smoothed: a block's bytes for each bucket row of all metrics */
	double fixed_bytes; /* smoothed: a block's bytes that do not depend on its length */
};

struct archive_pace {
	uint64_t bucket_ns; /* 10 s or 60 s */
	uint64_t period_ns; /* between blocks */
	uint64_t loss_ns;   /* what a power cut can cost at most: period and open bucket */
	bool paused;	    /* nothing may be written until the day's oldest hour is over */
};

void archive_account_init(struct archive_account *account, uint64_t limit, uint32_t overhead,
	uint32_t unit, const struct archive_account_memory *found);
/* Monotonic in effect: a wall clock that jumps forgets nothing that was written within 24 h of
 * t_ns; wall_us only names the hours for the next boot. */
void archive_account_wrote(
	struct archive_account *account, uint64_t t_ns, int64_t wall_us, size_t bytes, size_t rows);
uint64_t archive_account_day(const struct archive_account *account, uint64_t t_ns);
struct archive_pace archive_account_pace(const struct archive_account *account, uint64_t t_ns);
