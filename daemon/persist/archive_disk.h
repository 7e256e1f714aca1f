/* SPDX-License-Identifier: Apache-2.0 */
/*
 * archive_disk.h: handles the archive's file on disk, as its thread sees it: found or made,
 * scanned, written. All of it blocks. What lies in the state directory is looked at as if anybody
 * could have put it there: nothing is followed, and nothing that is not ours is written to,
 * truncated or removed.
 *
 *     history        the archive: regular, ours, one link, not writable by others, locked
 *     history.new    one that is being made: zeros, then renamed
 *     history.1 … 9  what had another version, page size, byte order or length: kept as it was
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/core/archive/archive.h"

enum { ARCHIVE_DIR_SIZE = 192, ARCHIVE_WHY_SIZE = 160, ARCHIVE_ASIDE_MAX = 9 };

/* The calls that can fail late; a test replaces them. */
struct archive_disk_calls {
	ssize_t (*pwrite)(int fd, const void *bytes, size_t size, off_t at);
	int (*fdatasync)(int fd);
};
extern const struct archive_disk_calls archive_disk_calls;

struct archive_disk {
	/* The caller's, before anything else; archive_disk_init sets the rest. */
	char dir[ARCHIVE_DIR_SIZE];
	bool parents;  /* folders above dir are made, too (those of XDG) */
	uint64_t size; /* of the file: whole pages */
	const struct archive_disk_calls *calls;

	int dir_fd, fd;	   /* -1 = closed */
	uint32_t overhead; /* bytes that the file system writes of its own for each write … */
	uint32_t unit;	   /* … and its block */
	bool fresh;	   /* the file was made, not found */
	struct archive_identity identity; /* of the open file */
	char why[ARCHIVE_WHY_SIZE];	  /* what the last failure was, for people */
	char aside[ARCHIVE_WHY_SIZE];	  /* what was set aside by the last opening; "" = nothing */

	int new_fd; /* history.new, when a failure stopped its making */
	uint64_t made;
	int cancel; /* atomic: what takes long ends with -ECANCELED */
};

void archive_disk_init(struct archive_disk *disk, const char *dir, bool parents, uint64_t size);

/* Opens DIR/history, makes it (and DIR, mode 0700) when it is not there, and reads what it holds.
 * Closes what was open. On failure why is set: -EPERM what is there is not ours to use, -EBUSY
 * another process has it, -EEXIST all places to set it aside are taken, -ECANCELED, -ENOMEM, else
 * what the kernel said. */
int archive_disk_open(struct archive_disk *disk, struct archive_index **ret);

/* Whole pages, on the medium when it returns 0. -ESTALE: the file is not at its place any more;
 * -EIO also for a short write; else what the kernel said. */
int archive_disk_write(struct archive_disk *disk, uint32_t page, const uint8_t *bytes, size_t size);

/* A file that was not finished is removed. */
void archive_disk_close(struct archive_disk *disk);

/* ---- parts ---- */
/* Keeps "WHAT: strerror" (or WHAT alone for error 0) as why. Returns error. */
int archive_disk_fail(struct archive_disk *disk, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* A header page of this size with an id of its own; disk->identity says what it says. */
int archive_disk_head(struct archive_disk *disk, uint8_t page[ARCHIVE_PAGE]);
/* Makes history.new and renames it; disk->fd is open then. */
int archive_disk_make(struct archive_disk *disk);
int archive_disk_scan(struct archive_disk *disk, struct archive_index **ret);
/* What one write costs on the file system of fd. */
void archive_disk_costs(int fd, uint32_t *overhead, uint32_t *unit);
int archive_disk_pwrite(
	struct archive_disk *disk, int fd, const uint8_t *bytes, size_t size, uint64_t at);
