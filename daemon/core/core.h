/*
 * Everything core keeps, in one plain struct that daemon.c makes and hands to the layers around it.
 * The pointers never change after start; none is owned by who receives it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/alerts/alerts.h"
#include "daemon/core/apps/apps.h"
#include "daemon/core/apps/rejected_attaches.h"
#include "daemon/core/archive/archive.h"
#include "daemon/core/archive/reader.h"
#include "daemon/core/history/history.h"
#include "daemon/core/metrics/limits.h"
#include "daemon/core/metrics/metrics.h"
#include "daemon/core/metrics/processes.h"
#include "daemon/core/metrics/sources.h"
#include "daemon/core/metrics/throttle.h"
#include "daemon/core/metrics/wallclock.h"
#include "daemon/core/status/degraded.h"
#include "daemon/core/status/persist_status.h"
#include "daemon/core/status/recordings.h"
#include "daemon/core/timeline/timeline.h"

/* Facts about this machine and this run; plain data, written once at start. */
struct facts {
	char version[32];
	char hostname[65];
	char model[128]; /* device tree model, DMI product, or "" */
	char os[128];	 /* PRETTY_NAME of os-release, or "" */
	char kernel[128];
	char arch[32];
	char boot_id[37];
	uint64_t started_ns;
	uint32_t cpus;
	uint64_t page_size;
	bool virtual_machine; /* as far as the processor or the firmware says so */
	char run_dir[108];
	char history_reason[128]; /* why history is only in memory; "" = it is in the run directory
				   */
};

enum clocks_state {
	CLOCKS_UNKNOWN, /* or no Jetson */
	CLOCKS_FREE,
	CLOCKS_PINNED, /* jetson_clocks: lowest = highest */
};

/* How the board is set; written by the modes collector, read by api. Zeroed = nothing known. */
struct modes {
	bool have_power_mode;
	int power_mode;		  /* nvpmodel's number */
	char power_mode_name[48]; /* "" = not known */
	char governor[64];	  /* of the cores, different ones with commas; "" = none */
	char gpu_governor[64];
	enum clocks_state clocks;
};

enum broker_state { BROKER_OFF, BROKER_CONNECTING, BROKER_CONNECTED, BROKER_AWAY };

/* The broker's side, written by publish on the main thread, read by api and the self collector. */
struct broker_status {
	enum broker_state state;
	char host[256];
	int port;
	char reason[160];  /* why it is away, off although configured, or not connected for long */
	uint64_t since_ns; /* of the state */
	uint64_t connects;
	uint32_t queued;    /* messages that wait */
	uint64_t delivered; /* acknowledged by the broker: alerts and info, not summaries */
	uint64_t dropped;   /* summaries dropped because of the queue's limit */
	uint64_t dropped_alerts;
	uint64_t delivered_tag; /* test: the last of its transitions that was acknowledged */
};
const char *broker_state_name(enum broker_state state); /* off connecting connected away */

/* How long the loop was busy in its turns. */
enum { LOOP_BOUNDS = 8, LOOP_SPANS = 7 };

extern const uint32_t loop_bound_us[LOOP_BOUNDS];

struct loop_turns {
	uint64_t count[LOOP_BOUNDS + 1]; /* up to each of loop_bound_us; last: beyond */
	uint32_t longest_us;		 /* since the start */
	uint32_t span_us[LOOP_SPANS];	 /* the longest in each of the last tens of seconds */
	uint64_t span;			 /* number of the newest */
};

void loop_turns_add(struct loop_turns *turns, uint32_t busy_us, uint64_t now_ns);
/* The longest of the last minute, give or take 10 s. */
uint32_t loop_turns_minute(struct loop_turns *turns, uint64_t now_ns);

/* What ingest and api count about themselves, for GetSelf and self/ metrics. */
struct counters {
	uint64_t events_received, events_dropped, events_invalid, drains;
	uint64_t attaches, attaches_refused;
	char attach_refused_reason[160]; /* of the last refusal; "" = none */
	struct refusals refusals;
	uint64_t statsd_datagrams, statsd_lines, statsd_bad_lines, statsd_unsupported;
	uint64_t statsd_refused;    /* lines that limits or another user's claim left out */
	uint64_t statsd_truncated;  /* datagrams longer than 64 KiB */
	uint64_t statsd_lost;	    /* over UDP, as the kernel counts */
	char statsd_bad_reason[64]; /* of the last bad line; "" = none */
	char statsd_reason[96]; /* why there are no datagrams although configured; "" = there are */
	struct capped capped[CAPPED_COUNT];
	uint64_t api_connections, api_refused, api_calls, api_errors, api_bytes_queued;
	uint64_t wakeups;	  /* of the event loop */
	uint32_t loop_lag_max_us; /* since the last self sample */
	struct loop_turns turns;
	uint64_t sampling_interval_ns; /* of sources without one of their own; 0 = not known yet */
};

struct accounts;
struct closer;

struct core {
	struct sources *sources;
	struct metrics *metrics;
	struct history *history;
	struct archive *archive; /* NULL: nothing is kept across reboots */
	const struct archive_reader *archive_reader;
	const struct persist_status *persist; /* NULL: as if off */
	struct alerts *alerts;
	struct apps *apps;
	struct timeline *timeline;
	struct processes *processes;
	struct throttle_status *throttle;
	struct wallclock *wall;
	const struct facts *facts;
	struct modes *modes; /* NULL: nobody wants to know */
	struct broker_status *broker;
	struct counters *counters;
	struct degraded *degraded;		 /* NULL: nobody is told */
	struct accounts *accounts;		 /* what each user holds */
	struct closer *closer;			 /* of what users sent */
	struct recordings *recordings;		 /* NULL: there is no recorder */
	const struct past_reports *past_reports; /* NULL: there are none */
	bool nearest; /* how percentiles are told to who names no method: nearest rank, else linear
		       */
};
