/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account.h: accounts for what the archive writes to the medium, with what the file system writes
 * for it. Measured (ext4 of 4 KiB blocks, loop device): an fdatasync'd overwrite of one
 * preallocated page costs 4 KiB of data and 16 KiB more: the new mtime goes through the journal
 * (descriptor, inode block, commit) and to its place. With 1 KiB blocks 4 KiB more, with lazytime
 * nothing. So 16 MiB a day are not enough for a block a minute everywhere. The account decides the
 * length of the buckets (10 s or 60 s) and the time between blocks so that a rolling day never
 * exceeds the limit, and loses as little as that allows at a power cut. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The one that runs, and 24 whole ones before it: no window of 24 h is longer. */
enum { ARCHIVE_HOURS = 25 };

#define ARCHIVE_DAY_LIMIT (UINT64_C(16) << 20)

/* In every block, so that a restart or reboot does not forget what was written. Hours are counted
 * from the account's own start: they need not be those of a clock. */
struct archive_account_memory {
	uint64_t t_ns;	 /* when the block was made, CLOCK_MONOTONIC of its boot */
	int64_t wall_s;	 /* the same in seconds since the epoch; 0 = not synchronised */
	uint32_t hour_s; /* how much of the hour of bytes[0] was over */
	uint32_t bytes[ARCHIVE_HOURS]; /* this hour with this block, the one before, … */
};

enum archive_bucket { ARCHIVE_TENS, ARCHIVE_MINUTES, ARCHIVE_BUCKETS };

struct archive_account {
	int64_t hour_ns; /* begin of the hour of bytes[0]; may be before the boot */
	uint64_t bytes[ARCHIVE_HOURS];
	uint64_t limit;	   /* bytes of a rolling day */
	uint32_t overhead; /* what the file system writes of its own for a write */
	uint32_t unit;	   /* writes are rounded up to it: its block */
	double value_bytes[ARCHIVE_BUCKETS]; /* of a bucket, smoothed */
	enum archive_bucket bucket;	     /* in use */
};

struct archive_pace {
	uint64_t bucket_ns; /* 10 s or 60 s */
	uint64_t period_ns; /* between blocks */
	uint64_t loss_ns;   /* what a power cut can cost at most; blocks are written when a bucket
			       ends */
	bool paused;	    /* nothing may be written before resume_ns */
	uint64_t resume_ns;
};

/* unit: a power of two, 512 or more. */
void archive_account_init(struct archive_account *account, uint64_t limit, uint32_t overhead,
	uint32_t unit, uint64_t t_ns);

/* Before anything was written: goes on from what an earlier process wrote, aged by no more than
 * what has certainly passed since: the difference of two synchronised wall clocks, else of
 * CLOCK_MONOTONIC, else the time since boot. */
void archive_account_restore(struct archive_account *account,
	const struct archive_account_memory *found, uint64_t t_ns, int64_t wall_us, bool synced);

/* The memory for the block that is about to be sealed. It already includes the cost of that block,
 * which has `bytes` bytes. */
void archive_account_save(struct archive_account *account, uint64_t t_ns, int64_t wall_us,
	bool synced, size_t bytes, struct archive_account_memory *ret);

/* Counts a write of whole pages that were handed to the kernel, successfully or not. payload: bytes
 * without padding, for that many values in buckets (0 = does not change the estimate). */
void archive_account_wrote(struct archive_account *account, uint64_t t_ns, size_t bytes,
	size_t payload, size_t values);

/* What a write of that many bytes costs. */
uint64_t archive_account_cost(const struct archive_account *account, size_t bytes);

/* Bytes of the last 24 h, and up to an hour more. */
uint64_t archive_account_day(struct archive_account *account, uint64_t t_ns);

/* True when writing that many bytes now keeps the day within the limit. The last write of a process
 * may also use what is reserved for it. */
bool archive_account_allows(
	struct archive_account *account, uint64_t t_ns, size_t bytes, bool last);

/* The shortest period that can be sustained with that many values (metrics) in a bucket, up to an
 * hour: with buckets of 10 s a multiple of 10 s, at least 50 s; with buckets of 60 s a multiple of
 * 60 s. */
struct archive_pace archive_account_pace(
	struct archive_account *account, uint64_t t_ns, size_t values);
