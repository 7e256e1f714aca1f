/*
 * Records that must outlive the process: a table of places of one size in memory that the caller
 * gives (a mapped file of the run directory, so that kill -9 loses nothing). A record is there once
 * its bit in the header is set, which is the last thing that is written. What a look at the start
 * finds damaged is left out, never believed. Not locked: the caller sees to it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KEEP_PLACES_MAX = 256, KEEP_NONE = -1 };

struct keep_header;

struct keep {
	struct keep_header *header; /* NULL: nothing is kept */
	unsigned char *places;
	size_t place_size;
	unsigned count;
	uint64_t next_serial;
	unsigned damaged; /* records, or 1 for the table, that keep_init did not believe */
};

struct keep_part {
	const void *bytes;
	size_t length;
};

/* The memory that count (at most KEEP_PLACES_MAX) places of place_size bytes (a multiple of 8)
 * take. */
size_t keep_size(unsigned count, size_t place_size);

/* Takes over what memory holds; anything else than a table of this shape is made an empty one.
 * Memory is keep_size() bytes, aligned to 8. Returns how many records were damaged and left out. */
unsigned keep_init(struct keep *keep, void *memory, unsigned count, size_t place_size);

/* The place of the new record, made of its parts; -ENOSPC: no place free, or longer than a place;
 * KEEP_NONE is never returned by success. */
int keep_add(struct keep *keep, const struct keep_part *parts, size_t count);

/* KEEP_NONE is ignored. */
void keep_free(struct keep *keep, int place);

/* The oldest record that is newer than *serial (0: the oldest of all), which becomes its serial:
 * its place, or KEEP_NONE after the last. */
int keep_next(const struct keep *keep, uint64_t *serial);
const void *keep_bytes(const struct keep *keep, int place, size_t *length);

/* A number of the caller's that survives as the records do; 0 in a new table. */
uint64_t keep_note(const struct keep *keep);
void keep_set_note(struct keep *keep, uint64_t note);
