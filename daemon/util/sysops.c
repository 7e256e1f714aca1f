/* SPDX-License-Identifier: Apache-2.0 */
/* sysops.c: provides the real clock, reads and allocator, and the table that tests may replace. */
#include "daemon/util/sysops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t real_now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int64_t real_wall_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static uint64_t real_suspended_ns(void)
{
	struct timespec boot, monotonic;
	clock_gettime(CLOCK_MONOTONIC, &monotonic);
	clock_gettime(CLOCK_BOOTTIME, &boot);
	return (uint64_t)(boot.tv_sec - monotonic.tv_sec) * 1000000000u + (uint64_t)boot.tv_nsec -
	       (uint64_t)monotonic.tv_nsec;
}

static ssize_t real_pread(int fd, void *buf, size_t size, off_t offset)
{
	for (;;) {
		ssize_t n = pread(fd, buf, size, offset);
		if (n >= 0) {
			return n;
		}
		if (errno != EINTR) {
			return -errno;
		}
	}
}

static const struct sysops real_sysops = {
	.now_ns = real_now_ns,
	.wall_ns = real_wall_ns,
	.suspended_ns = real_suspended_ns,
	.pread = real_pread,
	.calloc = calloc,
};

static const struct sysops *current = &real_sysops;

const struct sysops *sysops(void)
{
	return current;
}

void sysops_replace(const struct sysops *table)
{
	current = table ? table : &real_sysops;
}

void *mem_zalloc(size_t size)
{
	return sysops()->calloc(1, size);
}

void *mem_calloc(size_t count, size_t size)
{
	return sysops()->calloc(count, size);
}

void *mem_grown(void *array, size_t count, size_t *capacity, size_t size)
{
	if (count < *capacity) {
		return array;
	}
	size_t doubled = *capacity > 0 ? 2 * *capacity : 16;
	void *more = mem_calloc(doubled, size);
	if (!more) {
		return NULL;
	}
	if (count > 0) {
		memcpy(more, array, count * size);
	}
	free(array);
	*capacity = doubled;
	return more;
}

char *mem_strdup(const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = mem_calloc(1, size);
	if (copy) {
		memcpy(copy, text, size);
	}
	return copy;
}
