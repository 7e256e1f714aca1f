/* SPDX-License-Identifier: Apache-2.0 */
/* bucket.c: gathers samples into buckets of 10 s and 1 min at each commit. A process that was
 * killed has lost its open buckets, not the samples in them: the next one reads those back when its
 * first complete bucket is over. By then metrics that come back later than others are there, and a
 * row cannot be written behind a later one. */
#include "daemon/core/history/private.h"

#include <math.h>

enum { CATCH_UP_ROWS = 512, COLUMNS = HISTORY_COLUMNS / HISTORY_WIDTH_BUCKET };

static void bucket_add(struct history_bucket *bucket, const struct history_point *point)
{
	if (bucket->count == 0) {
		*bucket = (struct history_bucket){
			.min = point->min, .max = point->max, .sum = 0, .count = 0};
	}
	bucket->min = fmin(bucket->min, point->min);
	bucket->max = fmax(bucket->max, point->max);
	bucket->sum += point->mean * point->count;
	bucket->count += point->count;
}

static void bucket_write(struct history *history, struct history_group *group)
{
	history_group_append(&history->pool, group, group->bucket_ns);
	for (unsigned i = 0; i < group->columns; i++) {
		group->column[i].bucket.count = 0;
	}
	history_group_settled(group);
}

/* The moment from which on a column's samples are in no written bucket. */
static uint64_t unwritten_ns(const struct history_pool *pool, const struct history_group *group,
	const struct history_series *series)
{
	uint32_t tail = series->tail[group->tier];
	return tail == HISTORY_NONE ? 0
				    : pool->info[tail / HISTORY_COLUMNS].last_ns +
					      history_tier_step_ns(group->tier);
}

/* A column of a group whose buckets since the last written row are made again. */
struct behind {
	const struct history_series *series;
	struct history_bucket open;   /* what this process has of the last of them */
	struct history_cursor cursor; /* over the samples of earlier processes */
	struct history_point next;    /* made of them; count 0: none is left */
};

static void advance(struct history *history, struct behind *column)
{
	bool done;
	column->next.count = 0;
	history_read_full(history, &column->cursor, &column->next, 1, &done);
}

/* Each column has its own end, which must be known before the first row is written: a row is in a
 * block of all columns, whose end says nothing of what a single one has been written up to. */
static void begin(struct history *history, struct history_group *group, struct behind *behind)
{
	const uint64_t step_ns = history_tier_step_ns(group->tier);
	for (unsigned i = 0; i < group->columns; i++) {
		struct history_group_column *column = &group->column[i];
		behind[i] = (struct behind){.series = column->series, .open = column->bucket};
		behind[i].cursor = (struct history_cursor){.series = column->series->id,
			.from_ns = unwritten_ns(&history->pool, group, column->series),
			.to_ns = (column->since_ns > 0 ? column->since_ns
						       : group->bucket_ns + step_ns) -
				 1,
			.step_ns = step_ns};
		column->bucket.count = 0;
		advance(history, &behind[i]);
	}
}

/* The first bucket of which there are samples; UINT64_MAX: there is none. */
static uint64_t earliest(const struct history_group *group, const struct behind *behind)
{
	uint64_t first_ns = UINT64_MAX;
	for (unsigned i = 0; i < group->columns; i++) {
		if (behind[i].next.count > 0 && behind[i].next.t_ns < first_ns) {
			first_ns = behind[i].next.t_ns;
		}
	}
	return first_ns;
}

static void refill(struct history *history, struct history_group *group, struct behind *behind,
	uint64_t bucket_ns)
{
	for (unsigned i = 0; i < group->columns; i++) {
		if (behind[i].next.count > 0 && behind[i].next.t_ns == bucket_ns) {
			bucket_add(&group->column[i].bucket, &behind[i].next);
			advance(history, &behind[i]);
		}
	}
}

/* Columns of retired metrics may have gone with the last row. */
static void follow(const struct history_group *group, struct behind *behind)
{
	for (unsigned i = 0, from = 0; i < group->columns; i++, from++) {
		while (behind[from].series != group->column[i].series) {
			from++;
		}
		behind[i] = behind[from];
	}
}

/* The buckets before this one that were not written, and what this one has from before. */
static void catch_up(struct history *history, struct history_group *group)
{
	struct behind behind[COLUMNS];
	const uint64_t bucket_ns = group->bucket_ns;
	begin(history, group, behind);
	for (unsigned row = 0; row < CATCH_UP_ROWS && earliest(group, behind) < bucket_ns; row++) {
		group->bucket_ns = earliest(group, behind);
		refill(history, group, behind, group->bucket_ns);
		bucket_write(history, group);
		follow(group, behind);
	}
	group->bucket_ns = bucket_ns;
	refill(history, group, behind, bucket_ns);
	for (unsigned i = 0; i < group->columns; i++) {
		const struct history_bucket *open = &behind[i].open;
		const struct history_point point = {.min = open->min,
			.mean = open->count > 0 ? open->sum / open->count : 0,
			.max = open->max,
			.count = open->count};
		if (point.count > 0) {
			bucket_add(&group->column[i].bucket, &point);
		}
	}
}

static bool has_samples(const struct history_group *group)
{
	for (unsigned i = 0; i < group->columns; i++) {
		const struct metric *metric = group->column[i].metric;
		if (metric && !metric->full_rate) {
			return false;
		}
	}
	return true;
}

/* The bucket in which the process began is made with those before it. */
static void leave_to_samples(struct history_group *group)
{
	for (unsigned i = 0; i < group->columns; i++) {
		group->column[i].bucket.count = 0;
		group->column[i].since_ns = 0;
	}
}

static void catch_up_once(struct history *history, struct history_group *group)
{
	if (group->behind) {
		catch_up(history, group);
		group->behind = false;
	}
}

/* The bucket of start_ns is the one that is filled from now on. */
static void move_on(struct history *history, struct history_group *group, uint64_t start_ns)
{
	if (start_ns <= group->bucket_ns) {
		return;
	}
	if (group->behind && group->bucket_ns < group->born_ns && has_samples(group)) {
		leave_to_samples(group);
	} else {
		catch_up_once(history, group);
		bucket_write(history, group);
	}
	group->bucket_ns = start_ns;
}

void history_bucket_flush(
	struct history *history, struct history_group *group, uint64_t now_ns, bool last)
{
	if (group->gathers) {
		move_on(history, group, now_ns - now_ns % history_tier_step_ns(group->tier));
	}
	if (group->gathers && last) {
		catch_up_once(history, group);
	}
}

void history_bucket_gather(struct history *history, struct history_group *group, uint64_t t_ns)
{
	uint64_t step_ns = history_tier_step_ns(group->tier);
	uint64_t start_ns = t_ns - t_ns % step_ns;
	if (!group->gathers) {
		group->bucket_ns = start_ns;
		group->born_ns = t_ns;
		group->gathers = true;
		group->behind = true;
	}
	move_on(history, group, start_ns);
	if (start_ns < group->bucket_ns) {
		return; /* a flush has written the bucket that this would belong to */
	}
	for (unsigned i = 0; i < group->columns; i++) {
		struct history_group_column *column = &group->column[i];
		const struct metric *metric = column->metric;
		if (metric && !isnan(metric->value)) {
			const struct history_point point = {.min = metric->value,
				.mean = metric->value,
				.max = metric->value,
				.count = 1};
			bucket_add(&column->bucket, &point);
			column->since_ns = column->since_ns > 0 ? column->since_ns : t_ns;
		}
	}
}
