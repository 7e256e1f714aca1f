/* This process's memory, asked for when a mark or a stage with EDGEPROF_RSS wants it. */
#pragma once

#include <stdint.h>

struct memory {
	uint64_t resident_bytes, virtual_bytes;
};

/* 0, or -ENODATA: no /proc here, or no descriptor left. Allocates nothing; may be called from a
 * signal handler; leaves errno alone. */
int memory_read(struct memory *ret);

/* The most that was ever resident, 0 = unknown. */
uint64_t memory_peak(void);
