/*
 * loop_run.h: adds a run that carries no frame id to the iterations of its app: a few instructions
 * for each record, in one place so that the compiler sees them (records.c).
 */
#pragma once

#include "daemon/core/apps/apps.h"

/* Runs in frames; they are of no iteration that goes on. */
static inline void app_loop_add(struct stage *stage, uint64_t runs, uint64_t ns)
{
	stage->loop.inside.runs += runs;
	stage->loop.inside.ns += ns;
}

/* In loop.c. The stage runs most often by now, or is the one that did. */
void app_loop_mark(struct app *app, struct stage *stage, uint64_t thread);
/* The stage ran very often since the last iteration began. */
void app_loop_ceased(struct app *app, struct stage *stage, uint64_t thread);
/* A run on another thread. */
void app_loop_thread(struct app *app, struct stage *stage, uint64_t thread);

static inline __attribute__((always_inline)) void app_loop_run(
	struct app *app, struct stage *stage, const struct stage_run *run, uint64_t thread)
{
	struct app_loop *loop = &app->loop;
	struct stage_loop *own = &stage->loop;
	if (__builtin_expect(loop->threads != thread, 0)) {
		app_loop_thread(app, stage, thread);
	}
	if (loop->kind == LOOP_OF_FRAMES) {
		own->outside.runs++;
		own->outside.ns += run->duration_ns;
		return;
	}
	if (own->votes >= loop->votes) {
		app_loop_mark(app, stage, thread);
	}
	if (own->epoch != loop->epoch) {
		own->epoch = loop->epoch;
		own->closed = own->apart ? own->closed : own->inside;
		own->first_ns = own->inside.runs > 0 ? own->first_ns : run->end_ns;
	} else if (__builtin_expect(own->inside.runs - own->closed.runs >= LOOP_CEASED, 0)) {
		app_loop_ceased(app, stage, thread);
	}
	own->votes++;
	own->inside.runs++;
	own->inside.ns += run->duration_ns;
}
