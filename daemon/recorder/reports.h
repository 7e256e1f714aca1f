/* SPDX-License-Identifier: Apache-2.0 */
/* reports.h: writes a report automatically when an app's last process has ended. */
#pragma once

#include <uv.h>

#include "daemon/core/core.h"
#include "proto/name.h"

struct reports;

/* Watches the apps of core; files go to reports/ in the run directory. -ENOMEM, -ENOSPC. */
int reports_open(uv_loop_t *loop, struct core *core, struct reports **ret);

/* What waits is still written and reported while the loop runs empty. NULL is fine. */
void reports_close(struct reports *reports);
/* After the loop ran empty. NULL is fine. */
void reports_destroy(struct reports *reports);

enum {
	REPORT_FILES_MAX = 64,
	REPORT_BYTES_MAX = 1 << 20, /* in all; as many of texts that wait to be written, of which
				       a user may hold half of what the others leave */
	REPORT_PATH_SIZE = 256,
};

/* Whose they are. Zeroed = none: after a start of the daemon the files say it. */
struct report_owners {
	struct {
		char file[PROTO_NAME_SIZE + 8];
		uid_t uid;
	} owner[REPORT_FILES_MAX];
};

/* Writes reports/APP.txt in the run directory, complete or not at all; may block. Makes
 * DIR/reports; past the limits the oldest other file of the user who has most goes. 0 or
 * -errno: -EPERM for a folder that is not ours alone. */
int report_file_write(const char *dir, struct report_owners *owners, const char *app, uid_t uid,
	const char *text, size_t length);
