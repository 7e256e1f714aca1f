/* What has a limit (design, section 14): how much of each is used, and the most it ever was.
 * GetSelf tells them. Who owns one of them says what it holds; the rest is looked at once a sample.
 */
#pragma once

#include <stdint.h>

#include "daemon/core/metrics/unit.h"

struct core;

enum capped_what {
	CAPPED_HISTORY,
	CAPPED_RECORDS,
	CAPPED_STAGES,
	CAPPED_MAPPINGS,
	CAPPED_ANSWERS,
	CAPPED_CONNECTIONS,
	CAPPED_METRICS,
	CAPPED_MQTT,
	CAPPED_COUNT
};

/* limit 0: it is not there, as MQTT without a broker. */
struct capped {
	uint64_t used, high_water, limit;
};

const char *capped_name(enum capped_what what);
enum unit capped_unit(enum capped_what what); /* bytes or count */

static inline void capped_use(struct capped *capped, uint64_t used)
{
	capped->used = used;
	capped->high_water = used > capped->high_water ? used : capped->high_water;
}

/* Takes over what core itself can see: history, records, stages, metrics. These hardly shrink, so
 * that the most of all samples is the most there was. */
void capped_look(const struct core *core);
