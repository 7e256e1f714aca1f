/* SPDX-License-Identifier: Apache-2.0 */
/* runfiles.h: opens the files of the run directory that outlive the process, and reports those that
 * cannot be used. */
#pragma once

#include "daemon/wiring.h"

/* Opens DIR/name; lost names what is lost with the process without it. 0 or -errno of runfile_open;
 * a failure and a damaged header are recorded in daemon->degraded. */
int daemon_open_run_file(struct daemon *daemon, const char *name, size_t size, const char *lost,
	struct runfile *ret);
/* The same for a file whose pages are reserved as they are needed. */
int daemon_open_sparse_run_file(struct daemon *daemon, const char *name, size_t size,
	const char *lost, struct runfile *ret);
/* Records that parts of the contents were discarded as damaged; 0 is fine. */
void daemon_report_damage(struct daemon *daemon, const char *name, size_t parts);
