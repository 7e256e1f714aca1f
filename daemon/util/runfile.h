/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runfile.h: maps a file of the run directory that outlives the process: allocated with
 * posix_fallocate in tmpfs, mapped shared. It, or each of its parts, begins with a struct runhead,
 * which says what the bytes are, of which shape and of which boot, and whose checksum distinguishes
 * damage from another version.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct runfile {
	void *data; /* size bytes, zeroed when new */
	size_t size;
	int fd;	      /* -1: plain memory */
	bool damaged; /* it began with neither zeros nor a valid header of its own length */
};

/* Opens or creates DIR/name of exactly size bytes, O_NOFOLLOW, mode 0600, owned by us, locked
 * against a second daemon. A foreign, linked or wrongly owned file is refused (-EPERM, -ELOOP), one
 * of another size is replaced. -EBUSY: another daemon has it. -ENOSPC: no space. -EINVAL: size 0 or
 * more than can be mapped; other -errno of open(2) and mmap(2). *ret untouched on failure. */
int runfile_open(const char *dir, const char *name, size_t size, struct runfile *ret);

/* Explains to people why DIR/name could not be opened. */
void runfile_why(const char *dir, const char *name, int error, char *why, size_t size);

/* The same without blocks: only what runfile_reserve() backed may be touched. The contents of a
 * file of this size stay. */
int runfile_open_sparse(const char *dir, const char *name, size_t size, struct runfile *ret);
/* 0, or -errno: -ENOSPC. offset and length are multiples of 4096. */
int runfile_reserve(const struct runfile *file, size_t offset, size_t length);

/* Plain memory instead; the caller reports why. -ENOMEM. */
int runfile_memory(size_t size, struct runfile *ret);
/* The bytes stay in the file. Accepts NULL and what is already closed. */
void runfile_close(struct runfile *file);

enum { RUNHEAD_SHAPES = 6 };

struct runhead {
	uint64_t magic;			/* with the version; written last */
	uint64_t bytes;			/* length of the file; 0: not stored */
	uint32_t shape[RUNHEAD_SHAPES]; /* sizes and counts that the following bytes depend on */
	uint8_t boot_id[16];
	uint32_t crc; /* of all before */
	uint32_t reserved;
};

/* The header of shapes (at most RUNHEAD_SHAPES) numbers; the others are 0. */
struct runhead runhead_of(uint64_t magic, uint64_t bytes, const uint32_t *shape, size_t shapes,
	const uint8_t boot_id[16]);

enum runhead_found {
	RUNHEAD_NOTHING, /* no magic: new, or killed while it was written */
	RUNHEAD_OURS,
	RUNHEAD_OTHER, /* intact, but of another boot, version or shape */
	RUNHEAD_DAMAGED,
};

/* What is at the start of a file that should begin with wanted. */
enum runhead_found runhead_look(const void *bytes, const struct runhead *wanted);

/* Around the initialisation of what follows the header: in between the file belongs to nobody. */
void runhead_clear(void *bytes);
void runhead_write(void *bytes, const struct runhead *wanted);
/* True when the file begins with wanted. Else all of it is initialised: zeros behind the header. */
bool runhead_attach(void *bytes, const struct runhead *wanted);
