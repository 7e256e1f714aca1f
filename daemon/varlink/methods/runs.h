/* The parameters run and all_runs, and what a reply says of a run. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
