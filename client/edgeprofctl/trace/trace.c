/* SPDX-License-Identifier: Apache-2.0 */
/* trace.c: writes the records of apps, samples of sensors and timeline events of one span to one
 * file. It is written as the data arrives; when the daemon stops in between, the file is closed and
 * marked as truncated. */
#include "client/edgeprofctl/trace/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/format.h"
#include "client/edgeprofctl/verb.h"

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

struct trace_event trace_event_of(enum trace_kind kind, const char *word)
{
	return (struct trace_event){.kind = kind,
		.word = word,
		.app = "",
		.name = "",
		.of = "",
		.unit = "",
		.category = "",
		.severity = "",
		.text = "",
		.app_index = TRACE_NO_APP,
		.value = NAN,
		.cpu_us = -1,
		.throttled = -1};
}

void trace_put(struct trace *trace, struct trace_event *events, size_t count)
{
	if (trace->format->order) {
		trace->format->order(trace, events, count);
	}
	for (size_t i = 0; i < count; i++) {
		trace->format->event(trace, &events[i]);
	}
	trace->events += count;
}

/* Sends the call and reads the first chunk: what the trace covers. */
static int ask(struct trace *trace, bool *continues)
{
	struct ctl *ctl = trace->ctl;
	const struct options *options = &ctl->options;
	const char *app = ctl->word_count > 0 ? ctl->words[0] : NULL;
	cJSON *reply, *parameters = ctl_parameters("app", app);
	int status = ctl_add_times(ctl, parameters, options->since, options->until);
	if (status != CTL_FINE) {
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
		return ctl->replay ? ctl_fail(ctl, CTL_NO_INPUT, "the recording is damaged")
				   : ctl_fail(ctl, CTL_UNREACHABLE, "ExportTrace: malformed reply");
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

static void call(struct trace *trace, void (*function)(struct trace *trace))
{
	if (function) {
		function(trace);
	}
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
			call(trace, trace->format->end_app);
			snprintf(app, sizeof(app), "%s", its);
		}
		int64_t lost = json_integer(reply, "lost");
		trace->lost = lost > 0 ? (uint64_t)lost : trace->lost;
		status = trace_records(trace, reply);
		cJSON_Delete(reply);
	}
	call(trace, trace->format->end_app);
	return status;
}

/* Writes everything after the start. What cannot be fetched makes the trace incomplete. */
static int write_all(struct trace *trace, bool continues)
{
	const struct options *options = &trace->ctl->options;
	int status, sensors = CTL_FINE;
	call(trace, trace->format->begin);
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
	call(trace, trace->format->end);
	return trace->truncated ? CTL_BAD_NEWS : sensors;
}

/* A summary of the file that was written. */
static void report_written(const struct trace *trace, const char *path)
{
	struct stat info;
	if (path && strcmp(path, "-") != 0 && stat(path, &info) == 0) {
		ctl_fail(trace->ctl, CTL_FINE, "wrote %s: %" PRIu64 " events over %s, %s", path,
			trace->events,
			format_span((double)(trace->to_ns - trace->from_ns) / 1e9).text,
			format_bytes((double)info.st_size).text);
	}
}

static int write_file(struct trace *trace, bool continues)
{
	struct ctl *ctl = trace->ctl;
	struct trace_file file;
	const struct options *options = &ctl->options;
	const char *path = options->output;
	int status = CTL_FINE, r = trace_file_open(path, &file);
	if (r == 0) {
		trace->out = file.stream;
		status = write_all(trace, continues);
		r = trace_file_finish(&file);
		if (r == -EPIPE && (!path || strcmp(path, "-") == 0)) {
			return CTL_FINE;
		}
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

static const struct trace_format *format_of(const struct ctl *ctl)
{
	const struct options *options = &ctl->options;
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
	const struct options *options = &ctl->options;
	if (!options->output && ctl->style.tty) {
		return ctl_fail(ctl, CTL_USAGE,
			"refusing to write a trace to a terminal; use -o FILE, or -o - to write it "
			"anyway");
	}
	return trace_run(ctl, format_of(ctl), NULL);
}

int trace_run(struct ctl *ctl, const struct trace_format *format, void *user)
{
	bool continues = false;
	struct trace *trace = ctl_memory(1, sizeof(*trace));
	trace->ctl = ctl;
	trace->format = format;
	trace->user = user;
	trace->flows.report = trace_chrome_flow;
	trace->pairs.report = trace_chrome_pair;
	trace->flows.ctx = trace->pairs.ctx = trace;
	ctl->options.json = JSON_SHORT; /* texts come as they are: they are escaped here */
	int status = ask(trace, &continues);
	if (status == CTL_FINE) {
		status = write_file(trace, continues);
	}
	trace_tracks_finish(&trace->tracks);
	free(trace->clock.step);
	cJSON_Delete(trace->start);
	free(trace);
	return status;
}

static const struct option_spec options[] = {
	{"output", 'o', "FILE", "write to FILE; -: to standard output", option_nonempty,
		offsetof(struct options, output)},
	{"since", 0, "TIME", "start: 5min (ago), 14:30, '2026-01-31 14:30' or @UNIX", option_text,
		offsetof(struct options, since)},
	{"until", 0, "TIME", "end; default: now", option_text, offsetof(struct options, until)},
	{"sensors", 0, "GLOB", "include the metrics that match; '': none", option_text,
		offsetof(struct options, sensors)},
	{"format", 0, "chrome|csv|json", "chrome, the default, opens in ui.perfetto.dev",
		option_word, offsetof(struct options, format)},
	{.name = NULL},
};

const struct verb verb_trace = {"trace", "[APP]",
	"Write a trace file for Perfetto or chrome://tracing.", "trace cam --since 30s -o cam.json",
	options, trace_command};
