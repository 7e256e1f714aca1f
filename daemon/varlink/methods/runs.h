/* SPDX-License-Identifier: Apache-2.0 */
/* runs.h: reads the parameters that choose a run and statistics of it, and writes a run's fields.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/stages/window.h"
#include "daemon/varlink/server/api.h"

struct app;
struct apps;
struct core;
struct json;

/* 0 = the current or latest run, -1 the one before it; or all of them together. */
struct run_choice {
	int run;
	bool all;
};

/* How statistics are asked for, by the parameters span, percentile_method and throttle, the call's
 * second to fourth; without span all runs together are asked for their lifetime. NULL, or the name
 * of the invalid parameter. */
const char *window_span_choose(
	const struct api_call *call, bool all_runs, struct window_query *ret);
/* The fields span, exact, percentile_method, throttle, and reason (NULL = none). */
void span_fields(struct json *out, struct window_query query, bool exact, const char *reason);

/* Of the two parameters. NULL when all is well, else the name of the one that is not. */
const char *run_choose(const struct value *values, struct run_choice *ret);

/* NotFound for a run that is not kept. */
enum api_result run_not_found(struct json *out, struct run_choice choice);

/* The app in that run; NULL: it is not kept, or memory is short. */
const struct app *run_of(
	struct apps *apps, const struct app *app, struct run_choice choice, uint64_t now_ns);

/* The fields run, state, since_us, until_us (while it goes on: none), and where the statistics do
 * not cover all of it: covers_since_us, missing. */
void run_fields(struct json *out, const struct core *core, const struct app *app, uint64_t now_ns);
