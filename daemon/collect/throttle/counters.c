/* SPDX-License-Identifier: Apache-2.0 */
/* counters.c: sees throttling in counters of events since boot. Intel's are
 * sys/devices/system/cpu/cpu<n>/thermal_throttle: a count moves when an episode begins, its
 * total_time_ms when it ends, and between the two the processor throttles. SMT siblings show the
 * counter of their core, all cores that of their package: each is read once. A Jetson's are
 * oc<n>_event_cnt of the hwmon soctherm_oc: oc1 is under-voltage, oc2 average and oc3 instantaneous
 * over-current. An Orin at full power has some each second, as designed (0.9 % of the time at half
 * clock), so they are rates and do not make `active`. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/collect/lib/gauge.h"
#include "daemon/collect/throttle/detector.h"
#include "daemon/util/parse.h"

enum { X86_KEPT = 64, SOCTHERM_MAX = 8 };

/* A counter of a core or package; the element behind it is its total_time_ms. */
struct counter {
	struct gauge gauge;
	bool package;
	long long package_id, core_id; /* core_id -1: of the package */
	double last_count, last_time;  /* -1 = none */
	uint64_t since_ns;	       /* of the episode that has not ended; 0 = none */
};

struct x86 {
	struct gauges counters;
	uint64_t t_ns; /* of the previous sample; 0 = none */
	struct metric *rate, *core, *package;
};

static const struct gauge_kind number = {0};

static bool has_counter(
	const struct gauges *counters, bool package, long long package_id, long long core_id)
{
	for (size_t i = 0; i < counters->count; i += 2) {
		const struct counter *counter = gauges_at(counters, i);
		if (counter->package == package && counter->package_id == package_id &&
			(package || counter->core_id == core_id)) {
			return true;
		}
	}
	return false;
}

static void add_counter(struct gauges *counters, const char *cpu, bool package,
	long long package_id, long long core_id)
{
	const char *what = package ? "package" : "core";
	long long value;
	if (has_counter(counters, package, package_id, core_id) ||
		device_number(counters->root, &value, "%s/thermal_throttle/%s_throttle_count", cpu,
			what) < 0) {
		return;
	}
	struct counter *counter = gauges_add(
		counters, &number, "", "%s/thermal_throttle/%s_throttle_count", cpu, what);
	if (counter) {
		counter->package = package;
		counter->package_id = package_id;
		counter->core_id = core_id;
		counter->last_count = counter->last_time = -1;
		(void)gauges_add(counters, &number, "",
			"%s/thermal_throttle/%s_throttle_total_time_ms", cpu, what);
	}
}

static void add_cpu(void *ctx, const struct root *root, const char *path, const char *name)
{
	uint64_t cpu;
	long long package = -1, core = -1;
	if (parse_u64(name + strlen("cpu"), &cpu) < 0) {
		return;
	}
	if (device_number(root, &package, "%s/topology/physical_package_id", path) < 0) {
		package = -1;
	}
	/* A core that does not report its number is one of its own. */
	if (device_number(root, &core, "%s/topology/core_id", path) < 0 || core < 0) {
		core = -2 - (long long)cpu;
	}
	add_counter(ctx, path, false, package, core);
	add_counter(ctx, path, true, package, -1);
}

static int x86_probe(void *state, struct throttle_search *search)
{
	struct gauges *counters = state;
	int r = device_each(search->root, "sys/devices/system/cpu", "cpu", add_cpu, counters);
	if (r == -ENOMEM) {
		return r;
	}
	throttle_add_tried(search->status, "thermal_throttle counters", "%s",
		counters->count > 0 ? "used" : "absent");
	return (int)(counters->count / 2);
}

static int x86_name(void *state, struct naming *naming)
{
	struct x86 *x86 = state;
	if (x86->counters.count == 0) {
		return 0;
	}
	int r = naming_add_exact(naming, "throttle/events_rate", UNIT_PER_SECOND, &x86->rate);
	r = r < 0 ? r : naming_add_exact(naming, "throttle/core_events", UNIT_COUNT, &x86->core);
	return r < 0 ? r
		     : naming_add_exact(
			       naming, "throttle/package_events", UNIT_COUNT, &x86->package);
}

/* The events since the previous sample, -1 when they are not known; follows the episode. */
static double step(struct counter *counter, const struct gauge *time, uint64_t now_ns)
{
	double value = counter->gauge.number;
	double last = counter->last_count, last_time = counter->last_time;
	if (counter->gauge.result < 0 || value < 0) {
		counter->last_count = -1;
		counter->since_ns = 0;
		return -1;
	}
	bool has_time = time->result == 0;
	counter->last_count = value;
	counter->last_time = has_time ? time->number : -1;
	if (last < 0 || value < last) {
		return -1;
	}
	if (value > last) {
		counter->since_ns = now_ns;
	}
	bool ended = !has_time || last_time < 0 || time->number != last_time ||
		     now_ns - counter->since_ns > THROTTLE_X86_EPISODE_NS;
	if (ended) {
		counter->since_ns = 0;
	}
	return value - last;
}

static void x86_sample(void *state, struct throttle_status *status, uint64_t now_ns)
{
	struct x86 *x86 = state;
	double events = 0, sum[2] = {0, 0};
	bool known = false, on = false;
	if (x86->counters.count == 0) {
		return;
	}
	for (size_t i = 0; i < x86->counters.count; i += 2) {
		struct counter *counter = gauges_at(&x86->counters, i);
		double delta = step(counter, gauges_at(&x86->counters, i + 1), now_ns);
		sum[counter->package] += counter->last_count > 0 ? counter->last_count : 0;
		if (delta >= 0) {
			known = true;
			events += delta;
			on = on || delta > 0 || counter->since_ns != 0;
		}
	}
	metric_set(x86->core, sum[false]);
	metric_set(x86->package, sum[true]);
	double seconds = x86->t_ns != 0 ? (double)(now_ns - x86->t_ns) / 1e9 : 0;
	x86->t_ns = now_ns;
	if (!known || seconds <= 0) {
		metric_set_null(x86->rate, "needs two samples");
		status->flag[THROTTLE_THROTTLED].reason = "needs two samples";
		status->flag[THROTTLE_ACTIVE].reason = "needs two samples";
		return;
	}
	metric_set(x86->rate, events / seconds);
	throttle_join(status, THROTTLE_THROTTLED, on);
	throttle_join(status, THROTTLE_ACTIVE, on);
	throttle_add_source(status, "thermal_throttle");
}

const struct throttle_detector throttle_x86 = {
	.size = sizeof(struct x86),
	.element_size = sizeof(struct counter),
	.kept = X86_KEPT,
	.probe = x86_probe,
	.name = x86_name,
	.sample = x86_sample,
};

/* oc<n>_event_cnt. */
struct event {
	struct gauge gauge;
	enum throttle_flag flag;
	double last; /* -1 = none */
};

struct soctherm {
	struct gauges events;
	uint64_t t_ns; /* of the previous sample; 0 = none */
};

static int soctherm_probe(void *state, struct throttle_search *search)
{
	static const struct gauge_kind rate = {.unit = UNIT_PER_SECOND};
	struct gauges *events = state;
	char folder[DEVICE_FILE_PATH], name[GAUGE_NAME_SIZE];
	int r = device_find_hwmon(search->root, "soctherm_oc", folder);
	for (int n = 1; r == 0 && n <= SOCTHERM_MAX; n++) {
		snprintf(name, sizeof(name), "throttle/oc%d_rate", n);
		struct event *event =
			gauges_add_existing(events, &rate, name, "%s/oc%d_event_cnt", folder, n);
		if (event) {
			event->flag = n == 1 ? THROTTLE_UNDER_VOLTAGE : THROTTLE_OVER_CURRENT;
			event->last = -1;
		}
	}
	if (r == -ENOMEM) {
		return r;
	}
	throttle_add_tried(search->status, "hwmon soctherm_oc", "%s",
		events->count > 0 ? "used for rates" : "absent");
	return (int)events->count;
}

static int soctherm_name(void *state, struct naming *naming)
{
	return gauges_name(state, naming);
}

static void soctherm_sample(void *state, struct throttle_status *status, uint64_t now_ns)
{
	struct soctherm *soctherm = state;
	double seconds = soctherm->t_ns != 0 ? (double)(now_ns - soctherm->t_ns) / 1e9 : 0;
	bool known = false;
	for (size_t i = 0; i < soctherm->events.count; i++) {
		struct event *event = gauges_at(&soctherm->events, i);
		struct metric *rate = event->gauge.metric;
		double value = event->gauge.number, last = event->last;
		int r = event->gauge.result;
		const char *why = r < 0			     ? device_file_reason(r)
				  : value < 0		     ? "out of range"
				  : last < 0 || seconds <= 0 ? "needs two samples"
				  : value < last	     ? "counter went back"
							     : NULL;
		event->last = r < 0 || value < 0 ? -1 : value;
		metric_set_or_null(rate, why ? 0 : (value - last) / seconds, why);
		if (!why) {
			throttle_join(status, event->flag, value > last);
			known = true;
		}
	}
	soctherm->t_ns = now_ns;
	if (known) {
		throttle_add_source(status, "soctherm_oc");
	} else if (soctherm->events.count > 0) {
		status->flag[THROTTLE_OVER_CURRENT].reason = "needs two samples";
	}
}

const struct throttle_detector throttle_soctherm = {
	.size = sizeof(struct soctherm),
	.element_size = sizeof(struct event),
	.probe = soctherm_probe,
	.name = soctherm_name,
	.sample = soctherm_sample,
};
