/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wallclock.h: keeps a bounded table of (t_ns, offset) pairs for wall time at output, appended on a
 * clock step, on resume and every 60 s. A time before the first synchronised entry gets that
 * entry's offset, so samples from before the first NTP sync have the right wall time afterwards.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WALLCLOCK_ENTRIES = 256 };

struct wallclock {
	struct {
		uint64_t t_ns;
		int64_t offset_ns; /* wall - monotonic */
		bool synced;
	} entry[WALLCLOCK_ENTRIES];
	uint32_t count;
	uint64_t steps; /* offsets that moved by more than 1 s */
};

void wallclock_init(struct wallclock *wall);
/* The size of memory that outlives the process: a restart moves no earlier time. */
size_t wallclock_bytes(void);
/* Into an empty table, what an earlier process of this boot saved. Returns how many parts were
 * damaged: then the table stays empty. From now on the memory takes wallclock_save. */
size_t wallclock_restore(struct wallclock *wall, void *memory, const uint8_t boot_id[16]);
void wallclock_save(const struct wallclock *wall, void *memory);
/* Adds a reading of both clocks. Neighbours that differ by < 1 ms and have the same synced are
 * merged. True when the offset moved by more than 1 s against the previous reading (a step). */
bool wallclock_note(struct wallclock *wall, uint64_t t_ns, int64_t wall_ns, bool synced);
/* Integer microseconds since the epoch; 0 when the table is empty. */
int64_t wallclock_us(const struct wallclock *wall, uint64_t t_ns);
/* The inverse for queries: the monotonic time that has this wall time. Of several (the clock was
 * set back) the newest; of none (it was set forward over it) that of the step; clamped to 0. Never
 * falls as time_us grows, so that a range stays one. */
uint64_t wallclock_mono_ns(const struct wallclock *wall, int64_t time_us);
bool wallclock_synced(const struct wallclock *wall); /* of the newest entry */
