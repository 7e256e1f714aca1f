/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app_frames.c: turns records into frames of an app. records.c calls the app_on_ functions,
 * ingest's passes and the sample tick the others. Everything of one app is on one thread.
 */
#include "daemon/core/apps/app_frames.h"

#include <stdlib.h>

#include "daemon/core/apps/apps_private.h"
#include "daemon/util/sysops.h"

static void on_frame_done(void *ctx, struct frame *frame);

double apps_target_fps(const struct apps *apps, const struct app *app)
{
	return app_settings_of_frames(apps->config.settings, app->name).target_fps;
}

void app_configure_frames(const struct apps *apps, struct app *app)
{
	const struct frames_settings settings =
		app_settings_of_frames(apps->config.settings, app->name);
	bool began = app->frames->count + app->frames->warmup_skipped > 0;
	frames_configure(app->frames, &settings);
	if (!began) {
		app->loop.warmup_left = app->frames->settings.warmup;
	}
}

static struct app_frames *frames_of(struct apps *apps, struct app *app)
{
	if (app->frame_state) {
		return app->frame_state;
	}
	struct app_frames *frame_state = mem_zalloc(sizeof(*frame_state));
	if (!frame_state) {
		return NULL;
	}
	if (!app->frames) {
		if (frames_create(apps->options.frame_window, &app->frames) < 0) {
			free(frame_state);
			return NULL;
		}
		app_metrics_add_frames(apps, app);
		app_configure_frames(apps, app);
	}
	app_loop_init(&app->loop, &apps->options);
	frame_state->apps = apps;
	frame_state->app = app;
	app->frame_state = frame_state;
	return frame_state;
}

static struct frame_table *table_of(struct apps *apps, struct app *app)
{
	struct app_frames *frame_state = frames_of(apps, app);
	if (!frame_state) {
		return NULL;
	}
	if (!frame_state->table) {
		frame_table_create(on_frame_done, frame_state, &frame_state->table);
	}
	return frame_state->table;
}

void app_frames_destroy(struct app_frames *frame_state)
{
	if (frame_state) {
		frame_table_destroy(frame_state->table);
		free(frame_state->slow);
		free(frame_state);
	}
}

void app_frames_forget(struct app *app, const struct stage *stage)
{
	for (size_t i = 0; app->frame_state && i <= FRAME_STAGES; i++) {
		if (app->frame_state->stage[i] == stage) {
			app->frame_state->stage[i] = NULL;
		}
	}
}

/* Starts again with the first frame of an app that came back. */
static void note_begin(struct app_frames *frame_state, struct app_process *process)
{
	if (!process->frame_state.begun) {
		process->frame_state.begun = true;
		frame_state->app->frames->interval_from_ns = process->attached_ns;
		if (frame_state->app->processes == 1 && frame_state->app->frames->count > 0) {
			frames_restart(frame_state->app->frames);
			app_loop_warm_up(
				&frame_state->app->loop, frame_state->app->frames->settings.warmup);
		}
	}
}

static bool is_slow(const struct app_frames *frame_state, uint64_t took_ns)
{
	uint64_t deadline_ns = frame_state->app->frames->deadline_ns;
	uint64_t limit_ns = deadline_ns ? deadline_ns : frame_state->slow_ns;
	return limit_ns > 0 && took_ns > limit_ns;
}

static void keep_slow(struct app_frames *frame_state, const struct frame *frame)
{
	frame_state->app->frames->slow_seen++;
	if (!frame_state->slow) {
		frame_state->slow = mem_calloc(APP_SLOW_FRAMES, sizeof(*frame_state->slow));
		if (!frame_state->slow) {
			return;
		}
	}
	frame_state->slow[frame_state->slow_next] = *frame;
	frame_state->slow_next = (frame_state->slow_next + 1) % APP_SLOW_FRAMES;
	frame_state->slow_count += frame_state->slow_count < APP_SLOW_FRAMES;
}

/* A frame without a FRAME record, where others have one. */
static void note_unended(struct app_frames *frame_state, const struct frame *frame)
{
	frame_state->unfinished += frame->runs > 0;
	frame_state->unended += frame->runs > 0 && frame->end_ns > frame_state->record_ns;
	/* a pipeline may drop most of its frames on the way to where they end */
	uint64_t usual_ns = pulse_usual_ns(&frame_state->app->frames->pulse);
	uint64_t limit_ns = usual_ns > 0 ? APP_FRAMES_UNENDED * usual_ns : PULSE_IDLE_MIN_NS;
	if (frame_state->unended >= APP_FRAMES_UNENDED &&
		frame->end_ns - frame_state->record_ns > limit_ns) {
		frame_state->ticking = frame_state->of_ids = frame_state->table->of_records = false;
		frame_state->table->stage_grace_ns = FRAME_TABLE_GRACE_NS;
	}
}

/* An iteration of the app's loop: not a bare tick, which is one in another way. */
static void note_iteration(struct app_frames *frame_state, struct frame *frame)
{
	bool single = (frame->parts & (frame->parts - 1)) == 0;
	bool endless = !frame->has_frame && single && frame->runs > APP_FRAMES_ENDLESS;
	if (!endless && (frame->runs > 0 || (frame->has_frame && !frame->is_tick))) {
		frame->counted = app_loop_frame(frame_state->app, frame, frame_state->stage);
	}
}

static void on_frame_done(void *ctx, struct frame *frame)
{
	struct app_frames *frame_state = ctx;
	struct frames *frames = frame_state->app->frames;
	uint64_t latency_ns = frame_latency_ns(frame);
	uint64_t took_ns = latency_ns > 0 ? latency_ns : frame->delta_ns;
	if (frame_state->of_ids && !frame->has_frame) {
		note_unended(frame_state, frame);
		return;
	}
	note_iteration(frame_state, frame);
	frame->throttled = app_throttled_at(frame_state->apps, frame->end_ns);
	if (!frame_state->ticking && frame->runs > 0) {
		const struct app_tick tick = {
			.t_ns = frame->end_ns, .id = frame->id, .took_ns = latency_ns};
		frame->ticked = true;
		app_tick_add(frame_state, &tick);
	}
	if (latency_ns > 0) {
		frames_latency(frames, latency_ns, frame->sum_ns, frame->throttled);
	}
	if (!frame->judged && took_ns > 0) {
		frame->judged = true;
		frames_judge(frames, took_ns);
	}
	if (is_slow(frame_state, took_ns)) {
		keep_slow(frame_state, frame);
	}
}

/* What was seen last in a frame, other than bare ticks. */
static void note_framed(struct app_frames *frame_state)
{
	const struct frame *frame = frame_state->table ? frame_state->table->hot : NULL;
	uint64_t *framed_ns = &frame_state->app->loop.framed_ns;
	if (frame && (frame->runs > 0 || !frame->is_tick) && frame->end_ns > *framed_ns) {
		*framed_ns = frame->end_ns;
	}
}

bool app_on_frame(struct apps *apps, struct app_process *process, uint32_t slot,
	const struct proto_record *record)
{
	struct app_frames *frame_state = frames_of(apps, process->app);
	if (!frame_state) {
		return false;
	}
	const struct app_tick tick = {.t_ns = record->start_ns + record->value,
		.id = record->frame,
		.took_ns = record->value};
	bool iterates = true;
	note_begin(frame_state, process);
	frame_state->ticking = true;
	if (record->frame != PROTO_NO_FRAME && table_of(apps, process->app)) {
		const struct frame_piece piece = {.id = record->frame,
			.start_ns = record->start_ns,
			.end_ns = tick.t_ns,
			.born_ns = process->attached_ns,
			.thread = app_thread(process, slot),
			.by_id = record->flags & PROTO_RECORD_OF_TASK};
		bool known;
		if (!frame_state->of_ids) {
			frame_state->of_ids = true; /* each frame will be ended by its record */
			frame_state->table->stage_grace_ns = FRAME_TABLE_GRACE_MAX_NS;
		}
		frame_state->unended = 0;
		frame_state->record_ns = tick.t_ns;
		const struct frame *frame = frame_table_frame(frame_state->table, &piece, &known);
		iterates = record->value == 0 && frame->runs == 0;
		if (known || frame->ticked) {
			return true;
		}
	}
	if (iterates) {
		note_framed(frame_state);
		app_loop_tick(process->app, tick.t_ns, app_thread_bit(process, slot));
	}
	app_tick_add(frame_state, &tick);
	return true;
}

/* Before the first run of a declaration; false: no memory. */
static bool ready(struct apps *apps, struct app_process *process, uint32_t index)
{
	struct frame_table *table = table_of(apps, process->app);
	if (!table) {
		return false;
	}
	const struct stage *stage = process->stages[index];
	uint8_t idx = frame_table_stage_index(table, stage->name, !stage_is_work(stage));
	process->frame_state.idx[index] = (uint8_t)(idx + 1);
	process->app->frame_state->stage[idx] = idx < FRAME_STAGES ? process->stages[index] : NULL;
	process->frame_state.table = table;
	note_begin(process->app->frame_state, process);
	return true;
}

void app_frame_run(struct apps *apps, struct app_process *process, uint32_t index,
	const struct app_frame_run *run)
{
	struct app_process_frames *own = &process->frame_state;
	if (own->idx[index] == 0 && !ready(apps, process, index)) {
		return;
	}
	const struct frame_piece piece = {.id = run->frame,
		.start_ns = run->start_ns,
		.end_ns = run->end_ns,
		.born_ns = process->attached_ns,
		.thread = run->thread,
		.by_id = run->by_id};
	uint8_t idx = (uint8_t)(own->idx[index] - 1);
	/* it shares the last index; ahead of the first frame's end there is nothing to add it to */
	bool shares = idx == FRAME_STAGES && process->app->loop.kind == LOOP_OF_FRAMES;
	struct frame *frame = frame_table_run(own->table, &piece, idx, run->nested);
	if (run->skipped) {
		frame->spoilt = true;
	} else if (frame->counted || shares) { /* counted: it is late */
		app_loop_add(process->stages[index], 1, run->end_ns - run->start_ns);
	}
}

bool app_on_context(struct apps *apps, struct app_process *process, uint32_t slot,
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

bool app_on_frames_deadline(struct apps *apps, struct app_process *process, uint32_t slot,
	const struct proto_record *record)
{
	(void)slot;
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
		uint64_t read_ns = app->process[i]->frame_state.read_ns;
		horizon_ns = read_ns < horizon_ns ? read_ns : horizon_ns;
	}
	uint64_t patience_ns = pass_ns > APP_FRAMES_WAIT_NS ? pass_ns - APP_FRAMES_WAIT_NS : 0;
	return horizon_ns > patience_ns ? horizon_ns : patience_ns;
}

static void flush_until(struct app_frames *frame_state, uint64_t horizon_ns)
{
	uint64_t limit_ns = horizon_ns;
	if (frame_state->table && !frame_state->ticking && horizon_ns != UINT64_MAX) {
		/* open frames will tick, at this time at the earliest */
		uint64_t grace_ns = frame_state->table->stage_grace_ns;
		limit_ns = horizon_ns > grace_ns ? horizon_ns - grace_ns : 0;
	}
	app_ticks_count(frame_state, APP_TICKS_MAX, limit_ns);
	if (frame_state->table) {
		frame_table_finish_until(frame_state->table, horizon_ns);
		if (!frame_state->ticking) {
			app_ticks_count(frame_state, APP_TICKS_MAX, limit_ns);
		}
	}
}

/* What was dropped until the pass before is missing at its end. */
static void note_gap(struct app_process *process)
{
	uint64_t dropped = process->accounting.dropped;
	if (dropped > process->frame_state.dropped && process->app->frames) {
		frames_gap(process->app->frames, process->frame_state.read_ns);
	}
	process->frame_state.dropped = dropped;
}

/* Everything that the process sent until then has been read. */
static void read_until(struct app_process *process, uint64_t read_ns)
{
	process->frame_state.read_ns = read_ns;
	if (process->app->frame_state) {
		flush_until(process->app->frame_state,
			horizon_of(process->app, process->frame_state.pass_ns));
	}
}

void app_frames_drained(struct app_process *process)
{
	note_gap(process);
	read_until(process, process->frame_state.pass_ns);
}

void app_frames_gone(struct app_process *process)
{
	read_until(process, UINT64_MAX);
}

bool app_frames_open(const struct app *app)
{
	const struct app_frames *frame_state = app->frame_state;
	bool open = frame_state && frame_state->ticks > 0;
	for (size_t i = 0; frame_state && frame_state->table && i < FRAME_TABLE_FRAMES / 64; i++) {
		open = open || frame_state->table->open[i] != 0;
	}
	return open;
}

void app_frames_note(struct app *app, const struct frames_stats *stats)
{
	bool timed = stats->latencies.count >= APP_SLOW_MIN_FRAMES;
	if (app->frame_state && (timed || stats->times.count >= APP_SLOW_MIN_FRAMES)) {
		double twice_ms = 2 * (timed ? stats->latencies.p50 : stats->times.p50);
		double p99_ms = timed ? stats->latencies.p99 : stats->times.p99;
		app->frame_state->slow_ns =
			(uint64_t)((twice_ms > p99_ms ? twice_ms : p99_ms) * 1e6);
	}
}

size_t app_frames_recent(const struct app *app, bool slow, const struct frame **ret, size_t n)
{
	const struct app_frames *frame_state = app->frame_state;
	if (!frame_state || !frame_state->table) {
		return 0;
	}
	if (!slow) {
		return frame_table_recent(frame_state->table, ret, n);
	}
	size_t count = frame_state->slow_count < n ? frame_state->slow_count : n;
	for (size_t i = 0; i < count; i++) {
		ret[i] = &frame_state->slow[(frame_state->slow_next + APP_SLOW_FRAMES - 1 - i) %
					    APP_SLOW_FRAMES];
	}
	return count;
}
