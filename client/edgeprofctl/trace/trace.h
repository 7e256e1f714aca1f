/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.h: declares what the files of `trace` and `record` share. Chunks of the daemon become
 * events (trace_records.c, trace_device.c), and events become text of a format (trace_chrome.c,
 * trace_plain.c) at once: of a trace, only what connects its parts stays in memory.
 */
#pragma once

#include <inttypes.h>
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

/* The clocks, as the daemon knew them: what they said when they were set. */
struct trace_clock {
	size_t count;
	struct trace_clock_step {
		int64_t mono_us, time_us;
	} * step;
};

struct trace;

/* A function may be NULL. */
struct trace_format {
	void (*begin)(struct trace *trace);
	/* Puts events of one app or of the device, which are in the order of their ends in each
	 * thread, into another order. */
	void (*order)(struct trace *trace, struct trace_event *events, size_t count);
	void (*event)(struct trace *trace, const struct trace_event *event);
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
	bool more; /* the open object or array has a member: a comma is due */
	cJSON *start;
	struct trace_clock clock;
	uint64_t from_ns, to_ns, last_id;
	uint64_t events, records, lost;
	uint64_t left_out; /* skipped: a table was full */
	bool truncated;
	struct trace_tracks tracks;
	struct trace_flows flows;
	struct trace_pairs pairs;
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
/* The two columns of an answer; clock->step is the caller's to free(3). False: no memory. */
bool trace_clock_read(struct trace_clock *clock, const cJSON *start);

/* The index of an app in the start's list, TRACE_NO_APP when it is not there. */
uint32_t trace_app_index(const struct trace *trace, const char *name);

/* An event without a value, of the device. */
struct trace_event trace_event_of(enum trace_kind kind, const char *word);

/* Gives events to the format. */
void trace_put(struct trace *trace, struct trace_event *events, size_t count);

/* A chunk of records; returns CTL_FINE or has reported the error. */
int trace_records(struct trace *trace, const cJSON *chunk);
/* Sensors of the globs (NULL: those that most devices have), and what happened. */
int trace_sensors(struct trace *trace, const char *glob);
int trace_happenings(struct trace *trace);

/* Writes the trace that ctl's options describe. */
int trace_command(struct ctl *ctl);

/* Asks ctl's daemon (or recording) and gives all to the format, whose own is user. */
int trace_run(struct ctl *ctl, const struct trace_format *format, void *user);

/* JSON of the formats: an object that is a member, or (name NULL) an item of the array of events,
 * and its members with the commas between them. */
void trace_open(struct trace *trace, const char *name);
void trace_close(struct trace *trace);
__attribute__((format(printf, 3, 4))) void trace_member(
	struct trace *trace, const char *name, const char *format, ...);
void trace_text(struct trace *trace, const char *name, const char *text);
void trace_bool(struct trace *trace, const char *name, bool value);
void trace_us(struct trace *trace, const char *name, uint64_t ns); /* with three decimals */

/* Ends the array of events and writes what the trace covers and how complete it is. */
void trace_about(struct trace *trace);

/* Reports for flows and pairs; ctx is the trace. */
void trace_chrome_flow(void *ctx, uint64_t frame, const struct trace_flow_part *part, size_t count);
void trace_chrome_pair(void *ctx, const struct trace_half *begin, const struct trace_half *end);

/* Where a trace goes: a file that appears only when it is complete, or stdout. */
struct trace_file {
	FILE *stream;
	char *path;	 /* NULL: written where it goes (stdout, a device, a pipe) */
	char *temporary; /* in the same directory */
};

/* path NULL or "-" is stdout. -ENOMEM or the errno of the file system. */
int trace_file_open(const char *path, struct trace_file *ret);

/* Gives the file its name, after all of it is on the medium; what fails is removed. 0 or -errno,
 * -EPIPE when the reader of stdout has gone. */
int trace_file_finish(struct trace_file *file);

/* Shows one page about ctl->replay, the recording that is open. */
int record_show(struct ctl *ctl);
