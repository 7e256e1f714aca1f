/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_notes.c: writes the report's single facts: missed deadlines, slow frames, energy, and
 * what makes the numbers less trustworthy (G3.15): each only with evidence.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/diagnose/diagnoses.h"
#include "daemon/core/metrics/processes.h"
#include "daemon/core/report/report.h"
#include "daemon/core/report/report_text.h"
#include "daemon/core/status/facts.h"

struct deadline {
	uint64_t deadline_ns, misses, judged, worst_ns, longest;
	bool configured;
};

static void deadline_line(struct report *report, const char *name, const struct deadline *deadline)
{
	if (deadline->judged == 0) {
		return;
	}
	char limit[48] = "no deadline now";
	if (deadline->deadline_ns > 0) {
		snprintf(limit, sizeof(limit), "%.10g ms, %s", (double)deadline->deadline_ns / 1e6,
			deadline->configured ? "configured" : "declared");
	}
	report_line(report, "%s (%s): %" PRIu64 " of %" PRIu64 " missed (%.2f %%)", name, limit,
		deadline->misses, deadline->judged,
		report_percent(deadline->misses, deadline->judged));
	if (deadline->misses > 0) {
		report_line(report, "    worst %.1f ms, up to %" PRIu64 " in a row",
			(double)deadline->worst_ns / 1e6, deadline->longest);
	}
}

void report_deadlines(struct report *report)
{
	const struct frames *frames = report->app->frames;
	for (size_t i = 0; i < report->app->stages; i++) {
		const struct stage *stage = report->app->stage[i];
		const struct deadline deadline = {stage->deadline_ns, stage->misses, stage->judged,
			stage->worst_ns, stage->longest_misses, stage->settings.deadline_ns > 0};
		deadline_line(report, report_stage_name(report, i).text, &deadline);
	}
	if (frames) {
		const struct deadline deadline = {frames->deadline_ns, frames->misses,
			frames->judged, frames->worst_ns, frames->longest_misses,
			frames->settings.deadline_ns > 0};
		deadline_line(report, "frames", &deadline);
	}
}

/* What it took as far as it is known. */
static uint64_t took_ns(const struct frame *frame)
{
	uint64_t latency_ns = frame_latency_ns(frame);
	return latency_ns > 0 ? latency_ns : frame->delta_ns;
}

static void slow_line(struct report *report, const struct frame *frame)
{
	const struct frame_table *table = report->app->frame_state->table;
	size_t max = FRAME_STAGES + 1;
	for (size_t i = 0; i <= FRAME_STAGES; i++) {
		bool there = (frame->parts >> i & 1) != 0 && !(table && table->is_total[i]);
		if (there && (max > FRAME_STAGES || frame_part_ns(&frame->part[i]) >
							    frame_part_ns(&frame->part[max]))) {
			max = i;
		}
	}
	uint64_t all_ns = took_ns(frame);
	uint64_t outside_ns = all_ns > frame->sum_ns ? all_ns - frame->sum_ns : 0;
	double all_ms = (double)all_ns / 1e6;
	if (max > FRAME_STAGES || !table) {
		report_line(report, "frame %" PRIu64 ": %.1f ms", frame->id, all_ms);
	} else if (outside_ns > frame_part_ns(&frame->part[max])) {
		report_line(report, "frame %" PRIu64 ": %.1f ms, most outside of stages (%.1f ms)",
			frame->id, all_ms, (double)outside_ns / 1e6);
	} else {
		report_line(report, "frame %" PRIu64 ": %.1f ms, most in %s (%.1f ms)", frame->id,
			all_ms, frame_table_stage(table, (uint8_t)max),
			(double)frame_part_ns(&frame->part[max]) / 1e6);
	}
}

void report_slow_frames(struct report *report)
{
	const struct frame *slow[APP_SLOW_FRAMES];
	if (!report->app->frame_state) {
		return;
	}
	size_t count = app_frames_recent(report->app, true, slow, APP_SLOW_FRAMES);
	if (count == 0) {
		return;
	}
	report_line(report, "\nSlowest of the last %zu slow frames (%" PRIu64 " in all)", count,
		report->app->frames->slow_seen);
	for (size_t n = 0; n < APP_REPORT_SLOW && n < count; n++) {
		size_t slowest = n;
		for (size_t i = n + 1; i < count; i++) {
			slowest = took_ns(slow[i]) > took_ns(slow[slowest]) ? i : slowest;
		}
		const struct frame *frame = slow[slowest];
		slow[slowest] = slow[n];
		slow_line(report, frame);
	}
}

void report_energy(struct report *report)
{
	const struct app *app = report->app;
	const char *reason;
	double frame_mj = app_energy_frame_mj(app, &reason);
	if (isnan(frame_mj)) {
		return;
	}
	report_line(report, "a frame: %.2f mJ", frame_mj);
	for (size_t i = 0; i < app->stages; i++) {
		double stage_mj = app_energy_stage_mj(app, app->stage[i]);
		if (stage_mj > 0) {
			report_line(report, "    %s: %.2f mJ", report_stage_name(report, i).text,
				stage_mj);
		}
	}
}

#define NEAR_NS UINT64_C(5000000000)

/* Percent of one core that others than the app used when it was sampled last; NAN = not known. */
static double others_percent(const struct report *report)
{
	const struct core *core = report->core;
	const struct metric *busy = metrics_find(core->metrics, "cpu/utilization");
	double own = (double)NAN;
	for (size_t i = 0; core->processes && i < core->processes->rows; i++) {
		const struct process_row *row = &core->processes->row[i];
		bool recent = row->t_ns + NEAR_NS > report->end_ns &&
			      row->t_ns < report->end_ns + NEAR_NS; /* not of a later run */
		if (strcmp(row->watch, report->app->name) == 0 && recent &&
			!isnan(row->cpu_percent)) {
			own = (isnan(own) ? 0 : own) + row->cpu_percent;
		}
	}
	return busy ? busy->value * core->facts->cpus - own : (double)NAN;
}

static uint64_t most_runs(const struct app *app)
{
	uint64_t max = 0;
	for (size_t i = 0; i < app->stages; i++) {
		max = app->stage[i]->count > max ? app->stage[i]->count : max;
	}
	return max;
}

static void few_line(struct report *report, const struct app *app)
{
	bool frames = app->frames && app->frames->count > 0;
	uint64_t count = frames ? app->frames->count : most_runs(app);
	if (count == 0) {
		report_line(report, "- no stage ran and no frame was reported");
	} else if (count < APP_REPORT_FRAMES) {
		report_line(report, "- only %" PRIu64 " %s: percentiles want %d or more", count,
			frames	     ? count == 1 ? "frame" : "frames"
			: count == 1 ? "run of a stage"
				     : "runs of a stage",
			APP_REPORT_FRAMES);
	}
}

static void throttled_line(struct report *report, const struct app *app)
{
	uint64_t runs = 0, throttled = 0;
	for (size_t i = 0; i < app->stages; i++) {
		const struct stage *stage = app->stage[i];
		runs += stage->count;
		throttled += stage->throttled ? stage->throttled->count : 0;
	}
	if (throttled > 0) {
		report_line(report, "- the hardware throttled in %.1f %% of the runs of stages",
			report_percent(throttled, runs));
	}
}

void report_hygiene(struct report *report)
{
	const struct app *app = report->app;
	const struct machine_facts *facts = report->core->facts;
	double seconds = (double)(report->end_ns - app->since_ns) / 1e9;
	double others = others_percent(report);
	struct app_accounting events;
	app_accounting(app, &events);
	few_line(report, app);
	if (seconds < APP_REPORT_SECONDS) {
		report_line(report, "- only %.1f s: caches, clocks and heat settle later", seconds);
	}
	if (events.dropped > 0) {
		report_line(report,
			"- %" PRIu64 " of %" PRIu64
			" events were dropped: counts and sums are too low",
			events.dropped, events.sent);
	}
	throttled_line(report, app);
	if (others > APP_REPORT_OTHERS * (double)facts->cpus) {
		report_line(report, "- other processes used %.1f of %" PRIu32 " cores at its end",
			others / 100, facts->cpus);
	}
	if (facts->virtual_machine) {
		report_line(report, "- a virtual machine: times include what else its host did");
	}
}

void report_diagnosis(struct report *report)
{
	const char *summary =
		diagnoses_summary(report->core->diagnoses, report->app, report->end_ns);
	if (summary) {
		report_line(report, "\nDiagnosis: %s", summary);
	}
}
