/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segments.h: divides the time that a diagnosis looks at into segments, and decides which of them
 * are "now" and which are "usual" (facts.h). What is known of each segment is a column of means,
 * NAN where nothing is. Pure.
 */
#pragma once

#include "daemon/core/diagnose/facts/facts.h"
#include "daemon/core/diagnose/facts/past_frames.h"

typedef double column[FACTS_SEGMENTS];

struct span {
	size_t count, older; /* the older ones come first: no frame of theirs could be read */
	uint64_t least_ns;   /* length of a segment, at least */
	size_t now;	     /* the first segment of now */
	bool is_usual[FACTS_SEGMENTS];
	bool has_usual, usual_is_now, warming_up;
	double slow_ms; /* a segment with longer frames is slow; NAN = not known */
	column paced;	/* what was usual is chosen by: the time of frames, or of one stage */
	struct segment {
		uint64_t from_ns, to_ns;
		size_t first, count; /* of the frames that were read */
	} segment[FACTS_SEGMENTS];
	column frames; /* in each; what means are weighted with */
};

/* The time since since_ns, as segments; frames are assigned to theirs, and now is known. */
void span_divide(
	struct span *span, const struct past_frames *past, uint64_t since_ns, uint64_t until_ns);
/* Decides what is usual by the time of frames (a copy), and its square where known; NULL = not. */
void span_choose(struct span *span, const double *frame_ms, const double *square);

/* The mean of now, and of what is usual. weights: NULL = segments count alike. */
struct fact span_fact(const struct span *span, const double *means, const double *weights);
/* Seconds ago since which all segments are above the limit, or below it where sign is -1; NAN. */
double span_since(const struct span *span, const double *means, double sign, double limit);
/* Theil–Sen slope a second from a segment on, and the lower bound of its 95 % interval. */
void span_slope(const struct span *span, size_t from, const double *means, double *slope,
	double *slope_low);
/* Spearman's rank correlation; NAN below 8 segments, or when one of the two never changes. */
double span_match(const struct span *span, const double *means, const double *others);
/* In seconds, from the start of a segment to the end of all. */
double span_length_s(const struct span *span, size_t from);
