/* The values behind a name in a line of tegrastats. All are true only when the whole word fits. */
#pragma once

#include <stdbool.h>

#include "proto/tegrastats/scan.h"
#include "proto/tegrastats/tegrastats.h"

/* What an engine, the memory controller or the GPU tells. */
struct tegrastats_reading {
	bool off;
	bool bare;     /* a number without any sign: could be a torn word of something else */
	bool too_much; /* a percentage over 100 was left out */
	int64_t load_percent;
	int64_t freq_mhz[TEGRASTATS_GPCS]; /* more are only checked */
	size_t freqs;
};

/* off | f | n% | @f | n%@f | [n%]@[f,f] | [n%,n%]@f */
bool tegrastats_read_engine(struct scan word, struct tegrastats_reading *ret);

/* now[mW][/average[mW][/peak[mW]]]; a single number needs its unit. */
bool tegrastats_read_power(struct scan word, struct tegrastats_rail *ret, bool *has_unit);

/* 45.5C | 45.5C/52C | -256C */
bool tegrastats_read_temp(struct scan word, struct tegrastats_temp *ret);

/* used/total and the unit, which must follow. */
bool tegrastats_read_pair(struct scan *word, const char *unit, int64_t *used, int64_t *total);

/* "[core,core]" and an optional "@f" off the front: blanks within are fine. False, and no core,
 * unless the list is closed. *odd counts cores that made no sense, which keep their place, and
 * those beyond TEGRASTATS_CPUS. */
bool tegrastats_read_cpus(struct scan *line, struct tegrastats *ret, size_t *odd);
