/* SPDX-License-Identifier: Apache-2.0 */
/*
 * past.c: does the archived part of GetHistory: what the archive has of the time before live
 * history begins. The loop only makes plans and writes rows; a worker reads. A medium that does not
 * answer in time costs the rows of the past, and the reply says so; nobody else waits for it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/archive/archive.h"
#include "daemon/core/metrics/wallclock.h"
#include "daemon/varlink/methods/history/stream.h"

#define PAST_DEADLINE_MS 5000u

/* Where live history begins. Of this boot the archive is asked only for what lies before that, in
 * whole buckets of 10 s or 1 min and in whole steps as live history aligns them, so that no row is
 * returned twice or out of order. */
static int64_t live_begin_us(const struct history_stream *stream)
{
	const struct core *core = history_core(stream);
	struct history_usage usage;
	history_usage(core->history, &usage);
	if (usage.oldest_ns == 0) {
		return INT64_MAX;
	}
	uint64_t begin_ns = usage.oldest_ns - usage.oldest_ns % HISTORY_MINUTE_NS;
	if (stream->step_ns > 0 && begin_ns > usage.oldest_ns - usage.oldest_ns % stream->step_ns) {
		begin_ns = usage.oldest_ns - usage.oldest_ns % stream->step_ns;
	}
	return wallclock_us(core->wall, begin_ns);
}

/* A boot before this one whose clock ran ahead: its rows lie where this boot's do. */
static int64_t newest_past_us(const struct archive *archive)
{
	struct archive_boot boot;
	int64_t newest_us = INT64_MIN;
	for (size_t i = 0; archive_boot_at(archive, i, &boot); i++) {
		if (boot.seq != archive_boot_seq(archive) && boot.last_us > newest_us) {
			newest_us = boot.last_us;
		}
	}
	return newest_us;
}

/* A multiple of 10 s that is not shorter than the step; 0: buckets as they are. */
static uint64_t archive_step(uint64_t step_ns)
{
	if (step_ns <= HISTORY_TENS_NS) {
		return step_ns < HISTORY_TENS_NS ? 0 : step_ns;
	}
	return (step_ns + HISTORY_TENS_NS - 1) / HISTORY_TENS_NS * HISTORY_TENS_NS;
}

static void set_range(struct history_stream *stream)
{
	struct history_past *past = &stream->past;
	past->step_ns = archive_step(stream->step_ns);
	past->cut_us = live_begin_us(stream);
	int64_t newest_us = newest_past_us(history_core(stream)->archive);
	int64_t last_us = past->cut_us == INT64_MAX ? INT64_MAX : past->cut_us - 1;
	last_us = newest_us > last_us ? newest_us : last_us;
	past->to_us = stream->to_us < last_us ? stream->to_us : last_us;
	past->next_us = stream->from_us;
	past->listed = past->most = 0;
}

void history_past_init(struct history_stream *stream)
{
	const struct core *core = history_core(stream);
	if (core->archive && core->archive_reader && archive_boot_seq(core->archive) > 0) {
		set_range(stream);
		stream->past.wanted = stream->past.next_us <= stream->past.to_us;
	} else {
		stream->past.next_us = INT64_MAX; /* there is none */
	}
}

static void drop_plan(struct history_past *past)
{
	archive_plan_destroy(past->plan);
	past->plan = NULL;
}

void history_past_restart(struct history_stream *stream)
{
	if (stream->past.wanted) {
		drop_plan(&stream->past);
		set_range(stream);
	}
}

static void fail(struct history_stream *stream, int error)
{
	struct history_past *past = &stream->past;
	const char *why = error == -ENOSPC	? "too many read it at this moment"
			  : error == -ETIMEDOUT ? "its medium does not answer"
			  : error == -ENODATA	? "its file is not open"
			  : error == -ECANCELED ? "the daemon stops"
						: strerror(-error);
	snprintf(past->note, sizeof(past->note), "rows of the archive are missing: %s", why);
}

/* Also of the passes to come: whoever asks has waited once. */
static void give_up(struct history_stream *stream, int error)
{
	stream->past.wanted = false;
	fail(stream, error);
}

static void on_read(void *user, struct archive_plan *plan, int result)
{
	struct history_stream *stream = user;
	struct history_past *past = &stream->past;
	uv_timer_stop(&stream->base.connection->tick);
	past->read = NULL;
	past->plan = plan;
	past->series = past->point = 0;
	if (result == -ECANCELED) {
		give_up(stream, result); /* nobody reads for the rest */
	} else if (result < 0) {
		fail(stream, result);
	}
	connection_wake(stream->base.connection);
}

static void on_deadline(uv_timer_t *timer)
{
	struct api_connection *connection = timer->data;
	struct history_stream *stream = (struct history_stream *)connection->stream;
	const struct archive_reader *reader = history_core(stream)->archive_reader;
	reader->cancel(stream->past.read);
	stream->past.read = NULL;
	give_up(stream, -ETIMEDOUT);
	connection_wake(connection);
}

/* A plan that does not move on would be asked for for ever. */
static void set_next(struct history_past *past, const struct archive_plan *plan)
{
	int64_t next_us = archive_plan_next_us(plan);
	past->next_us = next_us > past->next_us ? next_us : INT64_MAX;
}

/* Asks for the next part. */
static enum history_step begin(struct history_stream *stream)
{
	struct history_past *past = &stream->past;
	const struct core *core = history_core(stream);
	const struct archive_reader *reader = core->archive_reader;
	struct archive_plan *plan;
	int r = archive_plan_make(core->archive, stream->query, past->next_us, past->to_us,
		past->step_ns, HISTORY_PAST_POINTS, core->wall, &plan);
	if (r == 0 && archive_plan_blocks(plan) == 0) {
		set_next(past, plan);
		archive_plan_destroy(plan);
		return HISTORY_ON;
	}
	if (r == 0) {
		r = reader->read(reader->ctx, plan, on_read, stream, &past->read);
		if (r < 0) {
			archive_plan_destroy(plan);
		}
	}
	if (r < 0) {
		give_up(stream, r);
		return HISTORY_ON;
	}
	uv_timer_start(&stream->base.connection->tick, on_deadline, PAST_DEADLINE_MS, 0);
	return HISTORY_WAIT;
}

/* The rows of the series that are the past's to tell. */
static size_t rows_of(const struct history_stream *stream, const struct archive_series *series)
{
	const struct history_past *past = &stream->past;
	size_t count = series->count;
	if (series->boot_seq == archive_boot_seq(history_core(stream)->archive)) {
		int64_t end_us = past->cut_us;
		if (past->to_us >= end_us) {
			/* asked for beyond: the last step may hold rows of live history's */
			end_us -= (int64_t)(past->step_ns / 1000);
		}
		while (count > 0 && series->points[count - 1].time_us >= end_us) {
			count--;
		}
	}
	return count;
}

/* All series of the plan have been returned. */
static void end_plan(struct history_stream *stream)
{
	struct history_past *past = &stream->past;
	set_next(past, past->plan);
	if (history_counts(stream) && stream->total > stream->max_points) {
		past->next_us = INT64_MAX; /* how many series there are is known well enough */
	}
	past->most = past->listed > past->most ? past->listed : past->most;
	past->listed = 0;
	drop_plan(past);
}

enum history_step history_past_next(
	struct history_stream *stream, size_t max, struct history_rows *ret)
{
	struct history_past *past = &stream->past;
	struct archive_series series;
	ret->count = 0;
	if (past->read) {
		return HISTORY_WAIT;
	}
	if (!past->wanted) {
		return HISTORY_END;
	}
	if (!past->plan) {
		return past->next_us > past->to_us ? HISTORY_END : begin(stream);
	}
	if (past->series == archive_plan_series(past->plan)) {
		end_plan(stream);
		return HISTORY_ON;
	}
	archive_plan_at(past->plan, past->series, &series);
	size_t left = rows_of(stream, &series);
	left -= past->point < left ? past->point : left;
	if (left > 0 && max < 8) {
		return HISTORY_NO_ROOM;
	}
	*ret = (struct history_rows){
		.name = series.name,
		.unit = series.unit,
		.step_ns = past->step_ns,
		.boot_seq = series.boot_seq,
		.points = series.points + past->point,
		.past = true,
		.count = left < max ? left : max,
	};
	past->listed += past->point == 0 && left > 0;
	past->point += ret->count;
	if (ret->count == left) {
		past->series++;
		past->point = 0;
	}
	return HISTORY_ON;
}

void history_past_finish(struct history_stream *stream)
{
	struct history_past *past = &stream->past;
	uv_timer_stop(&stream->base.connection->tick);
	if (past->read) {
		history_core(stream)->archive_reader->cancel(past->read);
		past->read = NULL;
	}
	drop_plan(past);
}
