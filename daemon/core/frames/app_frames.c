/*
 * From records to frames. app_records.c calls the app_take_ functions, ingest's passes and the
 * sample tick the others. Everything of one app is on one thread.
 */
#include "daemon/core/frames/app_frames.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/core/apps/apps_private.h"
#include "daemon/core/frames/loop_run.h"
#include "daemon/util/sysops.h"

static void take_done(void *ctx, struct frame *frame);

static void configure(struct apps *apps, struct app *app)
{
	static const struct frames_settings none;
	const struct frames_settings *settings = NULL;
	if (apps->frame_settings) {
		settings = apps->frame_settings(apps->frame_settings_ctx, app->name);
	}
	bool began = app->frames->count + app->frames->warmup_skipped > 0;
	frames_configure(app->frames, settings ? settings : &none);
	if (!began) {
		app->loop.warmup_left = app->frames->settings.warmup;
	}
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
	if (app->loop.step == 0) {
		app_loop_init(&app->loop, (uint32_t)apps->options.frame_window,
			(uint32_t)apps->options.stage_window);
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

void app_frames_forget(struct app *app, const struct stage *stage)
{
	for (size_t i = 0; app->tied && i <= FRAME_STAGES; i++) {
		if (app->tied->stage[i] == stage) {
			app->tied->stage[i] = NULL;
		}
	}
}

/* Starts anew with the first frame of an app that came back. */
static void note_begin(struct app_frames *tied, struct app_process *process)
{
	if (!process->tied.begun) {
		process->tied.begun = true;
		tied->app->frames->interval_from_ns = process->attached_ns;
		if (tied->app->processes == 1 && tied->app->frames->count > 0) {
			frames_restart(tied->app->frames);
			app_loop_warm_up(&tied->app->loop, tied->app->frames->settings.warmup);
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

/* A frame without a FRAME record, where others have one. */
static void note_unended(struct app_frames *tied, const struct frame *frame)
{
	tied->unfinished += frame->runs > 0;
	tied->unended += frame->runs > 0 && frame->end_ns > tied->record_ns;
	if (tied->unended >= APP_FRAMES_UNENDED) {
		tied->ticking = tied->of_ids = tied->table->of_records = false;
		tied->table->stage_grace_ns = FRAME_TABLE_GRACE_NS;
	}
}

/* An iteration of the app's loop: not a bare tick, which is one in another way. */
static void note_iteration(struct app_frames *tied, struct frame *frame)
{
	bool single = (frame->parts & (frame->parts - 1)) == 0;
	bool endless = !frame->has_frame && single && frame->runs > APP_FRAMES_ENDLESS;
	if (!endless && (frame->runs > 0 || (frame->has_frame && !frame->is_tick))) {
		frame->counted = app_loop_frame(tied->app, frame, tied->stage);
	}
}

void app_frame_odd(struct app_process *process, uint32_t index, const struct app_frame_run *run,
	struct frame *frame)
{
	struct stage *stage = process->stages[index];
	if (run->left_out) {
		frame->spoilt = true;
	} else { /* late, or of those that share a place */
		app_loop_add(stage, 1, run->end_ns - run->start_ns);
	}
}

static void take_done(void *ctx, struct frame *frame)
{
	struct app_frames *tied = ctx;
	struct frames *frames = tied->app->frames;
	uint64_t latency_ns = frame_latency_ns(frame);
	uint64_t took_ns = latency_ns > 0 ? latency_ns : frame->delta_ns;
	if (tied->of_ids && !frame->has_frame) {
		note_unended(tied, frame);
		return;
	}
	note_iteration(tied, frame);
	frame->throttled = app_throttled_at(tied->apps, frame->end_ns);
	if (!tied->ticking && frame->runs > 0) {
		const struct app_tick tick = {
			.t_ns = frame->end_ns, .id = frame->id, .took_ns = latency_ns};
		frame->ticked = true;
		app_tick_add(tied, &tick);
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

/* What was seen last in a frame, other than bare ticks. */
static void note_framed(struct app_frames *tied)
{
	const struct frame *frame = tied->table ? tied->table->hot : NULL;
	uint64_t *framed_ns = &tied->app->loop.framed_ns;
	if (frame && (frame->runs > 0 || !frame->is_tick) && frame->end_ns > *framed_ns) {
		*framed_ns = frame->end_ns;
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
	bool iterates = true;
	note_begin(tied, process);
	tied->ticking = true;
	if (record->frame != PROTO_NO_FRAME && table_of(apps, process->app)) {
		const struct frame_piece piece = {.id = record->frame,
			.start_ns = record->start_ns,
			.end_ns = tick.t_ns,
			.born_ns = process->attached_ns,
			.thread = app_thread(process, slot)};
		bool known;
		if (!tied->of_ids) {
			tied->of_ids = true; /* each frame will be ended by its record */
			tied->table->stage_grace_ns = FRAME_TABLE_GRACE_MAX_NS;
		}
		tied->unended = 0;
		tied->record_ns = tick.t_ns;
		const struct frame *frame = frame_table_frame(tied->table, &piece, &known);
		iterates = record->value == 0 && frame->runs == 0;
		if (known || frame->ticked) {
			return true;
		}
	}
	if (iterates) {
		note_framed(tied);
		app_loop_tick(process->app, tick.t_ns, app_thread_bit(process, slot));
	}
	app_tick_add(tied, &tick);
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
	process->app->tied->stage[place] = place < FRAME_STAGES ? process->stages[index] : NULL;
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
		.thread = app_thread(process, slot)};
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
	app_ticks_take(tied, APP_TICKS_MAX, limit_ns);
	if (tied->table) {
		frame_table_settle(tied->table, horizon_ns);
		if (!tied->ticking) {
			app_ticks_take(tied, APP_TICKS_MAX, limit_ns);
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

bool app_frames_open(const struct app *app)
{
	const struct app_frames *tied = app->tied;
	bool open = tied && tied->ticks > 0;
	for (size_t i = 0; tied && tied->table && i < FRAME_TABLE_FRAMES / 64; i++) {
		open = open || tied->table->open[i] != 0;
	}
	return open;
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
