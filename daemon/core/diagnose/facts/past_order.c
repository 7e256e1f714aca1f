/* SPDX-License-Identifier: Apache-2.0 */
/* past_order.c: finishes frames when all of their records were read. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/diagnose/facts/past_frames.h"

void past_finish_waits(struct past_frames *past)
{
	for (size_t n = 0; n < past->count; n++) {
		float began_ms[FACTS_STAGES];
		memcpy(began_ms, past->frame[n].wait_ms, sizeof(began_ms));
		for (size_t i = 0; i < past->stages; i++) {
			float before_ms = -INFINITY;
			if (isnan(began_ms[i])) { /* most stages of an app that has many */
				continue;
			}
			for (size_t k = 0; k < past->stages; k++) {
				bool before = began_ms[k] < began_ms[i];
				before_ms = before ? fmaxf(before_ms, past->scratch[n].ended_ms[k])
						   : before_ms;
			}
			past->frame[n].wait_ms[i] =
				isinf(before_ms) ? NAN : fmaxf(began_ms[i] - before_ms, 0);
		}
	}
}

static uint64_t time_of(const struct past_frame *frame)
{
	return frame->end_ns > 0 ? frame->end_ns : frame->start_ns;
}

static int compare_times(const void *left, const void *right)
{
	uint64_t a = time_of(left), b = time_of(right);
	return (a > b) - (a < b);
}

/* They may come in any order: a hostile app must not cost more than others. Those of a usual one
 * are in order, and qsort would take memory to find that out. */
void past_sort(struct past_frames *past)
{
	for (size_t i = 1; i < past->count; i++) {
		if (time_of(&past->frame[i]) < time_of(&past->frame[i - 1])) {
			qsort(past->frame, past->count, sizeof(past->frame[0]), compare_times);
			return;
		}
	}
}
