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

struct trace_tracks;

int trace_tracks_create(struct trace_tracks **ret); /* -ENOMEM */
void trace_tracks_destroy(struct trace_tracks *tracks);

/* The first lane of a thread of an app's process. -ENOSPC: more than TRACE_PROCESSES, -ENOMEM. */
int trace_tracks_find(struct trace_tracks *tracks, uint32_t app, uint32_t process, uint32_t pid,
	uint8_t thread, struct trace_track *ret);

/* A lane where the run fits; depth is that of the record. -ENOENT: none, so the slice is
 * asynchronous; the others as above. */
int trace_tracks_place(struct trace_tracks *tracks, uint32_t app, uint32_t process, uint32_t pid,
	uint8_t thread, uint64_t start_ns, uint64_t end_ns, unsigned depth,
	struct trace_track *ret);

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

struct trace_flows;

int trace_flows_create(
	trace_flow_report *report, void *ctx, struct trace_flows **ret); /* -ENOMEM */
/* Reports nothing. */
void trace_flows_destroy(struct trace_flows *flows);

void trace_flows_add(struct trace_flows *flows, uint64_t frame, const struct trace_flow_part *part);
/* Reports every frame that is left: the next slices are of another app. */
void trace_flows_finish(struct trace_flows *flows);

/* A begin or an end. They may come from two threads, hence in any order. */
struct trace_half {
	bool end;
	uint32_t process; /* ids are a process's own */
	uint64_t id, t_ns;
	char name[PROTO_NAME_SIZE];
	char unit[PROTO_LABEL_SIZE], category[PROTO_LABEL_SIZE]; /* "" = none */
	struct trace_track track;
};

/* end NULL: it has not ended, or the end is not in the trace; begin NULL likewise. Not both. */
typedef void trace_pair_report(
	void *ctx, const struct trace_half *begin, const struct trace_half *end);

struct trace_pairs;

int trace_pairs_create(
	trace_pair_report *report, void *ctx, struct trace_pairs **ret); /* -ENOMEM */
void trace_pairs_destroy(struct trace_pairs *pairs);

void trace_pairs_add(struct trace_pairs *pairs, const struct trace_half *half);
/* Reports each half that is still alone: the next ones are of another app. */
void trace_pairs_finish(struct trace_pairs *pairs);
