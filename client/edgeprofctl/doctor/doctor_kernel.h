/* What the kernel offers a profiler: pressure, control groups, scheduler statistics, counters. */
#pragma once

#include <stdbool.h>

#include <cjson/cJSON.h>

/* Appends findings about the machine below root ("" = this one), whose kernel is `release`. */
void doctor_kernel(cJSON *checks, const char *root, const char *release);

/* Appends the finding about the clock: what the kernel says, and the daemon when it is known. */
void doctor_clock(cJSON *checks, bool kernel_synced, bool daemon_known, bool daemon_synced);
