/* SPDX-License-Identifier: Apache-2.0 */
/* scan.h: searches proc for the processes that watches by name or unit match. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/collect/process/procfs.h"
#include "daemon/collect/sched/fetch.h"
#include "daemon/core/metrics/processes.h"

enum { SCAN_MATCHES_MAX = PROCESS_ROWS_MAX };

struct scan_match {
	pid_t pid;
	uint64_t start_ticks;
	uint16_t watch; /* index in struct found */
};

/* What a run looks for, filled by who asks for it, and what it has found. */
struct found {
	size_t watches;
	struct watch watch[WATCHES_MAX];
	size_t matches;
	struct scan_match match[SCAN_MATCHES_MAX];
	uint64_t refused; /* matches beyond the limit */
};

struct scan {
	struct proc_folder proc;
	struct found found;
};

/* fetch rebuilds match[]: every process whose name (comm), program or complete command line
 * matches a WATCH_PATTERN, or which is in the group of a WATCH_UNIT. 0 or -errno of proc itself. It
 * runs on a worker: a command line is memory of its process, for which the kernel may have to wait.
 */
extern const struct collector_ops scan_runner;

/* On the loop: takes over what a scan has found since, and asks for the next when it is time.
 * *asked_ns: when the last was asked for, 0 = never. 0, or -errno of a scan that has ended. */
int found_update(struct found *found, struct background *background, struct processes *processes,
	uint64_t *asked_ns, uint64_t now_ns);
