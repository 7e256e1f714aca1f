/* limits.h: holds how much of each limit is used, and the maximum there ever was, for GetSelf. The
 * owner of a resource writes its row; limits_sample() writes those of core itself. */
#pragma once

#include <stdint.h>

#include "daemon/core/metrics/unit.h"

struct core;

enum limit_id {
	LIMIT_HISTORY,
	LIMIT_RECORDS,
	LIMIT_STAGES,
	LIMIT_MAPPINGS,
	LIMIT_ANSWERS,
	LIMIT_CONNECTIONS,
	LIMIT_METRICS,
	LIMIT_MQTT,
	LIMIT_COUNT
};

/* max 0: the resource does not exist, as the MQTT queue without a broker. */
struct limit {
	uint64_t used, high_water, max;
};

const char *limit_name(enum limit_id id);
enum unit limit_unit(enum limit_id id); /* bytes or count */

static inline void limit_use(struct limit *limit, uint64_t used)
{
	limit->used = used;
	limit->high_water = used > limit->high_water ? used : limit->high_water;
}

/* Updates the rows of history, records, stages and metrics. These hardly shrink, so the maximum of
 * all samples is the maximum there was. */
void limits_sample(const struct core *core);
