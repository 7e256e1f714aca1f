/* SPDX-License-Identifier: Apache-2.0 */
/* histograms.h: compares what two histograms contain, whichever buckets they hold. */
#pragma once

#include <string.h>

#include "proto/histogram.h"

static inline bool histograms_match(
	const struct proto_histogram *a, const struct proto_histogram *b)
{
	bool match = memcmp(a, b, offsetof(struct proto_histogram, buckets)) == 0;
	for (uint32_t i = 0; i < PROTO_HISTOGRAM_BUCKETS; i++) {
		match = match && proto_histogram_in(a, i) == proto_histogram_in(b, i);
	}
	return match;
}
