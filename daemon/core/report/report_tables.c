/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_tables.c: writes the report's tables of stages: the pipeline (G0.5), categories and their
 * operations (G3.2, G3.3), compute units (G4.5), the most expensive ones (G1.16).
 */
#include <inttypes.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/report/report.h"
#include "daemon/core/report/report_text.h"
#include "daemon/util/sysops.h"
#include "proto/text.h"

static bool all_are_exact(const struct app *app)
{
	bool exact = true;
	for (size_t i = 0; i < app->stages; i++) {
		exact = exact && app->stage[i]->count <= app->stage[i]->filled;
	}
	return exact;
}

/* What is in no frame and not in TOTAL. */
void report_outside(struct report *report)
{
	for (size_t i = 0; i < report->app->stages; i++) {
		const struct stage *stage = report->app->stage[i];
		const struct loop_sum *outside = &stage->loop.outside;
		if (outside->runs == 0) {
			continue;
		}
		if (report->title) { /* the first one */
			report_line(report, "%-*s %10s %10s %10s", report->width, "Stage",
				"Mean ms", "Total s", "Count");
		}
		report_line(report, "%-*s %10.1f %10.3f %10" PRIu64, report->width,
			report_stage_name(report, i).text,
			(double)outside->ns / (double)outside->runs / 1e6,
			(double)outside->ns / 1e9, outside->runs);
	}
}

/* Frames, ticks, or executions of the stage that runs most often, of all that is reported. */
static uint64_t count_of(const struct app *app)
{
	uint64_t count = app->loop.kind != LOOP_OF_STAGES && app->frames ? app->frames->count : 0;
	for (size_t i = 0; app->loop.kind == LOOP_OF_STAGES && i < app->stages; i++) {
		count = app->stage[i]->count > count ? app->stage[i]->count : count;
	}
	return count;
}

/* What TOTAL is of, where that is not all that the lines above it are of. */
static void add_total(struct report *report, double mean_ms)
{
	static const char *const names[] = {[LOOP_OF_STAGES] = "iterations",
		[LOOP_OF_TICKS] = "ticks",
		[LOOP_OF_FRAMES] = "frames"};
	const struct loop_window *window = &report->relations.window;
	char bytes[96];
	struct text of = TEXT_IN(bytes);
	bool some = window->iterations > 0 && count_of(report->app) > window->iterations + 1;
	if (window->note >= 0 || some) {
		text_join(&of, ", ", "last %" PRIu64 " %s", window->iterations,
			names[report->app->loop.kind]);
	}
	if (app_loop_is_parallel(report->app)) {
		text_join(&of, ", ", "sequential: stages may overlap");
	}
	report_line(report, "%-*s %10.1f%s%s%s", report->width, "TOTAL", mean_ms,
		of.length > 0 ? " (" : "", bytes, of.length > 0 ? ")" : "");
	report_line(
		report, "%-*s %10.1f", report->width, "MAX FPS", mean_ms > 0 ? 1000 / mean_ms : 0);
}

void report_pipeline(struct report *report)
{
	const struct app *app = report->app;
	const struct window_query query = {.lifetime = !all_are_exact(app)};
	double mean_ms = app_frame_ms(app, &report->relations, &query);
	if (app->stages == 0) {
		return;
	}
	report_line(report, "%-*s %10s %10s %10s %10s", report->width, "Stage", "Mean ms", "P95 ms",
		"P99 ms", "Count");
	uint8_t order[APP_STAGES_MAX], depth[APP_STAGES_MAX];
	app_tree(app, &report->relations, order, depth);
	for (size_t i = 0; i < app->stages; i++) {
		const struct stage *stage = app->stage[order[i]];
		struct stage_answer answer;
		if (stage->count == 0) {
			continue;
		}
		report_ask(report, stage, &answer);
		const char *unit = report->relations.unit_name[order[i]];
		bool fallback = app_is_cpu_fallback(unit, app_expected_unit(app, stage));
		report_line(report, "%*s%-*s %10.1f %10.1f %10.1f %10" PRIu64 "%s", 2 * depth[i],
			"", report->width - 2 * depth[i], report_stage_name(report, order[i]).text,
			answer.summary.mean, answer.summary.p95, answer.summary.p99, stage->count,
			fallback ? "  running on CPU fallback" : "");
	}
	add_total(report, mean_ms);
	if (report->estimated) {
		report_line(report, "(percentiles of the whole run: within 1 %%)");
	}
}

/* Adds i to indices that are in the order of their times, the longest first. */
static void insert(uint8_t *indices, size_t *count, size_t i, const uint64_t *ns)
{
	size_t at = (*count)++;
	while (at > 0 && ns[indices[at - 1]] < ns[i]) {
		indices[at] = indices[at - 1];
		at--;
	}
	indices[at] = (uint8_t)i;
}

/* Stages with runs that are no total, by their own time. How many. */
static size_t stages_by_time(const struct report *report, uint8_t ret[APP_STAGES_MAX])
{
	size_t count = 0;
	for (size_t i = 0; i < report->app->stages; i++) {
		if (report->app->stage[i]->count > 0 && !report->relations.is_total[i]) {
			insert(ret, &count, i, report->relations.self_ns);
		}
	}
	return count;
}

/* Groups by their time, the longest first; group_of names each by the index of its first stage. */
static size_t groups_by_time(const struct report *report, const uint8_t *group_of,
	const uint64_t *group_ns, uint8_t ret[APP_STAGES_MAX])
{
	size_t count = 0;
	for (size_t i = 0; i < report->app->stages; i++) {
		if (group_of[i] == i && group_ns[i] > 0) {
			insert(ret, &count, i, group_ns);
		}
	}
	return count;
}

/* Its own time: that of stages inside of it counts there. */
static void operation(struct report *report, size_t index, uint64_t category_ns)
{
	const struct stage *stage = report->app->stage[index];
	uint64_t self_ns = report->relations.self_ns[index];
	report_line(report, "  %-*s %10" PRIu64 " %10.3f %9.2f %9.2f %9.2f %8.2f %8.2f",
		report->width, report_stage_name(report, index).text, stage->count,
		(double)self_ns / 1e9, (double)stage->total_ns / (double)stage->count / 1e6,
		(double)stage->min_ns / 1e6, (double)stage->max_ns / 1e6,
		report_percent(self_ns, category_ns),
		report_percent(self_ns, report->relations.total_ns));
}

void report_categories(struct report *report)
{
	const struct app_relations *relations = &report->relations;
	uint8_t category[APP_STAGES_MAX], stage[APP_STAGES_MAX];
	size_t stages = stages_by_time(report, stage);
	size_t categories =
		groups_by_time(report, relations->category, relations->category_ns, category);
	if (categories == 0) {
		return;
	}
	report_line(report, "\nTotal Profiled Time: %.3f s", (double)relations->total_ns / 1e9);
	for (size_t c = 0; c < categories; c++) {
		const char *name = report->app->stage[category[c]]->category;
		uint64_t category_ns = relations->category_ns[category[c]];
		report_line(report, "\n%s: %.3f s, %.1f %% of total",
			name[0] ? name : "(no category)", (double)category_ns / 1e9,
			report_percent(category_ns, relations->total_ns));
		report_line(report, "  %-*s %10s %10s %9s %9s %9s %8s %8s", report->width,
			"Operation", "Count", "Total s", "Avg ms", "Min ms", "Max ms", "% cat.",
			"% total");
		for (size_t i = 0; i < stages; i++) {
			if (relations->category[stage[i]] == category[c]) {
				operation(report, stage[i], category_ns);
			}
		}
	}
}

static void unit_line(struct report *report, uint8_t first)
{
	const struct app *app = report->app;
	const char *unit = report->relations.unit_name[first];
	uint64_t unit_ns = report->relations.unit_ns[first];
	unsigned stages = 0;
	struct proto_summary summary;
	struct proto_histogram sum;
	proto_histogram_init(&sum, mem_calloc);
	for (size_t i = 0; i < app->stages; i++) {
		if (report->relations.unit[i] == first && !report->relations.is_total[i] &&
			app->stage[i]->count > 0) {
			report->failed = !proto_histogram_add_all(&sum, app->stage[i]->all) ||
					 report->failed;
			stages++;
		}
	}
	proto_histogram_summary(&sum, &summary);
	proto_histogram_finish(&sum);
	report_line(report, "%-*s %6u %10zu %10.3f %9.2f %9.2f %8.2f", report->width,
		unit[0] ? unit : "(none)", stages, summary.count, (double)unit_ns / 1e9,
		summary.mean, summary.p99, report_percent(unit_ns, report->relations.total_ns));
}

void report_units(struct report *report)
{
	uint8_t unit[APP_STAGES_MAX];
	size_t units =
		groups_by_time(report, report->relations.unit, report->relations.unit_ns, unit);
	if (units == 0 || (units == 1 && !report->relations.unit_name[unit[0]][0])) {
		return; /* no unit was declared */
	}
	report_line(report, "%-*s %6s %10s %10s %9s %9s %8s", report->width, "Unit", "Stages",
		"Count", "Total s", "Mean ms", "P99 ms", "% total");
	for (size_t i = 0; i < units; i++) {
		unit_line(report, unit[i]);
	}
}

void report_top(struct report *report)
{
	uint8_t stage[APP_STAGES_MAX];
	size_t stages = stages_by_time(report, stage);
	for (size_t i = 0; i < stages && i < APP_REPORT_TOP; i++) {
		uint64_t self_ns = report->relations.self_ns[stage[i]];
		report_line(report, "%zu. %s: %.3f s, %.1f %% of total", i + 1,
			report_stage_name(report, stage[i]).text, (double)self_ns / 1e9,
			report_percent(self_ns, report->relations.total_ns));
	}
}
