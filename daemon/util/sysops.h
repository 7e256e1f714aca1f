/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sysops.h: routes clock, reads and allocation through one table of functions. Production code
 * calls sysops()->x(); a test replaces the table to make 30 days pass, reads fail or allocations
 * fail.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct sysops {
	/* CLOCK_MONOTONIC in nanoseconds; never fails. */
	uint64_t (*now_ns)(void);
	/* CLOCK_REALTIME in nanoseconds since the epoch; only for the wall clock table and logs. */
	int64_t (*wall_ns)(void);
	/* Since the boot: CLOCK_BOOTTIME goes on in a suspend, CLOCK_MONOTONIC does not. */
	uint64_t (*suspended_ns)(void);
	/* pread(2), EINTR retried; -errno on failure. */
	ssize_t (*pread)(int fd, void *buf, size_t size, off_t offset);
	/* calloc(3): zeroed memory, NULL when there is none. Release with free(3). */
	void *(*calloc)(size_t count, size_t size);
};

/* The table in use. Never NULL. */
const struct sysops *sysops(void);

/* Tests only: uses the table (caller's storage, must outlive its use); NULL restores the real one.
 */
void sysops_replace(const struct sysops *table);

/* sysops()->calloc(1, size). */
void *mem_zalloc(size_t size);

/* sysops()->calloc(count, size). */
void *mem_calloc(size_t count, size_t size);

/* An array with count of its *capacity elements in use and space for one more: array itself, or a
 * larger one that replaces it, and array is freed. NULL when memory is short: nothing changes. */
void *mem_grown(void *array, size_t count, size_t *capacity, size_t size);

/* Returns a copy of the string, NULL when memory is short. Release with free(3). */
char *mem_strdup(const char *text);
