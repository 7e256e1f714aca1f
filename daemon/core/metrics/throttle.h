/* SPDX-License-Identifier: Apache-2.0 */
/*
 * throttle.h: holds what the hardware says about throttling. The throttle collector writes it, the
 * methods, alerts and stages read it. A flag that no source reports is unknown with a reason, never
 * "no"; a temperature that is above a limit is not throttling.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timeline;

enum {
	THROTTLE_TRIED_MAX = 12,
	THROTTLE_SOURCE = 96,
	THROTTLE_RESULT = 96,
};

/* The four flags of each kind are in the order of the bits of the Raspberry Pi's word: 0-3 now,
 * 16-19 since boot (raspberrypi/utils, vcgencmd.1). */
enum throttle_flag {
	THROTTLE_UNDER_VOLTAGE,
	THROTTLE_FREQ_CAPPED,
	THROTTLE_THROTTLED,
	THROTTLE_SOFT_TEMP_LIMIT,
	THROTTLE_UNDER_VOLTAGE_OCCURRED,
	THROTTLE_FREQ_CAPPED_OCCURRED,
	THROTTLE_THROTTLED_OCCURRED,
	THROTTLE_SOFT_TEMP_LIMIT_OCCURRED,
	THROTTLE_OVER_CURRENT,
	THROTTLE_ACTIVE, /* the hardware says that it lowers the clock */
	THROTTLE_FLAGS
};

enum { THROTTLE_WORD_FLAGS = 4 }; /* of each kind */

enum throttle_value { THROTTLE_UNKNOWN, THROTTLE_NO, THROTTLE_YES };

enum { THROTTLE_TIMES_EDGES = 64 };

/* After the last sample its state holds for three times the interval of samples, and at least this
 * long; after that nothing is known. */
#define THROTTLE_TIMES_HOLD_NS UINT64_C(5000000000)

struct throttle_edge {
	uint64_t t_ns;
	enum throttle_value value;
};

/* When the hardware throttled: the recent edges of THROTTLE_ACTIVE, so that an event that ended a
 * moment ago can be marked as throttled, not throttled or unknown. Each sample of the throttle
 * source is added, each event of a stage is looked up. A state holds from the sample that saw it
 * on. Zeroed = nothing is known of any time. */
struct throttle_times {
	size_t count, newest; /* ring of edges */
	struct throttle_edge edge[THROTTLE_TIMES_EDGES];
	uint64_t sampled_ns; /* of the last sample; 0 = none */
	uint64_t hold_ns;
};

/* Adds a sample. Times before the last sample's are ignored. */
void throttle_times_sample(
	struct throttle_times *times, uint64_t now_ns, enum throttle_value value);

/* The state at a time before the newest edge. */
enum throttle_value throttle_times_search(const struct throttle_times *times, uint64_t t_ns);

/* The state at t_ns; THROTTLE_UNKNOWN before the oldest edge kept and long after the last sample.
 */
static inline enum throttle_value throttle_times_at(
	const struct throttle_times *times, uint64_t t_ns)
{
	const struct throttle_edge *edge = &times->edge[times->newest];
	if (t_ns >= edge->t_ns) {
		return t_ns <= times->sampled_ns + times->hold_ns ? edge->value : THROTTLE_UNKNOWN;
	}
	return throttle_times_search(times, t_ns);
}

/* The state of all times between these two, both included. */
struct throttle_span {
	uint64_t from_ns, until_ns;
	enum throttle_value value;
};

/* The span of the newest edge, where nearly all times are that events are looked up at. */
static inline struct throttle_span throttle_times_newest(const struct throttle_times *times)
{
	const struct throttle_edge *edge = &times->edge[times->newest];
	/* what is not known stays so without samples, as on a machine that reports nothing */
	uint64_t until_ns =
		edge->value == THROTTLE_UNKNOWN ? UINT64_MAX : times->sampled_ns + times->hold_ns;
	return (struct throttle_span){edge->t_ns, until_ns, edge->value};
}

struct throttle_state {
	enum throttle_value value;
	const char *reason; /* why it is unknown; static text */
};

struct throttle_status {
	bool sampled;
	uint64_t t_ns; /* of the sample */
	bool has_raw;
	uint32_t raw;		      /* the Raspberry Pi's word */
	const char *raw_reason;	      /* why there is none; static text */
	char source[THROTTLE_SOURCE]; /* which sources were read; "" = none */
	struct throttle_state flag[THROTTLE_FLAGS];
	size_t tried_count;
	struct {
		char source[THROTTLE_SOURCE];
		char result[THROTTLE_RESULT];
	} tried[THROTTLE_TRIED_MAX];
	bool seen[THROTTLE_WORD_FLAGS]; /* which of the first four were on, since the daemon's start
					 */
	struct throttle_times times;	/* of THROTTLE_ACTIVE; throttle_edges_update writes it */
};

/* Whether the sticky bits of a word hold since boot, or only since the last poll of any process. */
enum throttle_sticky { THROTTLE_SINCE_BOOT, THROTTLE_SINCE_POLL };

const char *throttle_flag_name(enum throttle_flag flag); /* "active", "under_voltage", … */

/* All flags unknown for this reason, no source, no word; the tried list stays. */
void throttle_clear(struct throttle_status *status, const char *reason);

/* Sets the flags of a word. A sticky bit that is set has happened since boot wherever it was read;
 * one that is not set proves that nothing happened only for THROTTLE_SINCE_BOOT. active:
 * capped, throttled or at the soft temperature limit; low voltage alone lowers no clock. */
void throttle_on_word(struct throttle_status *status, uint32_t word, enum throttle_sticky sticky);

void throttle_set(struct throttle_status *status, enum throttle_flag flag, bool yes);
/* Yes wins over no, no over unknown: for flags that several sources report. */
void throttle_join(struct throttle_status *status, enum throttle_flag flag, bool yes);

/* Derives the occurred flags: one that was on since the daemon's start has occurred, whichever
 * source reported it. Any other may have been on earlier and stays as it is. Call after all
 * sources, before the edges. */
void throttle_occurred(struct throttle_status *status);

/* Appends to source: "a, b". */
void throttle_add_source(struct throttle_status *status, const char *source);

/* Appends to the tried list, unless that is full. */
void throttle_add_tried(struct throttle_status *status, const char *source, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The transitions of the present flags for the timeline, except over_current: a Jetson at full
 * power has some each second, as designed. The end of a flag is logged after it was off for
 * THROTTLE_OFF_NS, so that a flickering one is logged once. A flag that is on when it is first
 * known "is active", unless the timeline already says so since an earlier process. */
#define THROTTLE_OFF_NS UINT64_C(5000000000)

struct throttle_edges {
	struct {
		bool known;	 /* its value has been known */
		bool logged;	 /* the timeline says it is on */
		uint64_t off_ns; /* since when it is "no"; 0 = it is not */
	} flag[THROTTLE_FLAGS];
};

/* Call at each sample. Also updates status->times. */
void throttle_edges_update(struct throttle_edges *edges, struct throttle_status *status,
	struct timeline *timeline, uint64_t now_ns);
