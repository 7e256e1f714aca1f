/* SPDX-License-Identifier: Apache-2.0 */
/* trace_json.c: writes the members of the objects of a trace, and what a trace says about itself.
 */
#include <stdarg.h>
#include <time.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/trace/trace.h"

static void put_name(struct trace *trace, const char *name)
{
	fprintf(trace->out, "%s\"%s\":", trace->more ? "," : "", name);
	trace->more = true;
}

void trace_open(struct trace *trace, const char *name)
{
	if (name) {
		put_name(trace, name);
		fputc('{', trace->out);
	} else {
		fprintf(trace->out, "%s\n{", trace->more ? "," : "");
	}
	trace->more = false;
}

void trace_close(struct trace *trace)
{
	fputc('}', trace->out);
	trace->more = true;
}

void trace_member(struct trace *trace, const char *name, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	put_name(trace, name);
	vfprintf(trace->out, format, ap);
	va_end(ap);
}

void trace_text(struct trace *trace, const char *name, const char *text)
{
	put_name(trace, name);
	json_write_text(trace->out, text);
}

void trace_bool(struct trace *trace, const char *name, bool value)
{
	trace_member(trace, name, "%s", value ? "true" : "false");
}

void trace_us(struct trace *trace, const char *name, uint64_t ns)
{
	trace_member(trace, name, "%" PRIu64 ".%03" PRIu64, ns / 1000, ns % 1000);
}

static void put_time(struct trace *trace, const char *name, uint64_t mono_ns)
{
	char text[40], name_us[40];
	int64_t time_us = trace_clock_time_us(&trace->clock, mono_ns);
	time_t seconds = (time_t)(time_us / 1000000);
	struct tm tm;
	if (!gmtime_r(&seconds, &tm) || strftime(text, sizeof(text), "%FT%T", &tm) == 0) {
		return;
	}
	snprintf(name_us, sizeof(name_us), "%s_us", name);
	trace_member(trace, name, "\"%s.%06dZ\"", text, (int)(time_us % 1000000));
	trace_member(trace, name_us, "%" PRId64, time_us);
}

static void put_apps(struct trace *trace)
{
	double overwritten = 0;
	for (const cJSON *app = json_first(trace->start, "apps"); app; app = app->next) {
		double gone = json_number(app, "overwritten");
		overwritten += isfinite(gone) ? gone : 0;
	}
	put_name(trace, "apps");
	json_write(trace->out, json_get(trace->start, "apps"), false);
	trace_member(trace, "records_overwritten", "%.0f", overwritten);
}

void trace_about(struct trace *trace)
{
	static const char *const texts[] = {"version", "hostname", "boot_id"};
	fputs("\n],\"otherData\":{", trace->out);
	trace->more = false;
	trace_text(trace, "schema", "edgeprof.trace/1");
	trace_text(trace, "clock", "CLOCK_MONOTONIC");
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		trace_text(trace, texts[i], json_word(trace->start, texts[i]));
	}
	put_time(trace, "start_time", trace->from_ns);
	put_time(trace, "end_time", trace->to_ns);
	trace_member(trace, "start_mono_us", "%" PRIu64, trace->from_ns / 1000);
	trace_member(trace, "end_mono_us", "%" PRIu64, trace->to_ns / 1000);
	trace_member(trace, "span_s", "%.6f", (double)(trace->to_ns - trace->from_ns) / 1e9);
	trace_bool(trace, "clock_synced", json_true(trace->start, "clock_synced"));
	put_apps(trace);
	trace_member(trace, "records", "%" PRIu64, trace->records);
	trace_member(trace, "records_lost", "%" PRIu64, trace->lost);
	trace_member(trace, "left_out", "%" PRIu64, trace->left_out);
	trace_bool(trace, "truncated", trace->truncated);
	fputs("}}\n", trace->out);
}
