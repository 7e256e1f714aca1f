/*
 * Series and their names: the dictionary blocks of the pool and the table made from them. The
 * dictionary takes at most an eighth of the blocks; when it is full, names that no block and no
 * writer uses are dropped.
 */
#pragma once

#include "daemon/core/history/pool.h"

/* Numbers near the end can only be damage; they must not use up what is left of the numbers. */
#define HISTORY_ID_LIMIT UINT32_C(0xfff00000)

/* Reads a dictionary block at start. Entries behind damage are lost. -ENOMEM. */
int history_names_load(struct history_pool *pool, uint32_t index);

/* To be called once after the last history_names_load: puts series in order, drops doubles.
 * -ENOMEM. */
int history_names_loaded(struct history_pool *pool);

/* Finds or adds the series of a name with this unit. -ENOSPC: the dictionary is full of names in
 * use; -ENOMEM. */
int history_names_get(
	struct history_pool *pool, const char *name, enum unit unit, struct history_series **ret);

/* The series of a name with this unit. NULL when there is none. */
struct history_series *history_names_known(
	const struct history_pool *pool, const char *name, enum unit unit);

/* The newest series of the name that has rows or a writer. NULL when there is none. */
struct history_series *history_names_find(const struct history_pool *pool, const char *name);

struct history_series *history_names_by_id(const struct history_pool *pool, uint32_t id);

/* The first series with an id >= id, or NULL. */
struct history_series *history_names_from(const struct history_pool *pool, uint32_t id);

void history_names_finish(struct history_pool *pool);

/* Has rows or a writer: answers show it, compaction keeps it. */
bool history_series_live(const struct history_series *series);
