/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_groups.c: sums up the stages of each app for ListStages. Categories and units are about the
 * lifetime, because their shares are; a unit's percentiles come from the sum of its stages'
 * histograms.
 */
#include "daemon/varlink/methods/apps/stage_groups.h"

#include <math.h>
#include <stdlib.h>

#include "daemon/core/core.h"
#include "daemon/core/runs/relations.h"
#include "daemon/util/sysops.h"
#include "proto/json_write.h"

/* Rows of each list in one reply, so that it fits in a frame whatever the names are. */
enum { GROUPS_MAX = 64 };

struct groups {
	struct json *out;
	size_t rows;	 /* of the list that is being written */
	size_t left_out; /* of both lists */
	struct proto_histogram *sum;
};

static void total_row(struct json *out, const struct list_cursor *cursor, const struct app *app,
	const struct window_query *query)
{
	static const char *const iterations[] = {
		[LOOP_OF_STAGES] = "stage", [LOOP_OF_TICKS] = "tick", [LOOP_OF_FRAMES] = "frame"};
	struct app_relations relations;
	app_relate(app, &relations);
	double mean_ms = app_frame_ms(app, &relations, query);
	double fps = mean_ms > 0 ? 1000.0 / mean_ms : 0;
	json_open(out, NULL, '{');
	json_string(out, "app", app->name);
	run_fields(out, cursor->core, app, cursor->now_ns);
	json_number(out, "mean_ms", mean_ms);
	json_number(out, "max_fps", fps);
	json_number(out, "throughput_fps", fps);
	json_string(out, "iteration", iterations[app->loop.kind]);
	json_unsigned(out, "iterations", relations.window.iterations);
	json_bool(out, "total_is_sequential", app_loop_is_parallel(app));
	json_number(out, "total_ms", (double)relations.total_ns / 1e6);
	json_close(out, '}');
}

/* One row: the stages whose group is `first`. group_of is relations->category or ->unit. */
static void group_row(struct groups *groups, const struct app *app,
	const struct app_relations *relations, const uint8_t *group_of, size_t first,
	uint64_t group_ns)
{
	struct json *out = groups->out;
	uint64_t count = 0, sum_ns = 0;
	unsigned stages = 0;
	bool units = group_of == relations->unit;
	if (groups->sum) {
		proto_histogram_init(groups->sum);
	}
	for (size_t i = first; i < app->stages; i++) {
		if (group_of[i] != first || relations->is_total[i]) {
			continue;
		}
		stages++;
		count += app->stage[i]->count;
		sum_ns += app->stage[i]->total_ns;
		if (units && groups->sum) {
			proto_histogram_add_all(groups->sum, app->stage[i]->all);
		}
	}
	if (stages == 0) {
		return;
	}
	if (groups->rows++ >= GROUPS_MAX) {
		groups->left_out++;
		return;
	}
	json_open(out, NULL, '{');
	json_string(out, "app", app->name);
	json_string(out, units ? "unit" : "category",
		units ? relations->unit_name[first] : app->stage[first]->category);
	json_unsigned(out, "stages", stages);
	json_unsigned(out, "count", count);
	json_number(out, "total_ms", (double)group_ns / 1e6);
	json_number_opt(
		out, "mean_ms", count > 0 ? (double)sum_ns / (double)count / 1e6 : (double)NAN);
	if (units && groups->sum && count > 0) {
		struct proto_summary summary;
		proto_histogram_summary(groups->sum, &summary);
		json_number_opt(out, "p50_ms", summary.p50);
		json_number_opt(out, "p95_ms", summary.p95);
		json_number_opt(out, "p99_ms", summary.p99);
	}
	json_number_opt(out, "percent_of_total",
		relations->total_ns > 0 ? 100 * (double)group_ns / (double)relations->total_ns
					: (double)NAN);
	json_close(out, '}');
}

static void group_rows(struct groups *groups, const struct app *app, bool units)
{
	struct app_relations relations;
	app_relate(app, &relations);
	const uint8_t *group_of = units ? relations.unit : relations.category;
	const uint64_t *group_ns = units ? relations.unit_ns : relations.category_ns;
	for (size_t i = 0; i < app->stages; i++) {
		if (group_of[i] == i) {
			group_row(groups, app, &relations, group_of, i, group_ns[i]);
		}
	}
}

void stage_groups_write(struct json *out, const struct list_cursor *cursor,
	const struct window_query *query, bool last)
{
	struct groups groups = {.out = out, .sum = last ? mem_zalloc(sizeof(*groups.sum)) : NULL};
	const struct app *app;
	json_open(out, "totals", '[');
	for (size_t i = 0; last && list_app_at(cursor, i, &app); i++) {
		if (app) {
			total_row(out, cursor, app, query);
		}
	}
	json_close(out, ']');
	for (int units = 0; units < 2; units++) {
		groups.rows = 0;
		json_open(out, units ? "units" : "categories", '[');
		for (size_t i = 0; last && list_app_at(cursor, i, &app); i++) {
			if (app) {
				group_rows(&groups, app, units);
			}
		}
		json_close(out, ']');
	}
	if (groups.left_out > 0) {
		json_unsigned(out, "groups_left_out", groups.left_out);
	}
	free(groups.sum);
}
