/*
 * The last raw records of all apps, for traces, recordings and `why`: one pool of chunks, filled
 * from each app's log. When the pool is used up, the app that holds the most gives its oldest
 * chunk, so that a loud app can't push out a quiet one's. Nothing allocates per event, and memory
 * that no app needed yet is not touched.
 *
 * Events of a log are numbered from 0, in the order in which they were read: that of time within a
 * thread, about a tenth of a second apart between threads.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/util/index.h"
#include "proto/mapping.h"

enum {
	EVENTS_CHUNK = 204,	  /* events; with 40 bytes each about 8 KiB */
	EVENTS_NAMES_MAX = 256,	  /* of one app */
	EVENTS_NO_NAME = 0xfffe,  /* the record has none, or it was one too many */
	EVENTS_DEFAULT = 4 << 20, /* bytes */
};

struct event {
	struct proto_record record; /* as it came, but stage is the number of events_name() */
	uint32_t pid;		    /* 0 = not visible */
	uint16_t process;	    /* tells an app's processes apart; counts up and wraps */
	uint8_t slot;		    /* tells the threads of a process apart */
	uint8_t throttled;	    /* enum throttle_value when it ended */
};

_Static_assert(sizeof(struct event) == 40, "event");

struct events;

/* Open for events_add(); the rest is private to events.c. */
struct events_log {
	struct event *at; /* the next event's place */
	uint32_t room;	  /* places from there on */
	uint32_t chunks;
	uint32_t first, last; /* chunk indices */
	uint64_t begun;	      /* number of the first event of the chunk behind the last */
	struct events *pool;
	struct events_log *next;
	size_t names;
	struct index index;
	char (*name[EVENTS_NAMES_MAX / 16])[PROTO_NAME_SIZE];
};

struct events_usage {
	size_t bytes;	      /* the budget */
	size_t used_bytes;    /* of it, touched and holding events */
	uint64_t count;	      /* events kept */
	uint64_t overwritten; /* events that were kept once, of logs that are open */
	uint64_t oldest_ns;   /* the oldest start of all that is kept; 0 = nothing */
};

/* memory: bytes for events, rounded down to chunks. -EINVAL below one chunk, -ENOMEM. */
int events_create(size_t memory, struct events **ret);
/* Its logs are closed first. */
void events_destroy(struct events *events);

/* An app's log, empty. -ENOMEM. */
int events_open(struct events *events, struct events_log **ret);
/* Gives its chunks back. NULL is fine. */
void events_close(struct events_log *log);

/* The number of a name in the log, the same for the same name. EVENTS_NO_NAME with
 * EVENTS_NAMES_MAX others or without memory. Constant time; keep the number all the same. */
uint16_t events_name(struct events_log *log, const char *name);
/* The name of a number; "" for EVENTS_NO_NAME and numbers it never gave. */
const char *events_name_of(const struct events_log *log, uint16_t number);

/* A chunk for the log, from the pool or from who has most. */
void events_more(struct events_log *log);

/* The place of the next event, which it takes: to be filled at once. */
static inline struct event *events_place(struct events_log *log)
{
	if (__builtin_expect(log->room == 0, 0)) {
		events_more(log);
	}
	log->room--;
	return log->at++;
}

/* Keeps a copy. */
static inline void events_add(struct events_log *log, const struct event *event)
{
	*events_place(log) = *event;
}

/* count, overwritten and oldest_ns of one log; bytes is its share of the pool when each app with
 * events wants as much as it can get. Looks at one chunk of events. */
void events_span(const struct events_log *log, struct events_usage *ret);
/* The same over all logs. */
void events_usage(const struct events *events, struct events_usage *ret);

/* The earliest time since which the logs keep at most count events together, give or take a chunk
 * of each and what is late between threads; 0: all that is kept is no more. -ENOMEM. */
int events_since(const struct events *events, size_t count, uint64_t *ret);

/* Where a reader stands; zeroed = at the oldest. Stays valid while events are added. */
struct events_cursor {
	uint64_t position; /* number of the next event */
	uint32_t chunk, generation;
};

/* The next event, NULL at the end (more may come). *lost (may be NULL) grows by the events that
 * were overwritten before they could be read. Valid until the next events_add() of any log. */
const struct event *events_next(
	const struct events_log *log, struct events_cursor *cursor, uint64_t *lost);
