/*
 * Writers of history. A group is the metrics of one source that share a time column in one tier, at
 * most HISTORY_COLUMNS values a row, and the block that takes their rows now. A metric that is new
 * goes to a group with a free column. A block's columns never change: what is in it is moved to a
 * wider one, unless it is nearly full. The column of a retired metric is kept (null) until its
 * place is needed, so that one that comes back costs nothing. A group of buckets gathers samples
 * and writes a row when the bucket is over.
 */
#pragma once

#include "daemon/core/history/pool.h"

struct history_bucket {
	double min, max, sum;
	uint32_t count;
};

struct history_group_column {
	struct history_series *series;
	const struct metric *metric;  /* NULL: retired */
	struct history_bucket bucket; /* of tiers with buckets */
	uint64_t since_ns;	      /* of the first sample that went into one; 0 = none yet */
};

struct history_list;

struct history_group {
	struct history_group *next; /* of the same source and tier */
	struct history_list *list;
	struct history_group *next_room; /* of those with room; only while has_room */
	bool has_room;
	unsigned gone; /* columns whose metric is retired */
	enum history_tier tier;
	uint32_t block;	 /* HISTORY_NONE: the next row opens one */
	uint32_t narrow; /* its rows go to the next block that is opened; HISTORY_NONE */
	struct history_row_state state;
	uint64_t bucket_ns; /* start of the bucket that is filled */
	bool gathers;	    /* there is one */
	uint64_t born_ns;   /* when gathering began */
	bool behind;	    /* samples of an earlier process may be in no bucket yet */
	unsigned columns;
	struct history_group_column column[];
};

/* The groups of a source in a tier, and which of them may have a place for one more column. */
struct history_list {
	struct history_group *first, *last;
	struct history_group *room;
};

/* Gives the metric, whose series this is, a column in one of the groups. Constant time, beside what
 * the next row has to move. -ENOMEM. */
int history_group_bind(struct history_pool *pool, struct history_list *list, enum history_tier tier,
	struct history_series *series, const struct metric *metric);

/* Forgets the pointer to a metric that goes away. Constant time. */
void history_group_unbind(
	struct history_list *list, enum history_tier tier, const struct history_series *series);

/* Its buckets were written: columns of retired metrics are free from then on. */
void history_group_settled(struct history_group *group);

/* Writes what the group holds (its metrics as they stand; its bucket) as a row, unless all are null
 * or the time is not after the last row's. The number of values written. */
unsigned history_group_append(
	struct history_pool *pool, struct history_group *group, uint64_t t_ns);

/* Reports the bucket that is filled now. */
void history_group_report_open(
	const struct history_group *group, history_row_observer *report, void *ctx);

/* Reports a row's buckets, of a block or group whose columns have these series. */
void history_report_row(const struct history_row *row, enum history_tier tier,
	const uint32_t *series, unsigned columns, history_row_observer *report, void *ctx);

void history_group_destroy_list(struct history_pool *pool, struct history_list *list);
