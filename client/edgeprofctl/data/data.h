/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data.h: declares what was measured of one app in one span: frames, executions of stages, sensors
 * and what happened, in memory. Sessions, recordings and the running daemon are read into it
 * (data_read.c); report, compare and assert work on nothing else.
 *
 * Times are seconds after the begin of the span, durations milliseconds. Everything is in the order
 * of time; executions and frames have the time of their end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "client/edgeprofctl/ctl.h"
#include "proto/mapping.h"
#include "proto/name.h"
#include "proto/percentile.h"

struct data_frame {
	double at_s;
	double total_ms; /* first start to last end; NAN of bare ticks and incomplete frames */
	double time_ms;	 /* since the end of the one before; NAN for the first, also after a gap */
	uint64_t id;
	int throttled; /* of its last execution: 1, 0, -1 = not known */
};

struct data_execution {
	double at_s, ms;
	size_t frame; /* index; DATA_NO_FRAME: outside of any */
	int throttled;
	bool inside; /* of another one that is in the sum of a frame */
};
#define DATA_NO_FRAME ((size_t)-1)

struct data_stage {
	char name[PROTO_NAME_SIZE];  /* unique in the app, as in metrics: infer_cpu */
	char shown[PROTO_NAME_SIZE]; /* as of a live app: infer, the unit apart */
	char unit[PROTO_LABEL_SIZE], category[PROTO_LABEL_SIZE]; /* "" = none */
	char expected[PROTO_LABEL_SIZE]; /* the unit that it fell back from, to a CPU; "" = none */
	int parent;			 /* index of the stage it mostly ran in; -1 = outermost */
	unsigned depth;	     /* by parent: for indented tables, which are in tree order */
	double self_ms;	     /* total without the stages inside of it */
	double per_frame_ms; /* time inside the frames / their number; NAN without frames */
	double deadline_ms;  /* NAN = none */
	bool left_out;	     /* of TOTAL: named or of category "total", or of "wait" */
	size_t failed, count;
	struct data_execution *execution;
	struct proto_summary ms; /* of the durations */
};

/* A sensor or another metric. */
struct data_series {
	char name[PROTO_PATH_SIZE]; /* "temperature/CPU" */
	char unit[PROTO_LABEL_SIZE];
	size_t count, capacity;
	double *at_s, *value;
};

/* An alert's transition, a mark, a throttle edge, a restart. */
struct data_happening {
	double at_s;
	char kind[PROTO_NAME_SIZE];	/* alert, mark, throttle, app … as on the timeline */
	char severity[PROTO_NAME_SIZE]; /* "" = none */
	char text[256];
};

struct data {
	char name[PROTO_NAME_SIZE]; /* of the session or recording; "" = live */
	char app[PROTO_NAME_SIZE];
	cJSON *about;	  /* the session's row (type Session); NULL = no session */
	cJSON *device;	  /* the reply of GetStatus; NULL = not known */
	cJSON *notes;	  /* texts: what the daemon says makes the numbers less trustworthy */
	int64_t begin_us; /* of the epoch */
	double span_s;
	size_t warmup;	   /* frames (without frames: executions of each stage) skipped already */
	double kept_share; /* of the time, after thinning: 1 = all */
	uint64_t lost;	   /* records */
	bool overwritten;  /* a live app's oldest records are gone: the span begins later than its
			      run */
	const char *incomplete; /* NULL, or why numbers are not of all: one sentence */

	size_t frame_count;
	size_t whole; /* frames but those at the end that some stage had not reached yet */
	struct data_frame *frame;
	double frame_deadline_ms;	    /* NAN = none */
	struct proto_summary frame_time_ms; /* of time_ms */
	struct proto_summary total_ms;	    /* of the stage "total", else of total_ms, else of the
					     * sum of the outermost stages */
	bool overlaps; /* executions in frames ran at the same time: the sum exceeds the time */
	size_t stage_count;
	struct data_stage *stage; /* in tree order, first seen first */
	size_t series_count, series_capacity;
	struct data_series *series;
	size_t happening_count, happening_capacity;
	struct data_happening *happening;
};

/* A name with a '/', or that ends in ".jsonl", is that of a file. Others are not, as the program
 * of an app often lies in the current folder under the app's name. */
bool data_is_file(const char *what);

/* Reads `what`: a file, else a session of that name, else a recording, else a running or ended app
 * with what the daemon still has of it (the latest run). app: the app of a recording of several,
 * NULL = the one with most frames. An exit status of ctl.h after a message; *ret is the caller's to
 * data_finish() on CTL_FINE. */
int data_read(struct ctl *ctl, const char *what, const char *app, struct data *ret);
void data_finish(struct data *data);

/* The duration of a frame: its total, else the time since the one before. */
double data_frame_ms(const struct data_frame *frame);
/* Whether the stage's execution is in the sum of a frame: of no total, and in nothing but totals.
 */
bool data_is_outermost(const struct data_stage *stage, const struct data_execution *one);

/* Of values in any order; they are sorted in place. */
struct proto_summary data_numbers_of(double *values, size_t count);

/* NULL: not there. */
const struct data_stage *data_stage(const struct data *data, const char *name);
const struct data_series *data_series(const struct data *data, const char *name);
/* The value that was in force at a time: the last one before it, at most 5 intervals old; NAN. */
double data_at(const struct data_series *series, double at_s);

/* A tag or a fact of the environment of a session; NULL: not known. */
const char *data_tag(const struct data *data, const char *name);
