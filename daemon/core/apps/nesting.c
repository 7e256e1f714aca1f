/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nesting.c: connects the records of a thread that belong together: the cost of a run comes right
 * before it, and the children of a stage come before their parent, one level deeper. What is
 * pending is kept for each slot of a process from its first such record on; the room is fixed.
 */
#include "daemon/core/apps/apps_private.h"

#include <string.h>

#include "daemon/util/sysops.h"

enum {
	SLOTS = 64, /* the maximum of a mapping */
	DEPTHS = 1 << (8 - PROTO_RECORD_DEPTH_SHIFT),
	CHILDREN = 16, /* different ones that wait for their parent at one depth */
};

struct app_slot {
	struct {
		bool waits;
		uint16_t stage;
		uint64_t start_ns, process_cpu_ns;
		int64_t rss_growth;
	} cost;
	struct {
		uint64_t ns, start_ns;
	} busy[DEPTHS];	 /* runs that wait for their parent; since the first of them */
	uint8_t deepest; /* of those that wait */
	uint8_t count[DEPTHS];
	uint8_t child[DEPTHS][CHILDREN]; /* declarations */
};

struct app_slots {
	struct app_slot slot[SLOTS];
};

static struct app_slot *slot_of(struct app_process *process, uint32_t slot, bool make)
{
	if (!process->slots && make) {
		process->slots = mem_zalloc(sizeof(*process->slots));
	}
	return process->slots && slot < SLOTS ? &process->slots->slot[slot] : NULL;
}

void apps_slot_taken(struct app_process *process, uint32_t slot)
{
	struct app_slot *own = slot_of(process, slot, false);
	if (own) {
		*own = (struct app_slot){.deepest = 0};
	}
}

/* It is kept until the run that it is of comes. */
bool app_on_cost(struct apps *apps, struct app_process *process, uint32_t slot,
	const struct proto_record *record)
{
	(void)apps;
	struct app_slot *own = slot_of(process, slot, true);
	if (!own) {
		return false;
	}
	own->cost.waits = true;
	own->cost.stage = record->stage;
	own->cost.start_ns = record->start_ns;
	own->cost.process_cpu_ns = record->value;
	own->cost.rss_growth = (int64_t)record->frame;
	return true;
}

void app_cost_of(struct app_process *process, uint32_t slot, const struct proto_record *record,
	uint64_t *process_cpu_ns, int64_t *rss_growth)
{
	struct app_slot *own = slot_of(process, slot, false);
	if (!own || !own->cost.waits) {
		return;
	}
	own->cost.waits = false;
	if (own->cost.stage == record->stage && own->cost.start_ns == record->start_ns) {
		*process_cpu_ns = own->cost.process_cpu_ns;
		*rss_growth = own->cost.rss_growth;
	}
}

static void stage_ran_in(struct stage *stage, uint32_t serial)
{
	size_t i = 0;
	size_t known = stage->parents < STAGE_PARENTS ? stage->parents : STAGE_PARENTS;
	while (i < known && stage->parent[i].serial != serial) {
		i++;
	}
	if (i == STAGE_PARENTS) {
		stage->parents = STAGE_PARENTS + 1; /* more than are counted separately */
		return;
	}
	if (i == known) {
		stage->parent[i].serial = serial;
		stage->parent[i].runs = 0;
		stage->parents++;
	}
	stage->parent[i].runs++;
}

static void child_add(struct app_slot *own, unsigned depth, uint8_t child)
{
	bool known = memchr(own->child[depth], child, own->count[depth]);
	if (!known && own->count[depth] < CHILDREN) {
		own->child[depth][own->count[depth]++] = child;
	}
}

/* How long runs inside of this one took. Those that began before it belong to one that got lost.
 * Those deeper than its children were in a stage that never ended (longjmp), and become its
 * children. */
static uint64_t take_inside(struct app_slot *own, unsigned below, const struct proto_record *record)
{
	uint64_t sum_ns = 0;
	for (unsigned i = below; i <= own->deepest; i++) {
		bool inside = own->busy[i].start_ns >= record->start_ns;
		sum_ns += inside ? own->busy[i].ns : 0;
		own->busy[i].ns = 0;
		for (unsigned k = 0; i > below && k < own->count[i]; k++) {
			child_add(own, below, own->child[i][k]);
		}
		own->count[i] = i > below ? 0 : own->count[i];
	}
	return sum_ns < record->value ? sum_ns : record->value;
}

void app_nest(struct app_process *process, uint32_t slot, const struct proto_record *record,
	struct stage *stage, bool skipped)
{
	unsigned depth = record->flags >> PROTO_RECORD_DEPTH_SHIFT;
	struct app_slot *own = slot_of(process, slot, depth > 0);
	stage->depth = (uint8_t)depth;
	stage->nested_count += depth > 0;
	stage->nested_ns += depth > 0 && !skipped ? record->value : 0;
	if (!own) {
		return;
	}
	unsigned below = depth + 1;
	if (below < DEPTHS) {
		uint64_t inside_ns = take_inside(own, below, record);
		stage->children_ns += skipped ? 0 : inside_ns;
		for (unsigned i = 0; i < own->count[below]; i++) {
			struct stage *child = process->stages[own->child[below][i]];
			if (child && child != stage) {
				stage_ran_in(child, stage->serial);
			}
			stage->own_runs += child == stage && stage->own_runs < UINT32_MAX;
		}
		own->count[below] = 0;
	}
	own->deepest = (uint8_t)depth;
	if (depth > 0 && !skipped) {
		own->busy[depth].start_ns =
			own->busy[depth].ns > 0 ? own->busy[depth].start_ns : record->start_ns;
		own->busy[depth].ns += record->value;
	}
	if (depth > 0) {
		child_add(own, depth, (uint8_t)record->stage);
	}
}
