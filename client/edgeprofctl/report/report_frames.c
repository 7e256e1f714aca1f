/* SPDX-License-Identifier: Apache-2.0 */
/* report_frames.c: makes the frames of a report: rates, times, missed deadlines, and the slowest
 * ones, each with its cause as far as the data shows it. */
#include "client/edgeprofctl/report/report_private.h"

#include <math.h>
#include <stdlib.h>

enum { SLOW_MAX = 10, STAGES_MAX = 64 };

/* The part of a frame's excess that a stage must explain to be its cause. */
static const double cause_share = 0.5;

struct slow {
	const struct data *data;
	double usual_ms;	       /* of the median frame */
	size_t count, frame[SLOW_MAX]; /* the slowest first */
	double ms[SLOW_MAX][STAGES_MAX + 1],
		usual[STAGES_MAX + 1]; /* of the stages; last: of none */
};

void report_count(struct counts *counts, double ms, int throttled)
{
	bool missed = ms > counts->deadline_ms;
	counts->runs += !isnan(ms);
	counts->misses += missed;
	counts->in_a_row = missed ? counts->in_a_row + 1 : 0;
	counts->most_in_a_row = fmax(counts->most_in_a_row, counts->in_a_row);
	counts->worst_ms = missed ? fmax(counts->worst_ms, ms) : counts->worst_ms;
	counts->known += throttled >= 0;
	counts->throttled += throttled == 1;
}

void report_add_counts(cJSON *to, const struct counts *counts)
{
	json_add_number(to, "throttled_count", counts->known > 0 ? counts->throttled : NAN);
	json_add_number(to, "throttled_percent", report_percent(counts->throttled, counts->known));
	if (!isnan(counts->deadline_ms)) {
		json_add_number(to, "deadline_ms", counts->deadline_ms);
		json_add_number(to, "misses", counts->misses);
		json_add_number(
			to, "miss_rate", report_percent(counts->misses, counts->runs) / 100);
		json_add_number(to, "longest_consecutive_misses", counts->most_in_a_row);
		json_add_number(to, "worst_ms", counts->worst_ms);
	}
}

void report_add_numbers(cJSON *to, const char *of, const struct proto_summary *n)
{
	const struct {
		const char *name;
		double value;
	} members[] = {{"mean", n->mean}, {"p50", n->p50}, {"p90", n->p90}, {"p95", n->p95},
		{"p99", n->p99}, {"min", n->min}, {"max", n->max}, {"std", n->std},
		{"std_sample", n->std_sample}};
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		char name[64];
		snprintf(name, sizeof(name), "%s%s_ms", of, members[i].name);
		json_add_number(to, name, members[i].value);
	}
}

/* Frames of full seconds, counted from the first one and again from each that follows a gap or, as
 * the daemon has it, a pause. */
static void add_seconds(cJSON *row, const struct data *data)
{
	enum { PAUSE_S = 10 };
	double least = INFINITY, most = 0, from_s = 0, count = 0;
	for (size_t i = 0; i < data->frame_count; i++) {
		const struct data_frame *frame = &data->frame[i];
		if (i == 0 || isnan(frame->time_ms) || frame->at_s - frame[-1].at_s > PAUSE_S) {
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
	struct counts counts = {.deadline_ms = data->frame_deadline_ms, .worst_ms = NAN};
	size_t count = 0;
	for (size_t i = 0; i < data->frame_count; i++) {
		const struct data_frame *frame = &data->frame[i];
		report_count(&counts, data_frame_ms(frame), frame->throttled);
		values[count] = frame->total_ms;
		count += !isnan(frame->total_ms);
	}
	struct proto_summary total = data_numbers_of(values, count);
	report_add_numbers(row, "end_to_end_", &total);
	json_add_number(row, "in_flight", total.mean / data->frame_time_ms.mean);
	report_add_counts(row, &counts);
}

/* Of the stage number, or what is outside of all stages. */
static void sum_by_frame(const struct data *data, size_t number, double *sum)
{
	for (size_t i = 0; i < data->frame_count; i++) {
		sum[i] = number < data->stage_count ? 0 : data_frame_ms(&data->frame[i]);
	}
	for (size_t s = 0; s < data->stage_count; s++) {
		const struct data_stage *stage = &data->stage[s];
		double sign = number < data->stage_count ? 1 : -1;
		for (size_t i = 0; i < stage->count; i++) {
			const struct data_execution *one = &stage->execution[i];
			bool part = number < data->stage_count ? s == number
							       : data_is_outermost(stage, one);
			if (part && one->frame < data->frame_count && isfinite(one->ms)) {
				sum[one->frame] += sign * one->ms;
			}
		}
	}
}

/* Inserts into the list of the slowest. */
static void offer(struct slow *slow, size_t frame)
{
	const struct data_frame *frames = slow->data->frame;
	double ms = data_frame_ms(&frames[frame]);
	size_t at = slow->count;
	slow->count += slow->count < SLOW_MAX;
	for (; at > 0 && data_frame_ms(&frames[slow->frame[at - 1]]) < ms; at--) {
		if (at < SLOW_MAX) {
			slow->frame[at] = slow->frame[at - 1];
		}
	}
	if (at < SLOW_MAX) {
		slow->frame[at] = frame;
	}
}

/* What each stage took in the slow frames, and usually: the median over all frames, which is 0 of a
 * stage that most of them do without. */
static void join_stages(struct slow *slow, size_t stages, double *sum)
{
	for (size_t s = 0; s <= stages; s++) {
		size_t kept = 0;
		sum_by_frame(slow->data, s < stages ? s : slow->data->stage_count, sum);
		for (size_t i = 0; i < slow->count; i++) {
			slow->ms[i][s] = sum[slow->frame[i]];
		}
		for (size_t i = 0; i < slow->data->frame_count; i++) {
			sum[kept] = fmax(sum[i], 0);
			kept += isfinite(sum[i]);
		}
		proto_sort(sum, kept);
		slow->usual[s] = kept > 0 ? proto_percentile(sum, kept, 50) : 0;
	}
}

/* The stage that explains most of the frame's excess; one inside of another rather than that, when
 * it explains most of it. -1: none. */
static int cause_of(const struct slow *slow, size_t i, size_t stages, double excess_ms)
{
	const struct data_stage *stage = slow->data->stage;
	double most_ms = excess_ms * cause_share;
	int found = -1;
	for (size_t s = 0; s <= stages; s++) {
		double ms = slow->ms[i][s] - slow->usual[s];
		bool inside = found >= 0 && s < stages && stage[s].parent == found;
		if ((s == stages || !stage[s].left_out) &&
			ms > (inside ? 0.7 * most_ms : most_ms)) {
			found = (int)s;
			most_ms = fmax(ms, most_ms);
		}
	}
	return found;
}

static void add_slow(cJSON *array, const struct slow *slow, size_t i, size_t stages)
{
	char cause[512];
	struct text text = TEXT_IN(cause);
	const struct data *data = slow->data;
	const struct data_frame *frame = &data->frame[slow->frame[i]];
	double ms = data_frame_ms(frame);
	int stage = cause_of(slow, i, stages, ms - slow->usual_ms);
	if (stage >= 0 && data->stage_count > 0) {
		text_add(&text, "%s took %.2f",
			(size_t)stage < stages ? data->stage[stage].name : "waiting between stages",
			slow->ms[i][stage]);
		if (slow->usual[stage] > 0) {
			text_add(&text, " instead of %.2f ms", slow->usual[stage]);
		} else {
			text_add(&text, " ms; most frames do without");
		}
	} else {
		text_add(&text, "not explained by a single stage");
	}
	if (frame->throttled == 1) {
		text_add(&text, "; the hardware throttled");
	}
	cJSON *row = report_add_row(array);
	json_add_number(row, "frame", (double)frame->id);
	json_add_number(row, "at_s", frame->at_s);
	json_add_number(row, "total_ms", ms);
	cJSON_AddStringToObject(row, "cause", cause);
}

/* Slow is what the daemon calls so: over the deadline, else over twice the median, or over p99 when
 * that is more. */
static void add_slow_frames(cJSON *tree, cJSON *row, const struct data *data, double *sum)
{
	cJSON *array = cJSON_AddArrayToObject(tree, "slow_frames");
	size_t stages = data->stage_count < STAGES_MAX ? data->stage_count : STAGES_MAX, all = 0;
	size_t kept = 0;
	for (size_t i = 0; i < data->frame_count; i++) {
		sum[kept] = data_frame_ms(&data->frame[i]);
		kept += !isnan(sum[kept]);
	}
	struct proto_summary ms = data_numbers_of(sum, kept);
	struct slow slow = {.data = data, .usual_ms = ms.p50};
	double over_ms =
		isnan(data->frame_deadline_ms) ? fmax(2 * ms.p50, ms.p99) : data->frame_deadline_ms;
	for (size_t i = 0; i < data->frame_count; i++) {
		if (data_frame_ms(&data->frame[i]) > over_ms) {
			all++;
			offer(&slow, i);
		}
	}
	if (slow.count > 0) {
		join_stages(&slow, stages, sum);
	}
	for (size_t i = 0; i < slow.count; i++) {
		add_slow(array, &slow, i, stages);
	}
	json_add_number(row, "slow_count", (double)all);
	json_add_number(row, "slow_over_ms", over_ms);
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
		add_slow_frames(tree, row, data, values);
	}
	add_seconds(row, data);
	report_add_numbers(row, "frame_time_", time);
	json_add_number(row, "jitter_ms", time->std);
	json_add_number(row, "frame_count", (double)time->count);
	json_add_number(row, "total_count", (double)data->frame_count);
	json_add_number(row, "warmup_skipped", (double)data->warmup);
	free(values);
}
