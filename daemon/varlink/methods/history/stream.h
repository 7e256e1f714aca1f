/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.h: declares the internals of GetHistory, for history.c, live.c, past.c and rows.c: what a
 * call keeps between its turns, and the two sources of its rows. Past: what the archive has of the
 * time before live history begins, read by a worker, plan by plan. Live: the pool.
 */
#pragma once

#include "daemon/core/core.h"
#include "daemon/core/history/history.h"
#include "daemon/varlink/server/api.h"
#include "proto/name.h"

enum {
	HISTORY_POINTS_KEPT = 1024,   /* of a series: more do not fit into a reply */
	HISTORY_POINTS_CHUNK = 256,   /* of a series in one entry of a chunk */
	HISTORY_POINT_BYTES = 112,    /* of a point in JSON at most: 17 + 3 * 25 + 11 and commas */
	HISTORY_SERIES_BYTES = 512,   /* of an entry's name, unit and brackets */
	HISTORY_ROWS_PER_TURN = 1024, /* gone over */
	HISTORY_PAST_POINTS = 4096,   /* of a plan */
	HISTORY_PAST_BYTES = 256 * 1024, /* what a plan takes with them, on the user's account */
};

#define HISTORY_TURN_NS UINT64_C(400000)
#define HISTORY_TENS_NS UINT64_C(10000000000)
#define HISTORY_MINUTE_NS UINT64_C(60000000000)

enum history_step {
	HISTORY_ON,	 /* there is more */
	HISTORY_NO_ROOM, /* the reply or the turn is */
	HISTORY_WAIT,	 /* for the worker; the stream is woken */
	HISTORY_END,
};

enum history_phase { PHASE_COUNT_PAST, PHASE_COUNT, PHASE_PAST, PHASE_LIVE };

struct history_past {
	bool wanted;	  /* the range begins before live history does, and there is an archive */
	int64_t cut_us;	  /* rows of this boot from here on are live history's */
	int64_t to_us;	  /* nothing is asked for beyond */
	int64_t next_us;  /* where the next plan begins; INT64_MAX: there is none */
	uint64_t step_ns; /* as the archive does it */
	struct archive_read *read; /* under way */
	struct archive_plan *plan; /* that has been read */
	size_t series, point;	   /* of the plan: what comes next */
	size_t listed, most;	   /* series of a plan: so far in this one, in the largest */
	char note[128];		   /* why rows are missing; "" = none are */
};

struct history_stream {
	struct api_stream base;
	bool single;
	enum history_phase phase;
	char query[PROTO_QUERY_SIZE];
	int64_t from_us, to_us;
	uint64_t from_ns, to_ns, step_ns;
	size_t max_points;
	struct history_past past;
	/* where live history stands */
	uint32_t next; /* history_next_series */
	bool in_series;
	struct history_cursor cursor;
	char name[PROTO_PATH_SIZE];
	enum unit unit;
	size_t filled;
	/* counted */
	size_t series, total;
	unsigned tries; /* steps that were too short */
	struct reply_held held;
	size_t capacity;
	struct history_point points[];
};

static inline struct core *history_core(const struct history_stream *stream)
{
	return stream->base.connection->api->core;
}

static inline bool history_counts(const struct history_stream *stream)
{
	return stream->phase < PHASE_PAST;
}

/* live.c: one read of one series. looks: how many series may still be looked at in this
 * turn. */
void history_live_restart(struct history_stream *stream);
enum history_step history_live_count(struct history_stream *stream, unsigned *looks);
enum history_step history_live_write(
	struct history_stream *stream, struct json *out, unsigned *looks);

/* past.c: the rows of the archive, plan by plan. */
void history_past_init(struct history_stream *stream);
void history_past_restart(struct history_stream *stream);
struct history_rows;
/* Up to max rows, of which there may be none; HISTORY_NO_ROOM: max is too little to begin with. */
enum history_step history_past_next(
	struct history_stream *stream, size_t max, struct history_rows *ret);
void history_past_finish(struct history_stream *stream);

/* rows.c: an entry of the reply; past: its points are the archive's. boot_seq 0: omitted. */
struct history_rows {
	const char *name;
	enum unit unit;
	uint64_t step_ns;
	uint32_t boot_seq;
	const struct history_point *points;
	bool past;
	size_t count;
};
void history_put(struct json *out, const struct core *core, const struct history_rows *rows);
/* Points that certainly still fit into this reply. */
size_t history_room(const struct json *out);
