/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_buffer.h: keeps the last raw records of all apps, for traces, recordings and `why`: one
 * pool of chunks, filled from each app's log. When the pool is used up, the app that holds the
 * most gives its oldest chunk, so that a loud app can't push out a quiet one's. Nothing allocates
 * per event, and memory that no app needed yet is not touched.
 *
 * Events of a log are numbered from 0, in the order in which they were read: that of time within a
 * thread, about a tenth of a second apart between threads.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "daemon/util/index.h"
#include "proto/mapping.h"

enum {
	TRACE_CHUNK = 204,	 /* events; with 40 bytes each about 8 KiB */
	TRACE_NAMES_MAX = 256,	 /* of one app */
	TRACE_NO_NAME = 0xfffe,	 /* the record has none, or it was one too many */
	TRACE_DEFAULT = 4 << 20, /* bytes */
};

struct event {
	struct proto_record record; /* as it came, but stage is the number of trace_log_name() */
	uint32_t pid;		    /* 0 = not visible */
	uint16_t process;	    /* distinguishes the processes of an app; counts up and wraps */
	uint8_t slot;		    /* distinguishes the threads of a process */
	uint8_t throttled;	    /* enum throttle_value when it ended */
};

_Static_assert(sizeof(struct event) == 40, "event");

struct trace_buffer;

/* Open for trace_log_slot(); the rest is private to trace_buffer.c. */
struct trace_log {
	struct event *at; /* the next event's slot */
	uint32_t room;	  /* slots from there on */
	uint32_t chunks;
	uint32_t first, last; /* chunk indices */
	uint64_t begun;	      /* number of the first event of the chunk behind the last */
	struct trace_buffer *pool;
	LIST_ENTRY(trace_log) entry;
	size_t names;
	struct index index;
	char (*name[TRACE_NAMES_MAX / 16])[PROTO_NAME_SIZE];
};

struct trace_usage {
	size_t bytes;	      /* the budget */
	size_t used_bytes;    /* of it, touched and holding events */
	uint64_t count;	      /* events kept */
	uint64_t overwritten; /* events that were kept once, of logs that are open */
	uint64_t oldest_ns;   /* the oldest start of all that is kept; 0 = nothing */
};

/* memory: bytes for events, rounded down to chunks. -EINVAL below one chunk, -ENOMEM. */
int trace_buffer_create(size_t memory, struct trace_buffer **ret);
/* Its logs are closed first. */
void trace_buffer_destroy(struct trace_buffer *events);

/* An app's log, empty. -ENOMEM. */
int trace_log_open(struct trace_buffer *events, struct trace_log **ret);
/* Gives its chunks back. NULL is fine. */
void trace_log_close(struct trace_log *log);

/* The number of a name in the log, the same for the same name. TRACE_NO_NAME with
 * TRACE_NAMES_MAX others or without memory. Constant time; keep the number all the same. */
uint16_t trace_log_name(struct trace_log *log, const char *name);
/* The name of a number; "" for TRACE_NO_NAME and numbers it never gave. */
const char *trace_log_name_of(const struct trace_log *log, uint16_t number);

/* A chunk for the log, from the pool or from the log with the most. */
void trace_log_more(struct trace_log *log);

/* Reserves the slot of the next event: to be filled at once. */
static inline struct event *trace_log_slot(struct trace_log *log)
{
	if (__builtin_expect(log->room == 0, 0)) {
		trace_log_more(log);
	}
	log->room--;
	return log->at++;
}

/* count, overwritten and oldest_ns of one log; bytes is its share of the pool when each app with
 * events wants as much as it can get. Looks at one chunk of events. */
void trace_log_span(const struct trace_log *log, struct trace_usage *ret);
/* The same over all logs. */
void trace_buffer_usage(const struct trace_buffer *events, struct trace_usage *ret);

/* The earliest time since which the logs keep at most count events together, give or take a chunk
 * of each and the delay between threads; 0: they keep no more in all. -ENOMEM. */
int trace_buffer_since(const struct trace_buffer *events, size_t count, uint64_t *ret);

/* Where a reader stands; zeroed = at the oldest. Stays valid while events are added. */
struct trace_cursor {
	uint64_t position; /* number of the next event */
	uint32_t chunk, generation;
};

/* The next event, NULL at the end (more may come). *lost (may be NULL) grows by the events that
 * were overwritten before they could be read. Valid until the next trace_log_slot() of any log. */
const struct event *trace_log_next(
	const struct trace_log *log, struct trace_cursor *cursor, uint64_t *lost);
