/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open.c: keeps the open begins of a stage. A flood of begins without ends costs as little as one
 * with: the oldest is the head of a list, and a removal moves the table's later entries up instead
 * of leaving tombstones.
 */
#include "daemon/core/stages/open.h"

#include <string.h>

enum { TABLE = 2 * STAGE_OPEN_IDS };

static unsigned home_of(uint64_t id)
{
	return (unsigned)(id * 0x9e3779b97f4a7c15u >> 58) % TABLE;
}

/* The table's entry of the id, or the empty one where it belongs. */
static unsigned entry_of(const struct stage_open *open, uint64_t id)
{
	unsigned at = home_of(id);
	while (open->table[at] && open->slot[open->table[at] - 1].id != id) {
		at = (at + 1) % TABLE;
	}
	return at;
}

void stage_open_init(struct stage_open *open)
{
	memset(open->table, 0, sizeof(open->table));
	TAILQ_INIT(&open->open);
	TAILQ_INIT(&open->free);
	for (unsigned i = 0; i < STAGE_OPEN_IDS; i++) {
		TAILQ_INSERT_TAIL(&open->free, &open->slot[i], link);
	}
	open->count = 0;
}

const struct stage_open_id *stage_open_find(const struct stage_open *open, uint64_t id)
{
	unsigned at = entry_of(open, id);
	return open->table[at] ? &open->slot[open->table[at] - 1] : NULL;
}

bool stage_open_add(struct stage_open *open, uint64_t id, uint64_t start_ns, uint64_t frame)
{
	bool full = TAILQ_EMPTY(&open->free);
	if (full) {
		stage_open_remove(open, TAILQ_FIRST(&open->open)->id);
	}
	struct stage_open_id *slot = TAILQ_FIRST(&open->free);
	TAILQ_REMOVE(&open->free, slot, link);
	*slot = (struct stage_open_id){.id = id, .start_ns = start_ns, .frame = frame};
	TAILQ_INSERT_TAIL(&open->open, slot, link);
	/* the slot is not in the table yet, so the entry found is an empty one */
	open->table[entry_of(open, id)] = (uint8_t)(slot - open->slot + 1);
	open->count++;
	return full;
}

/* Empties the entry; those behind it that would not be found any more move up. */
static void table_remove(struct stage_open *open, unsigned hole)
{
	for (unsigned at = (hole + 1) % TABLE; open->table[at]; at = (at + 1) % TABLE) {
		unsigned home = home_of(open->slot[open->table[at] - 1].id);
		if ((at + TABLE - home) % TABLE >= (at + TABLE - hole) % TABLE) {
			open->table[hole] = open->table[at];
			hole = at;
		}
	}
	open->table[hole] = 0;
}

void stage_open_remove(struct stage_open *open, uint64_t id)
{
	unsigned at = entry_of(open, id);
	if (!open->table[at]) {
		return;
	}
	struct stage_open_id *slot = &open->slot[open->table[at] - 1];
	table_remove(open, at);
	TAILQ_REMOVE(&open->open, slot, link);
	TAILQ_INSERT_HEAD(&open->free, slot, link);
	open->count--;
}
