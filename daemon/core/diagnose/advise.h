/* SPDX-License-Identifier: Apache-2.0 */
/*
 * advise.h: declares what can be said of an app beyond what is wrong with it: what the machine is
 * short of, which stages are worth optimising, what grows, and what to do, the most useful first.
 * Pure: tests write facts down as literals.
 */
#pragma once

#include "daemon/core/diagnose/rules/diagnose.h"

enum {
	ADVICE_BOTTLENECKS = 4,
	ADVICE_TRENDS = 8,
	ADVICE_RECOMMENDATIONS = 16,
	ADVICE_RUN_S = 10, /* a shorter run is reported as too short */
};

/* Limits above which something is reported. Shares are percent of the time in stages;
 * category_share is percent of the time in the stage's category. */
struct diagnosis_limits {
	double cpu_bound, memory_bound, thermal; /* of means; percent, percent, celsius */
	double high_priority, medium_priority;	 /* medium: from it on */
	double category_share, infer_share, preprocess_share, memory_share;
};

extern const struct diagnosis_limits diagnosis_limits_default;

/* A stage by its share of the time of a frame. */
struct opportunity {
	const char *stage, *priority; /* "HIGH", "MEDIUM", "LOW" */
	const char *advice;	      /* static; NULL: no rule holds */
	double share_percent;	      /* of the time in stages */
	double category_percent;      /* of its category's; NAN: it has none */
	double gain_low, gain_high;   /* percent of a frame; NAN: no rule of thumb */
	char text[192];		      /* "" = no rule holds */
};

struct trend {
	const char *metric;
	double per_hour, per_hour_least; /* the bound of its 95 % interval that is closer to 0 */
	char text[160];
};

/* Points into the facts that it was made of. Empty when they are of too few frames. */
struct improvements {
	size_t bottlenecks, opportunities, trends, recommendations;
	const char *bottleneck[ADVICE_BOTTLENECKS];   /* "cpu_bound" */
	struct opportunity opportunity[FACTS_STAGES]; /* the greatest share first */
	struct trend trend[ADVICE_TRENDS];
	char recommendation[ADVICE_RECOMMENDATIONS][192];
};

/* "insufficient_data", "healthy", "findings". */
const char *diagnosis_state_name(enum diagnosis_state state);

void advise(const struct facts *facts, const struct diagnosis *diagnosis,
	const struct diagnosis_limits *limits, struct improvements *ret);
