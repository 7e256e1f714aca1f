/* SPDX-License-Identifier: Apache-2.0 */
/* report_file.h: writes reports to reports/APP.txt in the run directory, each complete or not at
 * all, and reads them. Blocking. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/name.h"

enum {
	REPORT_FILES_MAX = 64,	    /* the oldest go */
	REPORT_BYTES_MAX = 1 << 20, /* in all */
	REPORT_PATH_SIZE = 256,
};

/* Makes DIR/reports, removes the oldest other files past the limits. 0 or -errno: -EPERM for a
 * folder that is not ours alone. */
int report_file_write(const char *dir, const char *app, const char *text, size_t length);

/* The file of the app, or the newest (app NULL), with a NUL; its app's name and when it was
 * written. The length; -ENOENT: there is none; -EFBIG: longer than size; -EPERM: not ours; other
 * -errno. */
int report_file_read(const char *dir, const char *app, char *text, size_t size,
	char name[PROTO_NAME_SIZE], int64_t *time_us);
