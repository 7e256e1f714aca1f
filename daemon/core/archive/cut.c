/* How far an answer goes. A cut in wall time, not in blocks: where boots overlap after clock
 * trouble, each row still lies on one side of it. */
#include "daemon/core/archive/plan.h"

#define TICK_US ((int64_t)(ARCHIVE_TICK_NS / 1000))

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

/* At most so many rows does the answer have that ends at the cut; stops counting behind `most`. */
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

static void leave_out(struct archive_plan *plan)
{
	size_t kept = 0;
	for (size_t i = 0; i < plan->blocks; i++) {
		if (plan->block[i].first_us < plan->end_us) {
			plan->block[kept++] = plan->block[i];
		}
	}
	plan->blocks = kept;
}

void archive_plan_cut(struct archive_plan *plan, size_t points_max)
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
	leave_out(plan);
}
