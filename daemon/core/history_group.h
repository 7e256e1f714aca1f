/*
 * Writers of history. A group is up to HISTORY_COLUMNS metrics of one source and the block that
 * takes their rows now. A metric that is new goes to a group with a free column; that closes the
 * group's block, because a block's columns never change. The column of a retired metric is kept
 * (null) until then, so that one that comes back costs nothing.
 */
#pragma once

#include "daemon/core/history_pool.h"

struct history_group_column {
	struct history_series *series;
	const struct metric *metric; /* NULL: retired */
};

struct history_group {
	struct history_group *next; /* of the same source */
	uint32_t block;		    /* HISTORY_NONE: the next row opens one */
	struct history_row_state state;
	unsigned columns;
	struct history_group_column column[HISTORY_COLUMNS];
};

/* Gives the metric a column in one of the source's groups (list). -ENOSPC when its name does not
 * fit, -ENOMEM. */
int history_group_bind(
	struct history_pool *pool, struct history_group **list, const struct metric *metric);

/* Forgets the pointer to a metric that goes away. */
void history_group_unbind(struct history_group *list, const struct metric *metric);

/* Writes the group's metrics as they stand as a row, unless all are null or the time is not after
 * the last row's. The number of values written. */
unsigned history_group_append(
	struct history_pool *pool, struct history_group *group, uint64_t t_ns);

void history_group_destroy_list(struct history_pool *pool, struct history_group *list);
