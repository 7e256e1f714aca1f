/* SPDX-License-Identifier: Apache-2.0 */
/* plan_read.c: does the worker's part of a query: it collects the rows of its series, out of blocks
 * that may have been overwritten since the plan was made, with the wall times that are known for
 * their boots. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/archive/plan.h"
#include "daemon/util/sysops.h"

static int by_id(const void *a, const void *b)
{
	const struct archive_plan_name *x = a;
	const struct archive_plan_name *y = b;
	return (x->id > y->id) - (x->id < y->id);
}

static struct archive_plan_name *find(struct archive_plan *plan, uint32_t id)
{
	struct archive_plan_name key = {.id = id};
	return bsearch(&key, plan->name, plan->names, sizeof(key), by_id);
}

static struct archive_part *part_of(
	struct archive_plan *plan, struct archive_plan_name *name, uint32_t boot)
{
	if (name->part > 0 && plan->part[name->part - 1].series.boot_seq == boot) {
		return &plan->part[name->part - 1];
	}
	struct archive_part *more =
		mem_grown(plan->part, plan->parts, &plan->part_room, sizeof(*more));
	if (!more) {
		return NULL;
	}
	plan->part = more;
	plan->part[plan->parts++] = (struct archive_part){
		.series = {.name = name->text, .unit = name->unit, .boot_seq = boot}};
	name->part = plan->parts;
	return &plan->part[plan->parts - 1];
}

static int add(struct archive_plan *plan, struct archive_plan_name *name, uint32_t boot,
	const struct history_quanta *value, int64_t time_us)
{
	struct archive_part *part = part_of(plan, name, boot);
	if (!part) {
		return -ENOMEM;
	}
	struct history_point point = history_point_of(name->unit, value);
	size_t count = part->series.count;
	point.time_us = time_us;
	if (count > 0 && plan->step_us > 0 && part->points[count - 1].time_us == time_us) {
		history_point_merge(&part->points[count - 1], &point);
		return 0;
	}
	struct history_point *more = mem_grown(part->points, count, &part->room, sizeof(*more));
	if (!more) {
		return -ENOMEM;
	}
	part->series.points = part->points = more;
	part->points[part->series.count++] = point;
	return 0;
}

static int64_t time_of(const struct archive_plan *plan, const struct archive_plan_block *block,
	const struct archive_parsed *parsed, uint64_t t_ns)
{
	if (block->boot == plan->this_boot && plan->wall.count > 0) {
		return wallclock_us(&plan->wall, t_ns);
	}
	return archive_wall_us(
		parsed->clock, parsed->header.clocks, block->synced ? &block->clock : NULL, t_ns);
}

static int read_group(struct archive_plan *plan, const struct archive_plan_block *block,
	const struct archive_parsed *parsed, const struct archive_group *group)
{
	struct archive_plan_name *name[ARCHIVE_FLAT_SERIES];
	bool any = false;
	for (unsigned i = 0; i < group->series; i++) {
		name[i] = find(plan, group->id[i]);
		any = any || name[i];
	}
	struct history_walk walk;
	const struct history_row *row = &walk.state.last;
	int r = 0;
	archive_group_walk(group, &parsed->header, &walk);
	while (any && r == 0 && archive_rows_next(&walk, &parsed->header)) {
		int64_t time_us = time_of(plan, block, parsed, row->t_ns * ARCHIVE_TICK_NS);
		if (time_us < plan->from_us || time_us >= plan->end_us) {
			continue;
		}
		if (plan->step_us > 0) {
			time_us = archive_floor(time_us, plan->step_us) * plan->step_us;
		}
		for (unsigned i = 0; i < group->series && r == 0; i++) {
			struct history_quanta value;
			if (name[i] &&
				history_row_get(row, group->series, i, group->width, &value)) {
				r = add(plan, name[i], block->boot, &value, time_us);
			}
		}
	}
	return walk.bad ? -EBADMSG : r;
}

int archive_plan_read(struct archive_plan *plan, size_t index, const uint8_t *bytes)
{
	const struct archive_plan_block *block = &plan->block[index];
	struct archive_parsed parsed;
	bool begins;
	if (!plan->sorted) {
		qsort(plan->name, plan->names, sizeof(plan->name[0]), by_id);
		plan->sorted = true;
	}
	int pages = archive_block_check(bytes, (size_t)block->pages * ARCHIVE_PAGE, block->page,
		plan->file_pages, plan->identity, &parsed, &begins);
	if (pages != (int)block->pages || parsed.header.seq != block->seq ||
		parsed.header.boot_seq != block->boot) {
		plan->lost++;
		return 0;
	}
	int r = 0;
	for (unsigned i = 0; i < parsed.header.groups && r == 0; i++) {
		struct archive_group group;
		r = archive_group_read(&parsed.body, &group)
			    ? read_group(plan, block, &parsed, &group)
			    : -EBADMSG;
	}
	if (r == -EBADMSG) {
		plan->lost++;
		return 0;
	}
	return r;
}

static int by_name(const void *a, const void *b)
{
	const struct archive_series *x = &((const struct archive_part *)a)->series;
	const struct archive_series *y = &((const struct archive_part *)b)->series;
	int order = strcmp(x->name, y->name);
	if (order == 0 && x->unit != y->unit) {
		order = x->unit < y->unit ? -1 : 1;
	}
	return order != 0 ? order : (x->boot_seq > y->boot_seq) - (x->boot_seq < y->boot_seq);
}

void archive_plan_finish(struct archive_plan *plan)
{
	if (plan->parts > 0) {
		qsort(plan->part, plan->parts, sizeof(plan->part[0]), by_name);
	}
}

size_t archive_plan_series(const struct archive_plan *plan)
{
	return plan->parts;
}

void archive_plan_at(const struct archive_plan *plan, size_t index, struct archive_series *ret)
{
	*ret = plan->part[index].series;
}

size_t archive_plan_lost(const struct archive_plan *plan)
{
	return plan->lost;
}

int64_t archive_plan_next_us(const struct archive_plan *plan)
{
	return plan->next_us;
}
