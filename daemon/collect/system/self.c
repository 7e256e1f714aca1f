/* SPDX-License-Identifier: Apache-2.0 */
/* self.c: measures the daemon itself: self/… from core's counters, the history pool and the
 * machine's own proc/self/status (memory), CPU in percent of one core from
 * CLOCK_PROCESS_CPUTIME_ID, which is finer than the ticks of proc/self/stat; wakeups are the
 * kernel's switches of all threads, over the last ten samples. No own keys. */
#include "daemon/collect/sched/registry.h"

#include <stddef.h>
#include <sys/resource.h>
#include <time.h>

#include "daemon/collect/lib/device_file.h"
#include "daemon/collect/lib/kernel_text.h"
#include "daemon/collect/lib/naming.h"
#include "daemon/core/history/history.h"
#include "daemon/core/metrics/metrics.h"
#include "daemon/core/status/broker_status.h"
#include "daemon/core/status/counters.h"
#include "daemon/core/status/persist_status.h"
#include "daemon/core/timeline/timeline.h"

/* Lines of proc/self/status. */
static const struct {
	const char *name, *key;
} memory_table[] = {
	{"self/rss", "VmRSS:"},
	{"self/anonymous", "RssAnon:"},
	{"self/shared", "RssShmem:"},
	{"self/peak_rss", "VmHWM:"},
};

/* Members of struct counters, exposed as they are. */
static const struct {
	const char *name;
	enum unit unit;
	size_t offset;
} counter_table[] = {
	{"self/events_received", UNIT_COUNT, offsetof(struct counters, events_received)},
	{"self/events_dropped", UNIT_COUNT, offsetof(struct counters, events_dropped)},
	{"self/events_invalid", UNIT_COUNT, offsetof(struct counters, events_invalid)},
	{"self/drains", UNIT_COUNT, offsetof(struct counters, drains)},
	{"self/attaches", UNIT_COUNT, offsetof(struct counters, attaches)},
	{"self/attaches_refused", UNIT_COUNT, offsetof(struct counters, attaches_refused)},
	{"self/api_connections", UNIT_COUNT, offsetof(struct counters, api_connections)},
	{"self/api_refused", UNIT_COUNT, offsetof(struct counters, api_refused)},
	{"self/api_calls", UNIT_COUNT, offsetof(struct counters, api_calls)},
	{"self/api_errors", UNIT_COUNT, offsetof(struct counters, api_errors)},
	{"self/api_bytes_queued", UNIT_BYTES, offsetof(struct counters, api_bytes_queued)},
};

enum other {
	CPU,
	WAKEUPS,
	LOOP_LAG_MAX,
	METRIC_COUNT,
	METRICS_REFUSED,
	TIMELINE,
	INTERVAL,
	PERSIST_BAD,
	PERSIST_WRITTEN,
	DROPPED_RATE,
	BROKER_IS_AWAY,
	OTHERS
};

static const struct metric_row other_table[OTHERS] = {
	[CPU] = {"self/cpu", UNIT_PERCENT},
	[WAKEUPS] = {"self/wakeups", UNIT_PER_SECOND},
	[LOOP_LAG_MAX] = {"self/loop_lag_max", UNIT_MICROSECONDS},
	[METRIC_COUNT] = {"self/metrics", UNIT_COUNT},
	[METRICS_REFUSED] = {"self/metrics_refused", UNIT_COUNT},
	[TIMELINE] = {"self/timeline_entries", UNIT_COUNT},
	[INTERVAL] = {"self/sampling_interval", UNIT_SECONDS},
	[PERSIST_BAD] = {"self/history_degraded", UNIT_BOOL},
	[PERSIST_WRITTEN] = {"self/history_written_bytes", UNIT_BYTES},
	[DROPPED_RATE] = {"self/events_dropped_rate", UNIT_PER_SECOND},
	[BROKER_IS_AWAY] = {"self/broker_away", UNIT_BOOL},
};

enum pool { SIZE, USED, ROWS, SAMPLES, EVICTED, BYTES_PER_SAMPLE, POOLS };

static const struct metric_row pool_table[POOLS] = {
	[SIZE] = {"self/history_size", UNIT_BYTES},
	[USED] = {"self/history_used", UNIT_BYTES},
	[ROWS] = {"self/history_rows", UNIT_COUNT},
	[SAMPLES] = {"self/history_samples", UNIT_COUNT},
	[EVICTED] = {"self/history_evicted_blocks", UNIT_COUNT},
	[BYTES_PER_SAMPLE] = {"self/history_bytes_per_sample", UNIT_NONE},
};

enum {
	MEMORIES = sizeof(memory_table) / sizeof(memory_table[0]),
	COUNTERS = sizeof(counter_table) / sizeof(counter_table[0]),
};

enum { WOKEN_SAMPLES = 10 };

struct self {
	struct device_file status;
	struct metric *memory[MEMORIES];
	struct metric *counter[COUNTERS];
	struct metric *other[OTHERS];
	struct metric *pool[POOLS];	/* without a history: none */
	uint64_t t_ns, cpu_ns, dropped; /* of the last sample; t_ns 0 = first */
	size_t woken_samples;
	struct {
		uint64_t t_ns, switches;
	} woken[WOKEN_SAMPLES];
};

static int self_open(const struct collector_context *ctx, void *state)
{
	struct metrics *metrics = ctx->core->metrics;
	struct self *self = state;
	device_file_init(&self->status, true, "proc/self/status");
	int r = 0;
	for (size_t i = 0; i < MEMORIES && r == 0; i++) {
		r = metrics_add(
			metrics, ctx->source, memory_table[i].name, UNIT_BYTES, &self->memory[i]);
	}
	for (size_t i = 0; i < COUNTERS && r == 0; i++) {
		r = metrics_add(metrics, ctx->source, counter_table[i].name, counter_table[i].unit,
			&self->counter[i]);
	}
	r = r < 0 ? r : metric_rows_add(ctx, other_table, OTHERS, self->other);
	if (r == 0 && ctx->core->history) {
		r = metric_rows_add(ctx, pool_table, POOLS, self->pool);
	}
	return r;
}

static void set_memory(const struct collector_context *ctx, struct self *self)
{
	char text[4096];
	ssize_t n = device_file_read(&self->status, ctx->real_root, text, sizeof(text));
	for (size_t i = 0; i < MEMORIES; i++) {
		double value = 0;
		int r = n < 0 ? (int)n : kernel_bytes(text, memory_table[i].key, &value);
		metric_set_or_null(self->memory[i], value, r == 0 ? NULL : errno_reason(r));
	}
}

/* seconds 0: there is no earlier sample. */
static void set_rate(struct metric *metric, double delta, double seconds)
{
	bool known = seconds > 0;
	metric_set_or_null(metric, known ? delta / seconds : 0, known ? NULL : "needs two samples");
}

/* A few a second: over one second alone the number would jump. */
static void set_wakeups(struct self *self, uint64_t now_ns)
{
	struct rusage usage;
	(void)getrusage(RUSAGE_SELF, &usage); /* cannot fail */
	const uint64_t switches = (uint64_t)usage.ru_nvcsw + (uint64_t)usage.ru_nivcsw;
	const size_t next = self->woken_samples++ % WOKEN_SAMPLES;
	const size_t first = self->woken_samples > WOKEN_SAMPLES ? next : 0;
	const uint64_t t_ns = self->woken[first].t_ns;
	const double delta = (double)(switches - self->woken[first].switches);
	set_rate(self->other[WAKEUPS], delta,
		t_ns != 0 && now_ns > t_ns ? (double)(now_ns - t_ns) / 1e9 : 0);
	self->woken[next].t_ns = now_ns;
	self->woken[next].switches = switches;
}

static void set_rates(struct self *self, struct counters *counters, uint64_t now_ns)
{
	struct timespec ts;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	const uint64_t dropped = counters->events_dropped; /* since their app was attached */
	const uint64_t cpu_ns = (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
	const bool second = self->t_ns != 0 && now_ns > self->t_ns;
	const double seconds = second ? (double)(now_ns - self->t_ns) / 1e9 : 0;
	set_rate(self->other[CPU], (double)(cpu_ns - self->cpu_ns) / 1e9 * 100, seconds);
	set_wakeups(self, now_ns);
	set_rate(self->other[DROPPED_RATE], (double)(dropped - self->dropped), seconds);
	self->t_ns = now_ns;
	self->cpu_ns = cpu_ns;
	self->dropped = dropped;
	metric_set(self->other[LOOP_LAG_MAX], counters->loop_lag_max_us);
	counters->loop_lag_max_us = 0;
}

static void set_pool(const struct collector_context *ctx, struct self *self)
{
	if (!ctx->core->history) {
		return;
	}
	struct history_usage usage;
	history_usage(ctx->core->history, &usage);
	metric_set(self->pool[SIZE], (double)usage.size);
	metric_set(self->pool[USED], (double)usage.used);
	metric_set(self->pool[ROWS], (double)usage.rows);
	metric_set(self->pool[SAMPLES], (double)usage.samples);
	metric_set(self->pool[EVICTED], (double)usage.evicted_blocks);
	const double bytes = usage.tier[HISTORY_FULL].bytes_per_sample;
	metric_set_or_null(
		self->pool[BYTES_PER_SAMPLE], bytes, isnan(bytes) ? "the history is empty" : NULL);
}

static void set_broker(const struct core *core, struct metric *away)
{
	const enum broker_state state = core->broker ? core->broker->state : BROKER_OFF;
	metric_set_or_null(
		away, state != BROKER_CONNECTED, state == BROKER_OFF ? "MQTT is off" : NULL);
}

/* History that is not asked to survive a reboot is not degraded, either. */
static void set_persistence(const struct core *core, struct self *self)
{
	const struct persist_status *status = core->persist;
	const bool off = !status || status->state == PERSIST_OFF;
	metric_set_or_null(self->other[PERSIST_BAD], !off && persist_is_degraded(status),
		off ? "[history] persist is off" : NULL);
	metric_set(self->other[PERSIST_WRITTEN], status ? (double)status->written_bytes : 0);
}

static int self_sample(const struct collector_context *ctx, void *state)
{
	struct self *self = state;
	const struct core *core = ctx->core;
	set_memory(ctx, self);
	for (size_t i = 0; i < COUNTERS; i++) {
		const uint64_t *value =
			(const uint64_t *)(const void *)((const char *)core->counters +
							 counter_table[i].offset);
		metric_set(self->counter[i], (double)*value);
	}
	set_rates(self, core->counters, ctx->now_ns);
	set_pool(ctx, self);
	limits_sample(core);
	metric_set(self->other[METRIC_COUNT], (double)metrics_count(core->metrics));
	metric_set(self->other[METRICS_REFUSED], (double)metrics_refused(core->metrics));
	set_persistence(core, self);
	metric_set(self->other[TIMELINE], (double)timeline_last_serial(core->timeline));
	set_broker(core, self->other[BROKER_IS_AWAY]);
	metric_set(self->other[INTERVAL], (double)core->counters->sampling_interval_ns / 1e9);
	return 0;
}

const struct collector_ops collector_self = {
	.name = "self",
	.internal = true,
	.state_size = sizeof(struct self),
	.open = self_open,
	.sample = self_sample,
	.close = device_file_close_state,
};
