/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boots.h: makes the timeline of previous boots out of the archive: their events, and an entry for
 * each reboot. How a boot ended is read from its last word: the daemon says that it stops.
 */
#pragma once

#include <stdint.h>

#include "daemon/core/archive/archive.h"
#include "daemon/core/timeline/timeline.h"

/* The text of the entry that the daemon adds when it stops. */
#define TIMELINE_STOPPED "stopped"

enum boot_end {
	BOOT_RUNS,    /* this one */
	BOOT_STOPPED, /* the daemon was asked to stop */
	BOOT_CUT,     /* it was not: a crash, kill -9, a power cut */
	BOOT_UNKNOWN, /* no event of the boot is left */
};
/* How the boot of that number ended. */
enum boot_end timeline_boot_end(const struct archive *archive, uint32_t seq);
const char *timeline_boot_end_name(enum boot_end end); /* running, stopped, cut, unknown */

/* archive_boot_at, the times widened by the boot's events. */
bool timeline_boot_at(const struct archive *archive, size_t index, struct archive_boot *ret);

/* The first moment of this boot that anything is known of. */
uint64_t timeline_begin_ns(const struct timeline *timeline);

/* Gives the timeline what the archive knows of previous boots; to be called again when the clock of
 * this one is known better. Wants timeline_reserve before the first entry. -ENOMEM. */
int timeline_load_past(
	struct timeline *timeline, const struct archive *archive, const struct wallclock *wall);
