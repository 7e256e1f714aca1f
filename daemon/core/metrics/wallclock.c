/* SPDX-License-Identifier: Apache-2.0 */
/* wallclock.c: converts monotonic times to wall times for output. Entries are in order of time; the
 * offset of the newest entry at or before a time holds for it, except before the first synchronised
 * one, where the clock could not be trusted yet. */
#include "daemon/core/metrics/wallclock.h"

#include <string.h>

#include "daemon/util/crc32c.h"
#include "daemon/util/runfile.h"

#define MAGIC UINT64_C(0x316b636f6c63) /* "clock1" */
#define MERGE_NS INT64_C(1000000)
#define STEP_NS INT64_C(1000000000)

void wallclock_init(struct wallclock *wall)
{
	memset(wall, 0, sizeof(*wall));
}

struct saved {
	struct runhead head;
	struct wallclock wall;
	uint32_t crc; /* of the boot and wall */
};

size_t wallclock_bytes(void)
{
	return sizeof(struct saved);
}

static uint32_t crc_of(const struct saved *saved)
{
	/* not of all of head: that ends with its own, after which every CRC is the same */
	const uint8_t *boot_id = saved->head.boot_id;
	return crc32c(
		crc32c(0, boot_id, sizeof(saved->head.boot_id)), &saved->wall, sizeof(saved->wall));
}

size_t wallclock_restore(struct wallclock *wall, void *memory, const uint8_t boot_id[16])
{
	struct saved *saved = memory;
	const uint32_t shape[] = {sizeof(*wall)};
	const struct runhead wanted = runhead_of(MAGIC, sizeof(*saved), shape, 1, boot_id);
	if (runhead_look(saved, &wanted) != RUNHEAD_OURS) {
		runhead_write(saved, &wanted);
		return 0;
	}
	if (saved->crc != crc_of(saved) || saved->wall.count > WALLCLOCK_ENTRIES) {
		return 1;
	}
	*wall = saved->wall;
	return 0;
}

void wallclock_save(const struct wallclock *wall, void *memory)
{
	struct saved *saved = memory;
	saved->wall = *wall;
	saved->crc = crc_of(saved);
}

static uint64_t distance(int64_t a, int64_t b)
{
	return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

/* Index of the first synchronised entry; count when there is none. */
static uint32_t first_synced(const struct wallclock *wall)
{
	uint32_t i = 0;
	while (i < wall->count && !wall->entry[i].synced) {
		i++;
	}
	return i;
}

/* The entry to drop: one that the first synchronised entry replaced; else the one that
 * differs least from the entry before it; else the oldest. The newest always stays. */
static uint32_t least_useful(const struct wallclock *wall)
{
	uint32_t synced = first_synced(wall);
	if (synced > 0 && synced < wall->count) {
		return 0;
	}
	uint32_t best = 0;
	uint64_t best_distance = UINT64_MAX;
	for (uint32_t i = 1; i + 1 < wall->count; i++) {
		uint64_t d = distance(wall->entry[i].offset_ns, wall->entry[i - 1].offset_ns);
		if (wall->entry[i].synced == wall->entry[i - 1].synced && d < best_distance) {
			best = i;
			best_distance = d;
		}
	}
	return best;
}

static void drop_entry(struct wallclock *wall)
{
	uint32_t dropped = least_useful(wall);
	memmove(&wall->entry[dropped], &wall->entry[dropped + 1],
		(wall->count - dropped - 1) * sizeof(wall->entry[0]));
	wall->count--;
}

bool wallclock_note(struct wallclock *wall, uint64_t t_ns, int64_t wall_ns, bool synced)
{
	int64_t offset_ns = (int64_t)((uint64_t)wall_ns - t_ns);
	bool step = false;
	if (wall->count > 0) {
		uint32_t last = wall->count - 1;
		uint64_t moved = distance(offset_ns, wall->entry[last].offset_ns);
		step = moved > (uint64_t)STEP_NS;
		wall->steps += step;
		if (moved < (uint64_t)MERGE_NS && synced == wall->entry[last].synced) {
			return false;
		}
		if (t_ns <= wall->entry[last].t_ns) {
			/* Two readings of one moment: the later reading is right. */
			wall->entry[last].offset_ns = offset_ns;
			wall->entry[last].synced = synced;
			return step;
		}
	}
	if (wall->count == WALLCLOCK_ENTRIES) {
		drop_entry(wall);
	}
	wall->entry[wall->count].t_ns = t_ns;
	wall->entry[wall->count].offset_ns = offset_ns;
	wall->entry[wall->count].synced = synced;
	wall->count++;
	return step;
}

int64_t wallclock_us(const struct wallclock *wall, uint64_t t_ns)
{
	if (wall->count == 0) {
		return 0;
	}
	uint32_t at = first_synced(wall);
	if (at == wall->count) {
		at = 0;
	}
	while (at + 1 < wall->count && wall->entry[at + 1].t_ns <= t_ns) {
		at++;
	}
	int64_t ns;
	if (t_ns > INT64_MAX ||
		__builtin_add_overflow((int64_t)t_ns, wall->entry[at].offset_ns, &ns)) {
		ns = INT64_MAX;
	}
	return ns / 1000 - (ns % 1000 < 0);
}

static uint64_t mono_of(int64_t time_us, int64_t offset_ns)
{
	int64_t ns;
	if (__builtin_mul_overflow(time_us, 1000, &ns) ||
		__builtin_sub_overflow(ns, offset_ns, &ns)) {
		return time_us < 0 ? 0 : INT64_MAX;
	}
	return ns < 0 ? 0 : (uint64_t)ns;
}

uint64_t wallclock_mono_ns(const struct wallclock *wall, int64_t time_us)
{
	if (wall->count == 0) {
		return mono_of(time_us, 0);
	}
	uint32_t first = first_synced(wall);
	first = first == wall->count ? 0 : first;
	uint32_t at = wall->count - 1;
	uint64_t end_ns = UINT64_MAX;
	while (at > first && mono_of(time_us, wall->entry[at].offset_ns) < wall->entry[at].t_ns) {
		end_ns = wall->entry[at].t_ns;
		at--;
	}
	uint64_t t_ns = mono_of(time_us, wall->entry[at].offset_ns);
	return t_ns < end_ns ? t_ns : end_ns;
}

bool wallclock_synced(const struct wallclock *wall)
{
	return wall->count > 0 && wall->entry[wall->count - 1].synced;
}
