/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.h: reads the control groups of processes: which group a process is in, how much CPU its
 * groups may use, and how often they were throttled. Supports version 2, and the cpu controller of
 * version 1. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/core/metrics/processes.h"
#include "daemon/util/root.h"

struct cgroup_cpu {
	double quota_percent; /* of one core; NAN = no limit, or unknown */
	double nr_throttled, throttled_us;
};

/* Takes the group out of the text of proc/<pid>/cgroup: that of the cpu controller of version 1
 * when there is one (*v1), else that of version 2. -ENODATA when it names none, -ENAMETOOLONG. */
int cgroup_parse(const char *text, char path[PROCESS_CGROUP_SIZE], bool *v1);

/* The group of a process. 0, or -errno of proc. */
int cgroup_of(const struct root *root, pid_t pid, char path[PROCESS_CGROUP_SIZE], bool *v1);

/* The group in systemd's own tree, which names the unit. 0, -ENODATA, -ENAMETOOLONG or -errno. */
int cgroup_systemd(const struct root *root, pid_t pid, char path[PROCESS_CGROUP_SIZE]);

/* The tightest quota on the way from the group up, with that group's throttling; without any quota
 * the group's own. What cannot be read is NAN. */
void cgroup_cpu_read(const struct root *root, const char *path, bool v1, struct cgroup_cpu *ret);

/* True when a part of the path is the unit's name. */
bool cgroup_has_unit(const char *path, const char *unit);
