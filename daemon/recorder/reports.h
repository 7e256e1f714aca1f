/* SPDX-License-Identifier: Apache-2.0 */
/* reports.h: writes a report automatically when an app's last process has ended. */
#pragma once

#include <uv.h>

#include "daemon/core/core.h"

enum { REPORT_QUEUE_MAX = 8 /* texts that wait; more are not written */ };

struct reports;

/* Watches the apps of core; files go to reports/ in the run directory. -ENOMEM, -ENOSPC. */
int reports_open(uv_loop_t *loop, struct core *core, struct reports **ret);

/* What waits is still written and reported while the loop runs empty. NULL is fine. */
void reports_close(struct reports *reports);
/* After the loop ran empty. NULL is fine. */
void reports_destroy(struct reports *reports);
