/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data_stages.c: makes stages of the runs of an app: in which other one each mostly runs, its own
 * time, its cost per frame, and the frame's total. An execution is in TOTAL unless it is a total
 * itself or inside of one that is counted: that time would count twice.
 */
#include "client/edgeprofctl/data/data_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/term/text.h"
#include "proto/name.h"
#include "proto/text.h"

/* By thread; there in the order of ends, those inside first. */
static int by_thread(const void *a, const void *b)
{
	const struct data_run *x = *(const struct data_run *const *)a;
	const struct data_run *y = *(const struct data_run *const *)b;
	if (x->process != y->process) {
		return x->process > y->process ? 1 : -1;
	}
	if (x->thread != y->thread) {
		return x->thread - y->thread;
	}
	return x->end_ns != y->end_ns ? (x->end_ns > y->end_ns ? 1 : -1) : y->depth - x->depth;
}

static double ms_of(const struct data_run *run)
{
	return (double)(run->end_ns - run->start_ns) / 1e6;
}

/* What has ended before a run of the same thread and started in it was inside. Counts for each pair
 * how often; stage's own time becomes less by that of its children. */
static void relate(struct data_records *records, struct data_run **run, uint32_t *inside)
{
	size_t waiting = 0; /* runs that have no parent yet; they stand in front */
	for (size_t i = 0; i < records->run_count; i++) {
		struct data_run *parent = run[i];
		while (waiting > 0) {
			struct data_run *child = run[waiting - 1];
			if (child->process != parent->process || child->thread != parent->thread ||
				child->depth <= parent->depth ||
				child->start_ns < parent->start_ns) {
				break;
			}
			waiting--;
			child->around = parent;
			if (child->depth == parent->depth + 1) {
				inside[child->stage * records->stage_count + parent->stage]++;
				records->stage[parent->stage].self_ms -= ms_of(child);
			}
		}
		run[waiting++] = parent;
		records->stage[parent->stage].self_ms += ms_of(parent);
		records->stage[parent->stage].count++;
	}
}

/* -1: mostly outermost. */
static int parent_of(const struct data_records *records, const uint32_t *inside, size_t stage)
{
	const uint32_t *votes = &inside[stage * records->stage_count];
	size_t most = stage, all = 0, count = records->stage[stage].count - votes[stage];
	for (size_t i = 0; i < records->stage_count; i++) {
		bool other = i != stage; /* in itself it is by recursion */
		all += other ? votes[i] : 0;
		most = other && votes[i] > 0 && (most == stage || votes[i] > votes[most]) ? i
											  : most;
	}
	return most == stage || 2 * all < count ? -1 : (int)most;
}

static void find_parents(struct data_records *records, const uint32_t *inside)
{
	for (size_t i = 0; i < records->stage_count; i++) {
		records->stage[i].parent = parent_of(records, inside, i);
	}
	for (size_t i = 0; i < records->stage_count; i++) {
		int at = records->stage[i].parent;
		for (size_t n = 0; at >= 0 && at != (int)i && n < records->stage_count; n++) {
			at = records->stage[at].parent;
		}
		if (at == (int)i) { /* a in b in a: the tree needs a root */
			records->stage[i].parent = -1;
		}
	}
}

/* The stages in the order in which they first began: records come thread by thread. */
static void order_stages(const struct data_records *records, size_t order[DATA_STAGES_MAX])
{
	uint64_t first_ns[DATA_STAGES_MAX];
	memset(first_ns, 0xff, sizeof(first_ns));
	for (size_t i = 0; i < records->run_count; i++) {
		const struct data_run *run = &records->run[i];
		if (run->start_ns < first_ns[run->stage]) {
			first_ns[run->stage] = run->start_ns;
		}
	}
	for (size_t i = 0; i < records->stage_count; i++) {
		size_t at = i;
		for (; at > 0 && first_ns[order[at - 1]] > first_ns[i]; at--) {
			order[at] = order[at - 1];
		}
		order[at] = i;
	}
}

/* Names end in the unit where that is a further one of the stage, or by custom. */
static size_t shown_length(const struct data_records *records, const struct data_stage *stage)
{
	const char *name = stage->name;
	size_t length = strlen(name), tail = strlen(stage->unit);
	size_t plain = proto_name_without_unit(name, length, NULL);
	if (plain < length || tail == 0 || !text_ends_with(name, stage->unit)) {
		return plain;
	}
	for (size_t i = 0; i < records->stage_count; i++) {
		size_t base = strlen(records->stage[i].name);
		if (base + 1 + tail == length && name[base] == '_' &&
			memcmp(records->stage[i].name, name, base) == 0) {
			return base;
		}
	}
	return length;
}

/* Copies the stages that ran to data in the order of the tree; index[] maps old to new. */
static void add_tree(struct data_gather *gather, int parent, int new_parent, unsigned depth,
	const size_t order[], int index[])
{
	struct data *data = gather->data;
	const struct data_records *records = &gather->best;
	for (size_t n = 0; n < records->stage_count; n++) {
		size_t i = order[n];
		if (records->stage[i].parent != parent || records->stage[i].count == 0) {
			continue;
		}
		struct data_stage *stage = &data->stage[data->stage_count];
		index[i] = (int)data->stage_count++;
		*stage = records->stage[i];
		stage->parent = new_parent;
		stage->depth = depth;
		stage->execution = calloc(stage->count, sizeof(*stage->execution));
		gather->out_of_memory = gather->out_of_memory || !stage->execution;
		stage->count = 0;
		text_clean(stage->name, true);
		snprintf(stage->shown, sizeof(stage->shown), "%.*s",
			(int)shown_length(records, stage), stage->name);
		text_clean(stage->unit, true);
		text_clean(stage->category, true);
		stage->left_out = strcmp(stage->name, "total") == 0 ||
				  strcmp(stage->category, "total") == 0 ||
				  strcmp(stage->category, "wait") == 0;
		add_tree(gather, (int)i, index[i], depth + 1, order, index);
	}
}

/* The same stage may be inside of another one here, and on its own there. */
static bool is_inside(
	const struct data *data, const struct data_run *run, const int index[DATA_STAGES_MAX])
{
	const struct data_run *at = run->around;
	while (at && data->stage[index[at->stage]].left_out) {
		at = at->around;
	}
	return at;
}

static void add_runs(struct data_gather *gather, const int index[DATA_STAGES_MAX])
{
	const struct data_run *last = NULL; /* of what TOTAL is made of */
	for (size_t i = 0; i < gather->best.run_count; i++) {
		const struct data_run *run = &gather->best.run[i];
		struct data_stage *stage = &gather->data->stage[index[run->stage]];
		struct data_execution *one = &stage->execution[stage->count++];
		stage->failed += run->failed;
		*one = (struct data_execution){.at_s = data_seconds(gather, run->end_ns),
			.ms = ms_of(run),
			.frame = run->frame,
			.throttled = run->throttled,
			.inside = is_inside(gather->data, run, index)};
		if (one->frame != DATA_NO_FRAME && data_is_outermost(stage, one)) {
			/* those of one thread do where tasks take turns */
			bool apart = last && (run->timed || run->process != last->process ||
						     run->thread != last->thread);
			gather->data->overlaps |= apart && run->start_ns < last->end_ns;
			last = run;
		}
	}
}

static void sum_stage(struct data *data, struct data_stage *stage, double *values, double *totals)
{
	double inside_ms = 0;
	for (size_t i = 0; i < stage->count; i++) {
		const struct data_execution *one = &stage->execution[i];
		values[i] = one->ms;
		if (one->frame < data->whole) {
			inside_ms += one->ms;
			totals[one->frame] += data_is_outermost(stage, one) ? one->ms : 0;
		}
	}
	stage->ms = data_numbers_of(values, stage->count);
	stage->per_frame_ms = data->whole > 0 ? inside_ms / (double)data->whole : (double)NAN;
}

/* Of all frames that have one; values is room for them. */
static struct proto_summary numbers_of_frames(const struct data *data, bool time, double *values)
{
	size_t count = 0;
	for (size_t i = 0; i < data->frame_count; i++) {
		values[count] = time ? data->frame[i].time_ms : data->frame[i].total_ms;
		count += !isnan(values[count]);
	}
	return data_numbers_of(values, count);
}

static int sum_up(struct data *data)
{
	size_t most = data->frame_count;
	for (size_t i = 0; i < data->stage_count; i++) {
		most = data->stage[i].count > most ? data->stage[i].count : most;
	}
	double *values = calloc(most + 1, sizeof(*values));
	double *totals = calloc(data->frame_count + 1, sizeof(*totals));
	const struct data_stage *total = data_stage(data, "total");
	if (values && totals) {
		for (size_t i = 0; i < data->stage_count; i++) {
			sum_stage(data, &data->stage[i], values, totals);
		}
		data->frame_time_ms = numbers_of_frames(data, true, values);
		data->total_ms = total ? total->ms : numbers_of_frames(data, false, values);
		if (data->total_ms.count == 0 && data->stage_count > 0) {
			data->total_ms = data_numbers_of(totals, data->whole);
		}
	}
	bool failed = !values || !totals;
	free(values);
	free(totals);
	return failed ? -ENOMEM : 0;
}

int data_make_stages(struct data_gather *gather)
{
	struct data_records *records = &gather->best;
	struct data *data = gather->data;
	size_t order[DATA_STAGES_MAX];
	int index[DATA_STAGES_MAX] = {0}, r = -ENOMEM;
	struct data_run **run = calloc(records->run_count + 1, sizeof(*run));
	uint32_t *inside = calloc(records->stage_count * records->stage_count + 1, sizeof(*inside));
	data->stage = calloc(records->stage_count + 1, sizeof(*data->stage));
	if (run && inside && data->stage) {
		for (size_t i = 0; i < records->run_count; i++) {
			run[i] = &records->run[i];
		}
		qsort(run, records->run_count, sizeof(*run), by_thread);
		relate(records, run, inside);
		find_parents(records, inside);
		order_stages(records, order);
		add_tree(gather, -1, -1, 0, order, index);
		if (!gather->out_of_memory) {
			add_runs(gather, index);
			r = sum_up(data);
		}
	}
	free(run);
	free(inside);
	return r;
}
