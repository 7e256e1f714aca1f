/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h: describes a query between the loop, which makes it, and the worker, which reads its
 * blocks. */
#pragma once

#include "daemon/core/archive/private.h"

struct archive_plan_block {
	uint64_t seq;
	uint32_t page, pages;
	uint32_t boot;
	uint32_t ticks;
	uint32_t series;	   /* of the plan's series, how many it has at most */
	int64_t first_us, last_us; /* smaller, larger wall time of its ends */
	int64_t first_step, last_step;
	bool synced; /* clock is the boot's first synchronised offset */
	struct archive_clock clock;
};

/* One boot's rows of a series. */
struct archive_part {
	struct archive_series series;
	struct history_point *points; /* those of the series */
	size_t room;
};

struct archive_plan_name {
	uint32_t id;
	enum unit unit;
	char *text;
	uint64_t first_seq, last_seq;
	size_t part; /* the one of its newest boot, + 1; 0 = none */
};

struct archive_plan {
	int64_t from_us, end_us; /* end is exclusive */
	int64_t next_us;
	int64_t step_us;
	uint32_t file_pages;
	struct archive_identity identity;
	uint32_t this_boot;
	struct wallclock wall; /* of this boot */
	struct archive_plan_block *block;
	size_t blocks;
	struct archive_plan_name *name;
	size_t names;
	bool sorted; /* names by id */
	struct archive_part *part;
	size_t parts, part_room;
	size_t lost;
};

static inline int64_t archive_floor(int64_t value, int64_t step)
{
	return value / step - (value % step < 0);
}
