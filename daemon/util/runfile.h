/*
 * A file of the run directory that outlives the process: posix_fallocate'd (in tmpfs), mapped
 * shared. Each begins with a struct runhead.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct runfile {
	void *data; /* size bytes, zeroed when new */
	size_t size;
	int fd;	      /* -1: plain memory */
	bool damaged; /* what it began with was no whole header (core/runhead.h), or not its length
		       */
};

/* Opens or makes DIR/name of exactly size bytes, O_NOFOLLOW, mode 0600, owned by us, locked
 * against a second daemon. A foreign, linked or wrongly owned file is refused (-EPERM, -ELOOP), one
 * of another size is replaced. -EBUSY: another daemon holds it. -ENOSPC: no room. -EINVAL: size 0
 * or more than a file can have; other -errno of open(2) and mmap(2). *ret untouched on failure. */
int runfile_open(const char *dir, const char *name, size_t size, struct runfile *ret);

/* What stands in the way of DIR/name after a failure, for people. */
void runfile_why(const char *dir, const char *name, int error, char *why, size_t size);

/* The same without blocks: only what runfile_reserve() backed may be touched. What a file of this
 * size holds stays. */
int runfile_open_sparse(const char *dir, const char *name, size_t size, struct runfile *ret);
/* 0, or -errno: -ENOSPC. offset and length are multiples of 4096. */
int runfile_reserve(const struct runfile *file, size_t offset, size_t length);

/* Plain memory instead (why = the caller's to report). -ENOMEM. */
int runfile_memory(size_t size, struct runfile *ret);
/* The bytes stay in the file. Takes NULL and what is already closed. */
void runfile_close(struct runfile *file);
