/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.c: finds iterations of an app's loop: where one ends, which runs it holds, what they cost.
 * Runs without a frame come in through app_loop_run(), ticks and frames through app_frames.c;
 * queries ask at the end of a pass.
 */
#include "daemon/core/apps/loop.h"

#include <string.h>

#include "daemon/core/apps/apps_private.h"

enum {
	BARE_TICKS = 8, /* without a frame id between them: frames came to an end */
	GAPS = 4,	/* and that many times the interval of two frames */
	VOTES_MAX = 1 << 30,
};

static void set_window(struct app_loop *loop, uint32_t window)
{
	loop->window = window;
	loop->step = (window + LOOP_NOTES - 2) / (LOOP_NOTES - 1);
	loop->to_note = (int32_t)loop->step;
}

void app_loop_init(struct app_loop *loop, const struct apps_options *options)
{
	if (loop->step == 0) {
		loop->frames = (uint32_t)options->frame_window;
		loop->epoch = 1; /* that of a stage without a run is 0 */
		set_window(loop, loop->kind == LOOP_OF_STAGES ? (uint32_t)options->stage_window
							      : loop->frames);
	}
}

void app_loop_warm_up(struct app_loop *loop, uint32_t count)
{
	loop->warmup_left = count;
	loop->spoilt = loop->begun;
}

static const struct loop_sum *closed(const struct app_loop *loop, const struct stage_loop *own)
{
	return own->apart || own->epoch == loop->epoch ? &own->closed : &own->inside;
}

static void outside(struct stage_loop *own, const struct loop_sum *since)
{
	own->outside.runs += own->inside.runs - since->runs;
	own->outside.ns += own->inside.ns - since->ns;
	own->inside = *since;
}

/* What ran since the last iteration's end is of none. */
static void discard(struct app *app)
{
	for (size_t i = 0; i < app->stages; i++) {
		struct stage_loop *own = &app->stage[i]->loop;
		const struct loop_sum since = *closed(&app->loop, own);
		outside(own, &since);
	}
	app->loop.spoilt = false;
	app->loop.epoch++;
}

/* Iterations are something else from now on: what was one is none. */
static void restart(struct app *app, enum loop_kind kind)
{
	static const struct loop_sum none;
	struct app_loop *loop = &app->loop;
	for (size_t i = 0; i < app->stages; i++) {
		struct stage_loop *own = &app->stage[i]->loop;
		outside(own, &none);
		own->closed = none;
		own->apart = false;
		memset(own->note, 0, sizeof(own->note));
	}
	loop->kind = kind;
	loop->votes = UINT32_MAX;
	loop->marker = NULL;
	loop->apart = loop->spoilt = false;
	loop->begun = true;
	loop->iterations = loop->notes = loop->next = 0;
	set_window(loop, loop->frames);
	loop->epoch++;
}

static void note(struct app *app)
{
	struct app_loop *loop = &app->loop;
	for (size_t i = 0; i < app->stages; i++) {
		struct stage_loop *own = &app->stage[i]->loop;
		own->note[loop->next] = *closed(loop, own);
	}
	loop->note[loop->next] = loop->iterations;
	loop->next = (loop->next + 1) % LOOP_NOTES;
	loop->notes += loop->notes < LOOP_NOTES;
	loop->to_note = (int32_t)loop->step;
}

static void count(struct app *app, uint64_t iterations)
{
	struct app_loop *loop = &app->loop;
	loop->epoch++;
	loop->iterations += iterations;
	loop->to_note -= (int32_t)(iterations < loop->step ? iterations : loop->step);
	if (loop->to_note <= 0 && !loop->apart) { /* else at the end of the pass */
		note(app);
	}
}

static void iteration_ended(struct app *app)
{
	if (app->loop.spoilt) {
		discard(app);
	} else {
		count(app, 1);
	}
}

/* The first stages that are seen may be such that run ahead of the loop. */
static void elect_first(struct app *app, const struct stage *marker)
{
	static const struct loop_sum none;
	for (size_t i = 0; i < app->stages; i++) {
		if (app->stage[i]->last_ns < marker->loop.first_ns) {
			outside(&app->stage[i]->loop, &none);
			app->stage[i]->loop.closed = none;
		}
	}
	app->loop.iterations = 0;
	count(app, marker->loop.inside.runs);
}

static void halve_votes(struct app *app)
{
	for (size_t i = 0; i < app->stages; i++) {
		app->stage[i]->loop.votes /= 2;
	}
}

void app_loop_mark(struct app *app, struct stage *stage, uint64_t thread)
{
	struct app_loop *loop = &app->loop;
	if (loop->kind != LOOP_OF_STAGES) {
		stage->loop.votes = 0;
		return;
	}
	if (stage->loop.votes > VOTES_MAX) {
		halve_votes(app);
	}
	if (stage == loop->marker) {
		iteration_ended(app);
	} else if (loop->notes == 0) {
		elect_first(app, stage);
	} else {
		loop->epoch++;
	}
	loop->marker = stage;
	loop->begun = true;
	loop->thread = thread;
	loop->votes = stage->loop.votes + 1;
	stage->loop.apart = false;
}

void app_loop_ceased(struct app *app, struct stage *stage, uint64_t thread)
{
	struct app_loop *loop = &app->loop;
	struct stage_loop *own = &stage->loop;
	if (loop->kind != LOOP_OF_STAGES || own->apart) {
		return;
	}
	uint64_t runs = own->inside.runs - own->closed.runs;
	for (size_t i = 0; i < app->stages; i++) { /* what was before is another loop */
		struct stage_loop *each = &app->stage[i]->loop;
		const struct loop_sum before = *closed(loop, each);
		each->inside.runs -= before.runs;
		each->inside.ns -= before.ns;
		each->closed = (struct loop_sum){0, 0};
		memset(each->note, 0, sizeof(each->note));
		each->votes = 0;
	}
	loop->marker = stage;
	loop->thread = thread;
	loop->votes = own->votes = (uint32_t)runs;
	loop->iterations = loop->notes = loop->next = 0;
	loop->to_note = (int32_t)loop->step;
	count(app, runs + 1); /* the previous one, and one for each run */
	own->closed = own->inside;
	own->epoch = loop->epoch;
}

void app_loop_thread(struct app *app, struct stage *stage, uint64_t thread)
{
	struct app_loop *loop = &app->loop;
	struct stage_loop *own = &stage->loop;
	loop->threads |= thread;
	if (loop->kind == LOOP_OF_FRAMES || !loop->begun || thread == loop->thread ||
		stage == loop->marker || own->apart) {
		return;
	}
	own->closed = *closed(loop, own);
	own->apart = loop->apart = true;
}

/* Ticks go on and nothing carries frame ids any more. */
static bool frames_ceased(struct app_loop *loop, uint64_t t_ns)
{
	loop->bare_ticks = loop->framed_ns > loop->tick_ns ? 0 : loop->bare_ticks + 1;
	return loop->bare_ticks > BARE_TICKS && t_ns > loop->framed_ns + GAPS * loop->gap_ns;
}

void app_loop_tick(struct app *app, uint64_t t_ns, uint64_t thread)
{
	struct app_loop *loop = &app->loop;
	bool skipped = loop->warmup_left > 0;
	loop->warmup_left -= skipped;
	switch (loop->kind) {
	case LOOP_OF_FRAMES:
		if (frames_ceased(loop, t_ns)) {
			loop->kind = LOOP_OF_TICKS;
			loop->epoch++;
		}
		break;
	case LOOP_OF_STAGES:
		restart(app, LOOP_OF_TICKS);
		break;
	case LOOP_OF_TICKS:
		loop->spoilt |= skipped || loop->framed_ns > loop->tick_ns;
		iteration_ended(app);
		break;
	}
	loop->tick_ns = t_ns;
	loop->thread = thread;
}

static void frames_begin(struct app *app)
{
	struct app_loop *loop = &app->loop;
	if (loop->kind == LOOP_OF_STAGES) {
		restart(app, LOOP_OF_FRAMES);
		return;
	}
	discard(app);
	for (size_t i = 0; i < app->stages; i++) {
		app->stage[i]->loop.apart = false;
	}
	loop->apart = false;
	loop->kind = LOOP_OF_FRAMES;
}

bool app_loop_frame(struct app *app, const struct frame *frame, struct stage *const *stage_of)
{
	struct app_loop *loop = &app->loop;
	loop->threads |= frame->threads;
	/* tasks take turns on one thread, in several frames, which come in the order of their ends,
	 * or in one */
	bool overlaps =
		frame->start_ns < loop->frame_ns || frame->sum_ns > frame->end_ns - frame->start_ns;
	loop->threads |= frame->by_id && overlaps ? 3 : 0;
	if (loop->warmup_left > 0) {
		loop->warmup_left--;
		return false;
	}
	if (frame->spoilt) {
		return false;
	}
	if (loop->kind != LOOP_OF_FRAMES) {
		frames_begin(app);
	}
	for (uint32_t bits = frame->parts; bits; bits &= bits - 1) {
		unsigned idx = (unsigned)__builtin_ctz(bits);
		const struct frame_part *part = &frame->part[idx];
		if (stage_of[idx]) {
			app_loop_add(stage_of[idx], frame_part_runs(part), frame_part_ns(part));
		}
	}
	count(app, 1);
	uint64_t gap_ns = frame->end_ns > loop->frame_ns ? frame->end_ns - loop->frame_ns : 0;
	loop->gap_ns -= loop->gap_ns / 8;
	if (loop->frame_ns > 0 && gap_ns > loop->gap_ns) {
		loop->gap_ns = gap_ns;
	}
	loop->frame_ns = frame->end_ns;
	return true;
}

void app_loop_passed(struct app *app)
{
	struct app_loop *loop = &app->loop;
	if (!loop->apart) {
		return;
	}
	for (size_t i = 0; i < app->stages; i++) {
		struct stage_loop *own = &app->stage[i]->loop;
		if (own->apart) {
			own->closed = own->inside;
		}
	}
	if (loop->to_note <= 0) {
		note(app);
	}
}

void app_loop_forget(struct app *app, const struct stage *stage)
{
	if (app->loop.marker == stage) {
		app->loop.marker = NULL;
		app->loop.votes = 0;
	}
}

static uint64_t runs_before(const struct stage_loop *own, const struct loop_window *window)
{
	return window->note >= 0 ? own->note[window->note].runs : 0;
}

/* The iteration that goes on has each stage that every iteration has. */
static bool is_complete(const struct app *app, const struct loop_window *window)
{
	const struct app_loop *loop = &app->loop;
	if (loop->kind != LOOP_OF_STAGES || !loop->begun || loop->spoilt) {
		return false;
	}
	for (size_t i = 0; i < app->stages; i++) {
		const struct stage_loop *own = &app->stage[i]->loop;
		const struct loop_sum *until = closed(loop, own);
		if (!own->apart && window->iterations > 0 && until->runs == own->inside.runs &&
			until->runs - runs_before(own, window) >= window->iterations) {
			return false;
		}
	}
	return true;
}

static const struct frame_part *part_of(
	const struct app *app, const struct frame *frame, const struct stage *stage)
{
	for (uint32_t bits = frame->parts; bits; bits &= bits - 1) {
		unsigned idx = (unsigned)__builtin_ctz(bits);
		if (app->frame_state->stage[idx] == stage) {
			return &frame->part[idx];
		}
	}
	return NULL;
}

/* The frame that goes on, when it has each stage that every frame has. */
static const struct frame *complete_frame(const struct app *app, const struct loop_window *window)
{
	const struct frame_table *table = app->frame_state ? app->frame_state->table : NULL;
	const struct frame *frame = table ? frame_table_current(table) : NULL;
	bool framed = app->loop.kind == LOOP_OF_FRAMES || window->iterations == 0;
	if (!frame || !framed || frame->spoilt || app->loop.warmup_left > 0) {
		return NULL;
	}
	for (size_t i = 0; i < app->stages; i++) {
		const struct stage_loop *own = &app->stage[i]->loop;
		uint64_t runs = own->inside.runs - runs_before(own, window);
		if (window->iterations > 0 && runs >= window->iterations &&
			!part_of(app, frame, app->stage[i])) {
			return NULL;
		}
	}
	return frame;
}

void app_loop_window(const struct app *app, struct loop_window *ret)
{
	const struct app_loop *loop = &app->loop;
	*ret = (struct loop_window){.iterations = loop->iterations, .note = -1};
	/* from the newest note back, as far as the window goes */
	for (uint32_t i = 1; i <= loop->notes && loop->iterations > loop->window; i++) {
		uint32_t at = (loop->next + LOOP_NOTES - i) % LOOP_NOTES;
		if (ret->note >= 0 && loop->iterations - loop->note[at] > loop->window) {
			break;
		}
		ret->note = (int)at;
		ret->iterations = loop->iterations - loop->note[at];
	}
	ret->frame = complete_frame(app, ret);
	ret->open = !ret->frame && is_complete(app, ret);
	ret->iterations += ret->open || ret->frame;
}

struct loop_sum app_loop_cost(
	const struct app *app, const struct loop_window *window, const struct stage *stage)
{
	const struct stage_loop *own = &stage->loop;
	struct loop_sum sum = window->open ? own->inside : *closed(&app->loop, own);
	if (window->note >= 0) {
		sum.runs -= own->note[window->note].runs;
		sum.ns -= own->note[window->note].ns;
	}
	const struct frame_part *part = window->frame ? part_of(app, window->frame, stage) : NULL;
	if (part) {
		sum.runs += frame_part_runs(part);
		sum.ns += frame_part_ns(part);
	}
	return sum;
}

bool app_loop_is_parallel(const struct app *app)
{
	return (app->loop.threads & (app->loop.threads - 1)) != 0;
}
