/*
 * From records to frames. app_records.c calls the app_take_ functions, ingest's passes and the
 * sample tick the others. Everything of one app is on one thread.
 */
#include "daemon/core/app_frames.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/core/apps_private.h"
#include "daemon/util/seam.h"

enum { TICKS_NEAR = 48 };

static void take_done(void *ctx, struct frame *frame);

static void configure(struct apps *apps, struct app *app)
{
	static const struct frames_settings none;
	const struct frames_settings *settings = NULL;
	if (apps->frame_settings) {
		settings = apps->frame_settings(apps->frame_settings_ctx, app->name);
	}
	frames_configure(app->frames, settings ? settings : &none);
}

void apps_configure_frames(struct apps *apps, frames_settings_lookup *lookup, void *ctx)
{
	apps->frame_settings = lookup;
	apps->frame_settings_ctx = ctx;
	for (size_t i = 0; i < apps->count; i++) {
		if (apps->app[i]->frames) {
			configure(apps, apps->app[i]);
		}
	}
}

static struct app_frames *frames_of(struct apps *apps, struct app *app)
{
	if (app->tied) {
		return app->tied;
	}
	struct app_frames *tied = mem_zalloc(sizeof(*tied));
	if (!tied) {
		return NULL;
	}
	if (!app->frames) {
		if (frames_create(apps->options.frame_window, &app->frames) < 0) {
			free(tied);
			return NULL;
		}
		app_metrics_add_frames(apps, app);
		configure(apps, app);
	}
	tied->apps = apps;
	tied->app = app;
	app->tied = tied;
	return tied;
}

static struct frame_table *table_of(struct apps *apps, struct app *app)
{
	struct app_frames *tied = frames_of(apps, app);
	if (!tied) {
		return NULL;
	}
	if (!tied->table) {
		frame_table_create(take_done, tied, &tied->table);
	}
	return tied->table;
}

void app_frames_destroy(struct app_frames *tied)
{
	if (tied) {
		frame_table_destroy(tied->table);
		free(tied->slow);
		free(tied);
	}
}

static void tick_count(struct app_frames *tied, const struct app_tick *tick)
{
	struct frames *frames = tied->app->frames;
	enum throttle_value throttled = app_throttled_at(tied->apps, tick->t_ns);
	uint64_t delta_ns = frames_tick(frames, tick->t_ns, tick->id, throttled);
	struct frame *frame = NULL;
	if (tick->id == PROTO_NO_FRAME) {
		if (tick->took_ns > 0) {
			frames_latency(frames, tick->took_ns, 0, throttled);
		}
	} else {
		if (tied->table && (frame = frame_table_find(tied->table, tick->id))) {
			frame->delta_ns = delta_ns;
		}
		if (tick->took_ns > 0 || (frame && frame_latency_ns(frame) > 0)) {
			return; /* judged when it is done */
		}
	}
	uint64_t took_ns = tick->took_ns > 0 ? tick->took_ns : delta_ns;
	if (took_ns > 0) {
		frames_judge(frames, took_ns);
		if (frame) {
			frame->judged = true;
		}
	}
}

static void merge(
	const struct app_tick *from, struct app_tick *to, size_t start, size_t width, size_t count)
{
	size_t middle = start + width < count ? start + width : count;
	size_t end = middle + width < count ? middle + width : count;
	size_t left = start, right = middle;
	for (size_t at = start; at < end; at++) {
		bool of_left =
			right == end || (left < middle && from[left].t_ns <= from[right].t_ns);
		to[at] = from[of_left ? left++ : right++];
	}
}

/* Stable, and no order of times makes it slow. */
static void ticks_sort(struct app_frames *tied)
{
	struct app_tick spare[APP_TICKS_MAX];
	struct app_tick *from = tied->tick, *to = spare;
	for (size_t width = 1; width < tied->ticks; width *= 2) {
		for (size_t start = 0; start < tied->ticks; start += 2 * width) {
			merge(from, to, start, width, tied->ticks);
		}
		struct app_tick *merged = to;
		to = from;
		from = merged;
	}
	if (from != tied->tick) {
		memcpy(tied->tick, from, tied->ticks * sizeof(*from));
	}
	tied->unordered = false;
}

/* Counts the first ticks, at most n. */
static void ticks_take(struct app_frames *tied, size_t n, uint64_t limit_ns)
{
	size_t taken = 0;
	if (tied->unordered) {
		ticks_sort(tied);
	}
	while (taken < n && taken < tied->ticks && tied->tick[taken].t_ns <= limit_ns) {
		tick_count(tied, &tied->tick[taken++]);
	}
	tied->ticks -= taken;
	memmove(&tied->tick[0], &tied->tick[taken], tied->ticks * sizeof(tied->tick[0]));
}

/* In order, when it is not far from the end; else they are sorted later. */
static void tick_add(struct app_frames *tied, const struct app_tick *tick)
{
	if (tied->ticks == APP_TICKS_MAX) {
		ticks_take(tied, APP_TICKS_MAX / 2, UINT64_MAX);
	}
	size_t at = tied->ticks++;
	size_t least = at > TICKS_NEAR ? at - TICKS_NEAR : 0;
	uint64_t t_ns = tick->t_ns;
	if (least > 0 && tied->tick[least - 1].t_ns > t_ns) {
		tied->unordered = true;
	}
	if (tied->unordered) {
		least = at;
	}
	while (at > least && tied->tick[at - 1].t_ns > t_ns) {
		tied->tick[at] = tied->tick[at - 1];
		at--;
	}
	tied->tick[at] = *tick;
}

/* Starts anew with the first frame of an app that came back. */
static void note_begin(struct app_frames *tied, struct app_process *process)
{
	if (!process->tied.begun) {
		process->tied.begun = true;
		tied->app->frames->interval_from_ns = process->attached_ns;
		if (tied->app->processes == 1 && tied->app->frames->count > 0) {
			frames_restart(tied->app->frames);
		}
	}
}

static bool is_slow(const struct app_frames *tied, uint64_t took_ns)
{
	uint64_t deadline_ns = tied->app->frames->deadline_ns;
	uint64_t limit_ns = deadline_ns ? deadline_ns : tied->slow_ns;
	return limit_ns > 0 && took_ns > limit_ns;
}

static void keep_slow(struct app_frames *tied, const struct frame *frame)
{
	tied->slow_seen++;
	if (!tied->slow) {
		tied->slow = mem_calloc(APP_SLOW_FRAMES, sizeof(*tied->slow));
		if (!tied->slow) {
			return;
		}
	}
	tied->slow[tied->slow_next] = *frame;
	tied->slow_next = (tied->slow_next + 1) % APP_SLOW_FRAMES;
	tied->slow_count += tied->slow_count < APP_SLOW_FRAMES;
}

static void take_done(void *ctx, struct frame *frame)
{
	struct app_frames *tied = ctx;
	struct frames *frames = tied->app->frames;
	uint64_t latency_ns = frame_latency_ns(frame);
	uint64_t took_ns = latency_ns > 0 ? latency_ns : frame->delta_ns;
	if (tied->of_ids && !frame->has_frame) {
		tied->unfinished += frame->runs > 0;
		return;
	}
	frame->throttled = app_throttled_at(tied->apps, frame->end_ns);
	if (!tied->ticking && frame->runs > 0) {
		const struct app_tick tick = {
			.t_ns = frame->end_ns, .id = frame->id, .took_ns = latency_ns};
		frame->ticked = true;
		tick_add(tied, &tick);
	}
	if (latency_ns > 0) {
		frames_latency(frames, latency_ns, frame->sum_ns, frame->throttled);
	}
	if (!frame->judged && took_ns > 0) {
		frame->judged = true;
		frames_judge(frames, took_ns);
	}
	if (is_slow(tied, took_ns)) {
		keep_slow(tied, frame);
	}
}

bool app_take_frame(struct apps *apps, struct app_process *process, uint32_t slot,
	const struct proto_record *record)
{
	struct app_frames *tied = frames_of(apps, process->app);
	if (!tied) {
		return false;
	}
	const struct app_tick tick = {.t_ns = record->start_ns + record->value,
		.id = record->frame,
		.took_ns = record->value};
	note_begin(tied, process);
	tied->ticking = true;
	if (record->frame != PROTO_NO_FRAME && table_of(apps, process->app)) {
		const struct frame_piece piece = {.id = record->frame,
			.start_ns = record->start_ns,
			.end_ns = tick.t_ns,
			.born_ns = process->attached_ns,
			.thread = slot + process->tied.serial * UINT64_C(7)};
		const struct frame *frame = frame_table_find(tied->table, record->frame);
		bool counted = frame && frame->ticked && !frame->has_frame;
		if (!tied->of_ids) {
			tied->of_ids = true; /* each frame will be ended by its record */
			tied->table->stage_grace_ns = FRAME_TABLE_GRACE_MAX_NS;
		}
		frame_table_frame(tied->table, &piece);
		if (counted) {
			return true;
		}
	}
	tick_add(tied, &tick);
	return true;
}

bool app_frame_ready(struct apps *apps, struct app_process *process, uint32_t index)
{
	struct frame_table *table = table_of(apps, process->app);
	if (!table) {
		return false;
	}
	uint8_t place = frame_table_place(table, process->stages[index]->name);
	process->tied.place[index] = (uint8_t)(place + 1);
	process->tied.table = table;
	note_begin(process->app->tied, process);
	return true;
}

bool app_take_context(struct apps *apps, struct app_process *process, uint32_t slot,
	const struct proto_record *record)
{
	if (record->frame == PROTO_NO_FRAME) {
		return true;
	}
	struct frame_table *table = table_of(apps, process->app);
	if (!table) {
		return false;
	}
	const struct frame_piece piece = {.id = record->frame,
		.start_ns = record->start_ns,
		.end_ns = record->start_ns,
		.born_ns = process->attached_ns,
		.thread = slot + process->tied.serial * UINT64_C(7)};
	frame_table_context(table, &piece, record->value, record->cpu_us);
	return true;
}

bool app_take_frames_deadline(
	struct apps *apps, struct app_process *process, const struct proto_record *record)
{
	if (!frames_of(apps, process->app)) {
		return false;
	}
	frames_set_deadline(process->app->frames, record->value);
	return true;
}

/* Everything of the app up to this time has been read. */
static uint64_t horizon_of(const struct app *app, uint64_t pass_ns)
{
	uint64_t horizon_ns = UINT64_MAX;
	for (size_t i = 0; i < app->processes; i++) {
		uint64_t read_ns = app->process[i]->tied.read_ns;
		horizon_ns = read_ns < horizon_ns ? read_ns : horizon_ns;
	}
	uint64_t patience_ns = pass_ns > APP_FRAMES_WAIT_NS ? pass_ns - APP_FRAMES_WAIT_NS : 0;
	return horizon_ns > patience_ns ? horizon_ns : patience_ns;
}

static void settle(struct app_frames *tied, uint64_t horizon_ns)
{
	uint64_t limit_ns = horizon_ns;
	if (tied->table && !tied->ticking && horizon_ns != UINT64_MAX) {
		/* open frames will tick, at this time at the earliest */
		uint64_t grace_ns = tied->table->stage_grace_ns;
		limit_ns = horizon_ns > grace_ns ? horizon_ns - grace_ns : 0;
	}
	ticks_take(tied, APP_TICKS_MAX, limit_ns);
	if (tied->table) {
		frame_table_settle(tied->table, horizon_ns);
		if (!tied->ticking) {
			ticks_take(tied, APP_TICKS_MAX, limit_ns);
		}
	}
}

/* What was dropped until the pass before is missing at its end. */
static void note_gap(struct app_process *process)
{
	uint64_t dropped = process->accounting.dropped;
	if (dropped > process->tied.dropped && process->app->frames) {
		frames_gap(process->app->frames, process->tied.read_ns);
	}
	process->tied.dropped = dropped;
}

void app_frames_drained(struct apps *apps, struct app_process *process)
{
	(void)apps;
	note_gap(process);
	process->tied.read_ns = process->tied.pass_ns;
	if (process->app->tied) {
		settle(process->app->tied, horizon_of(process->app, process->tied.pass_ns));
	}
}

void app_frames_gone(struct apps *apps, struct app_process *process)
{
	(void)apps;
	process->tied.read_ns = UINT64_MAX;
	if (process->app->tied) {
		settle(process->app->tied, horizon_of(process->app, process->tied.pass_ns));
	}
}

void app_frames_note(struct app *app, const struct frames_stats *stats)
{
	bool timed = stats->end_to_end_count >= APP_SLOW_MIN_FRAMES;
	if (app->tied && (timed || stats->frame_count >= APP_SLOW_MIN_FRAMES)) {
		double twice_ms = 2 * (timed ? stats->end_to_end_p50_ms : stats->frame_time_p50_ms);
		double p99_ms = timed ? stats->end_to_end_p99_ms : stats->frame_time_p99_ms;
		app->tied->slow_ns = (uint64_t)((twice_ms > p99_ms ? twice_ms : p99_ms) * 1e6);
	}
}

size_t app_frames_recent(const struct app *app, bool slow, const struct frame **ret, size_t n)
{
	const struct app_frames *tied = app->tied;
	if (!tied || !tied->table) {
		return 0;
	}
	if (!slow) {
		return frame_table_recent(tied->table, ret, n);
	}
	size_t count = tied->slow_count < n ? tied->slow_count : n;
	for (size_t i = 0; i < count; i++) {
		ret[i] = &tied->slow[(tied->slow_next + APP_SLOW_FRAMES - 1 - i) % APP_SLOW_FRAMES];
	}
	return count;
}
