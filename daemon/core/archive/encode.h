/* The seal's part that makes a block's bytes of rows that wait. */
#pragma once

#include "daemon/core/archive/private.h"

/* Sorts the first count rows by their series: archive->used, each with the chain of its rows. */
bool archive_collect(struct archive *archive, uint32_t count);

struct archive_made {
	uint32_t rows, groups, ticks, first_tick, last_tick;
};
/* The groups of what was collected. */
void archive_put_groups(
	struct archive *archive, struct archive_writer *writer, struct archive_made *ret);

/* Names behind the rest: those that must be told (false: no room), should be, and as many of the
 * least recently told as the last page has room for. */
bool archive_put_names(
	struct archive *archive, const uint8_t *block, struct archive_writer *writer);
