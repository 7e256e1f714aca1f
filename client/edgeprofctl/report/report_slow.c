/* SPDX-License-Identifier: Apache-2.0 */
/* report_slow.c: lists the slowest frames of a report, each with its cause as far as the data shows
 * it. */
#include "client/edgeprofctl/report/report_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "proto/percentile.h"

enum { SLOW_MAX = 10, STAGES_MAX = 64 };

/* How close in time a mark or an alert is coincident; the part of a frame's excess that a stage
 * must explain to be its cause. */
static const double near_s = 1, cause_share = 0.5;

struct slow {
	const struct data *data;
	double over_ms, usual_ms; /* slow is longer than that; the median frame */
	size_t count, all;	  /* listed; slow */
	size_t frame[SLOW_MAX];	  /* the slowest first */
	double ms[SLOW_MAX][STAGES_MAX + 1],
		usual[STAGES_MAX + 1]; /* of the stages; last: of none */
};

/* Of the stage number, or what is outside of all stages. */
static void sum_by_frame(const struct data *data, size_t number, double *sum)
{
	for (size_t i = 0; i < data->frame_count; i++) {
		sum[i] = number < data->stage_count ? 0 : data_frame_ms(&data->frame[i]);
	}
	for (size_t s = 0; s < data->stage_count; s++) {
		const struct data_stage *stage = &data->stage[s];
		bool part =
			number < data->stage_count ? s == number : data_is_outermost(data, stage);
		double sign = number < data->stage_count ? 1 : -1;
		for (size_t i = 0; part && i < stage->count; i++) {
			size_t frame = stage->execution[i].frame;
			if (frame < data->frame_count && isfinite(stage->execution[i].ms)) {
				sum[frame] += sign * stage->execution[i].ms;
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

/* What each stage took in the slow frames, and usually: the median over the frames that it ran in.
 */
static void join_stages(struct slow *slow, size_t stages, double *sum)
{
	for (size_t s = 0; s <= stages; s++) {
		size_t kept = 0;
		sum_by_frame(slow->data, s < stages ? s : slow->data->stage_count, sum);
		for (size_t i = 0; i < slow->count; i++) {
			slow->ms[i][s] = sum[slow->frame[i]];
		}
		for (size_t i = 0; i < slow->data->frame_count; i++) {
			sum[kept] = sum[i];
			kept += sum[i] > 0;
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

static const struct data_happening *nearest(const struct data *data, double from_s, double to_s)
{
	const struct data_happening *ret = NULL;
	double least_s = near_s;
	for (size_t i = 0; i < data->happening_count; i++) {
		const struct data_happening *one = &data->happening[i];
		double distance_s = fmax(from_s - one->at_s, one->at_s - to_s);
		if (distance_s < least_s && strcmp(one->kind, "throttle") != 0) {
			least_s = distance_s;
			ret = one;
		}
	}
	return ret;
}

static void add_slow(cJSON *array, const struct slow *slow, size_t i, size_t stages)
{
	char cause[512];
	struct text text = TEXT_IN(cause);
	const struct data *data = slow->data;
	const struct data_frame *frame = &data->frame[slow->frame[i]];
	double ms = data_frame_ms(frame);
	int stage = cause_of(slow, i, stages, ms - slow->usual_ms);
	const struct data_happening *near = nearest(data, frame->at_s - ms / 1000, frame->at_s);
	if (stage >= 0 && data->stage_count > 0) {
		text_add(&text, "%s took %.2f instead of %.2f ms",
			(size_t)stage < stages ? data->stage[stage].name : "waiting between stages",
			slow->ms[i][stage], slow->usual[stage]);
	} else {
		text_add(&text, "not explained by a single stage");
	}
	if (frame->throttled == 1) {
		text_add(&text, "; the hardware throttled");
	}
	if (near) {
		text_add(&text, "; within 1 s of %s “%s”", near->kind, near->text);
	}
	cJSON *row = report_add_row(array);
	json_add_number(row, "frame", (double)frame->id);
	json_add_number(row, "at_s", frame->at_s);
	json_add_number(row, "total_ms", ms);
	cJSON_AddStringToObject(row, "cause", cause);
}

/* Slow is what the daemon calls so: over the deadline, else over twice the median, or over p99 when
 * that is more. */
void report_add_slow(cJSON *tree, const struct data *data)
{
	cJSON *array = cJSON_AddArrayToObject(tree, "slow_frames");
	const struct proto_summary *ms =
		data->total_ms.count > 0 ? &data->total_ms : &data->frame_time_ms;
	struct slow *slow = calloc(1, sizeof(*slow));
	double *sum = calloc(data->frame_count + 1, sizeof(*sum));
	size_t stages = data->stage_count < STAGES_MAX ? data->stage_count : STAGES_MAX;
	if (slow && sum) {
		slow->data = data;
		slow->usual_ms = ms->p50;
		slow->over_ms = isnan(data->frame_deadline_ms) ? fmax(2 * ms->p50, ms->p99)
							       : data->frame_deadline_ms;
		for (size_t i = 0; i < data->frame_count; i++) {
			if (data_frame_ms(&data->frame[i]) > slow->over_ms) {
				slow->all++;
				offer(slow, i);
			}
		}
		join_stages(slow, slow->count > 0 ? stages : 0, sum);
		for (size_t i = 0; i < slow->count; i++) {
			add_slow(array, slow, i, stages);
		}
		cJSON *frames = cJSON_GetObjectItemCaseSensitive(tree, "frames");
		json_add_number(frames, "slow_count", (double)slow->all);
		json_add_number(frames, "slow_over_ms", slow->over_ms);
	}
	free(slow);
	free(sum);
}
