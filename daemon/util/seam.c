/* The real clock, reads and allocator, and the one pointer that tests may turn elsewhere. */
#include "daemon/util/seam.h"

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

static const struct seam real_seam = {
	.now_ns = real_now_ns,
	.wall_ns = real_wall_ns,
	.pread = real_pread,
	.calloc = calloc,
};

static const struct seam *current = &real_seam;

const struct seam *seam(void)
{
	return current;
}

void seam_replace(const struct seam *table)
{
	current = table ? table : &real_seam;
}

void *mem_zalloc(size_t size)
{
	return seam()->calloc(1, size);
}

void *mem_calloc(size_t count, size_t size)
{
	return seam()->calloc(count, size);
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
