/* SPDX-License-Identifier: Apache-2.0 */
/* loop_load.h: counts how long the event loop was busy in each iteration; written by host. */
#pragma once

#include <stdint.h>

enum { LOOP_BOUNDS = 8, LOOP_SPANS = 7 };

extern const uint32_t loop_bound_us[LOOP_BOUNDS];

struct loop_load {
	uint64_t count[LOOP_BOUNDS + 1]; /* up to each of loop_bound_us; last: beyond */
	uint32_t longest_us;		 /* since the start */
	uint32_t span_us[LOOP_SPANS];	 /* the longest in each of the last spans of 10 s */
	uint64_t span;			 /* number of the newest */
};

void loop_load_add(struct loop_load *load, uint32_t busy_us, uint64_t now_ns);
/* The longest iteration of the last minute, give or take 10 s. */
uint32_t loop_load_minute(struct loop_load *load, uint64_t now_ns);
