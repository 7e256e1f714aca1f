/* Looks through proc for the processes that name patterns mean. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/core/processes.h"
#include "daemon/util/root.h"

enum { SCAN_MATCHES_MAX = PROCESS_ROWS_MAX };

struct scan_match {
	pid_t pid;
	uint64_t start_ticks;
	uint16_t watch; /* index in struct processes */
};

struct scan {
	int fd; /* the folder proc, kept; -1 = not open */
	size_t matches;
	struct scan_match match[SCAN_MATCHES_MAX];
	uint64_t refused;    /* matches beyond the limit, of the last run */
	char buf[16 * 1024]; /* of getdents64: readdir would allocate at each run */
};

void scan_init(struct scan *scan);
void scan_finish(struct scan *scan);

/* Fills match[] anew: every process whose name (comm) or first word of the command line, whole or
 * behind its last '/', matches a WATCH_PATTERN,
 * or which is in the group of a WATCH_UNIT. 0 or -errno of proc itself. */
int scan_run(struct scan *scan, const struct root *root, const struct processes *processes);
