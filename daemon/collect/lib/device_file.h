/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_file.h: reads files of the device tree. A file that is read again and again: the
 * descriptor is kept and read with pread, or, for the many files of a big machine (descriptors are
 * limited to 512), opened for each read. A file that went (hot-unplug) is looked for again at the
 * next read; one that stays away, at every eighth.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/collect/sched/collector.h"
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

/* The same for the one file of a collector: 0, or -errno and the reason, with the file's path. */
int device_file_read_or_fail(
	const struct collector_context *ctx, struct device_file *file, char *buf, size_t size);

/* The same for a file of one integer: 0, -ENODATA when empty, -EBADMSG for other text. */
int device_file_read_i64(struct device_file *file, const struct root *root, long long *ret);

/* Why a value could not be read, for metric_set_null: the ways in which drivers say that a part is
 * switched off are all "offline"; -EBADMSG "malformed", -ERANGE "out of range". Static text. */
const char *device_file_reason(int error);

/* Idempotent; only after device_file_init. */
void device_file_close(struct device_file *file);

/* close of a collector whose state begins with its one file. */
void device_file_close_state(void *state);

/* For set-up, not for every sample; each opens and closes the file that the format names. */

/* Its first line: false, and "", when that is empty or cannot be read. */
bool device_text(const struct root *root, char *ret, size_t size, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* Its one integer: 0, or -errno as of device_file_read_i64. */
int device_number(const struct root *root, long long *ret, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Whether there is such a file, even one that cannot be read now. */
bool device_exists(const struct root *root, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Calls visit for each entry of the folder whose name starts with prefix, in version order. How
 * many; -ENOMEM, or the folder's -errno. */
typedef void device_visit(void *ctx, const struct root *root, const char *path, const char *name);
int device_each(const struct root *root, const char *folder, const char *prefix,
	device_visit *visit, void *ctx);

/* Whether the folder has an entry that starts with one of the prefixes of a NULL-terminated list:
 * one look instead of one for each name that there might be. 1, 0, or -ENOMEM. */
int device_has(const struct root *root, const char *folder, const char *const *prefixes);

/* The folder of the first hwmon device of this name, whose number changes from boot to boot. 0,
 * -ENOENT, -ENOMEM, or the -errno of sys/class/hwmon. */
int device_find_hwmon(const struct root *root, const char *name, char ret[DEVICE_FILE_PATH]);

/* Whether the text matches one of the globs, which blanks separate; those of 128 bytes and more
 * match nothing. */
bool device_matches(const char *globs, const char *text);
