/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data_private.h: declares what the steps of reading share: the records of one app as they came
 * (data_gather.c), made into frames (data_frames.c) and stages (data_stages.c).
 */
#pragma once

#include "client/edgeprofctl/data/data.h"
#include "client/edgeprofctl/trace/trace.h"

enum { DATA_STAGES_MAX = 512, DATA_SERIES_MAX = 4096, DATA_BY_ID = UINT16_MAX };

/* An execution of a stage. */
struct data_run {
	uint64_t start_ns, end_ns, frame_id;
	size_t frame;		       /* index, or DATA_NO_FRAME */
	const struct data_run *around; /* in the same thread; NULL: it is outermost */
	uint32_t process;
	uint16_t stage, thread; /* DATA_BY_ID: of no thread, such runs do not nest */
	uint8_t depth;
	int8_t throttled;
	bool has_frame, failed;
	bool timed; /* by the process; of a datagram's only the duration is known */
};

/* A frame, or a tick; last_ns is later than end_ns where stages of the frame ended later. */
struct data_mark {
	uint64_t start_ns, end_ns, first_ns, last_ns, id;
	uint64_t thread; /* and process; of frames; UINT64_MAX: made of the runs with its id */
	bool has_id;
	int throttled;
	uint64_t stages, threads; /* bits of those that ran in one of runs; some share a bit */
};

/* The records of one app. */
struct data_records {
	char app[PROTO_NAME_SIZE];
	size_t run_count, run_capacity;
	struct data_run *run;
	size_t mark_count, mark_capacity;
	struct data_mark *mark;
	size_t stage_count, stage_capacity, last_stage;
	struct data_stage *stage;
};

struct data_gather {
	struct data *data;
	const struct replay *replay; /* NULL: a live app */
	const char *wanted;	     /* app; NULL: the one with most frames */
	char wanted_name[PROTO_NAME_SIZE];
	struct data_records now, best;
	struct trace_pairs pairs;
	uint64_t begin_ns, end_ns, measured_ns;
	size_t last_series;
	bool out_of_memory, skipped;
};

extern const struct trace_format data_format;
void data_gather_finish(struct data_gather *gather);

/* One more item at the end of an array, all zero. NULL: no memory, which the gather remembers. */
void *data_append(
	struct data_gather *gather, void *items, size_t *count, size_t *capacity, size_t size);

/* Makes data's frames of the best app's records, joins runs with them, and cuts the warm-up: skip
 * frames in front (up to measured_ns where that is not 0), and those after the next `most`. */
int data_make_frames(struct data_gather *gather, size_t skip, size_t most);
/* Makes data's stages of the runs that are left. */
int data_make_stages(struct data_gather *gather);

/* Seconds from the begin of the span. */
double data_seconds(const struct data_gather *gather, uint64_t t_ns);
