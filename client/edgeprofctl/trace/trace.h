/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.h: declares what the files of `trace` and `record` share. Chunks of the daemon become
 * events (trace_records.c, trace_device.c), and events become text of a format (trace_chrome.c,
 * trace_plain.c) at once: of a trace, only what connects its parts stays in memory.
 */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "client/edgeprofctl/ctl.h"
#include "client/edgeprofctl/trace/trace_tracks.h"

enum {
	TRACE_NO_APP = UINT16_MAX, /* events of the device */
	TRACE_SUMS = 256,	   /* counters of one app */
	TRACE_MARKS = 1024,	   /* of apps, to report each once */
};

enum trace_kind {
	TRACE_COMPLETE,
	TRACE_BEGIN,
	TRACE_END,
	TRACE_FRAME,
	TRACE_MARK,
	TRACE_GAUGE,
	TRACE_COUNTER,
	TRACE_ATTRIBUTE,
	TRACE_SENSOR,  /* a sample of a metric */
	TRACE_HAPPENED /* an entry of the timeline */
};

/* One event; texts are borrowed, "" = none. unit: of the value, or the stage's compute unit. */
struct trace_event {
	enum trace_kind kind;
	const char *word; /* the kind's, of the timeline: alert, app … */
	const char *app, *name, *of, *unit, *category, *severity, *text;
	uint32_t app_index, process, pid;
	uint8_t thread;
	uint64_t start_ns, duration_ns;
	bool has_frame;
	uint64_t frame, id;
	double value;	/* NAN = none */
	int64_t cpu_us; /* -1 = not measured */
	unsigned depth;
	bool failed;
	int throttled; /* -1 = not known */
	/* chrome */
	struct trace_track track;
	bool placed, apart;
};

/* The clocks, as the daemon knew them. */
struct trace_clock {
	size_t count;
	int64_t *mono_us, *time_us;
};

struct trace;

struct trace_format {
	const char *name;
	void (*begin)(struct trace *trace);
	/* The events of one app or of the device, in the order of their ends in each thread; may be
	 * put into another order. */
	void (*events)(struct trace *trace, struct trace_event *events, size_t count);
	/* What comes next is of another app. */
	void (*end_app)(struct trace *trace);
	void (*end)(struct trace *trace);
};

struct trace_mark {
	uint32_t app;
	uint64_t mono_us;
};

struct trace {
	struct ctl *ctl;
	FILE *out;
	const struct trace_format *format;
	bool more; /* something is written: a comma is due */
	cJSON *start;
	struct trace_clock clock;
	uint64_t from_ns, to_ns, last_id;
	uint64_t events, records, lost;
	uint64_t left_out; /* skipped: a table was full */
	bool truncated;
	struct trace_tracks *tracks;
	struct trace_flows *flows;
	struct trace_pairs *pairs;
	size_t sums;
	struct {
		char name[PROTO_NAME_SIZE];
		double value;
	} sum[TRACE_SUMS]; /* of the present app */
	size_t marks;
	struct trace_mark mark[TRACE_MARKS];
	void *user; /* the format's own */
};

extern const struct trace_format trace_chrome, trace_csv, trace_json;

/* 0 when nothing is known. */
int64_t trace_clock_time_us(const struct trace_clock *clock, uint64_t mono_ns);
/* Of a time that was not after until_ns. */
uint64_t trace_clock_mono_ns(const struct trace_clock *clock, int64_t time_us, uint64_t until_ns);
/* The same columns of an answer; false: no memory. */
bool trace_clock_read(struct trace_clock *clock, const cJSON *start);
void trace_clock_finish(struct trace_clock *clock);

/* The index of an app in the start's list, TRACE_NO_APP when it is not there. */
uint32_t trace_app_index(const struct trace *trace, const char *name);

/* A chunk of records; returns CTL_FINE or has reported the error. */
int trace_records(struct trace *trace, const cJSON *chunk);
/* Sensors of the globs (NULL: those that most devices have), and what happened. */
int trace_sensors(struct trace *trace, const char *glob);
int trace_happenings(struct trace *trace);

struct trace_options {
	const char *since, *until, *output, *sensors, *format;
};

/* Writes the trace that ctl's struct trace_options describe. */
int trace_command(struct ctl *ctl);

/* Asks ctl's daemon (or recording) and gives all to the format, whose own is user. */
int trace_run(struct ctl *ctl, const struct trace_format *format, void *user);

/* The format that the options name. */
const struct trace_format *trace_format_of(const struct ctl *ctl);

/* What the trace covers and how complete it is, as the members of an object. */
void trace_about(struct trace *trace);

/* Reports for trace_flows_create and trace_pairs_create; ctx is the trace. */
void trace_chrome_flow(void *ctx, uint64_t frame, const struct trace_flow_part *part, size_t count);
void trace_chrome_pair(void *ctx, const struct trace_half *begin, const struct trace_half *end);

/* Shows one page about ctl->replay, the recording that is open. */
int record_show(struct ctl *ctl);
