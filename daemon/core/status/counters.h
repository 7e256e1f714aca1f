/* SPDX-License-Identifier: Apache-2.0 */
/* counters.h: holds what the daemon counts about itself, and how much of each limit is used and was
 * used at most. Written by ingest, varlink and host, read by GetSelf and the self collector. */
#pragma once

#include "daemon/core/metrics/unit.h"
#include "daemon/core/status/loop_load.h"
#include "daemon/core/status/rejected_attaches.h"

struct core;

enum limit_id {
	LIMIT_HISTORY,
	LIMIT_RECORDS,
	LIMIT_STAGES,
	LIMIT_MAPPINGS,
	LIMIT_ANSWERS,
	LIMIT_CONNECTIONS,
	LIMIT_METRICS,
	LIMIT_MQTT,
	LIMIT_COUNT
};

/* max 0: the resource does not exist, as the MQTT queue without a broker. */
struct limit {
	uint64_t used, high_water, max;
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
	uint64_t wakeups;	  /* of the event loop */
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
