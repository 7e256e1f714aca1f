/*
 * What the hardware says about throttling, as one plain struct: the throttle collector writes it,
 * api reads it. A flag that no source can tell is unknown with a reason, never "no". Temperature
 * against a limit is no part of this (acceptance.md, mistake 5).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/metrics/throttle_times.h"

struct timeline;

enum {
	THROTTLE_TRIED_MAX = 12,
	THROTTLE_SOURCE = 96,
	THROTTLE_RESULT = 96,
};

/* The order of the four of each kind is that of the bits of the Raspberry Pi's word: 0-3 now,
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
	THROTTLE_ACTIVE, /* the clock is lower than asked for, and the hardware says so */
	THROTTLE_FLAGS
};

enum { THROTTLE_WORD_FLAGS = 4 }; /* of each kind */

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
	char source[THROTTLE_SOURCE]; /* what the answer rests on; "" = nothing */
	struct throttle_state flag[THROTTLE_FLAGS];
	size_t tried_count;
	struct {
		char source[THROTTLE_SOURCE];
		char result[THROTTLE_RESULT];
	} tried[THROTTLE_TRIED_MAX];
	bool seen[THROTTLE_WORD_FLAGS]; /* of the flags of now, since the daemon's start */
	struct throttle_times times;	/* of THROTTLE_ACTIVE; throttle_edges_update writes it */
};

/* Whether the sticky bits of a word hold since boot, or only since somebody's last poll. */
enum throttle_sticky { THROTTLE_SINCE_BOOT, THROTTLE_SINCE_POLL };

const char *throttle_flag_name(enum throttle_flag flag);    /* "active", "under_voltage", … */
const char *throttle_value_name(enum throttle_value value); /* unknown no yes */

/* All flags unknown for this reason, no source, no word; the tried list stays. */
void throttle_clear(struct throttle_status *status, const char *reason);

/* The flags that a word tells. A sticky bit that is set has happened since boot wherever it was
 * read; one that is not set proves that nothing happened only for THROTTLE_SINCE_BOOT. active:
 * capped, throttled or at the soft temperature limit; low voltage alone lowers no clock. */
void throttle_take_word(struct throttle_status *status, uint32_t word, enum throttle_sticky sticky);

void throttle_set(struct throttle_status *status, enum throttle_flag flag, bool yes);
/* Yes wins over no, no over unknown: for what several sources can tell. */
void throttle_join(struct throttle_status *status, enum throttle_flag flag, bool yes);

/* What occurred, of what is seen now: a flag that was on since the daemon's start has occurred,
 * whoever reported it. One that was not may have been on before: it stays as it is. Call after all
 * sources, before the edges. */
void throttle_occurred(struct throttle_status *status);

/* Appends to source: "a, b". */
void throttle_add_source(struct throttle_status *status, const char *source);

/* Appends to the tried list; what does not fit is left out. */
void throttle_add_tried(struct throttle_status *status, const char *source, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The transitions of the flags that tell of now (over_current is left out: a Jetson at full power
 * has some each second, as designed). A flag that ended is told after it was quiet for
 * THROTTLE_QUIET_NS, so that a flickering one is told once. What is on when it is looked at for the
 * first time "is active", unless the timeline says so since a process before this one. */
#define THROTTLE_QUIET_NS UINT64_C(5000000000)

struct throttle_edges {
	struct {
		bool known;	   /* its value was, once */
		bool told;	   /* the timeline says it is on */
		uint64_t quiet_ns; /* since when it is "no"; 0 = it is not */
	} flag[THROTTLE_FLAGS];
};

/* Call at each sample. Also keeps status->times. */
void throttle_edges_update(struct throttle_edges *edges, struct throttle_status *status,
	struct timeline *timeline, uint64_t now_ns);
