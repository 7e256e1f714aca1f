/*
 * One stage's statistics: the recent window exact, lifetime counts, the interval since the last
 * sample. Pure arithmetic; nothing allocates after creation.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/throttle.h"
#include "proto/mapping.h"
#include "proto/percentile.h"

/* One finished run of a stage. */
struct stage_run {
	uint64_t end_ns;
	uint64_t duration_ns;
	uint64_t frame;		       /* PROTO_NO_FRAME = none */
	uint32_t cpu_us;	       /* of its thread; PROTO_CPU_NOT_MEASURED */
	uint64_t process_cpu_ns;       /* of all threads; UINT64_MAX = not measured */
	int64_t rss_growth;	       /* bytes; INT64_MIN = not measured */
	enum throttle_value throttled; /* the hardware's state when it ended */
};

enum { STAGE_OPEN_IDS = 32 }; /* begin/end by id that may overlap in one stage */

struct stage_open_id {
	uint64_t id, start_ns, frame;
	bool used;
};

struct stage {
	char name[PROTO_NAME_SIZE];
	char category[PROTO_LABEL_SIZE];
	char unit[PROTO_LABEL_SIZE];
	uint64_t deadline_ns; /* 0 = none */
	/* lifetime (since the app's since_ns) */
	uint64_t count;
	uint64_t misses;      /* events over the deadline */
	uint64_t orphan_ends; /* G0.3: end without its begin */
	uint64_t abandoned;   /* G0.3: begin over an open begin of the same id */
	uint64_t total_ns;
	uint64_t min_ns, max_ns; /* UINT64_MAX and 0 before the first */
	uint64_t last_ns;	 /* end of the last event */
	uint64_t last_frame;
	/* since the last stage_interval_reset */
	struct {
		uint64_t count, misses, max_ns;
		uint64_t cpu_us, cpu_count;
	} interval;
	/* recent window of durations, ring */
	size_t window, filled, next;
	uint64_t *durations_ns;
	struct stage_open_id open[STAGE_OPEN_IDS];
	/* owned by apps.c */
	struct metric *metric[8];
	size_t users; /* declarations of living processes that mean this stage */
};

/* -ENOMEM. window >= 2. */
int stage_create(const char *name, size_t window, struct stage **ret);
void stage_destroy(struct stage *stage);

/* A run as it comes from most places: only its times are known. */
static inline struct stage_run stage_run_of(uint64_t end_ns, uint64_t duration_ns, uint64_t frame)
{
	return (struct stage_run){.end_ns = end_ns,
		.duration_ns = duration_ns,
		.frame = frame,
		.cpu_us = PROTO_CPU_NOT_MEASURED,
		.process_cpu_ns = UINT64_MAX,
		.rss_growth = INT64_MIN,
		.throttled = THROTTLE_UNKNOWN};
}

void stage_event(struct stage *stage, const struct stage_run *run);

/* Begin and end by id. The daemon calls them in the order of time within a drain. An end without a
 * begin counts orphan_ends; a begin over an open begin of the id counts abandoned; with all places
 * taken the oldest is abandoned. */
void stage_begin(struct stage *stage, uint64_t id, uint64_t start_ns, uint64_t frame);
void stage_end(struct stage *stage, uint64_t id, uint64_t end_ns, uint32_t cpu_us);
bool stage_is_open(const struct stage *stage, uint64_t id);
/* Gives up every open begin, counted in abandoned. */
void stage_abandon(struct stage *stage);

/* Statistics of the recent window in milliseconds (G0.4). scratch holds stage->window doubles.
 * count of the summary = events in the window; the lifetime count is stage->count. */
void stage_summary(const struct stage *stage, double *scratch, struct proto_summary *ret);

void stage_interval_reset(struct stage *stage);
