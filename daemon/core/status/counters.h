/* SPDX-License-Identifier: Apache-2.0 */
/* counters.h: holds what the daemon counts about itself, and how much of each limit is used and was
 * used at most. Written by ingest, varlink and host, read by GetSelf and the self collector. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/core/metrics/unit.h"
#include "proto/name.h"

struct core;

enum limit_id {
	LIMIT_HISTORY,
	LIMIT_RECORDS,
	LIMIT_STAGES,
	LIMIT_MAPPINGS,
	LIMIT_ANSWERS,
	LIMIT_CONNECTIONS,
	LIMIT_EVENT_CONNECTIONS,
	LIMIT_APPS,
	LIMIT_METRICS,
	LIMIT_MQTT,
	LIMIT_COUNT
};

/* max 0: the resource does not exist, as the MQTT queue without a broker. */
struct limit {
	uint64_t used, high_water, max;
};

enum { REJECTED_ATTACHES_MAX = 16 };

/* The last processes whose hello was rejected, and why, for ListApps. A process that tries again
 * every second is one entry with a count. */
struct rejected_attach {
	char app[PROTO_NAME_SIZE]; /* what it called itself; "" = it did not say */
	uid_t uid;
	pid_t pid;	 /* of the last try */
	char reason[96]; /* cut to fit */
	uint64_t count;
	uint64_t last_ns;
};

struct rejected_attaches {
	struct rejected_attach entry[REJECTED_ATTACHES_MAX];
	uint32_t count;
};

enum { LOOP_BOUNDS = 8, LOOP_SPANS = 7 };

extern const uint32_t loop_bound_us[LOOP_BOUNDS];

/* How long the event loop was busy in each iteration. */
struct loop_load {
	uint64_t count[LOOP_BOUNDS + 1]; /* up to each of loop_bound_us; last: beyond */
	uint32_t longest_us;		 /* since the start */
	uint32_t span_us[LOOP_SPANS];	 /* the longest in each of the last spans of 10 s */
	uint64_t span;			 /* number of the newest */
};

struct counters {
	uint64_t events_received, events_dropped, events_invalid, drains;
	uint64_t attaches, attaches_refused;
	char attach_refused_reason[160]; /* of the last one; "" = none */
	struct rejected_attaches rejected_attaches;
	uint64_t statsd_datagrams, statsd_lines, statsd_bad_lines, statsd_unsupported;
	uint64_t statsd_refused;    /* lines over a limit, or of a name that another user owns */
	uint64_t statsd_truncated;  /* datagrams longer than 64 KiB */
	uint64_t statsd_lost;	    /* over UDP, as the kernel counts */
	char statsd_bad_reason[64]; /* of the last bad line; "" = none */
	char statsd_reason[96]; /* why there are no datagrams although configured; "" = there are */
	struct limit limits[LIMIT_COUNT];
	uint64_t api_connections, api_refused, api_calls, api_errors, api_bytes_queued;
	uint64_t iterations;	  /* of the event loop */
	uint64_t waited_ns;	  /* when its last wait ended; 0 = unknown */
	uint32_t loop_lag_max_us; /* since the last self sample */
	struct loop_load load;
	uint64_t sampling_interval_ns; /* of sources without one of their own; 0 = unknown yet */
};

const char *limit_name(enum limit_id id);
enum unit limit_unit(enum limit_id id); /* bytes or count */

static inline void limit_use(struct limit *limit, uint64_t used)
{
	limit->used = used;
	limit->high_water = used > limit->high_water ? used : limit->high_water;
}

/* Updates the limits of history, records, stages and metrics; the owners of the other resources
 * write theirs. These hardly shrink, so the maximum of all samples is the maximum there was. */
void limits_sample(const struct core *core);

/* True when this app of this user was not rejected for this reason before; the entry that was not
 * updated for longest makes room. */
bool rejected_attaches_add(struct rejected_attaches *rejected, const char *app, uid_t uid,
	pid_t pid, const char *reason, uint64_t now_ns);

/* The app of this user has attached: its entries go. */
void rejected_attaches_forget(struct rejected_attaches *rejected, const char *app, uid_t uid);

void loop_load_add(struct loop_load *load, uint32_t busy_us, uint64_t now_ns);
/* The longest iteration of the last minute, give or take 10 s. */
uint32_t loop_load_minute(struct loop_load *load, uint64_t now_ns);
