/* SPDX-License-Identifier: Apache-2.0 */
/* trace_plain.c: writes a trace for scripts: CSV, a row per event, or JSON, an object per event. */
#include "client/edgeprofctl/trace/trace.h"

#include <inttypes.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"

static const char *word_of(const struct trace_event *event)
{
	static const char *const words[] = {[TRACE_COMPLETE] = "complete",
		[TRACE_BEGIN] = "begin",
		[TRACE_END] = "end",
		[TRACE_FRAME] = "frame",
		[TRACE_MARK] = "mark",
		[TRACE_GAUGE] = "gauge",
		[TRACE_COUNTER] = "counter",
		[TRACE_ATTRIBUTE] = "attribute",
		[TRACE_SENSOR] = "sensor"};
	return event->kind == TRACE_HAPPENED ? event->word : words[event->kind];
}

static bool lasts(const struct trace_event *event)
{
	return event->kind == TRACE_COMPLETE || event->kind == TRACE_FRAME;
}

static bool of_thread(const struct trace_event *event)
{
	return event->kind < TRACE_SENSOR;
}

static bool by_id(const struct trace_event *event)
{
	return event->kind == TRACE_BEGIN || event->kind == TRACE_END;
}

static void put_us(FILE *out, uint64_t ns)
{
	fprintf(out, "%" PRIu64 ".%03" PRIu64, ns / 1000, ns % 1000);
}

static void csv_text(FILE *out, const char *text)
{
	fputs(",\"", out);
	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;
		fputs(c == '"' ? "\"" : "", out);
		fputc(c < 0x20 || c == 0x7f ? '?' : c, out);
	}
	fputc('"', out);
}

static void csv_begin(struct trace *trace)
{
	fputs("mono_us,time_us,kind,app,pid,process,thread,name,of,duration_us,depth,frame,id,"
	      "value,"
	      "unit,cpu_us,failed,throttled,severity,text,category\n",
		trace->out);
}

static void csv_event(struct trace *trace, const struct trace_event *event)
{
	FILE *out = trace->out;
	put_us(out, event->start_ns);
	fprintf(out, ",%" PRId64, trace_clock_time_us(&trace->clock, event->start_ns));
	csv_text(out, word_of(event));
	csv_text(out, event->app);
	if (of_thread(event)) {
		fprintf(out, ",%" PRIu32 ",%" PRIu32 ",%u", event->pid, event->process,
			(unsigned)event->thread);
	} else {
		fputs(",,,", out);
	}
	csv_text(out, event->name);
	csv_text(out, event->of);
	fputc(',', out);
	if (lasts(event)) {
		put_us(out, event->duration_ns);
	}
	fputc(',', out);
	if (event->kind == TRACE_COMPLETE) {
		fprintf(out, "%u", event->depth);
	}
	fputc(',', out);
	if (event->has_frame) {
		fprintf(out, "%" PRIu64, event->frame);
	}
	fputc(',', out);
	if (by_id(event)) {
		fprintf(out, "%" PRIu64, event->id);
	}
	fputc(',', out);
	if (isfinite(event->value)) {
		fprintf(out, "%.15g", event->value);
	}
	csv_text(out, event->unit);
	fputc(',', out);
	if (event->cpu_us >= 0) {
		fprintf(out, "%" PRId64, event->cpu_us);
	}
	fprintf(out, ",%s,%s", event->failed ? "true" : "",
		event->throttled < 0   ? ""
		: event->throttled > 0 ? "true"
				       : "false");
	csv_text(out, event->severity);
	csv_text(out, event->text);
	csv_text(out, event->category);
	fputc('\n', out);
}

static void csv_events(struct trace *trace, struct trace_event *events, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		csv_event(trace, &events[i]);
	}
}

static void nothing(struct trace *trace)
{
	(void)trace;
}

static void json_begin(struct trace *trace)
{
	fputs("{\"schema\":\"edgeprof.trace/1\",\"events\":[", trace->out);
}

static void put_word(FILE *out, const char *name, const char *text)
{
	if (text[0] != '\0') {
		fprintf(out, ",\"%s\":", name);
		json_write_text(out, text);
	}
}

static void put_wide(FILE *out, const char *name, bool has, uint64_t value)
{
	if (has) {
		fprintf(out, ",\"%s\":\"%" PRIu64 "\"", name, value);
	}
}

static void json_event(struct trace *trace, const struct trace_event *event)
{
	FILE *out = trace->out;
	fprintf(out, "%s\n{\"mono_us\":", trace->more ? "," : "");
	trace->more = true;
	put_us(out, event->start_ns);
	fprintf(out, ",\"time_us\":%" PRId64, trace_clock_time_us(&trace->clock, event->start_ns));
	put_word(out, "kind", word_of(event));
	put_word(out, "app", event->app);
	if (of_thread(event)) {
		fprintf(out, ",\"pid\":%" PRIu32 ",\"process\":%" PRIu32 ",\"thread\":%u",
			event->pid, event->process, (unsigned)event->thread);
	}
	put_word(out, "name", event->name);
	put_word(out, "of", event->of);
	if (lasts(event)) {
		fputs(",\"duration_us\":", out);
		put_us(out, event->duration_ns);
	}
	if (event->kind == TRACE_COMPLETE) {
		fprintf(out, ",\"depth\":%u,\"failed\":%s", event->depth,
			event->failed ? "true" : "false");
	}
	put_wide(out, "frame", event->has_frame, event->frame);
	put_wide(out, "id", by_id(event), event->id);
	if (isfinite(event->value)) {
		fprintf(out, ",\"value\":%.15g", event->value);
	}
	put_word(out, "unit", event->unit);
	put_word(out, "category", event->category);
	if (event->cpu_us >= 0) {
		fprintf(out, ",\"cpu_us\":%" PRId64, event->cpu_us);
	}
	if (event->throttled >= 0) {
		fprintf(out, ",\"throttled\":%s", event->throttled ? "true" : "false");
	}
	put_word(out, "severity", event->severity);
	put_word(out, "text", event->text);
	fputc('}', out);
}

static void json_events(struct trace *trace, struct trace_event *events, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		json_event(trace, &events[i]);
	}
}

static void json_end(struct trace *trace)
{
	fputs("\n],\"otherData\":{", trace->out);
	trace_about(trace);
	fputs("}}\n", trace->out);
}

const struct trace_format trace_csv = {"csv", csv_begin, csv_events, nothing, nothing};
const struct trace_format trace_json = {"json", json_begin, json_events, nothing, json_end};
