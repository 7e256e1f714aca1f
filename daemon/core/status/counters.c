/* SPDX-License-Identifier: Apache-2.0 */
/* counters.c: names the limits, samples those whose resources belong to core, and keeps the last
 * rejected processes and the longest iterations of the loop: those of the last minute stand in a
 * ring of spans of ten seconds. */
#include "daemon/core/status/counters.h"

#include <stdio.h>
#include <string.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/core.h"
#include "daemon/core/frames/trace_buffer.h"
#include "daemon/core/history/history.h"
#include "daemon/core/metrics/metrics.h"

#define SPAN_NS UINT64_C(10000000000)

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
	[LIMIT_EVENT_CONNECTIONS] = {"event_connections", UNIT_COUNT},
	[LIMIT_APPS] = {"apps", UNIT_COUNT},
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
		const struct stage_budget *stages = &apps_counts(core->apps)->stage_budget;
		apps_trace_usage(core->apps, &records);
		limit[LIMIT_RECORDS].max = records.bytes;
		limit_use(&limit[LIMIT_RECORDS], records.used_bytes);
		limit[LIMIT_STAGES].max = stages->limit;
		limit_use(&limit[LIMIT_STAGES], stages->used + stages->past);
		limit[LIMIT_APPS].max = APPS_OWN_MAX;
		limit_use(&limit[LIMIT_APPS], apps_running(core->apps, NULL));
	}
	limit[LIMIT_METRICS].max = METRICS_OWN_MAX;
	limit_use(&limit[LIMIT_METRICS], metrics_count(core->metrics));
}

bool rejected_attaches_add(struct rejected_attaches *rejected, const char *app, uid_t uid,
	pid_t pid, const char *reason, uint64_t now_ns)
{
	struct rejected_attach new = {.uid = uid, .pid = pid, .count = 1, .last_ns = now_ns};
	snprintf(new.app, sizeof(new.app), "%s", app);
	snprintf(new.reason, sizeof(new.reason), "%s", reason);
	struct rejected_attach *oldest = &rejected->entry[0];
	for (size_t i = 0; i < rejected->count; i++) {
		struct rejected_attach *entry = &rejected->entry[i];
		if (entry->uid == uid && strcmp(entry->app, new.app) == 0 &&
			strcmp(entry->reason, new.reason) == 0) {
			entry->pid = pid;
			entry->count++;
			entry->last_ns = now_ns;
			return false;
		}
		oldest = entry->last_ns < oldest->last_ns ? entry : oldest;
	}
	if (rejected->count < REJECTED_ATTACHES_MAX) {
		oldest = &rejected->entry[rejected->count++];
	}
	*oldest = new;
	return true;
}

void rejected_attaches_forget(struct rejected_attaches *rejected, const char *app, uid_t uid)
{
	uint32_t kept = 0;
	for (size_t i = 0; i < rejected->count; i++) {
		const struct rejected_attach *entry = &rejected->entry[i];
		if (entry->uid != uid || strcmp(entry->app, app) != 0) {
			rejected->entry[kept++] = *entry;
		}
	}
	rejected->count = kept;
}

const uint32_t loop_bound_us[LOOP_BOUNDS] = {500, 1000, 2000, 5000, 10000, 20000, 50000, 100000};

static void spans_move(struct loop_load *load, uint64_t now_ns)
{
	uint64_t span = now_ns / SPAN_NS;
	for (unsigned i = 0; load->span < span && i < LOOP_SPANS; i++) {
		uint64_t next =
			span - load->span > LOOP_SPANS ? span - LOOP_SPANS + 1 : load->span + 1;
		load->span_us[next % LOOP_SPANS] = 0;
		load->span = next;
	}
}

void loop_load_add(struct loop_load *load, uint32_t busy_us, uint64_t now_ns)
{
	unsigned bound = 0;
	while (bound < LOOP_BOUNDS && busy_us > loop_bound_us[bound]) {
		bound++;
	}
	load->count[bound]++;
	spans_move(load, now_ns);
	uint32_t *longest_us = &load->span_us[load->span % LOOP_SPANS];
	*longest_us = busy_us > *longest_us ? busy_us : *longest_us;
	load->longest_us = busy_us > load->longest_us ? busy_us : load->longest_us;
}

uint32_t loop_load_minute(struct loop_load *load, uint64_t now_ns)
{
	uint32_t longest_us = 0;
	spans_move(load, now_ns);
	for (unsigned i = 0; i < LOOP_SPANS; i++) {
		longest_us = load->span_us[i] > longest_us ? load->span_us[i] : longest_us;
	}
	return longest_us;
}
