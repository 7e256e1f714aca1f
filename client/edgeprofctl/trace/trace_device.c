/* SPDX-License-Identifier: Apache-2.0 */
/* trace_device.c: adds samples of sensors and events of the timeline to a trace. They carry wall
 * times, which the daemon's table of clock steps converts to the trace's clock. */
#include "client/edgeprofctl/trace/trace.h"

#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "proto/varlink.h"

enum { ENTRIES_MAX = 4096 };

bool trace_clock_read(struct trace_clock *clock, const cJSON *start)
{
	const cJSON *mono = json_first(start, "clock_mono_us");
	const cJSON *wall = json_first(start, "clock_time_us");
	*clock = (struct trace_clock){0, calloc(ENTRIES_MAX, sizeof(clock->step[0]))};
	for (; clock->step && mono && wall && clock->count < ENTRIES_MAX;
		mono = mono->next, wall = wall->next) {
		clock->step[clock->count++] =
			(struct trace_clock_step){json_whole(cJSON_GetNumberValue(mono)),
				json_whole(cJSON_GetNumberValue(wall))};
	}
	return clock->step;
}

int64_t trace_clock_time_us(const struct trace_clock *clock, uint64_t mono_ns)
{
	int64_t mono_us = (int64_t)(mono_ns / 1000);
	if (clock->count == 0) {
		return 0;
	}
	size_t at = clock->count - 1;
	while (at > 0 && clock->step[at].mono_us > mono_us) {
		at--;
	}
	return mono_us + (clock->step[at].time_us - clock->step[at].mono_us);
}

/* A wall time may have been twice, or never: the newest entry that held then. */
uint64_t trace_clock_mono_ns(const struct trace_clock *clock, int64_t time_us, uint64_t until_ns)
{
	if (clock->count == 0) {
		return 0;
	}
	int64_t until_us = (int64_t)(until_ns / 1000) + 1;
	size_t at = clock->count - 1;
	int64_t mono_us = time_us - (clock->step[at].time_us - clock->step[at].mono_us);
	while (at > 0 && (mono_us < clock->step[at].mono_us || mono_us > until_us)) {
		until_us = clock->step[at].mono_us;
		at--;
		mono_us = time_us - (clock->step[at].time_us - clock->step[at].mono_us);
	}
	return mono_us > 0 ? (uint64_t)mono_us * 1000 : 0;
}

enum { SAMPLES = 256, PAGE = 64 };

static void add_series(struct trace *trace, const cJSON *series)
{
	struct trace_event events[SAMPLES];
	size_t count = 0;
	const cJSON *time = json_first(series, "time_us"), *mean = json_first(series, "mean");
	for (; time && mean; time = time->next, mean = mean->next) {
		struct trace_event event = trace_event_of(TRACE_SENSOR, "sensor");
		if (!cJSON_IsNumber(time) || !cJSON_IsNumber(mean) ||
			fabs(time->valuedouble) > 9e15) {
			continue; /* a gap */
		}
		event.name = json_word(series, "name");
		event.unit = json_word(series, "unit");
		event.value = mean->valuedouble;
		event.start_ns = trace_clock_mono_ns(
			&trace->clock, (int64_t)time->valuedouble, trace->to_ns);
		if (event.start_ns == 0 || event.start_ns + 1000 < trace->from_ns ||
			event.start_ns > trace->to_ns + 1000) {
			continue;
		}
		events[count++] = event;
		if (count == SAMPLES) {
			trace_put(trace, events, count);
			count = 0;
		}
	}
	trace_put(trace, events, count);
}

/* The wall time at that moment, and by the newest clock: when it was set in between, they differ.
 */
static void wall_times(const struct trace *trace, uint64_t mono_ns, int64_t *least, int64_t *most)
{
	const struct trace_clock *clock = &trace->clock;
	size_t last = clock->count > 0 ? clock->count - 1 : 0;
	int64_t offset_us =
		clock->count > 0 ? clock->step[last].time_us - clock->step[last].mono_us : 0;
	int64_t newest_us = (int64_t)(mono_ns / 1000) + offset_us;
	int64_t then_us = trace_clock_time_us(clock, mono_ns);
	*least = newest_us < then_us ? newest_us : then_us;
	*most = newest_us > then_us ? newest_us : then_us;
}

static int ask_sensors(struct trace *trace, const char *glob)
{
	struct ctl *ctl = trace->ctl;
	cJSON *parameters = ctl_parameters("glob", glob);
	int64_t from_us, to_us, other_us;
	wall_times(trace, trace->from_ns, &from_us, &other_us);
	wall_times(trace, trace->to_ns, &other_us, &to_us);
	cJSON_AddItemToObject(parameters, "from_us", proto_json_integer(from_us > 0 ? from_us : 0));
	cJSON_AddItemToObject(parameters, "to_us", proto_json_integer(to_us > 0 ? to_us + 1 : 0));
	int status = ctl_subscribe(ctl, "GetHistory", parameters);
	bool continues = true;
	while (status == CTL_FINE && continues && !ferror(trace->out)) {
		cJSON *reply;
		status = ctl_chunk(ctl, "GetHistory", &reply, &continues);
		for (const cJSON *series = json_first(reply, "series"); series;
			series = series->next) {
			add_series(trace, series);
		}
		cJSON_Delete(reply);
	}
	return status;
}

int trace_sensors(struct trace *trace, const char *glob)
{
	static const char *const usual[] = {"temperature/*", "cooling/*", "fan/*", "throttle/*",
		"power/*", "cpu/*", "cpu/*/*", "memory/*", "gpu/*", "emc/*", "pressure/*/*"};
	int status = CTL_FINE;
	if (glob) {
		return glob[0] == '\0' ? CTL_FINE : ask_sensors(trace, glob);
	}
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]) && status == CTL_FINE; i++) {
		status = ask_sensors(trace, usual[i]);
	}
	return status;
}

static bool reported_already(const struct trace *trace, uint32_t app, uint64_t mono_us)
{
	size_t count = trace->marks < TRACE_MARKS ? trace->marks : TRACE_MARKS;
	for (size_t i = 0; i < count; i++) {
		if (trace->mark[i].app == app && trace->mark[i].mono_us == mono_us) {
			return true;
		}
	}
	return false;
}

/* Marks, starts and ends of apps that were not requested are skipped. */
static bool of_interest(const struct trace *trace, const struct trace_event *event)
{
	bool mark = strcmp(event->word, "mark") == 0;
	if (event->start_ns < trace->from_ns || event->start_ns / 1000 > trace->to_ns / 1000) {
		return false;
	}
	if (!mark && strcmp(event->word, "app") != 0) {
		return true;
	}
	if (mark && reported_already(trace, event->app_index, event->start_ns / 1000)) {
		return false;
	}
	return trace->ctl->word_count == 0 || event->app_index != TRACE_NO_APP ||
	       event->name[0] == '\0';
}

/* A trace is of this boot: what happened in the ones before has no place on its clock. */
static void add_happening(struct trace *trace, const cJSON *entry)
{
	struct trace_event event = trace_event_of(TRACE_HAPPENED, json_word(entry, "kind"));
	if (json_get(entry, "boot_seq")) {
		return;
	}
	int64_t mono_us = json_integer(entry, "mono_us");
	event.start_ns = mono_us > 0 ? (uint64_t)mono_us * 1000 : 0;
	event.name = json_word(entry, "subject");
	event.severity = json_word(entry, "severity");
	event.text = json_word(entry, "text");
	if (strcmp(event.word, "mark") == 0 || strcmp(event.word, "app") == 0) {
		event.app_index = trace_app_index(trace, event.name);
		event.app = event.app_index != TRACE_NO_APP ? event.name : "";
	}
	if (of_interest(trace, &event)) {
		trace_put(trace, &event, 1);
	}
}

int trace_happenings(struct trace *trace)
{
	int64_t next = 1, last = INT64_MAX;
	while (next <= last && !ferror(trace->out)) {
		cJSON *parameters = ctl_parameters("", NULL), *page;
		cJSON_AddItemToObject(parameters, "from_serial", proto_json_integer(next));
		cJSON_AddNumberToObject(parameters, "limit", PAGE);
		int status = ctl_call(trace->ctl, "ListEvents", parameters, false, &page);
		if (status != CTL_FINE) {
			return status;
		}
		/* what comes in meanwhile is behind the trace */
		int64_t before = next, newest = json_integer(page, "last_serial");
		last = newest < last ? newest : last;
		for (const cJSON *entry = json_first(page, "events"); entry; entry = entry->next) {
			int64_t serial = json_integer(entry, "serial");
			next = serial >= next ? serial + 1 : next;
			add_happening(trace, entry);
		}
		cJSON_Delete(page);
		if (next == before) {
			break;
		}
	}
	return CTL_FINE;
}
