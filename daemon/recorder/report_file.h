/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_file.h: writes reports to reports/APP.txt in the run directory, each complete or not at
 * all, on a thread, one after the other: the loop never waits for a disk.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>
#include <uv.h>

#include "proto/name.h"

enum {
	REPORT_FILES_MAX = 64,	    /* the oldest go */
	REPORT_BYTES_MAX = 1 << 20, /* in all */
	REPORT_QUEUE_MAX = 8,	    /* texts that wait */
	REPORT_PATH_SIZE = 256,
	REPORT_NOTE_SIZE = 128,
};

struct report_file {
	const char *app; /* a clean name */
	const char *text;
	size_t length;
	uid_t uid; /* the caller's, as is the note */
	char note[REPORT_NOTE_SIZE];
};

/* A write ended: result 0, or -errno of what failed. Called on the loop's thread, also while
 * closing. */
typedef void report_files_on_written(
	void *ctx, const struct report_file *file, const char *path, int result);

struct report_files;

/* dir: the run directory; DIR/reports is made with the first file. -ENAMETOOLONG, -ENOMEM. */
int report_files_open(uv_loop_t *loop, const char *dir, report_files_on_written *on_written,
	void *ctx, struct report_files **ret);

/* Takes a copy; a text that waits for the same app is replaced by it. -ENOSPC: REPORT_QUEUE_MAX
 * wait; -E2BIG: longer than REPORT_BYTES_MAX; -ENOMEM. */
int report_files_write(struct report_files *files, const struct report_file *file);

/* What waits is still written; closing finishes when the loop has run empty. NULL is fine. */
void report_files_close(struct report_files *files);

/* The file of the app, or the newest (app NULL), with a NUL; its app's name and when it was
 * written. The length; -ENOENT: there is none; -EFBIG: longer than size; -EPERM: not ours; other
 * -errno. */
int report_file_read(const char *dir, const char *app, char *text, size_t size,
	char name[PROTO_NAME_SIZE], int64_t *time_us);

/* The write itself, blocking; what report_files_write does on a worker. Makes DIR/reports, removes
 * the oldest other files past the limits. 0 or -errno: -EPERM for a folder that is not ours alone.
 */
int report_file_write(const char *dir, const char *app, const char *text, size_t length);
