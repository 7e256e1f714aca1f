/* SPDX-License-Identifier: Apache-2.0 */
/* detector.h: declares one way to detect that the hardware is throttling. throttle.c asks them in
 * the order of its table; each is a file of this folder, and they share this header. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/collect/lib/gauge.h"
#include "daemon/collect/sched/collector.h"
#include "daemon/core/metrics/throttle.h"

/* What the probes pass from one to the next. */
struct throttle_search {
	const struct root *root;
	const char *vcgencmd;		/* its path; NULL or "" = never run */
	struct throttle_status *status; /* each detector notes in ->tried what it found */
	int found;			/* by the detectors before, all together */
	int clockless;			/* of found: what says nothing about the clock */
};

struct throttle_detector {
	size_t size;	     /* of the state, which is zeroed before probe */
	size_t element_size; /* > 0: the state begins with struct gauges, of such elements */
	size_t kept;	     /* of their descriptors stay open; 0 = all */
	/* Looks for the files; may hang. How many can be read; -ENOMEM. */
	int (*probe)(void *state, struct throttle_search *search);
	/* Adds its own metrics: 0 or -errno. NULL = it has none. */
	int (*name)(void *state, struct naming *naming);
	/* Reads; no more, as it runs on a worker. NULL = the gauges alone. */
	void (*fetch)(void *state, const struct root *root);
	/* Sets, or joins, the flags that it can see. */
	void (*sample)(void *state, struct throttle_status *status, uint64_t now_ns);
	/* After probe, even one that failed. NULL = the gauges alone. */
	void (*close)(void *state);
};

extern const struct throttle_detector throttle_pi;	 /* the throttle word of a Raspberry Pi */
extern const struct throttle_detector throttle_cooling;	 /* cooling devices that lower clocks */
extern const struct throttle_detector throttle_soctherm; /* a Jetson's event counters */
extern const struct throttle_detector throttle_x86;	 /* counters of Intel processors */
extern const struct throttle_detector throttle_clock;	 /* the clock itself, at last */

#define THROTTLE_PI_RETRY_NS UINT64_C(60000000000) /* a firmware that failed is asked again */
#define THROTTLE_PI_HOLD_NS UINT64_C(5000000000)   /* the alarm flickers at a low supply */

/* An episode whose end was missed (its core went offline) is not believed for longer. */
#define THROTTLE_X86_EPISODE_NS UINT64_C(300000000000)

enum { THROTTLE_CLOCK_SAMPLES = 3 }; /* a clock that is just being changed differs too */
