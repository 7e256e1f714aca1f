/* SPDX-License-Identifier: Apache-2.0 */
/* past_order.c: brings frames into the order of time, when all of their records were read. */
#include "daemon/core/diagnose/past_private.h"

#include <math.h>
#include <string.h>

#include "daemon/core/frames/frames.h"
#include "proto/percentile.h"

static const uint64_t US_MAX = UINT64_C(1) << 41;
static const uint64_t PAUSE_NS = FRAMES_PAUSE_S * UINT64_C(1000000000);

void past_finish_waits(struct past_frames *past, size_t count)
{
	for (size_t n = 0; n < count; n++) {
		float began_ms[FACTS_STAGES];
		memcpy(began_ms, past->frame[n].wait_ms, sizeof(began_ms));
		for (size_t i = 0; i < past->stages; i++) {
			float before_ms = -1;
			for (size_t k = 0; k < past->stages; k++) {
				float ended_ms = past->scratch[n].ended_ms[k];
				bool before = began_ms[k] < began_ms[i] && ended_ms > before_ms;
				before_ms = before ? ended_ms : before_ms;
			}
			float wait_ms = began_ms[i] > before_ms ? began_ms[i] - before_ms : 0;
			past->frame[n].wait_ms[i] =
				before_ms < 0 || isnan(began_ms[i]) ? NAN : wait_ms;
		}
	}
}

void past_sort(struct past_frames *past, size_t count)
{
	double key[PAST_FRAMES];
	uint64_t base_ns = past->first_event_ns;
	past->count = count;
	for (size_t i = 0; i < past->count; i++) {
		const struct past_frame *frame = &past->frame[i];
		uint64_t t_ns = frame->end_ns > 0 ? frame->end_ns : frame->start_ns;
		uint64_t us = t_ns > base_ns ? (t_ns - base_ns) / 1000 : 0;
		us = us < US_MAX ? us : US_MAX;
		key[i] = (double)(us * PAST_FRAMES + i); /* exact for 25 days */
	}
	proto_sort(key, past->count);
	uint16_t from[PAST_FRAMES];
	for (size_t i = 0; i < past->count; i++) {
		from[i] = (uint16_t)((uint64_t)key[i] % PAST_FRAMES);
	}
	for (size_t i = 0; i < past->count; i++) { /* cycle by cycle */
		if (from[i] == i) {
			continue;
		}
		const struct past_frame first = past->frame[i];
		size_t at = i;
		while (from[at] != i) {
			size_t next = from[at];
			past->frame[at] = past->frame[next];
			from[at] = (uint16_t)at;
			at = next;
		}
		past->frame[at] = first;
		from[at] = (uint16_t)at;
	}
	while (past->count > 0 && past->frame[past->count - 1].end_ns == UINT64_MAX) {
		past->count--; /* trimmed */
	}
}

void past_select(struct past_frames *past, size_t first, uint64_t from_ns, uint64_t to_ns)
{
	size_t count = 0;
	for (size_t i = 0; i < past->count; i++) {
		struct past_frame *frame = &past->frame[i];
		uint64_t before_ns = i > 0	       ? frame[-1].end_ns
				     : past->of_stages ? frame->start_ns
						       : frame->end_ns;
		uint64_t delta_ns = frame->end_ns - before_ns;
		frame->delta_ns = delta_ns < PAUSE_NS ? delta_ns : 0;
	}
	while (first < past->count && past->frame[first].end_ns < from_ns) {
		first++;
	}
	while (first + count < past->count && past->frame[first + count].end_ns <= to_ns) {
		count++;
	}
	if (first > 0) {
		memmove(&past->frame[0], &past->frame[first], count * sizeof(past->frame[0]));
	}
	past->count = count;
}
