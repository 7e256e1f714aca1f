/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c: does the loop's part of a query: what matches, which blocks may have it, and how far this
 * answer goes. All of it is copied, so that the archive can go on meanwhile. */
#include "daemon/core/archive/plan.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/util/sysops.h"

#define TICK_US ((int64_t)(ARCHIVE_TICK_NS / 1000))

static bool matches(
	const struct archive_index *index, const struct archive_name *name, const char *glob)
{
	return name->last_seq >= archive_index_oldest(index) && name->id != 0 &&
	       proto_query_match(glob, name->text);
}

static int copy_names(
	struct archive_plan *plan, const struct archive_index *index, const char *glob)
{
	size_t room = 0;
	for (const struct archive_name *name = archive_names_next(&index->names, NULL); name;
		name = archive_names_next(&index->names, name)) {
		if (!matches(index, name, glob)) {
			continue;
		}
		struct archive_plan_name *more =
			mem_grown(plan->name, plan->names, &room, sizeof(*more));
		plan->name = more ? more : plan->name;
		char *text = more ? mem_strdup(name->text) : NULL;
		if (!text) {
			return -ENOMEM;
		}
		plan->name[plan->names++] = (struct archive_plan_name){
			.id = name->id,
			.unit = (enum unit)name->unit,
			.text = text,
			.first_seq = name->first_seq,
			.last_seq = name->last_seq,
		};
	}
	return 0;
}

static void describe(const struct archive_plan *plan, const struct archive_index *index,
	const struct archive_info *info, struct archive_plan_block *ret)
{
	const struct archive_boot_info *boot = archive_index_find_boot(index, info->boot);
	*ret = (struct archive_plan_block){
		.seq = info->seq,
		.page = info->page,
		.pages = info->pages,
		.boot = info->boot,
		.ticks = info->ticks,
		.synced = boot && boot->synced,
	};
	if (ret->synced) {
		ret->clock = boot->first_synced;
	}
	int64_t first_us, last_us;
	if (info->boot == plan->this_boot && plan->wall.count > 0) {
		first_us = wallclock_us(&plan->wall, info->first_tick * ARCHIVE_TICK_NS);
		last_us = wallclock_us(&plan->wall, info->last_tick * ARCHIVE_TICK_NS);
	} else {
		archive_index_times(index, info, &first_us, &last_us);
	}
	ret->first_us = first_us < last_us ? first_us : last_us;
	ret->last_us = first_us < last_us ? last_us : first_us;
	if (plan->step_us > 0) {
		ret->first_step = archive_floor(ret->first_us, plan->step_us);
		ret->last_step = archive_floor(ret->last_us, plan->step_us);
	}
}

static int copy_blocks(struct archive_plan *plan, const struct archive_index *index)
{
	plan->block = mem_calloc(index->blocks + 1u, sizeof(*plan->block));
	if (!plan->block) {
		return -ENOMEM;
	}
	for (uint32_t i = 0; plan->names > 0 && i < index->blocks; i++) {
		const struct archive_info *info = &index->info[i];
		struct archive_plan_block *block = &plan->block[plan->blocks];
		if (info->ticks == 0) {
			continue;
		}
		describe(plan, index, info, block);
		plan->blocks += block->last_us >= plan->from_us && block->first_us < plan->end_us;
	}
	return 0;
}

/* The first block with this number or a greater one. */
static size_t block_from(const struct archive_plan *plan, uint64_t seq)
{
	size_t low = 0, high = plan->blocks;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (plan->block[middle].seq < seq) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low;
}

/* Counts how many of the series each block may have, and drops blocks that have none. */
static void count_series(struct archive_plan *plan)
{
	for (size_t i = 0; i < plan->names; i++) {
		size_t first = block_from(plan, plan->name[i].first_seq);
		size_t end = block_from(plan, plan->name[i].last_seq + 1);
		if (first < end) {
			/* Differences, wrapping below 0 on the way: summed up below. */
			plan->block[first].series++;
			if (end < plan->blocks) {
				plan->block[end].series--;
			}
		}
	}
	uint32_t series = 0;
	size_t kept = 0;
	for (size_t i = 0; i < plan->blocks; i++) {
		series += plan->block[i].series;
		plan->block[kept] = plan->block[i];
		plan->block[kept].series = series;
		kept += series > 0;
	}
	plan->blocks = kept;
}

/* ---- how far an answer goes: a cut in wall time, not in blocks, because where boots overlap after
 * clock trouble each row still lies on one side of it ---- */

/* Rows that a block has before the cut, of each series, at most. */
static uint64_t rows_before(
	const struct archive_plan *plan, const struct archive_plan_block *block, int64_t cut_us)
{
	int64_t from = block->first_us > plan->from_us ? block->first_us : plan->from_us;
	if (from == block->first_us && block->last_us < cut_us) {
		return block->ticks;
	}
	int64_t last = block->last_us < cut_us ? block->last_us : cut_us - 1;
	uint64_t rows = last < from ? 0 : ((uint64_t)last - (uint64_t)from) / TICK_US + 1;
	return rows < block->ticks ? rows : block->ticks;
}

/* An upper bound for the rows of an answer that ends at the cut; stops counting beyond `most`. */
static uint64_t rows_at_most(const struct archive_plan *plan, int64_t cut_us, uint64_t most)
{
	uint64_t rows = 0;
	int64_t open = INT64_MIN; /* newest step of this boot that is counted */
	int64_t last_step = plan->step_us > 0 ? archive_floor(cut_us - 1, plan->step_us) : 0;
	int64_t from_step = plan->step_us > 0 ? archive_floor(plan->from_us, plan->step_us) : 0;
	for (size_t i = 0; i < plan->blocks && rows <= most; i++) {
		const struct archive_plan_block *block = &plan->block[i];
		if (block->first_us >= cut_us) {
			continue;
		}
		if (plan->step_us == 0) {
			rows += block->series * rows_before(plan, block, cut_us);
			continue;
		}
		if (i > 0 && plan->block[i - 1].boot != block->boot) {
			open = INT64_MIN;
		}
		int64_t first = block->first_step > from_step ? block->first_step : from_step;
		int64_t last = block->last_step < last_step ? block->last_step : last_step;
		first = first > open ? first : open + 1;
		if (last >= first) {
			uint64_t steps = (uint64_t)last - (uint64_t)first + 1;
			rows += block->series * (steps < block->ticks ? steps : block->ticks);
			open = last;
		}
	}
	return rows;
}

static void skip_blocks(struct archive_plan *plan)
{
	size_t kept = 0;
	for (size_t i = 0; i < plan->blocks; i++) {
		if (plan->block[i].first_us < plan->end_us) {
			plan->block[kept++] = plan->block[i];
		}
	}
	plan->blocks = kept;
}

static void cut(struct archive_plan *plan, size_t points_max)
{
	if (plan->blocks == 0 || rows_at_most(plan, plan->end_us, points_max) <= points_max) {
		return;
	}
	int64_t oldest = INT64_MAX, newest = INT64_MIN;
	for (size_t i = 0; i < plan->blocks; i++) {
		oldest = plan->block[i].first_us < oldest ? plan->block[i].first_us : oldest;
		newest = plan->block[i].last_us > newest ? plan->block[i].last_us : newest;
	}
	int64_t from = oldest > plan->from_us ? oldest : plan->from_us;
	int64_t granule = plan->step_us > 0 ? plan->step_us : TICK_US;
	/* Wall times of blocks are at most INT64_MAX / 1000: nothing overflows. */
	int64_t base = archive_floor(from, granule);
	int64_t low = 1, high = archive_floor(newest, granule) - base + 1;
	while (low < high) {
		int64_t middle = low + (high - low + 1) / 2;
		if (rows_at_most(plan, (base + middle) * granule, points_max) <= points_max) {
			low = middle;
		} else {
			high = middle - 1;
		}
	}
	int64_t cut_us = (base + low) * granule;
	if (cut_us >= plan->end_us || cut_us > newest) {
		return;
	}
	plan->end_us = plan->next_us = cut_us;
	skip_blocks(plan);
}

int archive_plan_make(struct archive *archive, const char *glob, int64_t from_us, int64_t to_us,
	uint64_t step_ns, size_t points_max, const struct wallclock *wall,
	struct archive_plan **ret)
{
	struct archive_plan *plan = mem_zalloc(sizeof(*plan));
	if (!plan) {
		return -ENOMEM;
	}
	plan->from_us = from_us;
	plan->end_us = to_us < INT64_MAX ? to_us + 1 : INT64_MAX;
	plan->next_us = INT64_MAX;
	plan->step_us = step_ns / 1000 < INT64_MAX / 1000 ? (int64_t)(step_ns / 1000) : 0;
	plan->this_boot = archive->boot_seq;
	if (wall) {
		plan->wall = *wall;
	}
	const struct archive_index *index = archive->index;
	if (index) {
		plan->file_pages = index->pages;
		plan->identity = index->identity;
		if (copy_names(plan, index, glob) < 0 || copy_blocks(plan, index) < 0) {
			archive_plan_destroy(plan);
			return -ENOMEM;
		}
		count_series(plan);
		cut(plan, points_max);
	}
	*ret = plan;
	return 0;
}

size_t archive_plan_blocks(const struct archive_plan *plan)
{
	return plan->blocks;
}

void archive_plan_block(
	const struct archive_plan *plan, size_t index, uint32_t *page, uint32_t *pages)
{
	*page = plan->block[index].page;
	*pages = plan->block[index].pages;
}

void archive_plan_destroy(struct archive_plan *plan)
{
	if (!plan) {
		return;
	}
	for (size_t i = 0; i < plan->parts; i++) {
		free(plan->part[i].points);
	}
	free(plan->part);
	free(plan->block);
	for (size_t i = 0; i < plan->names; i++) {
		free(plan->name[i].text);
	}
	free(plan->name);
	free(plan);
}
