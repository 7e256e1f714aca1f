/* SPDX-License-Identifier: Apache-2.0 */
/* trace_plain.c: writes a trace for scripts: CSV, a row per event, or JSON, an object per event. */
#include "client/edgeprofctl/trace/trace.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

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

/* A cell that is empty where there is no number. */
__attribute__((format(printf, 3, 4))) static void csv_number(
	FILE *out, bool has, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	fputc(',', out);
	if (has) {
		vfprintf(out, format, ap);
	}
	va_end(ap);
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
	bool thread = of_thread(event);
	fprintf(out, "%" PRIu64 ".%03" PRIu64 ",%" PRId64, event->start_ns / 1000,
		event->start_ns % 1000, trace_clock_time_us(&trace->clock, event->start_ns));
	csv_text(out, event->word);
	csv_text(out, event->app);
	csv_number(out, thread, "%" PRIu32, event->pid);
	csv_number(out, thread, "%" PRIu32, event->process);
	csv_number(out, thread, "%u", (unsigned)event->thread);
	csv_text(out, event->name);
	csv_text(out, event->of);
	csv_number(out, lasts(event), "%" PRIu64 ".%03" PRIu64, event->duration_ns / 1000,
		event->duration_ns % 1000);
	csv_number(out, event->kind == TRACE_COMPLETE, "%u", event->depth);
	csv_number(out, event->has_frame, "%" PRIu64, event->frame);
	csv_number(out, by_id(event), "%" PRIu64, event->id);
	csv_number(out, isfinite(event->value), "%.15g", event->value);
	csv_text(out, event->unit);
	csv_number(out, event->cpu_us >= 0, "%" PRId64, event->cpu_us);
	csv_number(out, event->failed, "true");
	csv_number(out, event->throttled >= 0, "%s", event->throttled > 0 ? "true" : "false");
	csv_text(out, event->severity);
	csv_text(out, event->text);
	csv_text(out, event->category);
	fputc('\n', out);
}

static void json_begin(struct trace *trace)
{
	fputs("{\"schema\":\"edgeprof.trace/1\",\"events\":[", trace->out);
}

static void put_word(struct trace *trace, const char *name, const char *text)
{
	if (text[0] != '\0') {
		trace_text(trace, name, text);
	}
}

static void json_event(struct trace *trace, const struct trace_event *event)
{
	trace_open(trace, NULL);
	trace_us(trace, "mono_us", event->start_ns);
	trace_member(
		trace, "time_us", "%" PRId64, trace_clock_time_us(&trace->clock, event->start_ns));
	put_word(trace, "kind", event->word);
	put_word(trace, "app", event->app);
	if (of_thread(event)) {
		trace_member(trace, "pid", "%" PRIu32, event->pid);
		trace_member(trace, "process", "%" PRIu32, event->process);
		trace_member(trace, "thread", "%u", (unsigned)event->thread);
	}
	put_word(trace, "name", event->name);
	put_word(trace, "of", event->of);
	if (lasts(event)) {
		trace_us(trace, "duration_us", event->duration_ns);
	}
	if (event->kind == TRACE_COMPLETE) {
		trace_member(trace, "depth", "%u", event->depth);
		trace_bool(trace, "failed", event->failed);
	}
	if (event->has_frame) {
		trace_member(trace, "frame", "\"%" PRIu64 "\"", event->frame);
	}
	if (by_id(event)) {
		trace_member(trace, "id", "\"%" PRIu64 "\"", event->id);
	}
	if (isfinite(event->value)) {
		trace_member(trace, "value", "%.15g", event->value);
	}
	put_word(trace, "unit", event->unit);
	put_word(trace, "category", event->category);
	if (event->cpu_us >= 0) {
		trace_member(trace, "cpu_us", "%" PRId64, event->cpu_us);
	}
	if (event->throttled >= 0) {
		trace_bool(trace, "throttled", event->throttled);
	}
	put_word(trace, "severity", event->severity);
	put_word(trace, "text", event->text);
	trace_close(trace);
}

const struct trace_format trace_csv = {csv_begin, NULL, csv_event, NULL, NULL};
const struct trace_format trace_json = {json_begin, NULL, json_event, NULL, trace_about};
