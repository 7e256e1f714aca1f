/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sources.h: holds who produces metrics, in which state each source is, and what SetSource requests
 * of it. The methods write requests, the scheduler reads them and writes states.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/name.h"

enum { SOURCES_MAX = 64, SOURCE_REASON_SIZE = 160 };

enum source_state {
	SOURCE_OK,
	SOURCE_UNAVAILABLE, /* this machine has none; reason says what was looked for */
	SOURCE_STALE,	    /* computed: last good reading older than 3 intervals */
	SOURCE_ERROR,	    /* reason says what failed */
	SOURCE_SUSPENDED,   /* switched off by configuration or by SetSource */
};

struct source {
	uint16_t id; /* index in the registry; never reused */
	char name[PROTO_NAME_SIZE];
	enum source_state state;	 /* as last reported; ask source_state_at for output */
	char reason[SOURCE_REASON_SIZE]; /* "" when ok */
	uint64_t interval_ns;		 /* effective; 0 = not periodic (fed by others) */
	uint64_t last_ok_ns;		 /* CLOCK_MONOTONIC of the last good commit; 0 = never */
	uint64_t ticks, errors;		 /* since start */
	uint32_t duration_us;		 /* of the last tick */
	bool wanted;			 /* requested: sample it (default true) */
	uint64_t wanted_interval_ns;	 /* requested; 0 = the default */
	uint32_t request_serial;	 /* grows with each request */
	uint16_t metrics;		 /* how many belong to it */
	bool yields;	  /* any other source that adds one of its metrics' names gets it */
	bool guests;	  /* its metrics' names are chosen by users of the daemon */
	bool reads_lines; /* of a program; what could not be used of them, since start: */
	uint64_t lines_cut, lines_unknown, tokens_unknown;
};

struct sources;

int sources_create(struct sources **ret); /* -ENOMEM */
void sources_destroy(struct sources *sources);

/* Adds a source in state unavailable ("not sampled yet"). -EINVAL for a bad
 * name, -EEXIST, -ENOSPC, -ENOMEM. */
int sources_add(
	struct sources *sources, const char *name, uint64_t interval_ns, struct source **ret);

struct source *sources_find(struct sources *sources, const char *name);
struct source *sources_at(struct sources *sources, size_t index); /* NULL past the end */
size_t sources_count(const struct sources *sources);

/* Reports a state. True when state or reason changed (log it once then). For SOURCE_OK: reason
 * NULL. */
bool source_report(struct source *source, enum source_state state, const char *reason);

/* State as seen at now_ns: an ok source whose last reading is older than 3 intervals is stale; one
 * that is not wanted any more is suspended, also before the scheduler has seen the request. */
enum source_state source_state_at(const struct source *source, uint64_t now_ns);
/* Why it is in that state; "" when it is ok. */
const char *source_reason_at(const struct source *source, uint64_t now_ns);
const char *source_state_name(enum source_state state);

/* Requests of SetSource, for the scheduler. interval_ns 0 keeps the present one. */
void source_request(struct source *source, bool wanted, uint64_t interval_ns);
