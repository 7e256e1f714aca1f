/* SPDX-License-Identifier: Apache-2.0 */
/*
 * past_runs.h: makes executions of stages of an app's raw records.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct event;

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

/* Zeroed = nothing seen. */
struct past_pairing {
	struct {
		uint64_t id;
		struct past_run run; /* start_ns 0 = none */
	} open[256];		     /* begins by id that wait for their end */
	struct past_nested {
		uint64_t ns, since_ns;
	} nested[PAST_THREADS][PAST_DEPTHS]; /* runs that wait for the one around them */
};

/* Takes the records in the order in which they were read; true when one ends an execution: those
 * that are nested come ahead of the one around them. */
bool past_pair(struct past_pairing *pairing, const struct event *event, struct past_run *ret);
uint16_t past_thread_of(const struct event *event);
