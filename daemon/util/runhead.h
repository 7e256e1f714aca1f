/*
 * The first bytes of a file of the run directory that outlives the process: what it is, of which
 * shape, of which boot. With a checksum, so that damage is told from another version or boot.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RUNHEAD_SHAPES = 6 };

struct runhead {
	uint64_t magic;			/* with the version; written last */
	uint64_t bytes;			/* of the file; 0: it is not told */
	uint32_t shape[RUNHEAD_SHAPES]; /* sizes and counts that the bytes behind it depend on */
	uint8_t boot_id[16];
	uint32_t crc; /* of all before */
	uint32_t reserved;
};

/* shape: as many as there are, the others are 0. */
struct runhead runhead_of(uint64_t magic, uint64_t bytes, const uint32_t *shape, size_t shapes,
	const uint8_t boot_id[16]);

enum runhead_found {
	RUNHEAD_NOTHING, /* no magic: new, or killed while it was made */
	RUNHEAD_OURS,
	RUNHEAD_OTHER, /* whole, but of another boot, version or shape */
	RUNHEAD_DAMAGED,
};

/* What stands at the begin of a file that should begin with wanted. */
enum runhead_found runhead_look(const void *bytes, const struct runhead *wanted);

/* Does a file that should have `wanted` bytes, and has `size`, begin with something else than zeros
 * or a whole header that says its size? */
bool runhead_is_damaged(const void *bytes, uint64_t size, uint64_t wanted);

/* Around the making of what lies behind it: in between the file is nobody's. */
void runhead_clear(void *bytes);
void runhead_write(void *bytes, const struct runhead *wanted);
