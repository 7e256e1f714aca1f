/* SPDX-License-Identifier: Apache-2.0 */
/*
 * past_runs.h: reads the executions of an app's stages from its raw records.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct app;
struct event;

enum { PAST_EVENTS = 32768 /* the newest, at most, are looked at */ };

enum { PAST_THREADS = 64, PAST_DEPTHS = 16 };

/* One execution of a stage. */
struct past_run {
	uint16_t name;	 /* number of trace_log_name_of() in app->log */
	uint16_t thread; /* distinguishes threads and processes; below PAST_THREADS */
	uint8_t depth;	 /* stages open around it */
	uint8_t throttled;
	uint32_t cpu_us;
	uint64_t start_ns, end_ns, frame;
	uint64_t self_ns; /* without what was nested in it */
};

/* Calls visit for each execution in the raw records that ended in [from_ns, to_ns]; those that are
 * nested come ahead of the one around them. */
void past_runs_visit(const struct app *app, uint64_t from_ns, uint64_t to_ns,
	void (*visit)(void *ctx, const struct past_run *run), void *ctx);

/* The same along with other records: each record of the current run of the newest PAST_EVENTS, in
 * the order in which they were read; most of those that ended before from_ns are skipped. True when
 * they are all of the run. The visitor passes what is of a stage on to past_pair(). */
struct past_pairing;
typedef void past_visit_event(struct past_pairing *pairing, const struct event *event);
struct past_pairing {
	uint64_t from_ns, to_ns;
	past_visit_event *event;
	void (*visit)(void *ctx, const struct past_run *run);
	void *ctx;
	struct {
		uint64_t id;
		struct past_run run; /* start_ns 0 = none */
	} open[256];		     /* begins by id that wait for their end */
	struct past_thread {
		/* runs that wait for the one around them, and since when */
		uint64_t inside_ns[PAST_DEPTHS], since_ns[PAST_DEPTHS];
	} thread[PAST_THREADS];
};
bool past_walk(const struct app *app, struct past_pairing *pairing);
past_visit_event past_pair;
uint16_t past_thread_of(const struct event *event);
