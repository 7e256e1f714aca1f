/* Buckets of 10 s and 1 min, gathered beside the samples at each commit. A process that was killed
 * has lost its open buckets, not the samples in them: the next one reads those back. */
#include "daemon/core/history_bucket.h"

#include <math.h>

enum { CATCH_UP_ROWS = 512 };

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

struct catch_up {
	struct history_cursor cursor[HISTORY_COLUMNS];
	struct history_point next[HISTORY_COLUMNS]; /* count 0: there is no more */
};

static void advance(struct history *history, struct catch_up *state, unsigned column)
{
	bool done = false;
	if (history_read_full(history, &state->cursor[column], &state->next[column], 1, &done) ==
		0) {
		state->next[column].count = 0;
	}
}

static void catch_up(struct history *history, struct history_group *group, uint64_t t_ns)
{
	static struct catch_up state; /* 12 KiB, on one thread, at start only */
	for (unsigned i = 0; i < group->columns; i++) {
		const struct history_series *series = group->column[i].series;
		state.cursor[i] = (struct history_cursor){.series = series->id,
			.from_ns = unwritten_ns(&history->pool, group, series),
			.to_ns = t_ns - 1,
			.step_ns = history_tier_step_ns(group->tier)};
		advance(history, &state, i);
	}
	for (unsigned row = 0; row < CATCH_UP_ROWS; row++) {
		uint64_t first_ns = UINT64_MAX;
		for (unsigned i = 0; i < group->columns; i++) {
			if (state.next[i].count > 0 && state.next[i].t_ns < first_ns) {
				first_ns = state.next[i].t_ns;
			}
		}
		if (first_ns == UINT64_MAX) {
			return;
		}
		if (group->gathers) {
			bucket_write(history, group);
		}
		group->bucket_ns = first_ns;
		group->gathers = true;
		for (unsigned i = 0; i < group->columns; i++) {
			if (state.next[i].count > 0 && state.next[i].t_ns == first_ns) {
				bucket_add(&group->column[i].bucket, &state.next[i]);
				advance(history, &state, i);
			}
		}
	}
}

void history_bucket_gather(struct history *history, struct history_group *group, uint64_t t_ns)
{
	uint64_t step_ns = history_tier_step_ns(group->tier);
	uint64_t start_ns = t_ns - t_ns % step_ns;
	if (!group->gathers) {
		group->bucket_ns = start_ns;
		catch_up(history, group, t_ns);
	}
	if (group->gathers && start_ns > group->bucket_ns) {
		bucket_write(history, group);
	}
	if (!group->gathers || start_ns > group->bucket_ns) {
		group->bucket_ns = start_ns;
		group->gathers = true;
	}
	for (unsigned i = 0; i < group->columns; i++) {
		const struct metric *metric = group->column[i].metric;
		if (metric && !isnan(metric->value)) {
			const struct history_point point = {
				t_ns, metric->value, metric->value, metric->value, 1};
			bucket_add(&group->column[i].bucket, &point);
		}
	}
}
