/*
 * A seam for tests whose calloc counts and can fail at the n-th call. Everything else is real.
 */
#pragma once

#include <stddef.h>
#include <stdlib.h>

#include "daemon/util/seam.h"

/* Calls since alloc_seam_start. */
static size_t alloc_calls;
/* The call that fails, counted from 1; 0 = none. */
static size_t alloc_fail_at;

static inline void *alloc_seam_calloc(size_t count, size_t size)
{
	alloc_calls++;
	return alloc_calls == alloc_fail_at ? NULL : calloc(count, size);
}

static inline void alloc_seam_start(size_t fail_at)
{
	static struct seam table;
	seam_replace(NULL);
	table = *seam();
	table.calloc = alloc_seam_calloc;
	alloc_calls = 0;
	alloc_fail_at = fail_at;
	seam_replace(&table);
}

static inline void alloc_seam_stop(void)
{
	seam_replace(NULL);
	alloc_fail_at = 0;
}
