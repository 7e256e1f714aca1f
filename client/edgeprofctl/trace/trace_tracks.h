/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_tracks.h: arranges the events of a trace as viewers want them. Slices of a track are nested
 * or apart, so a run that would overlap goes to another lane of its thread or becomes an
 * asynchronous slice; the parts of a frame are gathered for its arrows; begins and ends are paired.
 * Everything is bounded: the oldest is given up and reported as it is.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/mapping.h"
#include "proto/name.h"

enum {
	TRACE_LANES = 4,
	TRACE_PROCESSES = 512,
	TRACE_DEVICE_PID = 1 << 23, /* beyond any pid, and any made up for one that is not seen */
	TRACE_FIRST_TID = 1 << 24,
};

struct trace_track {
	uint32_t pid, tid; /* of the trace: each tid is there once */
	uint8_t lane;
	bool new_thread;  /* its thread was not there before */
	bool new_process; /* nor its process */
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
	const char *word; /* "complete", "begin" …; of the timeline: alert, app … */
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
	/* of a format with tracks; the last two are what trace_tracks_place found */
	bool placed, apart;
	struct trace_track track;
};

/* All zero is an empty one. */
struct trace_tracks {
	size_t count;
	uint32_t tids;
	struct process *process[TRACE_PROCESSES]; /* owned */
};

void trace_tracks_finish(struct trace_tracks *tracks);

/* Gives the event of a thread its track: a run (TRACE_COMPLETE) goes to the first lane where it
 * fits; where there is none it stands apart, as an asynchronous slice of the first lane. -ENOSPC:
 * more than TRACE_PROCESSES, -ENOMEM. */
int trace_tracks_place(struct trace_tracks *tracks, struct trace_event *event);

/* The track for what belongs to an app but to no thread; false: the app has no process yet. */
bool trace_tracks_of_app(const struct trace_tracks *tracks, uint32_t app, struct trace_track *ret);

enum { TRACE_FLOW_PARTS = 24 /* of a frame; more are skipped */ };

struct trace_flow_part {
	uint64_t start_ns;
	uint32_t pid, tid;
};

/* Gets the parts of a frame that is complete: at least two, in the order of time. */
typedef void trace_flow_report(
	void *ctx, uint64_t frame, const struct trace_flow_part *part, size_t count);

/* Frames are kept by their id in small sets. Ids that count up use the sets in turn, so a frame
 * stays until about a thousand more have come: records of two threads are a tenth of a second
 * apart. All zero but for the report is an empty one. */
enum { TRACE_FLOW_SETS = 257, TRACE_FLOW_WAYS = 4 };

struct trace_flows {
	trace_flow_report *report;
	void *ctx;
	uint64_t serial;
	struct trace_flow {
		uint64_t id, serial; /* serial 0 = free */
		size_t count;
		struct trace_flow_part part[TRACE_FLOW_PARTS];
	} frame[TRACE_FLOW_SETS][TRACE_FLOW_WAYS];
};

void trace_flows_add(struct trace_flows *flows, uint64_t frame, const struct trace_flow_part *part);
/* Reports every frame that is left: the next slices are of another app. */
void trace_flows_finish(struct trace_flows *flows);

/* A begin or an end. They may come from two threads, hence in any order. */
struct trace_half {
	bool end;
	uint32_t process; /* ids are a process's own */
	uint64_t id, t_ns, frame;
	bool has_frame;
	char name[PROTO_NAME_SIZE];
	char unit[PROTO_LABEL_SIZE], category[PROTO_LABEL_SIZE]; /* "" = none */
	struct trace_track track;
};

/* end NULL: it has not ended, or the end is not in the trace; begin NULL likewise. Not both. */
typedef void trace_pair_report(
	void *ctx, const struct trace_half *begin, const struct trace_half *end);

enum { TRACE_PAIRS_MAX = 512 };

/* The halves that wait, oldest first. Few do, so they are searched from end to end. All zero but
 * for the report is an empty one. */
struct trace_pairs {
	trace_pair_report *report;
	void *ctx;
	size_t count;
	struct trace_half half[TRACE_PAIRS_MAX];
};

/* Takes what it needs of a TRACE_BEGIN or TRACE_END. */
void trace_pairs_add(struct trace_pairs *pairs, const struct trace_event *event);
/* Reports each half that is still alone: the next ones are of another app. */
void trace_pairs_finish(struct trace_pairs *pairs);
