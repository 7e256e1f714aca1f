/* SPDX-License-Identifier: Apache-2.0 */
/* trace_plain.c: writes a trace for scripts: CSV, a row per event, or JSON, an object per event.
 * Both have the same members; in CSV all are there, and what an event has not is empty. */
#include "client/edgeprofctl/trace/trace.h"

#include <stdarg.h>

static bool is_csv(const struct trace *trace)
{
	return trace->format == &trace_csv;
}

static void csv_separate(struct trace *trace)
{
	fputs(trace->more ? "," : "", trace->out);
	trace->more = true;
}

static void put_text(struct trace *trace, const char *name, const char *text)
{
	if (!is_csv(trace)) {
		if (text[0] != '\0') {
			trace_text(trace, name, text);
		}
		return;
	}
	csv_separate(trace);
	fputc('"', trace->out);
	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;
		fputs(c == '"' ? "\"" : "", trace->out);
		fputc(c < 0x20 || c == 0x7f ? '?' : c, trace->out);
	}
	fputc('"', trace->out);
}

__attribute__((format(printf, 4, 5))) static void put_number(
	struct trace *trace, const char *name, bool has, const char *format, ...)
{
	char text[64];
	va_list ap;
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (is_csv(trace)) {
		csv_separate(trace);
		fputs(has ? text : "", trace->out);
	} else if (has) {
		trace_member(trace, name, "%s", text);
	}
}

static void put_us(struct trace *trace, const char *name, bool has, uint64_t ns)
{
	put_number(trace, name, has, "%" PRIu64 ".%03" PRIu64, ns / 1000, ns % 1000);
}

/* A number that JSON's readers would round. */
static void put_wide(struct trace *trace, const char *name, bool has, uint64_t value)
{
	const char *quote = is_csv(trace) ? "" : "\"";
	put_number(trace, name, has, "%s%" PRIu64 "%s", quote, value, quote);
}

static void put_members(struct trace *trace, const struct trace_event *event)
{
	bool csv = is_csv(trace), run = event->kind == TRACE_COMPLETE;
	bool thread = event->kind < TRACE_SENSOR;
	put_us(trace, "mono_us", true, event->start_ns);
	put_number(trace, "time_us", true, "%" PRId64,
		trace_clock_time_us(&trace->clock, event->start_ns));
	put_text(trace, "kind", event->word);
	put_text(trace, "app", event->app);
	put_number(trace, "pid", thread, "%" PRIu32, event->pid);
	put_number(trace, "process", thread, "%" PRIu32, event->process);
	put_number(trace, "thread", thread, "%u", (unsigned)event->thread);
	put_text(trace, "name", event->name);
	put_text(trace, "of", event->of);
	put_us(trace, "duration_us", run || event->kind == TRACE_FRAME, event->duration_ns);
	put_number(trace, "depth", run, "%u", event->depth);
	if (!csv) {
		put_number(trace, "failed", run, "%s", event->failed ? "true" : "false");
	}
	put_wide(trace, "frame", event->has_frame, event->frame);
	put_wide(trace, "id", event->kind == TRACE_BEGIN || event->kind == TRACE_END, event->id);
	put_number(trace, "value", isfinite(event->value), "%.15g", event->value);
	put_text(trace, "unit", event->unit);
	if (!csv) {
		put_text(trace, "category", event->category);
	}
	put_number(trace, "cpu_us", event->cpu_us >= 0, "%" PRId64, event->cpu_us);
	if (csv) {
		put_number(trace, "failed", event->failed, "true");
	}
	put_number(trace, "throttled", event->throttled >= 0, "%s",
		event->throttled > 0 ? "true" : "false");
	put_text(trace, "severity", event->severity);
	put_text(trace, "text", event->text);
	if (csv) {
		put_text(trace, "category", event->category);
	}
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
	put_members(trace, event);
	fputc('\n', trace->out);
	trace->more = false;
}

static void json_begin(struct trace *trace)
{
	fputs("{\"schema\":\"edgeprof.trace/1\",\"events\":[", trace->out);
}

static void json_event(struct trace *trace, const struct trace_event *event)
{
	trace_open(trace, NULL);
	put_members(trace, event);
	trace_close(trace);
}

const struct trace_format trace_csv = {csv_begin, NULL, csv_event, NULL, NULL};
const struct trace_format trace_json = {json_begin, NULL, json_event, NULL, trace_about};
