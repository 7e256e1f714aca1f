/* SPDX-License-Identifier: Apache-2.0 */
/* trace_chrome.c: writes the Trace Event Format, as Perfetto and chrome://tracing read it. Times
 * are microseconds with three decimals. The slices of a thread are nested; one that cannot be is
 * asynchronous, with an id of its own. */
#include "client/edgeprofctl/trace/trace.h"

#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "proto/text.h"

static void open_event(struct trace *trace, const char *phase, const char *name)
{
	trace_open(trace, NULL);
	trace_member(trace, "ph", "\"%s\"", phase);
	trace_text(trace, "name", name[0] == '\0' ? "?" : name); /* one name too many has none */
}

/* And the event. */
static void end_arguments(struct trace *trace)
{
	trace_close(trace);
	trace_close(trace);
}

static void put_track(struct trace *trace, const struct trace_track *track)
{
	trace_member(trace, "pid", "%" PRIu32, track->pid);
	trace_member(trace, "tid", "%" PRIu32, track->tid);
}

static void put_wide(struct trace *trace, const char *name, uint64_t value)
{
	trace_member(trace, name, "\"%" PRIu64 "\"", value);
}

static void put_metadata(
	struct trace *trace, const struct trace_track *track, const char *what, const char *name)
{
	open_event(trace, "M", what);
	put_track(trace, track);
	trace_open(trace, "args");
	trace_text(trace, "name", name);
	end_arguments(trace);
}

static void name_track(struct trace *trace, const struct trace_event *event)
{
	const struct trace_track *track = &event->track;
	char name[64];
	struct text text = TEXT_IN(name);
	text_add(&text, "thread %u", event->thread + 1U);
	if (track->lane > 0) {
		text_add(&text, ", lane %u", track->lane + 1U);
	}
	if (track->new_process) {
		put_metadata(trace, track, "process_name", event->app);
	}
	if (track->new_thread) {
		put_metadata(trace, track, "thread_name", name);
	}
}

static const struct trace_track device = {.pid = TRACE_DEVICE_PID, .tid = TRACE_DEVICE_PID};

static void begin(struct trace *trace)
{
	fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", trace->out);
	put_metadata(trace, &device, "process_name",
		json_text(trace->start, "hostname") ? json_word(trace->start, "hostname")
						    : "device");
	put_metadata(trace, &device, "thread_name", "events");
	open_event(trace, "M", "process_sort_index");
	put_track(trace, &device);
	trace_open(trace, "args");
	trace_member(trace, "sort_index", "-1");
	end_arguments(trace);
}

/* Of a stage, what is known of compute unit and category. */
static void put_labels(struct trace *trace, const char *unit, const char *category)
{
	if (unit[0] != '\0') {
		trace_text(trace, "unit", unit);
	}
	if (category[0] != '\0') {
		trace_text(trace, "category", category);
	}
}

/* The arguments of a slice, only what is known, and the end of the event. */
static void end_slice(struct trace *trace, const struct trace_event *event)
{
	trace_open(trace, "args");
	put_labels(trace, event->unit, event->category);
	if (event->has_frame) {
		put_wide(trace, "frame", event->frame);
	}
	if (event->cpu_us >= 0) {
		trace_member(trace, "cpu_us", "%" PRId64, event->cpu_us);
	}
	if (event->failed) {
		trace_bool(trace, "failed", true);
	}
	if (event->throttled >= 0) {
		trace_bool(trace, "throttled", event->throttled);
	}
	end_arguments(trace);
}

static void open_async(struct trace *trace, const char *phase, const char *name,
	const char *category, const struct trace_track *track, uint64_t t_ns)
{
	open_event(trace, phase, name);
	trace_text(trace, "cat", category);
	trace_member(trace, "id", "\"0x%" PRIx64 "\"", trace->last_id);
	put_track(trace, track);
	trace_us(trace, "ts", t_ns);
}

static void put_apart(struct trace *trace, const struct trace_event *event, const char *name,
	const char *category)
{
	trace->last_id++;
	open_async(trace, "b", name, category, &event->track, event->start_ns);
	end_slice(trace, event);
	open_async(trace, "e", name, category, &event->track, event->start_ns + event->duration_ns);
	trace_close(trace);
}

static void open_instant(struct trace *trace, const char *name, const char *category,
	const char *scope, const struct trace_track *track, uint64_t t_ns)
{
	open_event(trace, "i", name);
	trace_text(trace, "cat", category); /* may be a word of the daemon */
	trace_text(trace, "s", scope);
	put_track(trace, track);
	trace_us(trace, "ts", t_ns);
}

static void put_run(struct trace *trace, const struct trace_event *event)
{
	if (event->apart) {
		put_apart(trace, event, event->name, "stage");
		return;
	}
	open_event(trace, "X", event->name);
	trace_text(trace, "cat", "stage");
	put_track(trace, &event->track);
	trace_us(trace, "ts", event->start_ns);
	trace_us(trace, "dur", event->duration_ns);
	end_slice(trace, event);
	if (event->has_frame && event->depth == 0) {
		const struct trace_flow_part part = {
			event->start_ns, event->track.pid, event->track.tid};
		trace_flows_add(&trace->flows, event->frame, &part);
	}
}

static void put_counter(struct trace *trace, const struct trace_track *track, const char *name,
	uint64_t t_ns, double value)
{
	if (!isfinite(value)) {
		return;
	}
	open_event(trace, "C", name);
	put_track(trace, track);
	trace_us(trace, "ts", t_ns);
	trace_open(trace, "args");
	trace_member(trace, "value", "%.15g", value);
	end_arguments(trace);
}

/* Increments are summed from the beginning of the trace. NAN: no place. */
static double sum_up(struct trace *trace, const char *name, double value)
{
	size_t i = 0;
	while (i < trace->sums && strcmp(trace->sum[i].name, name) != 0) {
		i++;
	}
	if (i == TRACE_SUMS) {
		return NAN;
	}
	if (i == trace->sums) {
		snprintf(trace->sum[i].name, sizeof(trace->sum[i].name), "%s", name);
		trace->sum[i].value = 0;
		trace->sums++;
	}
	trace->sum[i].value += value;
	return trace->sum[i].value;
}

/* An entry of the timeline: that of an app stands at its process. */
static void put_happening(struct trace *trace, const struct trace_event *event)
{
	char name[640];
	struct trace_track track = device;
	bool of_app = event->app_index != TRACE_NO_APP &&
		      trace_tracks_of_app(&trace->tracks, event->app_index, &track);
	snprintf(name, sizeof(name), "%s%s%s: %s", event->word, event->name[0] == '\0' ? "" : " ",
		event->name, event->text);
	open_instant(trace, name, event->word, of_app ? "p" : "g", &track, event->start_ns);
	trace_open(trace, "args");
	trace_text(trace, "severity", event->severity);
	end_arguments(trace);
}

static void put_event(struct trace *trace, const struct trace_event *event)
{
	char name[2 * PROTO_NAME_SIZE + 8];
	if (!event->placed) {
		return;
	}
	switch (event->kind) {
	case TRACE_COMPLETE:
		put_run(trace, event);
		return;
	case TRACE_BEGIN:
	case TRACE_END:
		trace_pairs_add(&trace->pairs, event);
		return;
	case TRACE_FRAME:
		if (event->duration_ns > 0) {
			put_apart(trace, event, "frame", "frame");
			return;
		}
		open_instant(trace, "tick", "frame", "t", &event->track, event->start_ns);
		end_slice(trace, event);
		return;
	case TRACE_MARK:
		snprintf(name, sizeof(name), "mark: %s", event->name);
		open_instant(trace, name, "mark", "p", &event->track, event->start_ns);
		trace_open(trace, "args");
		if (event->value > 0) {
			trace_member(trace, "rss_bytes", "%.0f", event->value);
		}
		end_arguments(trace);
		return;
	case TRACE_GAUGE:
		put_counter(trace, &event->track, event->name, event->start_ns, event->value);
		return;
	case TRACE_COUNTER:
		put_counter(trace, &event->track, event->name, event->start_ns,
			sum_up(trace, event->name, event->value));
		return;
	case TRACE_ATTRIBUTE:
		snprintf(name, sizeof(name), "%s.%s", event->of, event->name);
		put_counter(trace, &event->track, name, event->start_ns, event->value);
		return;
	case TRACE_SENSOR:
		put_counter(trace, &device, event->name, event->start_ns, event->value);
		return;
	case TRACE_HAPPENED:
		put_happening(trace, event);
		return;
	}
}

/* Of two that begin together the longer one comes first: it is the outer one. */
static int by_start(const void *a, const void *b)
{
	const struct trace_event *left = a, *right = b;
	int order = (left->start_ns > right->start_ns) - (left->start_ns < right->start_ns);
	return order != 0 ? order
			  : (left->duration_ns < right->duration_ns) -
				    (left->duration_ns > right->duration_ns);
}

static void order(struct trace *trace, struct trace_event *events, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct trace_event *event = &events[i];
		bool of_device = event->kind == TRACE_SENSOR || event->kind == TRACE_HAPPENED;
		event->placed = of_device || trace_tracks_place(&trace->tracks, event) == 0;
		trace->left_out += !event->placed;
		if (event->placed && !of_device) {
			name_track(trace, event);
		}
	}
	qsort(events, count, sizeof(events[0]), by_start);
}

static void end_app(struct trace *trace)
{
	trace_flows_finish(&trace->flows);
	trace_pairs_finish(&trace->pairs);
	trace->sums = 0;
}

const struct trace_format trace_chrome = {begin, order, put_event, end_app, trace_about};

void trace_chrome_flow(void *ctx, uint64_t frame, const struct trace_flow_part *part, size_t count)
{
	struct trace *trace = ctx;
	trace->last_id++;
	for (size_t i = 0; i < count; i++) {
		const struct trace_track track = {.pid = part[i].pid, .tid = part[i].tid};
		bool last = i + 1 == count;
		open_async(trace,
			i == 0 ? "s"
			: last ? "f"
			       : "t",
			"frame", "frame_flow", &track, part[i].start_ns);
		if (last) {
			trace_text(trace, "bp", "e");
		}
		trace_open(trace, "args");
		put_wide(trace, "frame", frame);
		end_arguments(trace);
	}
}

static void end_half(struct trace *trace, const struct trace_half *half)
{
	trace_open(trace, "args");
	put_labels(trace, half->unit, half->category);
	put_wide(trace, "id", half->id);
	end_arguments(trace);
}

void trace_chrome_pair(void *ctx, const struct trace_half *begin, const struct trace_half *end)
{
	struct trace *trace = ctx;
	char name[PROTO_NAME_SIZE + 16];
	if (begin && end) {
		trace->last_id++;
		open_async(trace, "b", begin->name, "stage", &begin->track, begin->t_ns);
		end_half(trace, begin);
		open_async(trace, "e", begin->name, "stage", &end->track, end->t_ns);
		trace_close(trace);
		return;
	}
	const struct trace_half *alone = begin ? begin : end;
	snprintf(name, sizeof(name), "%s %s", begin ? "open:" : "end only:", alone->name);
	open_instant(trace, name, "stage", "t", &alone->track, alone->t_ns);
	end_half(trace, alone);
}
