/* SPDX-License-Identifier: Apache-2.0 */
/* counters.c: names the limits, and samples those whose resources belong to core. */
#include "daemon/core/status/counters.h"

#include "daemon/core/apps/apps.h"
#include "daemon/core/core.h"
#include "daemon/core/frames/trace_buffer.h"
#include "daemon/core/history/history.h"
#include "daemon/core/metrics/metrics.h"

static const struct {
	const char *name;
	enum unit unit;
} limits[LIMIT_COUNT] = {
	[LIMIT_HISTORY] = {"history", UNIT_BYTES},
	[LIMIT_RECORDS] = {"records", UNIT_BYTES},
	[LIMIT_STAGES] = {"stages", UNIT_BYTES},
	[LIMIT_MAPPINGS] = {"mappings", UNIT_BYTES},
	[LIMIT_ANSWERS] = {"answers", UNIT_BYTES},
	[LIMIT_CONNECTIONS] = {"connections", UNIT_COUNT},
	[LIMIT_METRICS] = {"metrics", UNIT_COUNT},
	[LIMIT_MQTT] = {"mqtt_queue", UNIT_COUNT},
};

const char *limit_name(enum limit_id id)
{
	return limits[id].name;
}

enum unit limit_unit(enum limit_id id)
{
	return limits[id].unit;
}

void limits_sample(const struct core *core)
{
	struct limit *limit = core->counters->limits;
	if (core->history) {
		size_t size, used;
		history_bytes(core->history, &size, &used);
		limit[LIMIT_HISTORY].max = size;
		limit_use(&limit[LIMIT_HISTORY], used);
	}
	if (core->apps) {
		struct trace_usage records;
		const struct stage_budget *stages = apps_stage_budget(core->apps);
		apps_trace_usage(core->apps, &records);
		limit[LIMIT_RECORDS].max = records.bytes;
		limit_use(&limit[LIMIT_RECORDS], records.used_bytes);
		limit[LIMIT_STAGES].max = stages->limit;
		limit_use(&limit[LIMIT_STAGES], stages->used + stages->past);
	}
	limit[LIMIT_METRICS].max = METRICS_MAX;
	limit_use(&limit[LIMIT_METRICS], metrics_count(core->metrics));
}
