/* SPDX-License-Identifier: Apache-2.0 */
/* trace_tracks.c: places runs on tracks, gathers the parts of frames, and pairs begins with ends.
 */
#include "client/edgeprofctl/trace/trace_tracks.h"

#include <errno.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

/* Each lane has a stack of the runs that a later one may still enclose. It is bounded: what is
 * dropped from its bottom becomes one span that must not be cut. */
enum { SPANS_FIRST = 16, SPANS_MAX = 512, HIDDEN_PID = 1 << 22, THREADS = 256 };

struct span {
	uint64_t start_ns, end_ns;
	unsigned depth;
};

struct lane {
	uint32_t tid;
	size_t count, capacity;
	struct span *span;    /* apart, ascending */
	uint64_t last_end_ns; /* of all */
	uint64_t closed_ns;   /* nothing may start before: what was there encloses or is done */
	struct span dropped;  /* nested runs behind closed_ns as one; end_ns 0 = none */
};

struct process {
	uint32_t app, serial, pid;
	uint32_t shown_pid;
	uint32_t first_tid;
	struct lane *lane[THREADS][TRACE_LANES];
};

static void process_destroy(struct process *process)
{
	for (size_t i = 0; i < THREADS; i++) {
		for (size_t l = 0; l < TRACE_LANES; l++) {
			if (process->lane[i][l]) {
				free(process->lane[i][l]->span);
				free(process->lane[i][l]);
			}
		}
	}
	free(process);
}

void trace_tracks_finish(struct trace_tracks *tracks)
{
	for (size_t i = 0; i < tracks->count; i++) {
		process_destroy(tracks->process[i]);
	}
}

static bool pid_taken(const struct trace_tracks *tracks, uint32_t pid)
{
	for (size_t i = 0; i < tracks->count; i++) {
		if (tracks->process[i]->shown_pid == pid) {
			return true;
		}
	}
	return false;
}

/* A pid may be unseen, be of two apps, or have been used again: then one is made up. */
static int process_find(
	struct trace_tracks *tracks, const struct trace_event *event, struct process **ret)
{
	for (size_t i = tracks->count; i > 0; i--) {
		struct process *process = tracks->process[i - 1];
		if (process->app == event->app_index && process->serial == event->process &&
			process->pid == event->pid) {
			*ret = process;
			return 0;
		}
	}
	if (tracks->count == TRACE_PROCESSES) {
		return -ENOSPC;
	}
	struct process *process = calloc(1, sizeof(*process));
	if (!process) {
		return -ENOMEM;
	}
	bool usable = event->pid > 0 && event->pid < HIDDEN_PID && !pid_taken(tracks, event->pid);
	process->app = event->app_index;
	process->serial = event->process;
	process->pid = event->pid;
	process->shown_pid = usable ? event->pid : HIDDEN_PID + (uint32_t)tracks->count;
	tracks->process[tracks->count++] = process;
	*ret = process;
	return 0;
}

static int lane_find(struct trace_tracks *tracks, struct process *process, uint8_t thread,
	uint8_t number, struct lane **ret, struct trace_track *track)
{
	struct lane *lane = process->lane[thread][number];
	track->new_thread = !lane;
	if (!lane) {
		lane = calloc(1, sizeof(*lane));
		if (!lane) {
			return -ENOMEM;
		}
		lane->tid = TRACE_FIRST_TID + tracks->tids++;
		process->lane[thread][number] = lane;
		process->first_tid = process->first_tid == 0 ? lane->tid : process->first_tid;
	}
	track->pid = process->shown_pid;
	track->tid = lane->tid;
	track->lane = number;
	*ret = lane;
	return 0;
}

/* Makes room for one more by dropping the older half. */
static void drop(struct lane *lane)
{
	size_t half = lane->count / 2;
	for (size_t i = 0; i < half; i++) {
		const struct span *span = &lane->span[i];
		if (span->depth == 0) {
			lane->closed_ns = span->end_ns;
			lane->dropped.end_ns = 0;
		} else if (lane->dropped.end_ns == 0) {
			lane->dropped = *span;
		} else {
			lane->dropped.end_ns = span->end_ns;
		}
	}
	lane->count -= half;
	memmove(lane->span, lane->span + half, lane->count * sizeof(*lane->span));
}

static bool reserve(struct lane *lane)
{
	if (lane->count < lane->capacity) {
		return true;
	}
	if (lane->capacity == SPANS_MAX) {
		drop(lane);
		return true;
	}
	size_t capacity = lane->capacity == 0 ? SPANS_FIRST : 2 * lane->capacity;
	struct span *span = realloc(lane->span, capacity * sizeof(*span));
	if (!span) {
		return false;
	}
	lane->span = span;
	lane->capacity = capacity;
	return true;
}

/* Appends the run when it is next to or around what is there. */
static bool lane_append(struct lane *lane, const struct span *run)
{
	if (run->end_ns < lane->last_end_ns || run->start_ns < lane->closed_ns) {
		return false;
	}
	size_t count = lane->count;
	while (count > 0 && lane->span[count - 1].start_ns >= run->start_ns) {
		count--;
	}
	if (count > 0 && lane->span[count - 1].end_ns > run->start_ns) {
		return false;
	}
	if (count == 0 && run->start_ns <= lane->dropped.start_ns) {
		lane->dropped.end_ns = 0;
	} else if (count == 0 && run->start_ns < lane->dropped.end_ns) {
		return false;
	}
	lane->count = count;
	if (!reserve(lane)) {
		return false;
	}
	lane->span[lane->count++] = *run;
	lane->last_end_ns = run->end_ns;
	return true;
}

int trace_tracks_place(struct trace_tracks *tracks, struct trace_event *event)
{
	const struct span run = {
		event->start_ns, event->start_ns + event->duration_ns, event->depth};
	size_t processes = tracks->count;
	struct trace_track track = {0};
	struct process *process;
	int r = process_find(tracks, event, &process);
	track.new_process = tracks->count > processes;
	event->apart = true;
	for (uint8_t number = 0; r == 0 && event->apart && number < TRACE_LANES; number++) {
		struct lane *lane;
		int failed = lane_find(tracks, process, event->thread, number, &lane, &track);
		if (failed < 0) {
			return number > 0 ? 0 : failed;
		}
		event->apart = event->kind == TRACE_COMPLETE && !lane_append(lane, &run);
		if (number == 0 || !event->apart) {
			event->track = track;
		}
	}
	return r;
}

bool trace_tracks_of_app(const struct trace_tracks *tracks, uint32_t app, struct trace_track *ret)
{
	for (size_t i = 0; i < tracks->count; i++) {
		const struct process *process = tracks->process[i];
		if (process->app == app && process->first_tid != 0) {
			*ret = (struct trace_track){
				.pid = process->shown_pid, .tid = process->first_tid};
			return true;
		}
	}
	return false;
}

static int by_start(const void *a, const void *b)
{
	const struct trace_flow_part *left = a, *right = b;
	return (left->start_ns > right->start_ns) - (left->start_ns < right->start_ns);
}

static void end_frame(struct trace_flows *flows, struct trace_flow *frame)
{
	if (frame->serial != 0 && frame->count > 1) {
		qsort(frame->part, frame->count, sizeof(frame->part[0]), by_start);
		flows->report(flows->ctx, frame->id, frame->part, frame->count);
	}
	frame->serial = 0;
	frame->count = 0;
}

void trace_flows_add(struct trace_flows *flows, uint64_t frame, const struct trace_flow_part *part)
{
	struct trace_flow *set = flows->frame[frame % TRACE_FLOW_SETS], *place = &set[0];
	for (size_t i = 0; i < TRACE_FLOW_WAYS; i++) {
		if (set[i].serial != 0 && set[i].id == frame) {
			place = &set[i];
			break;
		}
		place = set[i].serial < place->serial ? &set[i] : place;
	}
	if (place->serial == 0 || place->id != frame) {
		end_frame(flows, place);
		place->id = frame;
		place->serial = ++flows->serial;
	}
	if (place->count < TRACE_FLOW_PARTS) {
		place->part[place->count++] = *part;
	}
}

void trace_flows_finish(struct trace_flows *flows)
{
	for (size_t i = 0; i < TRACE_FLOW_SETS; i++) {
		for (size_t w = 0; w < TRACE_FLOW_WAYS; w++) {
			end_frame(flows, &flows->frame[i][w]);
		}
	}
}

static void report_alone(struct trace_pairs *pairs, const struct trace_half *half)
{
	pairs->report(pairs->ctx, half->end ? NULL : half, half->end ? half : NULL);
}

static void remove_half(struct trace_pairs *pairs, size_t index)
{
	pairs->count--;
	memmove(&pairs->half[index], &pairs->half[index + 1],
		(pairs->count - index) * sizeof(pairs->half[0]));
}

/* An end belongs to the begin before it, also when the same id is used again and again. */
static bool fits(const struct trace_half *a, const struct trace_half *b)
{
	const struct trace_half *begin = a->end ? b : a, *end = a->end ? a : b;
	return a->end != b->end && a->id == b->id && a->process == b->process &&
	       begin->t_ns <= end->t_ns && strcmp(a->name, b->name) == 0;
}

void trace_pairs_add(struct trace_pairs *pairs, const struct trace_event *event)
{
	struct trace_half half = {.end = event->kind == TRACE_END,
		.process = event->process,
		.id = event->id,
		.t_ns = event->start_ns,
		.frame = event->frame,
		.has_frame = event->has_frame,
		.track = event->track};
	snprintf(half.name, sizeof(half.name), "%s", event->name);
	snprintf(half.unit, sizeof(half.unit), "%s", event->unit);
	snprintf(half.category, sizeof(half.category), "%s", event->category);
	for (size_t i = pairs->count; i > 0; i--) {
		const struct trace_half *other = &pairs->half[i - 1];
		if (fits(&half, other)) {
			pairs->report(
				pairs->ctx, half.end ? other : &half, half.end ? &half : other);
			remove_half(pairs, i - 1);
			return;
		}
	}
	if (pairs->count == TRACE_PAIRS_MAX) {
		report_alone(pairs, &pairs->half[0]);
		remove_half(pairs, 0);
	}
	pairs->half[pairs->count++] = half;
}

void trace_pairs_finish(struct trace_pairs *pairs)
{
	for (size_t i = 0; i < pairs->count; i++) {
		report_alone(pairs, &pairs->half[i]);
	}
	pairs->count = 0;
}
