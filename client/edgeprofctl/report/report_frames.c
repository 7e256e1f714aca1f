/* SPDX-License-Identifier: Apache-2.0 */
/* report_frames.c: makes the frames of a report: rates, times, missed deadlines. */
#include "client/edgeprofctl/report/report_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "proto/percentile.h"

void report_count_miss(struct misses *misses, double ms)
{
	bool missed = ms > misses->deadline_ms;
	misses->runs++;
	misses->count += missed;
	misses->in_a_row = missed ? misses->in_a_row + 1 : 0;
	misses->most_in_a_row =
		misses->in_a_row > misses->most_in_a_row ? misses->in_a_row : misses->most_in_a_row;
	misses->worst_ms = missed ? fmax(misses->worst_ms, ms) : misses->worst_ms;
}

void report_add_misses(cJSON *to, const struct misses *misses)
{
	if (!isnan(misses->deadline_ms)) {
		json_add_number(to, "deadline_ms", misses->deadline_ms);
		json_add_number(to, "misses", (double)misses->count);
		json_add_number(to, "miss_rate",
			report_percent((double)misses->count, (double)misses->runs) / 100);
		json_add_number(to, "longest_consecutive_misses", (double)misses->most_in_a_row);
		json_add_number(to, "worst_ms", misses->worst_ms);
	}
}

/* Frames of full seconds, counted from the first one and again from each that follows a gap. */
static void add_seconds(cJSON *row, const struct data *data)
{
	double least = INFINITY, most = 0, from_s = 0, count = 0;
	for (size_t i = 0; i < data->frame_count; i++) {
		const struct data_frame *frame = &data->frame[i];
		if (i == 0 || isnan(frame->time_ms)) {
			from_s = frame->at_s;
			count = 0;
		}
		double seconds = floor(frame->at_s - from_s + 1e-9);
		if (seconds >= 1) { /* after more than one, the others have none */
			least = fmin(least, seconds >= 2 ? 0 : count);
			most = fmax(most, count);
			from_s += seconds;
			count = 0;
		}
		count++;
	}
	json_add_number(row, "fps_1s_min", least);
	json_add_number(row, "fps_1s_max", isfinite(least) ? most : (double)NAN);
}

static void add_rates(cJSON *row, const struct data *data, double *values)
{
	size_t count = 0, zero = 0;
	for (size_t i = 0; i < data->frame_count; i++) {
		double ms = data->frame[i].time_ms;
		zero += ms == 0;
		if (ms > 0) {
			values[count++] = 1000 / ms;
		}
	}
	struct proto_summary fps = data_numbers_of(values, count);
	json_add_number(row, "fps", 1000 / data->frame_time_ms.mean);
	json_add_number(row, "fps_mean", fps.mean);
	json_add_number(row, "fps_min", fps.min);
	json_add_number(row, "fps_max", fps.max);
	json_add_number(row, "fps_p5", proto_percentile(values, count, 5));
	json_add_number(row, "fps_p95", fps.p95);
	json_add_number(row, "zero_deltas", (double)zero);
}

static void add_end_to_end(cJSON *row, const struct data *data, double *values)
{
	struct misses misses = {.deadline_ms = data->frame_deadline_ms, .worst_ms = NAN};
	size_t count = 0, known = 0, throttled = 0;
	for (size_t i = 0; i < data->frame_count; i++) {
		const struct data_frame *frame = &data->frame[i];
		double ms = data_frame_ms(frame);
		known += frame->throttled >= 0;
		throttled += frame->throttled == 1;
		if (!isnan(ms)) {
			report_count_miss(&misses, ms);
		}
		if (!isnan(frame->total_ms)) {
			values[count++] = frame->total_ms;
		}
	}
	struct proto_summary total = data_numbers_of(values, count);
	json_add_number(row, "end_to_end_mean_ms", total.mean);
	json_add_number(row, "end_to_end_p50_ms", total.p50);
	json_add_number(row, "end_to_end_p95_ms", total.p95);
	json_add_number(row, "end_to_end_p99_ms", total.p99);
	json_add_number(row, "end_to_end_max_ms", total.max);
	json_add_number(row, "in_flight", total.mean / data->frame_time_ms.mean);
	json_add_number(row, "throttled_count", known > 0 ? (double)throttled : (double)NAN);
	json_add_number(row, "throttled_percent", report_percent((double)throttled, (double)known));
	report_add_misses(row, &misses);
}

void report_add_frames(cJSON *tree, const struct data *data)
{
	cJSON *row = cJSON_AddObjectToObject(tree, "frames");
	const struct proto_summary *time = &data->frame_time_ms;
	double *values = calloc(data->frame_count + 1, sizeof(*values));
	report_add_word(row, "app", data->app);
	report_add_word(row, "status", time->count > 0 ? "ok" : "insufficient data");
	if (values) {
		add_rates(row, data, values);
		add_end_to_end(row, data, values);
	}
	add_seconds(row, data);
	json_add_number(row, "frame_time_mean_ms", time->mean);
	json_add_number(row, "frame_time_p50_ms", time->p50);
	json_add_number(row, "frame_time_p95_ms", time->p95);
	json_add_number(row, "frame_time_p99_ms", time->p99);
	json_add_number(row, "jitter_ms", time->std);
	json_add_number(row, "frame_count", (double)time->count);
	json_add_number(row, "total_count", (double)data->frame_count);
	json_add_number(row, "warmup_skipped", (double)data->warmup);
	free(values);
}
