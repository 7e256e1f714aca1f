/* SPDX-License-Identifier: Apache-2.0 */
/* trace.c: writes the records of apps, samples of sensors and timeline events of one span to one
 * file. It is written as the data arrives; when the daemon stops in between, the file is closed and
 * marked as truncated. */
#include "client/edgeprofctl/trace/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/format.h"
#include "client/edgeprofctl/trace/trace_file.h"
#include "client/edgeprofctl/verb.h"
#include "proto/varlink.h"

uint32_t trace_app_index(const struct trace *trace, const char *name)
{
	uint32_t index = 0;
	for (const cJSON *app = json_first(trace->start, "apps"); app; app = app->next, index++) {
		if (strcmp(json_word(app, "app"), name) == 0) {
			return index;
		}
	}
	return TRACE_NO_APP;
}

static void put_time(struct trace *trace, const char *name, int64_t time_us)
{
	char text[40];
	time_t seconds = (time_t)(time_us / 1000000);
	struct tm tm;
	if (!gmtime_r(&seconds, &tm) || strftime(text, sizeof(text), "%FT%T", &tm) == 0) {
		return;
	}
	fprintf(trace->out, ",\"%s\":\"%s.%06dZ\",\"%s_us\":%" PRId64, name, text,
		(int)(time_us % 1000000), name, time_us);
}

static void put_apps(struct trace *trace)
{
	const char *comma = "";
	double overwritten = 0;
	fputs(",\"apps\":[", trace->out);
	for (const cJSON *app = json_first(trace->start, "apps"); app; app = app->next) {
		double records = json_number(app, "records");
		double gone = json_number(app, "overwritten");
		int64_t oldest_us = json_integer(app, "oldest_mono_us");
		overwritten += isfinite(gone) ? gone : 0;
		fprintf(trace->out, "%s{\"app\":", comma);
		json_write_text(trace->out, json_word(app, "app"));
		comma = ",";
		if (isfinite(records)) {
			fprintf(trace->out, ",\"records\":%.0f", records);
		}
		if (isfinite(gone)) {
			fprintf(trace->out, ",\"overwritten\":%.0f", gone);
		}
		if (oldest_us > 0) {
			fprintf(trace->out, ",\"oldest_mono_us\":%" PRId64, oldest_us);
		}
		if (json_text(app, "reason")) {
			fputs(",\"reason\":", trace->out);
			json_write_text(trace->out, json_word(app, "reason"));
		}
		fputs("}", trace->out);
	}
	fprintf(trace->out, "],\"records_overwritten\":%.0f", overwritten);
}

void trace_about(struct trace *trace)
{
	static const char *const texts[] = {"version", "hostname", "boot_id"};
	FILE *out = trace->out;
	fputs("\"schema\":\"edgeprof.trace/1\",\"clock\":\"CLOCK_MONOTONIC\"", out);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		fprintf(out, ",\"%s\":", texts[i]);
		json_write_text(out, json_word(trace->start, texts[i]));
	}
	put_time(trace, "start_time", trace_clock_time_us(&trace->clock, trace->from_ns));
	put_time(trace, "end_time", trace_clock_time_us(&trace->clock, trace->to_ns));
	fprintf(out, ",\"start_mono_us\":%" PRIu64 ",\"end_mono_us\":%" PRIu64,
		trace->from_ns / 1000, trace->to_ns / 1000);
	fprintf(out, ",\"span_s\":%.6f,\"clock_synced\":%s",
		(double)(trace->to_ns - trace->from_ns) / 1e9,
		json_true(trace->start, "clock_synced") ? "true" : "false");
	put_apps(trace);
	fprintf(out,
		",\"records\":%" PRIu64 ",\"records_lost\":%" PRIu64 ",\"left_out\":%" PRIu64
		",\"truncated\":%s",
		trace->records, trace->lost, trace->left_out, trace->truncated ? "true" : "false");
}

/* Sends the call and reads the first chunk: what the trace covers. */
static int ask(struct trace *trace, bool *continues)
{
	struct ctl *ctl = trace->ctl;
	const struct trace_options *options = ctl->verb_options;
	const char *app = ctl->word_count > 0 ? ctl->words[0] : NULL;
	cJSON *reply, *parameters = ctl_parameters("app", app);
	int status = ctl_add_time(ctl, parameters, "from_us", options->since);
	if (status == CTL_FINE) {
		status = ctl_add_time(ctl, parameters, "to_us", options->until);
	}
	if (status != CTL_FINE) {
		cJSON_Delete(parameters);
		return status;
	}
	status = ctl_subscribe(ctl, "ExportTrace", parameters);
	if (status == CTL_FINE) {
		status = ctl_chunk(ctl, "ExportTrace", &reply, continues);
	}
	if (status != CTL_FINE) {
		return status;
	}
	trace->start = cJSON_DetachItemFromObjectCaseSensitive(reply, "start");
	cJSON_Delete(reply);
	if (!cJSON_IsObject(trace->start)) {
		return ctl_fail(ctl, CTL_UNREACHABLE, "ExportTrace: malformed reply");
	}
	if (!trace_clock_read(&trace->clock, trace->start)) {
		return ctl_fail(ctl, CTL_OUTPUT, "out of memory");
	}
	int64_t from_us = json_integer(trace->start, "from_mono_us");
	int64_t to_us = json_integer(trace->start, "to_mono_us");
	trace->to_ns = to_us > 0 ? (uint64_t)to_us * 1000 + 999 : 0;
	trace->from_ns = from_us > 0 && from_us <= to_us ? (uint64_t)from_us * 1000 : 0;
	const char *reason = json_text(json_first(trace->start, "apps"), "reason");
	if (app && reason) {
		return ctl_fail(ctl, CTL_NOT_PERMITTED, "no records of '%s': %s", app, reason);
	}
	return CTL_FINE;
}

static int all_records(struct trace *trace, bool continues)
{
	char app[PROTO_NAME_SIZE] = "";
	int status = CTL_FINE;
	while (continues && status == CTL_FINE && !ferror(trace->out)) {
		cJSON *reply;
		status = ctl_chunk(trace->ctl, "ExportTrace", &reply, &continues);
		if (status != CTL_FINE) {
			break;
		}
		const char *its = json_word(reply, "app");
		if (its[0] != '\0' && strcmp(its, app) != 0) {
			trace->format->end_app(trace);
			snprintf(app, sizeof(app), "%s", its);
		}
		int64_t lost = json_integer(reply, "lost");
		trace->lost = lost > 0 ? (uint64_t)lost : trace->lost;
		status = trace_records(trace, reply);
		cJSON_Delete(reply);
	}
	trace->format->end_app(trace);
	return status;
}

/* Writes everything after the start. What cannot be fetched makes the trace incomplete. */
static int write_all(struct trace *trace, bool continues)
{
	const struct trace_options *options = trace->ctl->verb_options;
	int status, sensors = CTL_FINE;
	trace->format->begin(trace);
	status = all_records(trace, continues);
	if (status == CTL_FINE) {
		sensors = trace_sensors(trace, options->sensors);
		/* when no metric matches the glob, the rest is still complete */
		status = sensors == CTL_NO_DATA || sensors == CTL_USAGE ? CTL_FINE : sensors;
	}
	if (status == CTL_FINE) {
		status = trace_happenings(trace);
	}
	trace->truncated = status != CTL_FINE;
	trace->format->end(trace);
	return trace->truncated ? CTL_BAD_NEWS : sensors;
}

/* A summary of the file that was written. */
static void report_written(const struct trace *trace, const char *path)
{
	struct stat info;
	if (path && strcmp(path, "-") != 0 && stat(path, &info) == 0) {
		fprintf(stderr, "edgeprofctl: wrote %s: %" PRIu64 " events over %s, %s\n", path,
			trace->events,
			format_span((double)(trace->to_ns - trace->from_ns) / 1e9).text,
			format_bytes((double)info.st_size).text);
	}
}

static int write_file(struct trace *trace, bool continues)
{
	struct ctl *ctl = trace->ctl;
	struct trace_file file;
	const struct trace_options *options = ctl->verb_options;
	const char *path = options->output;
	int r = trace_file_open(path, &file);
	if (r < 0) {
		return ctl_fail(
			ctl, CTL_OUTPUT, "cannot write '%s': %s", !path ? "-" : path, strerror(-r));
	}
	trace->out = file.stream;
	int status = write_all(trace, continues);
	r = trace_file_finish(&file, true);
	if (r == -EPIPE && !path) {
		return CTL_FINE;
	}
	if (r < 0) {
		return ctl_fail(
			ctl, CTL_OUTPUT, "cannot write '%s': %s", !path ? "-" : path, strerror(-r));
	}
	if (trace->truncated) {
		return ctl_fail(ctl, CTL_BAD_NEWS, "the trace is incomplete");
	}
	if (status == CTL_FINE && trace->events == 0) {
		return ctl_fail(ctl, CTL_NO_DATA,
			"no events in this span; omit --since and --until for everything "
			"that is stored");
	}
	report_written(trace, path);
	return status;
}

const struct trace_format *trace_format_of(const struct ctl *ctl)
{
	const struct trace_options *options = ctl->verb_options;
	const char *name = options->format;
	if (!name) {
		return ctl->options.json == JSON_OFF ? &trace_chrome : &trace_json;
	}
	return strcmp(name, "csv") == 0	   ? &trace_csv
	       : strcmp(name, "json") == 0 ? &trace_json
					   : &trace_chrome;
}

int trace_command(struct ctl *ctl)
{
	const struct trace_options *options = ctl->verb_options;
	if (!options->output && ctl->style.tty) {
		return ctl_fail(ctl, CTL_USAGE,
			"refusing to write a trace to a terminal; use -o FILE, or -o - to write it "
			"anyway");
	}
	return trace_run(ctl, trace_format_of(ctl), NULL);
}

int trace_run(struct ctl *ctl, const struct trace_format *format, void *user)
{
	int status = CTL_OUTPUT;
	bool continues = false;
	struct trace *trace = calloc(1, sizeof(*trace));
	if (!trace) {
		return ctl_fail(ctl, CTL_OUTPUT, "out of memory");
	}
	if (trace_tracks_create(&trace->tracks) < 0 ||
		trace_flows_create(trace_chrome_flow, trace, &trace->flows) < 0 ||
		trace_pairs_create(trace_chrome_pair, trace, &trace->pairs) < 0) {
		ctl_fail(ctl, CTL_OUTPUT, "out of memory");
		goto error;
	}
	trace->ctl = ctl;
	trace->format = format;
	trace->user = user;
	ctl->options.json = JSON_SHORT; /* texts come as they are: they are escaped here */
	status = ask(trace, &continues);
	if (status == CTL_FINE) {
		status = write_file(trace, continues);
	}
error:
	trace_clock_finish(&trace->clock);
	cJSON_Delete(trace->start);
	trace_pairs_destroy(trace->pairs);
	trace_flows_destroy(trace->flows);
	trace_tracks_destroy(trace->tracks);
	free(trace);
	return status;
}

static const struct option_spec options[] = {
	{"output", 'o', "FILE", "write to FILE; -: to standard output", option_nonempty,
		offsetof(struct trace_options, output)},
	{"since", 0, "TIME", "start: 5min (ago), 14:30, '2026-01-31 14:30' or @UNIX", option_text,
		offsetof(struct trace_options, since)},
	{"until", 0, "TIME", "end; default: now", option_text,
		offsetof(struct trace_options, until)},
	{"sensors", 0, "GLOB", "include the metrics that match; '': none", option_text,
		offsetof(struct trace_options, sensors)},
	{"format", 0, "chrome|csv|json", "chrome, the default, opens in ui.perfetto.dev",
		option_word, offsetof(struct trace_options, format)},
	{.name = NULL},
};

const struct verb verb_trace = {"trace", "[APP]",
	"Write a trace file for Perfetto or chrome://tracing.", "trace cam --since 30s -o cam.json",
	options, sizeof(struct trace_options), trace_command};
