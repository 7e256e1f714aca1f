/* SPDX-License-Identifier: Apache-2.0 */
/*
 * advice.h: defines what an app is advised to do: work as it likes (full), on two of three frames
 * (reduced), on one of three (minimal). It follows from what presses: the thermal headroom, the
 * hardware's throttle state, and the share of frames that missed their deadline. Pure: a state, an
 * input, a time.
 *
 * A level is raised when something asked for more during ADVICE_HOLD_NS without a break, and
 * lowered by one step after recover_after_ns of calm: the headroom ADVICE_DISTANCE_CELSIUS above
 * the level's limit, no throttling, at most half the share of misses. A level that has to be raised
 * again soon after it was lowered is kept twice as long the next time, up to ADVICE_PATIENCE times:
 * a board that can do only so much is not tried out every half minute. An unknown input asks for
 * nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/metrics/throttle.h"
#include "proto/mapping.h"

enum {
	ADVICE_WINDOW = 6,     /* samples that the frames are judged over */
	ADVICE_MIN_FRAMES = 5, /* in the window, or their misses say nothing */
	ADVICE_OF_FRAMES = 3,
	ADVICE_PATIENCE = 8,
	ADVICE_REASON = 128,
};

#define ADVICE_HOLD_NS UINT64_C(3000000000)    /* a spike alone is not enough */
#define ADVICE_SETTLE_NS UINT64_C(10000000000) /* misses judge a level only after so long */
#define ADVICE_DISTANCE_CELSIUS 3.0	       /* more than sensors waver by */

struct advice_options {
	bool enabled;
	double reduce_headroom, minimal_headroom; /* celsius */
	double miss_share;			  /* percent of frames */
	uint64_t recover_after_ns;
	double critical_celsius; /* of temperature/max, where no zone has a trip; NAN = none */
};
void advice_defaults(struct advice_options *options);

/* What is known at one moment. */
struct advice_input {
	double headroom_celsius; /* NAN = not known */
	const char *headroom_of; /* whose: "cpu-thermal" */
	enum throttle_value throttled;
	bool has_deadline;
	uint64_t frames, judged, misses; /* of the app, all grow: those with a deadline, over it */
	double target_fps;		 /* the operator's; 0 = none */
};

/* Zeroed is a new app's. */
struct advice {
	enum proto_advice_level level;
	uint32_t skip_frames, of_frames; /* 0 of 0 at level none */
	double target_fps;		 /* 0 = none */
	uint64_t since_ns;		 /* of the level */
	uint64_t serial;	    /* of the last change, for who wants to know; the owner's */
	char reason[ADVICE_REASON]; /* of the level: "headroom 2.1 °C of cpu-thermal" */
	/* private */
	uint64_t pressed_ns;		       /* since when something asks for more; 0 = nothing */
	enum proto_advice_level pressed_level; /* the least that was asked for since then */
	uint64_t calm_ns, blind_ns;	       /* 0 = it is not */
	uint64_t wait_ns;		       /* of calm, before the level is lowered */
	uint64_t lowered_ns;		       /* last; 0 = never */
	double typical_fps;		       /* at level full without pressure; 0 = not known */
	size_t seen;
	struct advice_seen {
		uint64_t t_ns, frames, judged, misses;
	} window[ADVICE_WINDOW]; /* of this level, oldest first */
};

/* Judges; call about once a second. True when what is advised changed. */
bool advice_update(struct advice *advice, const struct advice_options *options,
	const struct advice_input *input, uint64_t now_ns);

/* There is nobody to advise, or no reason to: level none, all is forgotten. True when it changed.
 */
bool advice_clear(struct advice *advice, const char *reason, uint64_t now_ns);

/* As it goes to the app. */
uint64_t advice_word(const struct advice *advice);

const char *advice_level_name(enum proto_advice_level level); /* none full reduced minimal */
