/* SPDX-License-Identifier: Apache-2.0 */
/* html_slow.c: lists the slowest frames next to a usual one, each with its cause as far as the data
 * shows it. */
#include "client/edgeprofctl/report/html.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/percentile.h"

enum { SLOW_MAX = 10, STAGES_MAX = 64 };

/* How close in time a mark or an alert is coincident; the part of a frame's excess that a stage
 * must explain to be its cause. */
static const double near_s = 1, cause_share = 0.5;

struct slow {
	const struct page *page;
	size_t count, frame[SLOW_MAX]; /* indexes, the slowest first */
	double usual_ms;	       /* the median frame */
	double longest_ms;
	double stage_ms[SLOW_MAX][STAGES_MAX];
	double usual_stage_ms[STAGES_MAX];
};

double html_frame_ms(const struct data_frame *frame)
{
	return isfinite(frame->total_ms) ? frame->total_ms : frame->time_ms;
}

const struct data_numbers *html_frame_numbers(const struct data *data)
{
	return data->total_ms.count > 0 ? &data->total_ms : &data->frame_time_ms;
}

/* What the stage took in each frame. */
static void sum_by_frame(const struct data *data, const struct data_stage *stage, double *sum)
{
	memset(sum, 0, data->frame_count * sizeof(*sum));
	for (size_t i = 0; i < stage->count; i++) {
		size_t frame = stage->execution[i].frame;
		if (frame < data->frame_count && isfinite(stage->execution[i].ms)) {
			sum[frame] += stage->execution[i].ms;
		}
	}
}

/* Inserts into the list of the slowest. */
static void offer(struct slow *slow, size_t frame)
{
	const struct data *data = slow->page->data;
	double ms = html_frame_ms(&data->frame[frame]);
	size_t at = slow->count < SLOW_MAX ? slow->count++ : SLOW_MAX;
	while (at > 0 && html_frame_ms(&data->frame[slow->frame[at - 1]]) < ms) {
		if (at < SLOW_MAX) {
			slow->frame[at] = slow->frame[at - 1];
		}
		at--;
	}
	if (at < SLOW_MAX) {
		slow->frame[at] = frame;
	}
}

/* What each stage took in the slow frames, and usually: the median over the frames that it ran in.
 */
static void join_stages(struct slow *slow, double *sum)
{
	const struct data *data = slow->page->data;
	for (size_t s = 0; s < data->stage_count && s < STAGES_MAX; s++) {
		size_t kept = 0;
		sum_by_frame(data, &data->stage[s], sum);
		for (size_t i = 0; i < slow->count; i++) {
			slow->stage_ms[i][s] = sum[slow->frame[i]];
		}
		for (size_t i = 0; i < data->frame_count; i++) {
			if (sum[i] > 0) {
				sum[kept++] = sum[i];
			}
		}
		proto_sort(sum, kept);
		slow->usual_stage_ms[s] = kept > 0 ? proto_percentile(sum, kept, 50) : 0;
	}
}

/* The stage that explains most of the frame's excess; one inside of another rather than that, when
 * it explains most of it. -1: none. */
static int longest_stage(const struct slow *slow, size_t i, double excess_ms)
{
	const struct data *data = slow->page->data;
	double most_ms = excess_ms * cause_share;
	int found = -1;
	for (size_t s = 0; s < data->stage_count && s < STAGES_MAX; s++) {
		double ms = slow->stage_ms[i][s] - slow->usual_stage_ms[s];
		bool inside = found >= 0 && data->stage[s].parent == found;
		if (!data->stage[s].left_out && ms > (inside ? 0.7 * most_ms : most_ms)) {
			found = (int)s;
			most_ms = fmax(ms, most_ms);
		}
	}
	return found;
}

static void write_coincident(FILE *out, const struct data *data, double from_s, double to_s)
{
	const struct data_happening *nearest = NULL;
	double nearest_s = near_s;
	for (size_t i = 0; i < data->happening_count; i++) {
		const struct data_happening *happening = &data->happening[i];
		double distance_s = fmax(from_s - happening->at_s, happening->at_s - to_s);
		if (distance_s < nearest_s && strcmp(happening->kind, "throttle") != 0) {
			nearest_s = distance_s;
			nearest = happening;
		}
	}
	if (nearest) {
		html(out, "; within 1 s of %s “%s”", nearest->kind, nearest->text);
	}
}

/* Whether a bar of a frame shows it: the stages that no other contains, but by name. */
static bool is_outermost(const struct data *data, const struct data_stage *stage)
{
	int parent = stage->parent;
	return !stage->left_out &&
	       (parent < 0 || (data->stage[parent].left_out && data->stage[parent].parent < 0));
}

/* The time that no stage covers. */
static double rest_of(const struct slow *slow, const double *stage_ms, double ms)
{
	const struct data *data = slow->page->data;
	for (size_t s = 0; s < data->stage_count && s < STAGES_MAX; s++) {
		ms -= is_outermost(data, &data->stage[s]) ? stage_ms[s] : 0;
	}
	return fmax(ms, 0);
}

static void write_cause(const struct slow *slow, size_t i)
{
	FILE *out = slow->page->out;
	const struct data *data = slow->page->data;
	const struct data_frame *frame = &data->frame[slow->frame[i]];
	double ms = html_frame_ms(frame), excess_ms = ms - slow->usual_ms;
	double rest_ms = rest_of(slow, slow->stage_ms[i], ms);
	double usual_rest_ms = rest_of(slow, slow->usual_stage_ms, slow->usual_ms);
	int stage = longest_stage(slow, i, excess_ms);
	if (data->stage_count > 0 && rest_ms - usual_rest_ms > cause_share * excess_ms) {
		html(out, "<b>no stage</b> for %s instead of %s: waiting", html_ms(rest_ms).text,
			html_ms(usual_rest_ms).text);
	} else if (stage >= 0) {
		double took_ms = slow->stage_ms[i][stage];
		html(out, "<b>%s</b> took %s instead of %s", data->stage[stage].name,
			html_ms(took_ms).text, html_ms(slow->usual_stage_ms[stage]).text);
	} else {
		fputs("not explained by a single stage", out);
	}
	if (frame->throttled == 1) {
		fputs("; the hardware throttled", out);
	}
	write_coincident(out, data, frame->at_s - ms / 1000, frame->at_s);
}

/* The outermost stages of a frame on the scale of the slowest frame. */
static void bars(const struct slow *slow, const double *stage_ms, double ms)
{
	FILE *out = slow->page->out;
	const struct data *data = slow->page->data;
	double x = 0, width = html_percent(ms, slow->longest_ms);
	html_chart(out, "mini", 16, "Stages of the frame");
	html(out, "<rect class=\"none\" width=\"%.2f%%\" height=\"16\"/>", width);
	for (size_t s = 0; s < data->stage_count && s < STAGES_MAX; s++) {
		const struct data_stage *stage = &data->stage[s];
		double part = html_percent(stage_ms[s], slow->longest_ms);
		if (!is_outermost(data, stage) || part < 0.05 || x + part > 100.5) {
			continue;
		}
		html(out,
			"<rect class=\"f%d\" x=\"%.2f%%\" width=\"%.2f%%\" height=\"16\"><title>%s "
			"%s</title></rect>",
			(int)(s % 9), x, part, stage->name, html_ms(stage_ms[s]).text);
		x += part;
	}
	fputs("</svg>", out);
}

static void write_row(const struct slow *slow, const char *name, const char *at,
	const double *stage_ms, double ms)
{
	html(slow->page->out,
		"<tr><td class=\"n\">%s<small>%s</small></td><td class=\"n\">%s<small>%.1f × "
		"usual</small></td><td>",
		name, at, html_ms(ms).text, ms / slow->usual_ms);
	bars(slow, stage_ms, ms);
}

static void write_rows(const struct slow *slow, size_t over)
{
	FILE *out = slow->page->out;
	html_table(out, "Slow frames", ">Frame|>Took|Stages and cause");
	write_row(slow, "usual", "median", slow->usual_stage_ms, slow->usual_ms);
	fputs("</td></tr>\n", out);
	for (size_t i = 0; i < slow->count; i++) {
		const struct data_frame *frame = &slow->page->data->frame[slow->frame[i]];
		char name[24];
		snprintf(name, sizeof(name), "%" PRIu64, frame->id);
		write_row(slow, name, html_at(slow->page, frame->at_s).text, slow->stage_ms[i],
			html_frame_ms(frame));
		write_cause(slow, i);
		fputs("</td></tr>\n", out);
	}
	html_table_end(out, "slow frames", over - slow->count);
}

/* Slow is what the daemon calls so: over the deadline, else over twice the median, or over p99 when
 * that is more. */
void html_slow_frames(const struct page *page)
{
	FILE *out = page->out;
	const struct data *data = page->data;
	const struct data_numbers *ms = html_frame_numbers(data);
	struct slow *slow = calloc(1, sizeof(*slow));
	double *sum = calloc(data->frame_count + 1, sizeof(*sum));
	bool deadline = isfinite(page->deadline_ms);
	double over_ms = deadline ? page->deadline_ms : fmax(2 * ms->p50, ms->p99);
	size_t over = 0;
	if (!slow || !sum || data->frame_count == 0) {
		goto end;
	}
	slow->page = page;
	slow->usual_ms = ms->p50;
	for (size_t i = 0; i < data->frame_count; i++) {
		if (html_frame_ms(&data->frame[i]) > over_ms) {
			over++;
			offer(slow, i);
		}
	}
	html_section(out, "slow", "Slow frames", "");
	html(out, "<p class=\"dim\">%s of %s frames took longer than %s, %s.</p>\n",
		over == 0 ? "None" : format_count((int64_t)over).text,
		format_count((int64_t)data->frame_count).text, html_ms(over_ms).text,
		deadline		? "the deadline"
		: over_ms > 2 * ms->p50 ? "which is p99"
					: "twice the median");
	if (slow->count > 0) {
		slow->longest_ms = html_frame_ms(&data->frame[slow->frame[0]]);
		join_stages(slow, sum);
		write_rows(slow, over);
	}
	fputs(HTML_END, out);
end:
	free(slow);
	free(sum);
}
