/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slots.h: records that outlive the process, in a table of slots of one size. The caller provides
 * the memory, a mapped file of the run directory, so that kill -9 loses nothing. A record exists
 * once its bit in the header is set, which is stored last. What slots_init() finds damaged is
 * dropped, never trusted. Nothing here locks.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { SLOTS_MAX = 256, SLOT_NONE = -1 };

struct slots_header;

struct slots {
	struct slots_header *header; /* NULL: there is no table */
	unsigned char *memory;
	size_t slot_size;
	unsigned count;
	uint64_t next_serial;
	unsigned damaged; /* records, or 1 for the table, that slots_init() dropped */
};

struct slots_part {
	const void *bytes;
	size_t length;
};

/* The memory that count slots (at most SLOTS_MAX) of slot_size bytes (a multiple of 8) take. */
size_t slots_size(unsigned count, size_t slot_size);

/* Recovers the records in memory (slots_size() bytes, aligned to 8); anything but a table of this
 * shape becomes an empty one. Returns how many records were damaged and dropped. */
unsigned slots_init(struct slots *slots, void *memory, unsigned count, size_t slot_size);

/* Stores a record made of these parts: its slot; -ENOSPC when no slot is free or it is longer than
 * a slot. */
int slots_add(struct slots *slots, const struct slots_part *parts, size_t count);

/* Ignores SLOT_NONE. */
void slots_remove(struct slots *slots, int slot);

/* The oldest record that is newer than *serial (0: the oldest of all), which becomes its serial:
 * its slot, or SLOT_NONE after the last. */
int slots_next(const struct slots *slots, uint64_t *serial);
const void *slots_bytes(const struct slots *slots, int slot, size_t *length);

/* A number of the caller's that is stored with the records; 0 in a new table. */
uint64_t slots_note(const struct slots *slots);
void slots_set_note(struct slots *slots, uint64_t note);
