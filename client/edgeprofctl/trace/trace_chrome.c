/* SPDX-License-Identifier: Apache-2.0 */
/* trace_chrome.c: writes the Trace Event Format, as Perfetto and chrome://tracing read it. Times
 * are microseconds with three decimals. The slices of a thread are nested; one that cannot be is
 * asynchronous, with an id of its own. */
#include "client/edgeprofctl/trace/trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "proto/text.h"

static void open_event(struct trace *trace, const char *phase, const char *name)
{
	fprintf(trace->out, "%s\n{\"ph\":\"%s\",\"name\":", trace->more ? "," : "", phase);
	json_write_text(trace->out, name[0] == '\0' ? "?" : name); /* one name too many has none */
	trace->more = true;
}

static void put_track(struct trace *trace, const struct trace_track *track)
{
	fprintf(trace->out, ",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32, track->pid, track->tid);
}

static void put_us(struct trace *trace, const char *name, uint64_t ns)
{
	fprintf(trace->out, ",\"%s\":%" PRIu64 ".%03" PRIu64, name, ns / 1000, ns % 1000);
}

static void put_metadata(
	struct trace *trace, const struct trace_track *track, const char *what, const char *name)
{
	open_event(trace, "M", what);
	put_track(trace, track);
	fputs(",\"args\":{\"name\":", trace->out);
	json_write_text(trace->out, name);
	fputs("}}", trace->out);
}

static void name_track(
	struct trace *trace, const struct trace_track *track, const struct trace_event *event)
{
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
	fputs(",\"args\":{\"sort_index\":-1}}", trace->out);
}

/* Of a stage, what is known of compute unit and category; what is in front of the next argument. */
static const char *put_labels(struct trace *trace, const char *unit, const char *category)
{
	const struct {
		const char *name, *text;
	} labels[] = {{"unit", unit}, {"category", category}};
	const char *comma = "";
	for (size_t i = 0; i < 2; i++) {
		if (labels[i].text[0] != '\0') {
			fprintf(trace->out, "%s\"%s\":", comma, labels[i].name);
			json_write_text(trace->out, labels[i].text);
			comma = ",";
		}
	}
	return comma;
}

/* The arguments of a slice: only what is known. */
static void put_arguments(struct trace *trace, const struct trace_event *event)
{
	fputs(",\"args\":{", trace->out);
	const char *comma = put_labels(trace, event->unit, event->category);
	if (event->has_frame) {
		fprintf(trace->out, "%s\"frame\":\"%" PRIu64 "\"", comma, event->frame);
		comma = ",";
	}
	if (event->cpu_us >= 0) {
		fprintf(trace->out, "%s\"cpu_us\":%" PRId64, comma, event->cpu_us);
		comma = ",";
	}
	if (event->failed) {
		fprintf(trace->out, "%s\"failed\":true", comma);
		comma = ",";
	}
	if (event->throttled >= 0) {
		fprintf(trace->out, "%s\"throttled\":%s", comma,
			event->throttled ? "true" : "false");
	}
	fputs("}", trace->out);
}

static void put_async(struct trace *trace, const char *phase, const char *name,
	const char *category, const struct trace_track *track, uint64_t t_ns)
{
	open_event(trace, phase, name);
	fprintf(trace->out, ",\"cat\":\"%s\",\"id\":\"0x%" PRIx64 "\"", category, trace->last_id);
	put_track(trace, track);
	put_us(trace, "ts", t_ns);
}

static void put_apart(struct trace *trace, const struct trace_event *event, const char *name,
	const char *category)
{
	trace->last_id++;
	put_async(trace, "b", name, category, &event->track, event->start_ns);
	put_arguments(trace, event);
	fputs("}", trace->out);
	put_async(trace, "e", name, category, &event->track, event->start_ns + event->duration_ns);
	fputs("}", trace->out);
}

static void put_instant(struct trace *trace, const char *name, const char *category, char scope,
	const struct trace_track *track, uint64_t t_ns)
{
	open_event(trace, "i", name);
	fputs(",\"cat\":", trace->out);
	json_write_text(trace->out, category); /* may be a word of the daemon */
	fprintf(trace->out, ",\"s\":\"%c\"", scope);
	put_track(trace, track);
	put_us(trace, "ts", t_ns);
}

static void put_run(struct trace *trace, const struct trace_event *event)
{
	if (event->apart) {
		put_apart(trace, event, event->name, "stage");
		return;
	}
	open_event(trace, "X", event->name);
	fputs(",\"cat\":\"stage\"", trace->out);
	put_track(trace, &event->track);
	put_us(trace, "ts", event->start_ns);
	put_us(trace, "dur", event->duration_ns);
	put_arguments(trace, event);
	fputs("}", trace->out);
	if (event->has_frame && event->depth == 0) {
		const struct trace_flow_part part = {
			event->start_ns, event->track.pid, event->track.tid};
		trace_flows_add(trace->flows, event->frame, &part);
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
	put_us(trace, "ts", t_ns);
	fprintf(trace->out, ",\"args\":{\"value\":%.15g}}", value);
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

static void put_half(struct trace *trace, const struct trace_event *event, bool end)
{
	struct trace_half half = {.end = end,
		.process = event->process,
		.id = event->id,
		.t_ns = event->start_ns,
		.track = event->track};
	snprintf(half.name, sizeof(half.name), "%s", event->name);
	snprintf(half.unit, sizeof(half.unit), "%s", event->unit);
	snprintf(half.category, sizeof(half.category), "%s", event->category);
	trace_pairs_add(trace->pairs, &half);
}

/* An entry of the timeline: that of an app stands at its process. */
static void put_happening(struct trace *trace, const struct trace_event *event)
{
	char name[640];
	struct trace_track track = device;
	bool of_app = event->app_index != TRACE_NO_APP &&
		      trace_tracks_of_app(trace->tracks, event->app_index, &track);
	snprintf(name, sizeof(name), "%s%s%s: %s", event->word, event->name[0] == '\0' ? "" : " ",
		event->name, event->text);
	put_instant(trace, name, event->word, of_app ? 'p' : 'g', &track, event->start_ns);
	fputs(",\"args\":{\"severity\":", trace->out);
	json_write_text(trace->out, event->severity);
	fputs("}}", trace->out);
}

static void put_event(struct trace *trace, const struct trace_event *event)
{
	char name[2 * PROTO_NAME_SIZE + 8];
	switch (event->kind) {
	case TRACE_COMPLETE:
		put_run(trace, event);
		return;
	case TRACE_BEGIN:
	case TRACE_END:
		put_half(trace, event, event->kind == TRACE_END);
		return;
	case TRACE_FRAME:
		if (event->duration_ns > 0) {
			put_apart(trace, event, "frame", "frame");
			return;
		}
		put_instant(trace, "tick", "frame", 't', &event->track, event->start_ns);
		put_arguments(trace, event);
		fputs("}", trace->out);
		return;
	case TRACE_MARK:
		snprintf(name, sizeof(name), "mark: %s", event->name);
		put_instant(trace, name, "mark", 'p', &event->track, event->start_ns);
		fputs(",\"args\":{", trace->out);
		if (event->value > 0) {
			fprintf(trace->out, "\"rss_bytes\":%.0f", event->value);
		}
		fputs("}}", trace->out);
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

/* Finds the event's track; false: there is no place for one. */
static bool place(struct trace *trace, struct trace_event *event)
{
	struct trace_track first;
	if (event->kind == TRACE_SENSOR || event->kind == TRACE_HAPPENED) {
		return true;
	}
	int r = trace_tracks_find(
		trace->tracks, event->app_index, event->process, event->pid, event->thread, &first);
	if (r < 0) {
		return false;
	}
	name_track(trace, &first, event);
	event->track = first;
	if (event->kind == TRACE_COMPLETE) {
		struct trace_track lane;
		r = trace_tracks_place(trace->tracks, event->app_index, event->process, event->pid,
			event->thread, event->start_ns, event->start_ns + event->duration_ns,
			event->depth, &lane);
		event->apart = r < 0;
		if (r == 0) {
			name_track(trace, &lane, event);
			event->track = lane;
		}
	}
	return true;
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

static void events(struct trace *trace, struct trace_event *events, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		events[i].placed = place(trace, &events[i]);
		trace->left_out += !events[i].placed;
	}
	qsort(events, count, sizeof(events[0]), by_start);
	for (size_t i = 0; i < count; i++) {
		if (events[i].placed) {
			put_event(trace, &events[i]);
		}
	}
}

static void end_app(struct trace *trace)
{
	trace_flows_finish(trace->flows);
	trace_pairs_finish(trace->pairs);
	trace->sums = 0;
}

static void end(struct trace *trace)
{
	fputs("\n],\"otherData\":{", trace->out);
	trace_about(trace);
	fputs("}}\n", trace->out);
}

const struct trace_format trace_chrome = {"chrome", begin, events, end_app, end};

void trace_chrome_flow(void *ctx, uint64_t frame, const struct trace_flow_part *part, size_t count)
{
	struct trace *trace = ctx;
	trace->last_id++;
	for (size_t i = 0; i < count; i++) {
		const struct trace_track track = {.pid = part[i].pid, .tid = part[i].tid};
		put_async(trace,
			i == 0		 ? "s"
			: i + 1 == count ? "f"
					 : "t",
			"frame", "frame_flow", &track, part[i].start_ns);
		fprintf(trace->out, "%s,\"args\":{\"frame\":\"%" PRIu64 "\"}}",
			i + 1 == count ? ",\"bp\":\"e\"" : "", frame);
	}
}

static void put_half_arguments(struct trace *trace, const struct trace_half *half)
{
	fputs(",\"args\":{", trace->out);
	const char *comma = put_labels(trace, half->unit, half->category);
	fprintf(trace->out, "%s\"id\":\"%" PRIu64 "\"}}", comma, half->id);
}

void trace_chrome_pair(void *ctx, const struct trace_half *begin, const struct trace_half *end)
{
	struct trace *trace = ctx;
	char name[PROTO_NAME_SIZE + 16];
	if (begin && end) {
		trace->last_id++;
		put_async(trace, "b", begin->name, "stage", &begin->track, begin->t_ns);
		put_half_arguments(trace, begin);
		put_async(trace, "e", begin->name, "stage", &end->track, end->t_ns);
		fputs("}", trace->out);
		return;
	}
	const struct trace_half *alone = begin ? begin : end;
	snprintf(name, sizeof(name), "%s %s", begin ? "open:" : "end only:", alone->name);
	put_instant(trace, name, "stage", 't', &alone->track, alone->t_ns);
	put_half_arguments(trace, alone);
}
