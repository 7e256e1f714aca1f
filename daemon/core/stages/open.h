/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open.h: keeps the begins by id of one stage that wait for their end: a fixed number of slots,
 * found by a hash of the id and kept in the order in which they began. Every function is O(1).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

enum { STAGE_OPEN_IDS = 32 /* begin/end by id that may overlap in one stage */ };

struct stage_open_id {
	uint64_t id, start_ns, frame;
	TAILQ_ENTRY(stage_open_id) link;
};

TAILQ_HEAD(stage_open_list, stage_open_id);

struct stage_open {
	struct stage_open_id slot[STAGE_OPEN_IDS];
	struct stage_open_list open; /* oldest first */
	struct stage_open_list free;
	uint8_t count;
	uint8_t table[2 * STAGE_OPEN_IDS]; /* open addressing: slot + 1, 0 = empty */
};

void stage_open_init(struct stage_open *open);
/* NULL: not open. Valid until the next change. */
const struct stage_open_id *stage_open_find(const struct stage_open *open, uint64_t id);
/* The id is not open yet. True when the one begun first had to go for it. */
bool stage_open_add(struct stage_open *open, uint64_t id, uint64_t start_ns, uint64_t frame);
void stage_open_remove(struct stage_open *open, uint64_t id);
