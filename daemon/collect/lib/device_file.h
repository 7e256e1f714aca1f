/*
 * One file of the device tree that is read again and again: the descriptor is kept and read with
 * pread, or, for the many files of a big machine (descriptors are limited to 512), opened for each
 * read. A file that went (hot-unplug) is looked for again at the next read; one that stays away, at
 * every eighth.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/util/root.h"

enum {
	DEVICE_FILE_PATH = 144,
	DEVICE_FILE_PATIENCE = 8, /* reads that find nothing before it is looked for less often */
};

struct device_file {
	int fd; /* -1 = not open */
	bool keep;
	uint8_t missed; /* reads in a row that did not find it, and that did not look */
	char path[DEVICE_FILE_PATH];
};

/* Names the file; opens nothing yet. -ENAMETOOLONG (the file is unusable but may be closed). */
int device_file_init(struct device_file *file, bool keep, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* One read of at most size-1 bytes, NUL-terminated, never retried. The length, or the -errno of
 * open or read. */
ssize_t device_file_read(struct device_file *file, const struct root *root, char *buf, size_t size);

/* The same for a file of one integer: 0, -ENODATA when empty, -EBADMSG for other text. */
int device_file_read_i64(struct device_file *file, const struct root *root, long long *ret);

/* Why a value could not be read, for metric_set_null: the ways in which drivers say that a part is
 * switched off are all "offline"; -EBADMSG "malformed", -ERANGE "out of range". Static text. */
const char *device_file_reason(int error);

/* Idempotent; only after device_file_init. */
void device_file_close(struct device_file *file);
