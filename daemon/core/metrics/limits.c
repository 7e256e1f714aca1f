/* Names of what has a limit, and what of it belongs to no layer above core. */
#include "daemon/core/metrics/limits.h"

#include "daemon/core/apps/trace_buffer.h"
#include "daemon/core/core.h"
#include "daemon/core/stages/app_stages.h"

static const struct {
	const char *name;
	enum unit unit;
} table[CAPPED_COUNT] = {
	[CAPPED_HISTORY] = {"history", UNIT_BYTES},
	[CAPPED_RECORDS] = {"records", UNIT_BYTES},
	[CAPPED_STAGES] = {"stages", UNIT_BYTES},
	[CAPPED_MAPPINGS] = {"mappings", UNIT_BYTES},
	[CAPPED_ANSWERS] = {"answers", UNIT_BYTES},
	[CAPPED_CONNECTIONS] = {"connections", UNIT_COUNT},
	[CAPPED_METRICS] = {"metrics", UNIT_COUNT},
	[CAPPED_MQTT] = {"mqtt_queue", UNIT_COUNT},
};

const char *capped_name(enum capped_what what)
{
	return table[what].name;
}

enum unit capped_unit(enum capped_what what)
{
	return table[what].unit;
}

void capped_look(const struct core *core)
{
	struct capped *capped = core->counters->capped;
	if (core->history) {
		size_t size, used;
		history_bytes(core->history, &size, &used);
		capped[CAPPED_HISTORY].limit = size;
		capped_use(&capped[CAPPED_HISTORY], used);
	}
	if (core->apps) {
		struct events_usage records;
		const struct stage_budget *stages = apps_stage_budget(core->apps);
		apps_events_usage(core->apps, &records);
		capped[CAPPED_RECORDS].limit = records.bytes;
		capped_use(&capped[CAPPED_RECORDS], records.used_bytes);
		capped[CAPPED_STAGES].limit = stages->limit;
		capped_use(&capped[CAPPED_STAGES], stages->used + stages->past);
	}
	capped[CAPPED_METRICS].limit = METRICS_MAX;
	capped_use(&capped[CAPPED_METRICS], metrics_count(core->metrics));
}
